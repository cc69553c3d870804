"""basis_cross_entropy against F.cross_entropy of the dense logits, over dense and structured bases."""

import math

import pytest
import torch
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from ebv_mm import DenseBasis, basis_cross_entropy, basis_topk, make_basis
from ebv_mm.basis import products as products_module
from ebv_mm.basis.soft_sums import largest, soft_sums

BASES = {
    'dense': lambda: DenseBasis(functional.normalize(torch.randn(300, 20, dtype=torch.float64), dim=1)),
    'orthonormal': lambda: make_basis(7, 9),
    'unit vectors': lambda: make_basis(7, 9, structured=True),
    'kerdock': lambda: make_basis(270, 16 * 4, method='kerdock', structured=True, rotate=False),
    'kerdock, turned': lambda: make_basis(270, 16 * 4, method='kerdock', seed=5, structured=True),
    'all of kerdock': lambda: make_basis(144, 16, method='kerdock', structured=True),
    'gold': lambda: make_basis(700, 33, method='gold', structured=True),
    'transversal': lambda: make_basis(1000, 100, method='transversal', structured=True),
}
ALL = pytest.mark.parametrize('name', BASES)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Many chunks of rows and many blocks of classes, also at the sizes of a test."""
    monkeypatch.setattr(products_module.DenseProducts, 'cpu_rows', 4)
    monkeypatch.setattr(products_module.DenseProducts, 'cpu_entries', 200)
    monkeypatch.setattr(products_module.Products, 'cpu_rows', 4)
    monkeypatch.setattr(products_module.Products, 'cpu_entries', 600)


def dense_logits(v, basis, tau):
    return functional.normalize(v, dim=1) @ basis.vectors.to(v).T / tau


def moved(target, device):
    return tuple(part.to(device) for part in target) if isinstance(target, tuple) else target.to(device)


def targets(kind, batch, num_classes):
    """(what ours takes, what torch takes)"""
    hard = torch.randint(num_classes, (batch,))
    hard[0], hard[-1] = 0, num_classes - 1
    if kind == 'hard':
        return hard, hard
    if kind == 'ignored':
        hard[1::3] = -100
        return hard, hard
    other = (hard + torch.randint(1, num_classes, (batch,))) % num_classes
    lam = torch.rand(batch, 1)
    mixed = lam * functional.one_hot(hard, num_classes) + (1 - lam) * functional.one_hot(other, num_classes)
    if kind == 'few':
        return (torch.stack([hard, other], 1), torch.cat([lam, 1 - lam], 1)), mixed
    if kind == 'mixup':
        return mixed, mixed
    assert kind == 'soft'
    soft = torch.randn(batch, num_classes).softmax(1)
    return soft, soft


@pytest.mark.parametrize('kind', ['hard', 'ignored', 'few', 'mixup', 'soft'])
@pytest.mark.parametrize('smoothing', [0.0, 0.1])
@pytest.mark.parametrize('weighted', [False, True])
def test_every_kind_of_target_equals_dense_cross_entropy(kind, smoothing, weighted, device):
    check_against_dense('dense', kind, smoothing, weighted, device)


@ALL
@pytest.mark.parametrize('kind', ['hard', 'soft'])
def test_every_basis_equals_dense_cross_entropy(name, kind, device):
    check_against_dense(name, kind, 0.1, True, device)


def check_against_dense(name, kind, smoothing, weighted, device):
    basis = BASES[name]()
    ours, theirs = (moved(target, device) for target in targets(kind, 11, basis.num_classes))
    weight = (torch.rand(basis.num_classes) + 0.1).to(device) if weighted else None
    for reduction in ('mean', 'none'):
        for tau in (0.07, 0.007):
            options = dict(label_smoothing=smoothing, weight=weight, reduction=reduction)
            v = torch.randn(11, basis.dim).to(device) * 3
            expected_v, v = v.double().requires_grad_(), v.requires_grad_()
            double = dict(options, weight=None if weight is None else weight.double())
            soft = theirs.double() if theirs.is_floating_point() else theirs
            expected = functional.cross_entropy(dense_logits(expected_v, basis, tau), soft, **double)
            loss = basis_cross_entropy(v, ours, basis, tau, **options)
            assert loss.dtype == torch.float32 and loss.device.type == device.type
            torch.testing.assert_close(loss.double(), expected, rtol=1e-5, atol=1e-4)
            upstream = torch.randn_like(expected)
            expected.backward(upstream)
            loss.backward(upstream.float())
            torch.testing.assert_close(v.grad.double(), expected_v.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize('name, kind', [(name, 'few') for name in BASES] + [('dense', 'hard'), ('dense', 'soft')])
def test_gradcheck(name, kind, device):
    basis = BASES[name]()
    target = moved(targets(kind, 6, basis.num_classes)[0], device)
    v = torch.randn(6, basis.dim, dtype=torch.float64).to(device).requires_grad_()
    weight = torch.rand(basis.num_classes).to(device)

    def loss(v):
        return basis_cross_entropy(v, target, basis, 0.2, label_smoothing=0.1, weight=weight, reduction='none')

    assert torch.autograd.gradcheck(loss, v, fast_mode=True)


def test_a_second_derivative_is_refused():
    v = torch.randn(4, 20, requires_grad=True)
    loss = basis_cross_entropy(v, torch.arange(4), BASES['dense']())
    with pytest.raises(RuntimeError, match='first derivative only'):
        torch.autograd.grad(loss, v, create_graph=True)


def test_a_matrix_or_its_products_are_a_basis_too():
    basis, v = BASES['dense'](), torch.randn(5, 20)
    target = torch.arange(5)
    expected = basis_cross_entropy(v, target, basis)
    assert torch.equal(basis_cross_entropy(v, target, basis.vectors), expected)
    assert torch.equal(basis_cross_entropy(v, target, basis.products), expected)


@ALL
def test_zero_vectors_and_empty_batches(name, device):
    basis = BASES[name]()
    v = torch.randn(3, basis.dim).to(device)
    v[1] = 0
    v.requires_grad_()
    losses = basis_cross_entropy(v, torch.zeros(3, dtype=torch.long, device=device), basis, reduction='none')
    assert losses[1].item() == pytest.approx(math.log(basis.num_classes), rel=1e-6)
    losses.sum().backward()
    assert not v.grad[1].any() and torch.isfinite(v.grad).all()
    empty = torch.empty(0, basis.dim, device=device, requires_grad=True)
    for target in (torch.empty(0, dtype=torch.long, device=device), torch.empty(0, basis.num_classes, device=device)):
        assert basis_cross_entropy(empty, target, basis, reduction='none').shape == (0,)
        basis_cross_entropy(empty, target, basis, reduction='sum').backward()
        assert basis_cross_entropy(empty, target, basis).isnan()  # as in torch
    assert [part.shape for part in basis_topk(empty, 2, basis)] == [(0, 2), (0, 2)]


@pytest.mark.parametrize('dtype', [torch.uint8, torch.int32])
def test_indices_of_any_integer_type(dtype):
    basis, v = BASES['dense'](), torch.randn(4, 20)
    target = torch.tensor([0, 156, 3, 255])
    expected = basis_cross_entropy(v, target, basis)
    assert torch.equal(basis_cross_entropy(v, target.to(dtype), basis), expected)
    shares = torch.ones(4, 1)
    assert torch.equal(basis_cross_entropy(v, (target.to(dtype)[:, None], shares), basis), expected)


def test_one_dense_row_among_sparse_ones_takes_no_memory_for_all(monkeypatch):
    basis, v = BASES['dense'](), torch.randn(100, 20, requires_grad=True)
    target = functional.one_hot(torch.arange(100), 300).float()
    target[7] = 1 / 300
    asked = []
    rows = products_module.DenseProducts.rows
    monkeypatch.setattr(products_module.DenseProducts, 'rows', lambda self, i: asked.append(len(i)) or rows(self, i))
    loss = basis_cross_entropy(v, target, basis)
    torch.testing.assert_close(loss, functional.cross_entropy(dense_logits(v, basis, 0.07), target))
    assert sum(asked) <= 8 * 100


def test_a_tiny_loss_is_not_lost_among_large_logits():
    basis = make_basis(8, 8)
    loss = basis_cross_entropy(basis.vectors, torch.arange(8), basis, tau=0.007)
    assert 0 <= loss.item() < 1e-6


@ALL
def test_autocast_and_half_precision_compute_in_float32(name, device):
    basis = BASES[name]()
    v, target = torch.randn(6, basis.dim).bfloat16().to(device), torch.randint(basis.num_classes, (6,)).to(device)
    expected = basis_cross_entropy(v.float(), target, basis, 0.007)
    with torch.autocast(device.type, dtype=torch.bfloat16):
        v.requires_grad_()
        loss = basis_cross_entropy(v, target, basis, 0.007)
    assert loss.dtype == torch.float32 and torch.equal(loss, expected)
    loss.backward()
    assert v.grad.dtype == torch.bfloat16 and torch.isfinite(v.grad).all()


def test_inside_a_compiled_function():
    basis, target = BASES['kerdock'](), torch.arange(6)
    v = torch.randn(6, 64, requires_grad=True)
    expected = basis_cross_entropy(2 * v, target, basis)
    (gradient,) = torch.autograd.grad(expected, v)
    compiled = torch.compile(lambda v: basis_cross_entropy(2 * v, target, basis), backend='eager')
    loss = compiled(v)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(torch.autograd.grad(loss, v)[0], gradient)


@ALL
@pytest.mark.parametrize('k', [1, 5])
def test_topk_is_that_of_the_softmax(name, k, device):
    basis = BASES[name]()
    v = torch.randn(9, basis.dim).to(device)
    expected = dense_logits(v, basis, 0.07).softmax(1).topk(k, 1)
    scores, classes = basis_topk(v, k, basis)
    torch.testing.assert_close(scores, expected.values, rtol=1e-4, atol=1e-7)
    assert torch.equal(classes, expected.indices)


@pytest.mark.parametrize(
    'arguments, error, message',
    [
        (dict(reduction='average'), ValueError, "reduction = 'average' is unknown"),
        (dict(label_smoothing=2), ValueError, 'label_smoothing = 2'),
        (dict(weight=torch.ones(3)), ValueError, 'there are 300 classes'),
        (dict(target=torch.tensor([0, 300])), IndexError, r'outside of the classes 0 ... 299'),
        (dict(target=torch.ones(2, 4)), ValueError, r'target has shape \(2, 4\)'),
        (dict(target=torch.ones(2)), ValueError, r'target has shape \(2,\) and dtype torch.float32'),
        (dict(target=torch.tensor([0])), ValueError, r'target has shape \[\(1,\)\], but there are 2 embeddings'),
        (dict(target=torch.tensor([0, 1, 2])), ValueError, 'there are 2 embeddings'),
        (dict(target=torch.ones(1, 300)), ValueError, 'there are 2 embeddings'),
        (dict(target=(torch.zeros(2, 1).long(), torch.ones(2, 2))), ValueError, r'\[\(2, 1\), \(2, 2\)\]'),
        (dict(embedding=torch.ones(2, 4)), ValueError, r'needs \(B, 20\)'),
    ],
)
def test_mistakes(arguments, error, message):
    defaults = dict(embedding=torch.randn(2, 20), target=torch.tensor([0, 1]), basis=BASES['dense']())
    with pytest.raises(error, match=message):
        basis_cross_entropy(**{**defaults, **arguments})


@pytest.mark.parametrize('tau', [0, -1.0, float('nan')])
def test_a_temperature_that_is_none(tau):
    v, basis = torch.randn(2, 9), torch.eye(7, 9)
    with pytest.raises(ValueError, match='must be a positive number'):
        basis_cross_entropy(v, torch.tensor([0, 1]), basis, tau)
    with pytest.raises(ValueError, match='must be a positive number'):
        basis_topk(v, 1, basis, tau)


class CountsTransfers(TorchDispatchMode):
    """Counts what would make a host wait for its GPU."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.count = getattr(self, 'count', 0) + (
            function.overloadpacket.__name__ in ('_local_scalar_dense', 'nonzero')
        )
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize('kind', ['dense', 'kerdock, turned', 'transversal'])
def test_no_loop_waits_for_a_gpu(kind):
    """Through torch's path, as on a GPU; with its loops over chunks of rows and blocks of classes."""
    products = BASES[kind]().products.to(torch.device('cpu'), torch.float32)
    z, named = torch.randn(40, products.dim), torch.randint(products.num_classes, (40, 1))
    counts = []
    for entries in (1 << 20, 64):
        products.cpu_entries = entries
        with CountsTransfers() as transfers:
            soft_sums(products, z, named, True)
            largest(products, z, 5)
        counts.append(transfers.count)
    assert counts == [0, 0]
