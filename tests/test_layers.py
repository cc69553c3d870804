"""EBVLinear and EBVConv2d by themselves: precision, sources of a basis, and what torch does to a module."""

import copy

import pytest
import torch
from mmengine.model import initialize
from mmengine.runner.checkpoint import load_state_dict
from torch import nn

from ebv_mm import DenseBasis, EBVConv2d, EBVLinear, make_basis
from ebv_mm.basis import BasisError, closed_form_basis

TAU = 0.007


def linear(num_classes=40, dim=32, tau=TAU, in_features=24) -> EBVLinear:
    vectors = nn.functional.normalize(torch.randn(num_classes, dim, dtype=torch.float64), dim=1)
    return EBVLinear(in_features, num_classes, basis=DenseBasis(vectors), tau=tau)


def conv(num_classes=40, dim=32, tau=TAU, in_channels=24) -> EBVConv2d:
    vectors = nn.functional.normalize(torch.randn(num_classes, dim, dtype=torch.float64), dim=1)
    return EBVConv2d(in_channels, num_classes, 1, basis=DenseBasis(vectors), tau=tau)


BOTH = pytest.mark.parametrize('layer, x', [(linear, (6, 24)), (conv, (2, 24, 5, 4))], ids=['linear', 'conv'])


@BOTH
@pytest.mark.parametrize('seed', range(3))
def test_autocast_agrees_with_float32(layer, x, seed, device):
    """Logits reach 1 / tau = 143, where bfloat16 steps by 1; here only the rounding of the input may show."""
    torch.manual_seed(seed)
    layer, x = layer().to(device), torch.randn(x).bfloat16().float().to(device)
    expected = layer(x)
    with torch.autocast(device.type, dtype=torch.bfloat16):
        logits = layer(x.bfloat16())
        outside = x.flatten(1) @ x.flatten(1).T
        assert outside.dtype == torch.bfloat16  # switched off inside the layer only
    assert logits.dtype == torch.float32
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-3)


@BOTH
@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16])
def test_a_half_precision_model_keeps_its_basis_exact(layer, x, dtype, device):
    layer, x = layer().to(device), torch.randn(x).to(device)
    basis = layer.basis.clone()
    half = copy.deepcopy(layer).to(dtype)
    assert half.weight.dtype == dtype
    assert torch.equal(half.basis, basis)
    layer.load_state_dict(half.state_dict())  # the same rounded projection, in float32
    torch.testing.assert_close(half(x.to(dtype)), layer(x.to(dtype).float()), rtol=0, atol=1e-3)
    assert torch.equal(half.float().basis, basis)


@BOTH
def test_gradients(layer, x, device):
    layer = layer(tau=0.07).double().to(device)
    x = torch.randn(x, dtype=torch.float64).to(device).requires_grad_()
    assert layer(x).dtype == torch.float64
    assert torch.autograd.gradcheck(layer, x)


@BOTH
@pytest.mark.parametrize('scale', [1e-6, 1e6])
def test_logits_do_not_depend_on_the_length_of_v(layer, x, scale, device):
    layer, x = layer(tau=0.07).to(device), torch.randn(x).to(device)
    expected = layer(x)
    with torch.no_grad():
        layer.weight.mul_(scale)
        layer.bias.mul_(scale)
    torch.testing.assert_close(layer(x), expected, rtol=1e-4, atol=1e-4)


@BOTH
def test_one_zero_vector_among_others_disturbs_nobody(layer, x, device):
    layer, x = layer(tau=0.07).to(device), torch.randn(x).to(device)
    with torch.no_grad():
        layer.bias.zero_()
    alone = layer(x[1:])
    x[0] = 0
    x.requires_grad_()
    logits = layer(x)
    assert not logits[0].any()
    torch.testing.assert_close(logits[1:], alone)
    logits.square().sum().backward()
    assert not x.grad[0].any() and x.grad[1:].all() and torch.isfinite(x.grad).all()


