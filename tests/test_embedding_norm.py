import copy

import pytest
import torch
from torch import nn

from ebv_mm import EBVConv2d, EBVLinear, fold

BASIS = dict(num_classes=11, dim=6)
BN1D, BN2D = dict(type='BN1d', affine=False), dict(type='BN2d')


def trained(layer, *shape):
    """A layer whose norm has seen some batches, and has weights of its own where it has any."""
    for _ in range(3):
        layer(2 + 3 * torch.randn(*shape))
    if layer.norm.affine:
        nn.init.uniform_(layer.norm.weight, 0.5, 2)
        nn.init.normal_(layer.norm.bias)
    return layer.eval()


def linear(bias=True, norm_cfg=BN1D):
    return trained(EBVLinear(5, 11, bias, basis=BASIS, norm_cfg=norm_cfg), 32, 5)


def conv(bias=True):
    return trained(EBVConv2d(5, 11, 1, bias=bias, basis=BASIS, norm_cfg=BN2D), 4, 5, 3, 3)


def test_the_embedding_is_normed_in_training():
    layer = EBVLinear(5, 11, basis=BASIS, norm_cfg=BN1D)
    x = 2 + 3 * torch.randn(64, 5)
    raw = x @ layer.weight.T + layer.bias
    expected = (raw - raw.mean(0)) / (raw.var(0, unbiased=False) + 1e-5).sqrt()
    torch.testing.assert_close(layer.project(x), expected, rtol=1e-4, atol=1e-5)
    unit = expected / expected.norm(dim=1, keepdim=True)
    torch.testing.assert_close(layer(x), unit @ layer.basis.T / 0.07, rtol=1e-4, atol=1e-4)
    assert layer(x.view(4, 16, 5)).shape == (4, 16, 11)


def test_without_a_norm_there_is_no_state():
    assert set(EBVLinear(5, 11, basis=BASIS).state_dict()) == {'weight', 'bias', 'basis'}


@pytest.mark.parametrize('bias', [True, False])
@pytest.mark.parametrize('keep_norm', [True, False])
@pytest.mark.parametrize('make', [linear, conv])
def test_folding_is_the_same_map(make, keep_norm, bias):
    layer = make(bias)
    x = torch.randn(7, 5) if make is linear else torch.randn(2, 5, 4, 4)
    channel = -1 if make is linear else 1
    logits, folded = layer(x), fold(layer, keep_norm=keep_norm)(x)
    if keep_norm:
        torch.testing.assert_close(folded, logits, rtol=1e-4, atol=1e-4)
    else:
        assert torch.equal(folded.argmax(channel), logits.argmax(channel))
        v = layer.project(x).movedim(channel, -1)
        products = (v @ layer.basis.T).movedim(-1, channel)
        torch.testing.assert_close(folded, products, rtol=1e-4, atol=1e-4)


def test_precision_stays():
    layer = linear()
    before = layer.norm.running_var.clone()
    x = torch.randn(4, 5)
    logits = copy.deepcopy(layer).half()(x.half())
    half = copy.deepcopy(layer).half()
    assert half.weight.dtype == torch.float16 and torch.equal(half.norm.running_var, before)
    torch.testing.assert_close(logits, layer(x), rtol=0, atol=0.2)
    double = copy.deepcopy(layer).double()
    assert double.norm.running_var.dtype == torch.float64
    torch.testing.assert_close(double.float()(x), layer(x))


def test_a_checkpoint_brings_the_norm_of_another_dim(tmp_path):
    source = EBVLinear(5, 11, basis=BASIS, norm_cfg=BN1D)
    trained(source, 32, 5)
    other = EBVLinear(5, 11, basis=str(tmp_path / 'missing.safetensors'), norm_cfg=BN1D)
    other.load_state_dict(source.state_dict())
    x = torch.randn(3, 5)
    assert torch.equal(other.eval()(x), source(x))


def test_what_is_no_batch_norm_is_refused():
    for norm_cfg in (dict(type='LN'), dict(type='BN2d')):
        with pytest.raises(ValueError, match="take dict\\(type='BN1d'"):
            EBVLinear(5, 11, basis=BASIS, norm_cfg=norm_cfg)
    without = linear(norm_cfg=dict(type='BN1d', track_running_stats=False))
    with pytest.raises(TypeError, match='track_running_stats'):
        fold(without)
