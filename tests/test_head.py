"""EBVHead: any module of a host with EBV layers where its classifiers are."""

import pytest
import torch
from mmengine.registry import DefaultScope
from torch import nn
from torch.nn import functional

from ebv_mm import EBVHead, EBVLinear
from ebv_mm.head import ebv_layer, find
from ebv_mm.packed import EBVAnchorConv2d, EBVConv1d


def build(scope: str, head: str, layer, basis=None, **kwargs) -> nn.Module:
    with DefaultScope.overwrite_default_scope(scope):
        return EBVHead(head, layer=layer, basis=basis or dict(num_classes=5, dim=6), **kwargs)


TOKENS = (torch.randn(2, 16), torch.randn(2, 16))
CLASSIFICATION = {
    'LinearClsHead': (dict(in_channels=16), 'fc', (torch.randn(2, 16),)),
    'VisionTransformerClsHead': (dict(in_channels=16), 'layers.head', (torch.randn(2, 16),)),
    'StackedLinearClsHead': (dict(in_channels=16, mid_channels=[8]), 'layers.-1.fc', (torch.randn(2, 16),)),
    'ConformerHead': (dict(in_channels=[16, 16]), ['conv_cls_head', 'trans_cls_head'], (TOKENS,)),
    'DeiTClsHead': (dict(in_channels=16), ['layers.head', 'layers.head_dist'], (TOKENS,)),
    'EfficientFormerClsHead': (dict(in_channels=16), ['head', 'dist_head'], (torch.randn(2, 16),)),
    'LeViTClsHead': (dict(in_channels=16), ['head.linear', 'head_dist.linear'], (torch.randn(2, 16),)),
    'VigClsHead': (dict(in_channels=16, hidden_dim=8), 'fc2', (torch.randn(2, 16),)),
}  # fmt: skip


@pytest.mark.parametrize('name', CLASSIFICATION)
def test_heads_of_mmpretrain(name):
    """Each classifier is replaced, passes gradients after init_weights, and predicts."""
    arguments, layer, feats = CLASSIFICATION[name]
    head = build('mmpretrain', name, layer, num_classes=5, **arguments)
    head.init_weights()
    paths = [layer] if isinstance(layer, str) else layer
    layers = [child for path in paths for _, _, child in find(head, path)]
    assert all(isinstance(each, EBVLinear) for each in layers)
    head.eval()
    out = head(feats)
    torch.stack(tuple(out) if isinstance(out, (tuple, list)) else (out,)).square().sum().backward()
    assert all(each.weight.grad.any() for each in layers)
    assert len(head.predict(feats)) == 2


def test_a_projection_that_the_host_sets_to_zero_would_never_learn():
    """ViT's head begins with zeros, a vector without direction; the projection begins as torch's linear layer."""
    head = build('mmpretrain', 'VisionTransformerClsHead', 'layers.head', num_classes=5, in_channels=16)
    head.init_weights()
    assert head.layers.head.weight.abs().max() <= 1 / 4 and head.layers.head.weight.std() > 0.05


def test_the_hosts_initialisation_stays():
    head = build('mmpretrain', 'LinearClsHead', 'fc', num_classes=5, in_channels=400)
    head.init_weights()
    assert head.fc.weight.std().item() == pytest.approx(0.01, rel=0.2)


def test_margins_are_kept():
    """ArcFace on fixed vectors: cosines, the target's with the margin, times the host's scale."""
    head = build(
        'mmpretrain', 'ArcFaceClsHead', 'norm_product', tau=1.0, num_classes=5, in_channels=16, scale=30.0, margins=0.5
    )
    x, target = torch.randn(4, 16), torch.tensor([0, 1, 2, 3])
    layer = head.norm_product
    cosines = functional.normalize(layer.weight @ x.T + layer.bias[:, None] if layer.bias is not None else
                                   layer.weight @ x.T, dim=0).T @ layer.basis.T  # fmt: skip
    torch.testing.assert_close(head((x,)), 30 * cosines)
    own = torch.arange(4), target
    assert (head((x,), target)[own] < head((x,))[own]).all()


