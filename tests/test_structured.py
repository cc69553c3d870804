"""Bases that are never stored: the same vectors as the dense ones, in layers, checkpoints and recipes."""

import copy
import io
import json
import pickle
import threading

import pytest
import torch
from mmengine.runner.checkpoint import load_state_dict
from torch import nn

from ebv_mm import DenseBasis, EBVConv2d, EBVLinear, basis_topk, make_basis
from ebv_mm.basis import BasisError, StructuredBasis, closed_form_basis, coherence, from_recipe

SIZES = [
    (20, 20, 'orthonormal'),
    (20, 24, 'orthonormal'),
    (100, 16, 'kerdock'),
    (144, 16, 'kerdock'),  # all of it, the unit vectors too
    (700, 32, 'gold'),
    (700, 33, 'gold'),  # one coordinate is not used
    (5000, 64, 'delsarte-goethals'),
    (1000, 100, 'transversal'),
    (1000, 200, 'packing'),
    (3000, 40, 'reed-solomon'),
]
ALL = pytest.mark.parametrize('num_classes, dim, method', SIZES)
KERDOCK = dict(num_classes=100, dim=16, method='kerdock', structured=True)


@ALL
@pytest.mark.parametrize('rotate', [True, False])
def test_vectors_are_those_of_the_dense_basis_bit_by_bit(num_classes, dim, method, rotate):
    basis = make_basis(num_classes, dim, method=method, seed=3, structured=True, rotate=rotate)
    dense = closed_form_basis(num_classes, dim, method=method, seed=3, rotate=rotate)
    assert basis.seed == dense.seed
    assert torch.equal(basis.vectors, dense.vectors)
    assert basis.coherence == pytest.approx(coherence(basis.vectors), abs=1e-5)
    assert (basis.num_classes, basis.dim, basis.method, basis.bound) == (num_classes, dim, method, dense.bound)


@ALL
def test_products_are_those_of_the_matrix(num_classes, dim, method):
    basis = make_basis(num_classes, dim, method=method, structured=True, rotate=False)
    products, matrix = basis.products.to('cpu', torch.float64), basis.vectors.double()
    x = torch.randn(5, dim, dtype=torch.float64)
    for start, stop in [(0, num_classes), (3, num_classes - 1), (9, 10), (num_classes - 2, num_classes)]:
        torch.testing.assert_close(products.inner(x, start, stop), x @ matrix[start:stop].T, rtol=1e-6, atol=1e-6)
        c = torch.randn(5, stop - start, dtype=torch.float64)
        torch.testing.assert_close(products.combine(c, start), c @ matrix[start:stop], rtol=1e-6, atol=1e-5)


@ALL
def test_products_with_turned_vectors(num_classes, dim, method):
    basis = make_basis(num_classes, dim, method=method, structured=True)
    products, x = basis.products.to('cpu', torch.float64), torch.randn(5, dim, dtype=torch.float64)
    cosines = products.inner(products.enter(x), 0, num_classes)
    torch.testing.assert_close(cosines, x @ basis.vectors.double().T, rtol=1e-6, atol=1e-5)


@ALL
def test_products_of_all_classes_at_once_however_many(num_classes, dim, method, monkeypatch):
    basis = make_basis(num_classes, dim, method=method, structured=True, rotate=False)
    products, x = basis.products.to('cpu', torch.float32), torch.randn(5, dim)
    monkeypatch.setattr(type(products), 'cpu_entries', num_classes)
    torch.testing.assert_close(products.inner(x, 0, num_classes), x @ basis.vectors.T, rtol=1e-4, atol=1e-4)


def test_what_one_thread_places_is_whole_when_another_sees_it(monkeypatch):
    products, seen = make_basis(**KERDOCK).products, []
    to = type(products.rotation).to

    def slow(self, *key):
        thread = threading.Thread(target=lambda: seen.append(products._placed.get(key)))
        thread.start()
        thread.join()
        return to(self, *key)

    monkeypatch.setattr(type(products.rotation), 'to', slow)
    products.to('cpu', torch.float32)
    assert seen == [None]


def test_training_after_inference_mode():
    basis, x = make_basis(**KERDOCK), torch.randn(3, 16)
    layer = EBVLinear(16, 90, basis=basis)
    with torch.inference_mode():
        layer(x)
        basis_topk(x, 2, basis)
    layer(x).sum().backward()
    assert torch.isfinite(layer.weight.grad).all()


def test_structured_alone_decides_the_kind():
    for method in ('auto', 'delsarte-goethals'):
        dense, structured = (make_basis(5000, 64, method=method, structured=kind) for kind in (False, True))
        assert isinstance(dense, DenseBasis) and isinstance(structured, StructuredBasis)
        assert torch.equal(dense.first(9).vectors, dense.vectors[:9])
        assert torch.equal(structured.first(9).vectors, structured.vectors[:9])
    assert torch.equal(dense.vectors, structured.vectors)


@ALL
@pytest.mark.parametrize('rotate', [True, False])
def test_recipe_makes_the_same_again_and_is_small(num_classes, dim, method, rotate):
    basis = make_basis(num_classes, dim, method=method, seed=3, structured=True, rotate=rotate).first(num_classes - 7)
    again = from_recipe(basis.recipe.to_text())
    assert len(basis.recipe.to_text()) < 1000 and again.recipe == basis.recipe
    assert torch.equal(again.vectors, basis.vectors)