def test_argmax_is_that_of_the_folded_linear_layer(device):
    layer, x = linear(tau=0.07).to(device), torch.randn(50, 24).to(device)
    folded = x @ (layer.basis @ layer.weight).T + layer.basis @ layer.bias
    assert torch.equal(layer(x).argmax(1), folded.argmax(1))


def test_conv_takes_unbatched_images_and_other_kernels():
    layer = EBVConv2d(3, 5, 3, padding=1, bias=False, basis=dict(num_classes=5, dim=8))
    x = torch.randn(3, 6, 7)
    assert layer(x).shape == (5, 6, 7)
    torch.testing.assert_close(layer(x[None])[0], layer(x))
    assert torch.autograd.gradcheck(layer.double(), torch.randn(1, 3, 4, 4, dtype=torch.float64, requires_grad=True))


def test_linear_takes_any_leading_shape():
    layer = linear()
    x = torch.randn(2, 3, 24)
    torch.testing.assert_close(layer(x), layer(x.flatten(0, 1)).unflatten(0, (2, 3)))


def test_a_dict_makes_a_closed_form_the_same_every_time():
    first, second = (EBVLinear(4, 80, basis=dict(num_classes=81, dim=81)).basis for _ in range(2))
    assert torch.equal(first, second)
    assert torch.equal(first, make_basis(81, 81).vectors[:80])
    torch.testing.assert_close(first @ first.T, torch.eye(80), rtol=0, atol=1e-6)
    other = EBVLinear(4, 80, basis=dict(num_classes=81, dim=81, seed=1)).basis
    assert not torch.allclose(first, other, atol=0.01)


@pytest.mark.parametrize(
    'basis, error, message',
    [
        (None, TypeError, 'takes the path of a basis file or a dict'),
        (torch.eye(5), TypeError, 'takes the path of a basis file or a dict'),
        (dict(num_classes=4, dim=9), BasisError, 'has 4 vectors, but the layer needs 5'),
        (dict(num_classes=5), BasisError, "no 'dim'"),
        (dict(num_classes=0, dim=3), ValueError, 'num_classes = 0'),
        (dict(num_classes=5, dim=True), ValueError, 'dim = True'),
        ('5x1.safetensors', BasisError, 'one dimension'),
        ('3x8.safetensors', BasisError, 'by its name would have 3 vectors, but the layer needs 5'),
    ],
)
def test_bad_basis(basis, error, message):
    with pytest.raises(error, match=message):
        EBVLinear(8, 5, basis=basis)


def test_one_dimension_is_refused_as_it_has_no_gradient():
    with pytest.raises(BasisError, match='one dimension, in which .* passes no gradient; take at least two'):
        EBVLinear(8, 1, basis=dict(num_classes=1, dim=1))


def test_the_basis_has_no_default():
    with pytest.raises(TypeError, match='basis'):
        EBVLinear(8, 5)


def test_missing_file_names_its_command():
    layer = EBVLinear(8, 5, basis='data/5x16.safetensors')
    assert layer.weight.shape == (16, 8)
    with pytest.raises(FileNotFoundError) as error:
        layer(torch.randn(2, 8))
    command = 'python -m ebv_mm.basis --num-classes 5 --dim 16 --out data/5x16.safetensors'
    assert command in str(error.value) and "'data/5x16.safetensors' does not exist" in str(error.value)


def test_a_checkpoint_without_basis_does_not_end_the_wait():
    layer = EBVLinear(8, 5, basis='gone.safetensors')
    layer.load_state_dict(nn.Linear(8, 5).state_dict(), strict=False)
    with pytest.raises(FileNotFoundError):
        layer(torch.randn(2, 8))