def test_shared_layers_stay_shared_and_the_prior_outlasts_the_host():
    """Deformable DETR without refinement has one classifier for all layers of its decoder; its bias is the host's."""
    basis = dict(num_classes=5, dim=5)
    head = build('mmdet', 'DeformableDETRHead', 'cls_branches.*', basis, num_classes=5, prior=0.01, num_pred_layer=3,
                 share_pred_layer=True, embed_dims=8, loss_cls=dict(type='FocalLoss', use_sigmoid=True))  # fmt: skip
    head.init_weights()
    layers = list(head.cls_branches)
    assert isinstance(layers[0], EBVLinear) and layers[0] is layers[1] is layers[2]
    scores = layers[0](torch.randn(100, 8)).sigmoid()
    assert scores.max() < 0.01  # equally far from all classes, below the prior


def test_a_spare_dimension_lets_sigmoids_begin_at_the_prior():
    layer = EBVLinear(8, 5, basis=dict(num_classes=6, dim=6), prior=0.01)
    nn.init.zeros_(layer.weight)
    torch.testing.assert_close(layer(torch.randn(3, 8)).sigmoid(), torch.full((3, 5), 0.01))
    assert layer.bias.norm().item() == pytest.approx(1 / 0.07, rel=1e-5)


def test_anchors_are_normalised_one_by_one():
    old = nn.Conv2d(4, 3 * 5, 3, padding=1)
    layer = ebv_layer(old, 5, dict(basis=dict(num_classes=5, dim=6), tau=0.1, prior=0.02))
    assert isinstance(layer, EBVAnchorConv2d) and layer.anchors == 3 and layer.dim == 6
    x = torch.randn(2, 4, 7, 8)
    v = functional.conv2d(x, layer.weight, layer.bias, padding=1).unflatten(1, (3, 6))
    prior = torch.tensor(0.02).logit()
    expected = torch.einsum('badhw,kd->bakhw', v / v.norm(dim=2, keepdim=True), layer.basis) / 0.1 + prior
    torch.testing.assert_close(layer(x), expected.flatten(1, 2))
    assert layer(x[:0]).shape == (0, 15, 7, 8)


def test_points():
    layer = ebv_layer(nn.Conv1d(4, 5, 1), None, dict(basis=dict(num_classes=5, dim=6), tau=0.1))
    assert isinstance(layer, EBVConv1d)
    x = torch.randn(2, 4, 9)
    v = torch.einsum('dc,bcp->bdp', layer.weight[..., 0], x) + layer.bias[:, None]
    torch.testing.assert_close(
        layer(x), torch.einsum('bdp,kd->bkp', v / v.norm(dim=1, keepdim=True), layer.basis) / 0.1
    )


@pytest.mark.parametrize(
    'layer, message',
    [('fc2', "has no layer 'fc2', but loss_module, fc"), ('loss_module', 'is no linear layer')],
)
def test_wrong_paths_say_what_there_is(layer, message):
    with pytest.raises(TypeError, match=message):
        build('mmpretrain', 'LinearClsHead', layer, num_classes=5, in_channels=16)


def test_each_layer_may_differ():
    layers = {'conv_seg': {}, 'se_layer': dict(prior=0.1)}
    head = build('mmseg', 'EncHead', layers, num_classes=5, in_channels=[16, 32, 64], in_index=[1, 2, 3], channels=8,
                 num_codes=4, norm_cfg=dict(type='BN'))  # fmt: skip
    assert head.conv_seg.prior is None and head.se_layer.prior == 0.1


@pytest.mark.parametrize('prior', [0.0, 1.0, 2, 'small'])
def test_a_prior_is_a_probability(prior):
    with pytest.raises(ValueError, match='prior = .* between 0 and 1'):
        EBVLinear(4, 5, basis=dict(num_classes=5, dim=5), prior=prior)
