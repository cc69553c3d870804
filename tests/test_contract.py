"""What holds for every layer and every head."""

import io
import warnings

import numpy as np
import pytest
import torch
from cases import BALANCED, CASES, HEADS, NORMAL, TORCH_DEFAULT
from mmengine.model import initialize
from mmengine.runner.checkpoint import load_state_dict
from torch import nn

from ebv_mm import load_basis

pytestmark = pytest.mark.both_stacks

DIM = 9
ALL = pytest.mark.parametrize('case', CASES, ids=lambda case: case.name)


@pytest.fixture
def basis(basis_file):
    """More vectors than a head of 7 classes needs, background included."""
    return basis_file(9, DIM)


def formula(layer: nn.Module, features: torch.Tensor, tau: float) -> np.ndarray:
    """cos(A x + b, w_k) / tau in float64 numpy, channels last."""
    x = features.detach().double().numpy()
    if x.ndim == 4:
        x = x.transpose(0, 2, 3, 1)
    a = layer.weight.detach().double().numpy().reshape(layer.weight.shape[0], -1)
    v = x @ a.T + layer.bias.detach().double().numpy()
    unit = v / np.sqrt((v**2).sum(-1, keepdims=True))
    return unit @ layer.basis.double().numpy().T / tau


def channels_last(logits: torch.Tensor) -> np.ndarray:
    logits = logits.detach().double()
    return (logits.permute(0, 2, 3, 1) if logits.ndim == 4 else logits).numpy()


@ALL
def test_logits_follow_the_formula(case, basis, tau=0.02):
    module = case.build(basis, tau)
    assert case.layer(case.build(basis)).tau == 0.07
    features, logits, outputs = case.run(module)
    assert logits.shape[1] == case.rows
    np.testing.assert_allclose(channels_last(logits), formula(case.layer(module), features, tau), atol=3e-6 / tau)
    assert any(output is logits or output.shape == logits.shape for output in outputs)


@ALL
def test_output_has_the_shape_of_the_plain_one(case, basis):
    ebv, plain = case.run(case.build(basis))[2], case.run(case.build_plain())[2]
    assert [output.shape for output in ebv] == [output.shape for output in plain]


@ALL
def test_basis_is_the_first_vectors_of_the_file(case, basis):
    module = case.build(basis)
    assert torch.equal(case.layer(module).basis, load_basis(basis).vectors[: case.rows])


@ALL
def test_state_dict_is_the_plain_one_and_the_basis(case, basis):
    prefix = f'{case.classifier}.' if case.classifier else ''
    assert set(case.build(basis).state_dict()) == {*case.build_plain().state_dict(), f'{prefix}basis'}


@ALL
def test_the_basis_is_a_buffer_and_no_parameter(case, basis):
    layer = case.layer(case.build(basis))
    assert [name for name, _ in layer.named_buffers()] == ['basis']
    assert [name for name, _ in layer.named_parameters()] == ['weight', 'bias']


@pytest.mark.parametrize('case', HEADS, ids=lambda case: case.name)
def test_init_weights_keeps_the_basis_and_initialises_the_projection(case, basis_file):
    module = case.build(basis_file(64, 64))  # wide enough that a standard deviation can be told
    layer = case.layer(module)
    before = layer.basis.clone()
    module.init_weights()
    assert torch.equal(layer.basis, before)
    fan_in = layer.weight[0].numel()
    if case.init == NORMAL:
        assert layer.weight.std().item() == pytest.approx(0.01, rel=0.15)
        assert not layer.bias.any()
    elif case.init == BALANCED:
        assert layer.weight.norm().item() == pytest.approx(1 / 0.07, rel=0.15)
        assert not layer.bias.any()
    else:
        assert case.init == TORCH_DEFAULT
        limit = fan_in**-0.5
        for values in (layer.weight, layer.bias):
            assert 0.8 * limit < values.abs().max().item() <= limit
        assert layer.weight.std().item() == pytest.approx(limit / 3**0.5, rel=0.15)


@ALL
def test_a_balanced_projection_is_as_long_as_the_inverse_temperature(case, basis_file, tau=0.2):
    module = case.build(basis_file(64, 64), tau, balanced_init=True)
    layer = case.layer(module)
    for initialised in (False, True):
        if initialised and module is not layer:
            module.init_weights()  # that of the host comes first
        channels, *size = layer.weight.shape[1:]
        v = layer.project(torch.randn(200, channels, *size))  # features of root mean square 1
        assert tau * v.flatten(1).norm(dim=1).mean().item() == pytest.approx(1, rel=0.15)
        assert not layer.bias.any()


@ALL
def test_an_init_cfg_reaches_the_projection_and_not_the_basis(case, basis):
    module = case.build(basis)
    before = case.layer(module).basis.clone()
    wrapped = nn.ModuleDict(dict(module=module))
    initialize(wrapped, dict(type='Constant', layer=['Linear', 'Conv2d', 'EBVLinear', 'EBVConv2d'], val=3.0))
    assert torch.equal(case.layer(module).basis, before)
    assert (case.layer(module).weight == 3.0).all()


