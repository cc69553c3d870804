"""The margin of ArcFace on fixed vectors, against angles that are computed one by one."""

import math

import margin_ebv  # noqa: F401, registers the head
import pytest
import torch
from mmpretrain.registry import MODELS
from mmpretrain.structures import DataSample

CLASSES, CHANNELS, IMAGES, TAU = 6, 5, 40, 0.2


def head(margin: float):
    torch.manual_seed(0)
    basis = dict(num_classes=CLASSES, dim=3)
    loss = dict(type='CrossEntropyLoss')
    cfg = dict(num_classes=CLASSES, in_channels=CHANNELS, basis=basis, tau=TAU, margin=margin, loss=loss)
    return MODELS.build(dict(cfg, type='MarginEBVClsHead'))


@pytest.mark.parametrize('margin', [0.0, 0.2, 1.5])
def test_the_angle_to_the_true_vector_grows_by_the_margin(margin):
    layer, x, labels = head(margin), torch.randn(IMAGES, CHANNELS), torch.arange(IMAGES) % CLASSES
    v = (x @ layer.fc.weight.T + layer.fc.bias).detach().double()
    cosines = (v / v.norm(dim=1, keepdim=True)) @ layer.fc.vectors.double().T
    losses, beyond = [], 0
    for row, label in zip(cosines, labels):
        angle = math.acos(row[label])
        beyond += angle + margin > math.pi
        row[label] = (
            math.cos(angle + margin) if angle + margin <= math.pi else math.cos(angle) - margin * math.sin(margin)
        )
        losses.append(float((row / TAU).logsumexp(0) - row[label] / TAU))
    assert beyond or margin < 1
    samples = [DataSample().set_gt_label(int(label)) for label in labels]
    x.requires_grad_(True)
    loss = layer.loss((x,), samples)['loss']
    assert loss.item() == pytest.approx(sum(losses) / IMAGES, rel=1e-4)
    loss.backward()
    assert x.grad.isfinite().all() and x.grad.abs().sum() > 0
    # predictions are without it
    torch.testing.assert_close(layer((x,)), head(0.0)((x,)))


def test_an_embedding_on_its_vector_has_a_gradient_that_is_finite():
    layer = head(0.2)
    with torch.no_grad():
        layer.fc.weight.copy_(torch.eye(3, CHANNELS))
        layer.fc.bias.zero_()
    x = torch.zeros(2, CHANNELS)
    x[:, :3] = torch.stack([layer.fc.vectors[0], -layer.fc.vectors[0]])
    x.requires_grad_(True)
    layer.loss((x,), [DataSample().set_gt_label(0)] * 2)['loss'].backward()
    assert x.grad.isfinite().all()
