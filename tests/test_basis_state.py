"""Fixed vectors as part of a module's state: checkpoints of 0.1.0, damaged ones, none, and what treats buffers."""

import contextlib
import copy
import json
import math

import numpy as np
import pytest
import torch
from mmengine.model import ExponentialMovingAverage
from mmengine.runner.checkpoint import load_state_dict
from safetensors.torch import load_file, save_file
from torch.nn import functional

from ebv_mm import EBVConv2d, EBVLinear, make_basis
from ebv_mm.basis import BasisError, closed_form_basis

DENSE = dict(num_classes=90, dim=16)
STRUCTURED = dict(num_classes=100, dim=16, method='kerdock', structured=True)
BOTH = pytest.mark.parametrize('basis', [DENSE, STRUCTURED], ids=['dense', 'structured'])


def state_of_010(basis: dict) -> dict:
    """What 0.1.0 saved: the matrix, or the bytes of the recipe as float32, both as the buffer ``basis``."""
    made = closed_form_basis(**basis).first(90)
    stored = made.vectors
    if basis.get('structured'):
        stored = torch.tensor(list(made.recipe.to_text().encode()), dtype=torch.float32)
    return dict(weight=torch.randn(16, 8), bias=torch.randn(16), basis=stored)


def logits(state: dict, vectors: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    v = x.double() @ state['weight'].double().T + state['bias'].double()
    return v / v.norm(dim=1, keepdim=True) @ vectors.double().T / 0.07


@BOTH
@pytest.mark.parametrize('configured', ['the same', '90x16_gone.safetensors', 'gone.safetensors'])
def test_a_checkpoint_of_010_predicts_the_same(basis, configured, recwarn):
    state, x = state_of_010(basis), torch.randn(5, 8)
    layer = EBVLinear(8, 90, basis=basis if configured == 'the same' else configured)
    layer.load_state_dict(state)
    expected = logits(state, closed_form_basis(**basis).vectors[:90], x)
    torch.testing.assert_close(layer(x).double(), expected, rtol=0, atol=2e-5)
    assert not recwarn
    again = EBVLinear(8, 90, basis='gone.safetensors')
    again.load_state_dict(layer.state_dict())
    assert torch.equal(again(x), layer(x))


@pytest.mark.parametrize('ranks', [3, 41, 61, 83])
def test_a_recipe_of_010_that_gpus_have_averaged(ranks):
    state = state_of_010(STRUCTURED)
    state['basis'] = state['basis'] * ranks * (1 / torch.tensor(float(ranks)))  # as CUDA divides
    layer = EBVLinear(8, 90, basis=STRUCTURED)
    layer.load_state_dict(state)
    assert torch.equal(layer.vectors, closed_form_basis(**STRUCTURED).vectors[:90])


DAMAGED = {
    'NaN': lambda matrix: matrix.index_fill(0, torch.tensor([3]), math.nan),
    'norm 0': lambda matrix: matrix * 0,
    'norm 2': lambda matrix: matrix * 2,
    'dtype': lambda matrix: matrix.to(torch.int64),
}


@pytest.mark.parametrize('damage', DAMAGED)
@pytest.mark.parametrize('configured', [DENSE, 'gone.safetensors'], ids=['dense', 'awaited'])
def test_a_damaged_matrix_is_refused_also_where_hosts_would_go_on(damage, configured):
    layer, state = EBVLinear(8, 90, basis=configured), state_of_010(DENSE)
    state['basis'] = DAMAGED[damage](state['basis'])
    with pytest.raises(BasisError, match=f"the checkpoint's 'basis' .*{damage}"):
        load_state_dict(layer, state, strict=False)


def recipe(**changes) -> str:
    return json.dumps({**json.loads(closed_form_basis(**STRUCTURED).first(90).recipe.to_text()), **changes})


@pytest.mark.parametrize(
    'text',
    [
        '',
        '{',
        '[]',
        '[' * 100_000,
        recipe(more=1),
        recipe(version=99),
        recipe(num_classes='100'),
        recipe(num_classes=None),
        recipe(dim=-16),
        recipe(dim=1.5),
        recipe(seed='0'),
        recipe(seed=2**70),
        recipe(first=0),
        recipe(first=101),
        recipe(method='solver'),
        recipe(method=['kerdock']),
        recipe(sha256='0' * 64),
    ],
    ids=str,
)
def test_a_damaged_recipe_is_one_kind_of_error(text):
    layer, state = EBVLinear(8, 90, basis='gone.safetensors'), state_of_010(DENSE)
    del state['basis']
    state['basis_recipe'] = torch.tensor(list(text.encode()), dtype=torch.uint8)
    with contextlib.suppress(BasisError):
        load_state_dict(layer, state, strict=False)
    assert layer.why_no_basis is not None  # refused, or of another size


def test_a_recipe_of_another_size_is_compared_before_it_is_built(monkeypatch):
    layer, state = EBVLinear(8, 90, basis=DENSE), state_of_010(DENSE)
    text = recipe(num_classes=10**9, first=10**9)
    monkeypatch.setattr('ebv_mm.basis.structured.StructuredBasis.__init__', None)
    state['basis'] = torch.tensor(list(text.encode()), dtype=torch.float32)
    with pytest.raises(RuntimeError, match='size mismatch for basis'):
        layer.load_state_dict(state)


def test_a_recipe_may_not_ask_for_hours_of_work(monkeypatch):
    """The layer's size is right, but it would be the first 90 of a thousand million vectors."""
    layer, state = EBVLinear(8, 90, basis='gone.safetensors'), state_of_010(DENSE)
    state['basis'] = torch.tensor(list(recipe(num_classes=10**9).encode()), dtype=torch.float32)
    monkeypatch.setattr('ebv_mm.basis.structured.StructuredBasis.__init__', None)
    with pytest.raises(BasisError, match='more than 100 times the vectors that it uses'):
        layer.load_state_dict(state)


def test_a_layer_that_waits_saves_no_basis_and_still_waits_after_loading_that():
    layer = EBVLinear(8, 5, basis='5x16_gone.safetensors')
    assert sorted(layer.state_dict()) == ['bias', 'weight']
    layer.load_state_dict(layer.state_dict())
    with pytest.raises(FileNotFoundError, match='no checkpoint has brought one'):
        layer(torch.randn(2, 8))


def test_a_missing_file_of_an_impossible_size_is_told_at_once():
    with pytest.raises(ValueError, match='dim = 100000000, but a basis has at most'):
        EBVLinear(8, 1000, basis='1000x100000000.safetensors')


@BOTH
def test_safetensors_ema_and_fine_tuning_to_other_classes(basis, tmp_path):
    layer, x = EBVLinear(8, 90, basis=basis), torch.randn(3, 8)
    save_file(layer.state_dict(), tmp_path / 'model.safetensors')
    again = EBVLinear(8, 90, basis='gone.safetensors')
    again.load_state_dict(load_file(tmp_path / 'model.safetensors'))
    assert torch.equal(again(x), layer(x))

    average = ExponentialMovingAverage(layer, momentum=0.5, update_buffers=True)
    for _ in range(3):
        average.update_parameters(layer)
    assert torch.equal(average.module.vectors, layer.vectors)
    saved = average.state_dict()
    other = ExponentialMovingAverage(EBVLinear(8, 90, basis=basis), momentum=0.5, update_buffers=True)
    other.load_state_dict(saved)
    assert torch.equal(other(x), average(x))

    fewer = EBVLinear(8, 50, basis=basis)
    load_state_dict(fewer, layer.state_dict(), strict=False)
    assert fewer.num_vectors == 50 and torch.equal(fewer.vectors, closed_form_basis(**basis).vectors[:50])


@BOTH
@pytest.mark.parametrize('kind, size', [(EBVLinear, (8, 90)), (EBVConv2d, (8, 90, 1))])
def test_moved_copied_and_rounded_modules_keep_the_numbers(basis, kind, size):
    layer = kind(*size, basis=basis)
    expected = layer.vectors.clone()
    for change in (
        torch.nn.Module.half,
        torch.nn.Module.double,
        copy.deepcopy,
        lambda module: module.to('meta').to_empty(device='cpu'),
        lambda module: module.to_empty(device='cpu'),
    ):
        layer = change(layer)
        assert torch.equal(layer.vectors, expected) and layer.vectors.dtype == torch.float32


@pytest.mark.parametrize('scale', [1e-6, 1.0, 1e12, 1e19, 1e25, 1e37])
def test_embeddings_of_any_size_have_a_direction(scale):
    layer = EBVLinear(8, 20, bias=False, basis=dict(num_classes=20, dim=16)).requires_grad_(False)
    x = functional.normalize(torch.randn(4, 8))
    big = (x * scale).requires_grad_()
    torch.testing.assert_close(layer(big), layer(x), rtol=1e-5, atol=1e-5)
    layer(big).square().sum().backward()
    unit = x.clone().requires_grad_()
    layer(unit).square().sum().backward()
    torch.testing.assert_close(big.grad * scale, unit.grad, rtol=1e-3, atol=1e-4)


def test_whole_numbers_of_numpy():
    assert torch.equal(make_basis(np.int64(12), np.int32(8)).vectors, make_basis(12, 8).vectors)
    theirs = closed_form_basis(np.int64(12), 8, seed=np.int64(3), structured=True)
    assert theirs.recipe.to_text() == closed_form_basis(12, 8, seed=3, structured=True).recipe.to_text()


@pytest.mark.parametrize('seed', [1.5, '1', None])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(ValueError, match='but a seed is a whole number'):
        make_basis(12, 8, seed=seed)