@pytest.mark.parametrize('name', ['gone', '5x16_gone'])
@pytest.mark.parametrize('in_features', [None, 12])
def test_a_basis_without_a_projection_leaves_none_uninitialised(name, in_features):
    """As of a checkpoint of another backbone: hosts log the mismatch, and go on."""
    torch.manual_seed(0)
    brought = {'basis': make_basis(5, 16).vectors}
    if in_features:
        brought['weight'] = torch.randn(16, in_features)
    layer = EBVLinear(8, 5, basis=f'{name}.safetensors')
    load_state_dict(layer, brought)
    assert torch.equal(layer.basis, brought['basis']) and layer.weight.shape == (16, 8)
    assert 0 < layer.weight.abs().max() <= 8**-0.5 and layer.bias.abs().max() <= 8**-0.5  # torch's initialisation
    assert layer(torch.randn(2, 8)).isfinite().all()


def test_repr_tells_classes_and_temperature():
    text = repr(linear(40, 32))
    assert 'in_features=24' in text and 'out_features=32' in text and 'num_classes=40' in text and 'tau=0.007' in text


def test_copies_and_compiled_models_agree():
    layer, x = linear(), torch.randn(3, 24)
    expected = layer(x)
    assert torch.equal(copy.deepcopy(layer)(x), expected)
    torch.testing.assert_close(torch.jit.trace(layer, x, check_trace=False)(x), expected)
    torch.testing.assert_close(torch.compile(layer, backend='eager', fullgraph=True)(x), expected)


def test_averaging_over_ranks_is_exact():
    """SyncBuffersHook sums a buffer over the ranks and divides: with spare bits in the entries nothing is rounded."""
    vectors = make_basis(64, 50, method='algorithm1', alpha=0.3).vectors
    for ranks in range(1, 17):
        total = vectors.clone()
        for _ in range(ranks - 1):
            total += vectors
        assert torch.equal(total / ranks, vectors)
        on_gpus = total * (1 / torch.tensor(float(ranks)))  # as CUDA divides
        assert torch.equal(on_gpus, vectors) if ranks in (1, 2, 4, 8, 16) else (on_gpus - vectors).abs().max() < 1e-7


@pytest.mark.parametrize('half', [torch.float16, torch.bfloat16])
def test_a_checkpoint_in_half_precision_leaves_the_basis_exact(half, recwarn):
    trained, layer = (EBVLinear(8, 40, basis=dict(num_classes=40, dim=32)) for _ in range(2))
    exact = layer.basis.clone()
    layer.load_state_dict({name: tensor.to(half) for name, tensor in trained.state_dict().items()})
    assert torch.equal(layer.basis, exact) and not recwarn
    torch.testing.assert_close(layer.weight, trained.weight.to(half).float())


@pytest.mark.parametrize('structured', [False, True])
def test_the_basis_survives_the_meta_device(structured):
    basis = dict(num_classes=40, dim=16, structured=structured)
    layer = EBVLinear(8, 40, basis=basis, device='meta')
    with torch.device('meta'):
        other = EBVLinear(8, 40, basis=basis)
    for module in (layer, other):
        assert structured or module.basis.device.type == 'meta'
        assert module.to_empty(device='cpu').weight.device.type == 'cpu'
        assert torch.equal(module.vectors, closed_form_basis(**basis).vectors)


@pytest.mark.parametrize('tau', [-0.07, float('nan'), float('inf'), '0.07', None])
def test_bad_tau(tau):
    with pytest.raises(ValueError, match='tau = .*must be a positive number'):
        EBVLinear(4, 3, basis=dict(num_classes=3, dim=3), tau=tau)


@pytest.mark.parametrize('init', ['Normal', 'Xavier', 'Kaiming', 'TruncNormal', 'Uniform'])
def test_no_kind_of_initialisation_touches_the_basis(init):
    layer = EBVLinear(4, 3, basis=dict(num_classes=3, dim=3))
    before, weight = layer.basis.clone(), layer.weight.detach().clone()
    initialize(nn.ModuleDict(dict(layer=layer)), dict(type=init, layer='EBVLinear'))
    assert torch.equal(layer.basis, before) and not torch.equal(layer.weight, weight)