def test_a_recipe_that_gives_something_else_is_refused():
    recipe = json.loads(make_basis(**KERDOCK).recipe.to_text())
    with pytest.raises(BasisError, match='gives another basis here'):
        from_recipe(json.dumps(dict(recipe, seed=1)))
    with pytest.raises(BasisError, match='gives another basis here'):
        from_recipe(json.dumps(dict(recipe, sha256='0' * 64)))
    with pytest.raises(BasisError, match='another version'):
        from_recipe(json.dumps(dict(recipe, version=99)))


def test_pickled_as_its_recipe():
    basis = make_basis(5000, 64, method='delsarte-goethals', seed=3, structured=True).first(4000)
    data = pickle.dumps(basis)
    assert len(data) < 1000
    for again in (pickle.loads(data), copy.deepcopy(basis)):
        assert again.recipe == basis.recipe and torch.equal(again.vectors, basis.vectors)


def test_no_more_vectors_than_there_are():
    basis = make_basis(**KERDOCK)
    for number in (0, 101):
        with pytest.raises(BasisError, match=f'has 100 vectors, not {number}'):
            basis.first(number)


def test_where_there_is_no_structure():
    with pytest.raises(ValueError, match='no structured basis for num_classes = 101, dim = 100'):
        make_basis(101, 100, method='simplex', structured=True)
    with pytest.raises(ValueError, match='asks for a closed form'):
        make_basis(100, 16, method='solver', structured=True)


def twins(kind=EBVLinear, **kwargs):
    """A structured layer and a dense one with the same vectors and projection."""
    size = (12, 90) if kind is EBVLinear else (12, 90, 1)
    structured = kind(*size, basis=KERDOCK, **kwargs)
    dense = kind(*size, basis=dict(num_classes=100, dim=16, method='kerdock'), **kwargs)
    dense.weight.data, dense.bias.data = structured.weight.data.clone(), structured.bias.data.clone()
    return structured, dense


@pytest.mark.parametrize('kind, shape', [(EBVLinear, (5, 12)), (EBVLinear, (2, 3, 12)), (EBVConv2d, (2, 12, 3, 4))])
def test_layers_agree_with_dense_ones_forward_and_backward(kind, shape):
    structured, dense = twins(kind)
    x = torch.randn(shape)
    a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
    out, expected = structured(a), dense(b)
    torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-5)
    upstream = torch.randn_like(expected)
    out.backward(upstream)
    expected.backward(upstream)
    torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(structured.weight.grad, dense.weight.grad, rtol=1e-4, atol=1e-4)
    assert (structured.num_vectors, structured.dim) == (90, 16)


def test_gradients_of_a_structured_layer():
    layer, x = twins()[0].double(), torch.randn(2, 12, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(layer, x)
    assert torch.autograd.gradgradcheck(layer, x)
    assert layer(torch.empty(0, 12, dtype=torch.float64)).shape == (0, 90)


def test_half_precision_leaves_the_vectors_exact():
    layer, x = twins()[0], torch.randn(2, 12).half()
    expected = layer.vectors
    assert layer.half()(x).dtype == torch.float32 and torch.equal(layer.vectors, expected)


def test_a_layer_is_pickled_without_what_it_keeps_for_a_device():
    layer, x = twins()[0], torch.randn(3, 12)
    expected = layer(x)
    again = pickle.loads(pickle.dumps(layer))
    assert not again.products._placed and layer.products._placed
    assert torch.equal(again(x), expected) and torch.equal(copy.deepcopy(layer)(x), expected)


def round_trip(module: nn.Module) -> dict:
    file = io.BytesIO()
    torch.save(module.state_dict(), file)
    assert file.tell() < 20_000
    file.seek(0)
    return torch.load(file)


def test_a_checkpoint_holds_the_recipe_and_brings_the_basis(recwarn):
    layer, x = twins()[0], torch.randn(3, 12)
    assert not list(layer.named_buffers())  # nothing that could be averaged or broadcast
    assert bytes(layer.state_dict()['basis_recipe'].tolist()).decode() == layer.structured.recipe.to_text()
    for other in (EBVLinear(12, 90, basis=KERDOCK), EBVLinear(12, 90, basis='gone.safetensors')):
        other.load_state_dict(round_trip(layer))
        assert torch.equal(other(x), layer(x))
    assert not [warning for warning in recwarn if 'differs' in str(warning.message)]


def test_a_checkpoint_with_another_basis_wins_with_a_warning_whatever_its_form():
    structured, dense = twins()
    x = torch.randn(3, 12)
    other = EBVLinear(12, 90, basis=dict(num_classes=90, dim=16, structured=True, method='transversal'))
    for source in (structured, dense):
        for target in (copy.deepcopy(other), EBVLinear(12, 90, basis=dict(num_classes=90, dim=16, seed=1))):
            with pytest.warns(UserWarning, match='differs'):
                target.load_state_dict(source.state_dict())
            assert torch.equal(target(x), source(x))
            again = copy.deepcopy(target)
            again.load_state_dict(target.state_dict())
            assert torch.equal(again(x), source(x))


def test_a_checkpoint_of_another_size_is_a_mismatch():
    source, target = EBVLinear(12, 80, basis=KERDOCK), EBVLinear(12, 90, basis=KERDOCK)
    before = target.vectors
    with pytest.raises(RuntimeError, match='size mismatch for basis'):
        target.load_state_dict(source.state_dict())
    load_state_dict(target, source.state_dict(), strict=False)
    assert torch.equal(target.vectors, before) and target.num_vectors == 90
