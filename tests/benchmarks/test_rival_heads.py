"""benchmarks/rival_heads.py, sampled_ebv.py: a sample of all classes is FC, or EBV; of some, only their rows move."""

import pytest
import sampled_ebv  # noqa: F401, registers the names
import torch
from mmengine.registry import DefaultScope
from mmpretrain.registry import MODELS
from mmpretrain.structures import DataSample
from torch.nn.functional import cross_entropy

import ebv_mm

CLASSES, CHANNELS = 30, 5


def head_of(type='SampledClsHead', **kwargs):
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        head = MODELS.build(dict(type=type, num_classes=CLASSES, in_channels=CHANNELS, **kwargs))
    head.init_weights()
    return head


def trained(head, batches):
    head.optimizer = torch.optim.AdamW(head.parameters(), 0.1, weight_decay=0.1)
    head.optimizer.register_step_post_hook(head.after_step)
    for features, labels in batches:
        loss = head.loss((features,), [DataSample().set_gt_label(int(label)) for label in labels])['loss']
        head.optimizer.zero_grad()
        loss.backward()
        head.optimizer.step()
        yield loss.item(), head.classes


def some_batches(count=4, size=6):
    return [(torch.randn(size, CHANNELS), torch.randint(CLASSES, (size,))) for _ in range(count)]


def test_a_sample_of_all_classes_trains_as_fc():
    head, batches = head_of(rate=1.0, least=1), some_batches()
    weight, bias = (parameter.detach().clone().requires_grad_() for parameter in head.fc.parameters())
    optimizer = torch.optim.AdamW([weight, bias], 0.1, weight_decay=0.1)
    for (features, labels), (loss, _) in zip(batches, trained(head, batches)):
        expected = cross_entropy(features @ weight.T + bias, labels)
        assert loss == pytest.approx(expected.item(), rel=1e-5)
        optimizer.zero_grad()
        expected.backward()
        optimizer.step()
    torch.testing.assert_close(head.fc.weight.data, weight.data)
    torch.testing.assert_close(head.fc.bias.data, bias.data)
    torch.testing.assert_close(head.weight_exp_avg_sq, optimizer.state[weight]['exp_avg_sq'])
    features = torch.randn(3, CHANNELS)
    torch.testing.assert_close(head((features,)), (features @ weight.T + bias).detach())


def test_of_a_sample_only_its_rows_move_and_the_loss_is_among_them():
    head, batches = head_of(rate=0.3, least=6), some_batches()
    before = head.fc.weight.clone(), head.weight_exp_avg.clone()
    for (features, labels), (loss, classes) in zip(batches, trained(head, batches)):
        assert len(classes) == len(classes.unique()) == 9 and set(labels.tolist()) <= set(classes.tolist())
        logits = features @ before[0][classes].T
        places = torch.tensor([classes.tolist().index(label) for label in labels.tolist()])
        if not before[1].any():  # the first step: without biases, which begin at zero
            assert loss == pytest.approx(cross_entropy(logits, places).item(), rel=1e-5)
        others = torch.ones(CLASSES, dtype=torch.bool)
        others[classes] = False
        after = head.fc.weight.clone(), head.weight_exp_avg.clone()
        for old, new in zip(before, after):
            assert torch.equal(old[others], new[others]) and not torch.equal(old[classes], new[classes])
        before = after


def test_a_row_takes_its_moments_along():
    head = head_of(rate=0.2, least=6)
    steps = list(trained(head, some_batches(count=20)))
    # moments of a row that is fetched again are those that it left with
    head.classes = torch.arange(6)
    head._exchange(fetch=True)
    state = head.optimizer.state[head.sampled.weight]
    assert torch.equal(state['exp_avg'], head.weight_exp_avg[:6]) and head.weight_exp_avg[:6].any()
    assert len(steps) == 20


def test_errors_name_the_remedy():
    head = head_of(rate=0.1, least=3)
    with pytest.raises(ValueError, match='4 classes, but only 3 are taken; set least=5'):
        head.sample(torch.tensor([0, 1, 2, 3, 3]))
    samples = [DataSample().set_gt_label(0)]
    with pytest.raises(RuntimeError, match='SampledClassesHook'):
        head.loss((torch.randn(1, CHANNELS),), samples)


def ebv_head(tau=0.2, **kwargs):
    return head_of(type='SampledEBVClsHead', tau=tau, **kwargs)


def test_a_sample_of_all_dimensions_is_ebv_on_unit_vectors_with_a_norm():
    head, (features, labels) = ebv_head(rate=1.0, least=1), some_batches(1, size=16)[0]
    weight = head.fc.weight.clone()
    ((loss, _),) = trained(head, [(features, labels)])
    basis = dict(num_classes=CLASSES, dim=CLASSES, method='orthonormal', rotate=False)
    layer = ebv_mm.EBVLinear(
        CHANNELS, CLASSES, bias=False, basis=basis, tau=0.2, norm_cfg=dict(type='BN1d', affine=False)
    )
    layer.weight.data.copy_(weight)
    assert loss == pytest.approx(cross_entropy(layer(features), labels).item(), rel=1e-4)


def test_a_sample_of_all_cosines():
    head, (features, labels) = head_of('SampledCosineClsHead', tau=0.1, rate=1.0, least=1), some_batches(1)[0]
    x, rows = features / features.norm(dim=1, keepdim=True), head.fc.weight / head.fc.weight.norm(dim=1, keepdim=True)
    logits = x @ rows.T / 0.1
    torch.testing.assert_close(head((features,)), logits)
    ((loss, _),) = trained(head, [(features, labels)])
    assert loss == pytest.approx(cross_entropy(logits, labels).item(), rel=1e-5)


def test_the_norm_of_a_sample_is_that_of_all_dimensions_in_the_mean():
    head, x = ebv_head(rate=0.4, least=6), torch.randn(16, CHANNELS)
    u = torch.nn.functional.batch_norm(x @ head.fc.weight.T, None, None, training=True)
    labels, estimates = torch.arange(6), []
    for _ in range(2000):
        classes, _ = head.sample(labels)
        head.sampled.weight.data.copy_(head.fc.weight[classes])
        logits = head._sampled_logits(x, present=6)
        estimates.append((u[:, classes] / (logits * 0.2)).square().mean(1).detach())
    torch.testing.assert_close(torch.stack(estimates).mean(0), u.square().sum(1).detach(), rtol=0.05, atol=0)


def test_a_prediction_knows_the_statistics_of_all_rows():
    head, x = ebv_head(rate=0.2, least=6, momentum=1.0), torch.randn(64, CHANNELS) + 3
    head._keep_statistics(x)
    rows = x @ head.fc.weight.T
    u = (rows - rows.mean(0)) / rows.std(0)
    expected = u / (0.2 * u.norm(dim=1, keepdim=True))
    torch.testing.assert_close(head((x,)).detach(), expected.detach(), rtol=1e-4, atol=1e-4)
