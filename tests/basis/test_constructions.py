"""One property test over all closed forms: what a construction claims is what its vectors have."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ebv_mm.basis import best_bound, closed_form_basis, closed_forms, welch_bound
from ebv_mm.basis.constructions import all_offers, materialise
from ebv_mm.basis.constructions.packings import difference_packing
from ebv_mm.basis.constructions.quadratic_forms import DelsarteGoethals, Gold

SIZES = [(1, 1), (3, 7), (6, 5), (14, 7), (50, 25), (60, 30), (28, 7), (100, 24), (200, 64), (300, 40), (730, 73)]
SIZES += [(136, 16), (2000, 64), (4200, 64), (1000, 32), (256, 120), (256, 136), (1000, 100), (300, 90), (600, 300)]
OFFERS = {f'{o.method}, {o.detail}, {o.num_vectors} x {o.dim}': o for size in SIZES for o in all_offers(*size)}


def largest_cosine(vectors):
    """Independent of the library: float64, whole matrix."""
    cosines = (vectors.double() @ vectors.double().T).abs()
    return float(cosines.fill_diagonal_(0).max())


@pytest.mark.parametrize('name', OFFERS)
def test_every_construction_has_what_it_claims(name):
    offer = OFFERS[name]
    frame = offer.build()
    assert (frame.num_vectors, frame.dim) == (offer.num_vectors, offer.dim)
    # the beginning, the end and a part of the middle of large ones
    count = min(offer.num_vectors, 2500)
    middle = (offer.num_vectors - count) // 2
    rows = torch.cat([frame.rows(0, count), frame.rows(offer.num_vectors - 1, offer.num_vectors)])[: offer.num_vectors]
    assert rows.dtype == torch.float64
    assert torch.allclose(rows.norm(dim=1), torch.ones(len(rows), dtype=torch.float64), atol=1e-12)
    assert torch.equal(frame.rows(middle, middle + 1), frame.rows(middle, middle + count)[:1])
    # the rows that were taken need not hold the worst pair, but if all are, they do
    assert largest_cosine(rows) <= offer.coherence + 1e-9
    if offer.num_vectors <= 2500:
        assert largest_cosine(frame.rows(0, offer.num_vectors)) == pytest.approx(offer.coherence, abs=1e-9)
    assert offer.coherence >= best_bound(offer.num_vectors, offer.dim) - 1e-12


def test_all_families_are_tested():
    assert {offer.method for offer in OFFERS.values()} == {
        'orthonormal', 'simplex', 'conference', 'bent', 'taylor', 'kerdock', 'delsarte-goethals', 'gold',
        'transversal', 'reed-solomon', 'packing',
    }  # fmt: skip


@pytest.mark.parametrize('method', ['simplex', 'conference', 'bent', 'taylor'])
def test_equiangular_tight_frames_meet_welch(method):
    found = [offer for offer in OFFERS.values() if offer.method == method]
    assert found
    for offer in found:
        assert offer.coherence == pytest.approx(welch_bound(offer.num_vectors, offer.dim), rel=1e-12)


@pytest.mark.parametrize(
    'frame', [DelsarteGoethals(n) for n in (2, 4, 6, 8, 10)] + [DelsarteGoethals(6, 1), Gold(5), Gold(7)]
)
def test_quadratic_forms_all_pairs_by_fast_transform(frame):
    """Pairs of two bases: the Hadamard transform of the product of their signs has all d^2 cosines, up to order."""
    signs = torch.stack([frame.signs(a) for a in range(min(frame.num_forms, 64))])
    product = signs[:, None] * signs[None]
    for bit in range(frame.n):
        pairs = product.unflatten(-1, (-1, 2, 1 << bit))
        product = torch.cat([pairs[..., :1, :] + pairs[..., 1:, :], pairs[..., :1, :] - pairs[..., 1:, :]], -2).flatten(
            -3
        )
    cosines = product.abs().amax(-1) / frame.dim
    t = frame.t - (0.5 if isinstance(frame, Gold) else 0)
    assert cosines.fill_diagonal_(0).max() == pytest.approx(2**t / math.sqrt(frame.dim))


@settings(max_examples=40, deadline=None)
@given(num_classes=st.integers(1, 300), dim=st.integers(1, 80), seed=st.integers(0, 3), rotate=st.booleans())
def test_any_size(num_classes, dim, seed, rotate):
    offers = closed_forms(num_classes, dim)
    assert [offer.coherence for offer in offers] == sorted(offer.coherence for offer in offers)
    for offer in offers[:3]:
        vectors = materialise(offer.build(), num_classes, dim, rotate=rotate, seed=seed)
        assert vectors.shape == (num_classes, dim)
        assert vectors.dtype == torch.float32
        assert torch.allclose(vectors.norm(dim=1), torch.ones(num_classes), atol=1e-6)
        assert largest_cosine(vectors) <= offer.coherence + 1e-6


@pytest.mark.parametrize('size', [(1, 1), (2, 2), (80, 81), (81, 81), (300, 301)])
@pytest.mark.parametrize('seed', [0, 1])
def test_orthonormal(size, seed):
    basis = closed_form_basis(*size, seed=seed)
    assert basis.method == 'orthonormal'
    gram = basis.vectors.double() @ basis.vectors.double().T
    assert torch.allclose(gram, torch.eye(size[0], dtype=torch.float64), atol=2e-6)


def test_rotation_leaves_the_cosines_and_depends_on_the_seed():
    sparse = closed_form_basis(60, 64, method='transversal', rotate=False).vectors
    one = closed_form_basis(60, 64, method='transversal', seed=1).vectors
    two = closed_form_basis(60, 64, method='transversal', seed=2).vectors
    assert torch.allclose(sparse @ sparse.T, one @ one.T, atol=1e-5)
    assert torch.allclose(one @ one.T, two @ two.T, atol=1e-5)
    assert (sparse == 0).float().mean() > 0.5
    assert (one == 0).float().mean() < 0.01
    assert not torch.allclose(one, two, atol=0.1)


def test_the_same_bits_every_time():
    assert torch.equal(closed_form_basis(81, 81).vectors, closed_form_basis(81, 81).vectors)
    assert torch.equal(closed_form_basis(126, 21).vectors, closed_form_basis(126, 21).vectors)


def test_more_vectors_begin_with_the_same():
    assert torch.equal(closed_form_basis(700, 64).vectors[:500], closed_form_basis(500, 64, method='kerdock').vectors)


@pytest.mark.parametrize('modulus, sizes', [(13, (4,)), (37, (4, 4, 4)), (50, (4, 4, 3, 3, 3, 3)), (157, (4,) * 13)])
def test_difference_packings(modulus, sizes):
    blocks = difference_packing(modulus, sizes)
    assert sorted(map(len, blocks)) == sorted(sizes)
    differences = [(x - y) % modulus for block in blocks for x in block for y in block if x != y]
    assert len(differences) == len(set(differences))


def test_no_closed_form_says_what_to_do():
    with pytest.raises(ValueError, match='ebv_mm.basis --num-classes 60 --dim 6'):
        closed_form_basis(60, 6)
    with pytest.raises(ValueError, match="'conference'"):
        closed_form_basis(10, 5, method='taylor')