@ALL
def test_training_moves_the_projection_and_never_the_basis(case, basis):
    module = case.build(basis)
    layer = case.layer(module)
    before, weight = layer.basis.clone(), layer.weight.detach().clone()
    _, _, outputs = case.run(module)
    sum(output.square().sum() for output in outputs).backward()
    for name, parameter in module.named_parameters():
        assert parameter.grad is not None and torch.isfinite(parameter.grad).all(), name
    assert layer.weight.grad.any() and layer.bias.grad.any()
    assert layer.basis.grad is None and not layer.basis.requires_grad
    torch.optim.AdamW(module.parameters(), lr=0.1, weight_decay=0.5).step()
    assert torch.equal(layer.basis, before)
    assert not torch.equal(layer.weight, weight)


@pytest.mark.parametrize('case', [case for case in CASES if case.scope != 'mmseg'], ids=lambda case: case.name)
def test_empty_batch(case, basis):
    module = case.build(basis).eval()
    _, logits, _ = case.run(module, 0)
    assert logits.shape[:2] == (0, case.rows)
    logits.sum().backward()
    assert not case.layer(module).weight.grad.any()


@ALL
def test_zero_features_give_finite_logits_and_gradients(case, basis):
    layer = case.layer(case.build(basis))
    with torch.no_grad():
        layer.bias.zero_()
    size = (2, 12) if isinstance(layer, nn.Linear) else (2, layer.in_channels, 3, 2)
    x = torch.zeros(*size[:1], layer.weight.shape[1], *size[2:], requires_grad=True)
    logits = layer(x)
    nn.functional.cross_entropy(logits, torch.zeros(logits[:, 0].shape, dtype=torch.long)).backward()
    assert not logits.any()
    for gradient in (x.grad, layer.weight.grad, layer.bias.grad):
        assert torch.isfinite(gradient).all() and gradient.abs().max() < 1e3


def round_trip(module: nn.Module) -> dict:
    file = io.BytesIO()
    torch.save(module.state_dict(), file)
    file.seek(0)
    return torch.load(file)


@ALL
def test_save_and_load(case, basis):
    module, other = case.build(basis).eval(), case.build(basis).eval()
    torch.manual_seed(1)
    expected = case.run(module)[1]
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        other.load_state_dict(round_trip(module))
    torch.manual_seed(1)
    assert torch.equal(case.run(other)[1], expected)


@ALL
def test_a_checkpoint_with_another_basis_wins_with_a_warning(case, basis, basis_file):
    other_basis = basis_file(9, DIM, seed=1)
    module, other = case.build(basis).eval(), case.build(other_basis).eval()
    key = f'{case.classifier}.basis'.strip('.')
    with pytest.warns(UserWarning, match='differs') as caught:
        other.load_state_dict(round_trip(module))
    message = str(caught[0].message)
    assert other_basis in message and repr(key) in message
    assert torch.equal(case.layer(other).basis, case.layer(module).basis)


@ALL
@pytest.mark.parametrize('name', ['9x9_gone.safetensors', 'gone.safetensors'])
def test_a_checkpoint_brings_the_basis_where_the_file_is_missing(case, basis, tmp_path, name):
    module = case.build(basis).eval()
    torch.manual_seed(1)
    expected = case.run(module)[1]

    bare = case.build(str(tmp_path / name)).eval()
    with pytest.raises(FileNotFoundError, match=r'make it with: python -m ebv_mm.basis --num-classes \d+ --dim'):
        case.run(bare)
    parameters = list(bare.parameters())
    bare.load_state_dict(round_trip(module))
    assert all(a is b for a, b in zip(parameters, bare.parameters()))  # an optimizer built before keeps its hold
    torch.manual_seed(1)
    assert torch.equal(case.run(bare)[1], expected)


@ALL
def test_a_checkpoint_of_another_size_is_a_mismatch_as_in_the_plain_head(case, basis, basis_file):
    module, other = case.build(basis), case.build(basis_file(10, 10))
    before = {name: value.clone() for name, value in other.state_dict().items()}
    load_state_dict(other, module.state_dict(), strict=False)
    for name in ('weight', 'bias', 'basis'):
        key = f'{case.classifier}.{name}'.strip('.')
        assert torch.equal(other.state_dict()[key], before[key])
    with pytest.raises(RuntimeError, match='size mismatch'):
        other.load_state_dict(module.state_dict())


@ALL
def test_too_few_vectors(case, basis_file):
    with pytest.raises(ValueError, match=rf'has 3 vectors, but the layer needs {case.rows}.*ebv_mm.basis'):
        case.build(basis_file(3, 9))


@ALL
def test_a_tau_of_zero_is_refused(case, basis):
    with pytest.raises(ValueError, match='tau = 0, but the temperature must be a positive number'):
        case.build(basis, 0)
