"""make_basis, its solvers, and extend_basis."""

import importlib
import math
import time

import pytest
import torch

from ebv_mm.basis import (
    BasisError,
    DenseBasis,
    best_bound,
    closed_form_basis,
    coherence,
    extend_basis,
    make_basis,
)
from ebv_mm.basis.solvers import algorithm1, soft_maximum, squared_hinge, tight_frame
from ebv_mm.basis.watch import Watch

TARGETS = {  # N, d: min angle
    (1000, 100): 83.25,
    (1000, 200): 86.17,
    (1000, 300): 87.13,
    (1000, 400): 87.61,
    (1000, 500): 88.15,
    (8142, 2048): 88.89,
    (30000, 256): 86.41,
    (30000, 200): 81.1,
    (100000, 1024): 88.20,
}
QUICK = [(1000, 100), (1000, 200), (1000, 300), (1000, 400), (1000, 500)]


def angle(vectors):
    cosines = (vectors.double() @ vectors.double().T).abs().fill_diagonal_(0)
    return math.degrees(math.acos(float(cosines.max())))


@pytest.mark.parametrize('size', QUICK)
def test_targets_in_closed_form(size):
    basis = closed_form_basis(*size)
    assert basis.min_angle >= TARGETS[size]
    assert angle(basis.vectors) == pytest.approx(basis.min_angle, abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize('size', TARGETS)
def test_targets(size):
    basis = make_basis(*size, time_limit=60)
    assert basis.min_angle >= TARGETS[size]
    assert math.degrees(math.acos(coherence(basis.vectors[:20000]))) >= TARGETS[size]


@pytest.mark.slow
@pytest.mark.parametrize('dim, authors', [(100, 82.239), (200, 85.410), (300, 86.673), (400, 87.477), (500, 87.993)])
def test_solver_beats_the_authors(dim, authors):
    assert make_basis(1000, dim, method='solver', time_limit=60).min_angle > authors


@pytest.mark.slow
def test_a_hundred_thousand_in_5000():
    basis = closed_form_basis(100_000, 5000)
    assert basis.min_angle >= 89.15
    assert math.degrees(math.acos(coherence(basis.vectors[::20].contiguous()))) >= 89.15


@pytest.mark.parametrize('size', [(81, 81), (150, 150), (1000, 1000)])
def test_orthonormal(size):
    basis = make_basis(*size)
    assert basis.coherence == 0
    assert coherence(basis.vectors) < 2e-6


@pytest.mark.parametrize('size, at_least', [((60, 24), 79.7), ((40, 10), 70.5), ((7, 3), 54.7), ((5, 2), 35.9)])
def test_solver_comes_close_to_the_bound(size, at_least):
    found = [soft_maximum(tight_frame(*size, seed), steps=500) for seed in range(3)]
    for vectors, largest in found:
        assert angle(vectors) == pytest.approx(math.degrees(math.acos(largest)), abs=1e-2)
        assert largest >= best_bound(*size) - 1e-6
    assert max(angle(vectors) for vectors, _ in found) >= at_least


@pytest.mark.parametrize('size', [(60, 24), (100, 40), (120, 12)])
def test_hinge_levels_a_random_frame(size):
    start = tight_frame(*size)
    vectors, largest = squared_hinge(start, 1.1 * best_bound(*size))
    assert angle(vectors) == pytest.approx(math.degrees(math.acos(largest)), abs=1e-2)
    assert best_bound(*size) - 1e-6 <= largest < 0.75 * coherence(start)


def test_solver_by_name():
    basis = make_basis(40, 10, method='solver', alpha=0.4, time_limit=30)
    assert basis.method == 'solver'
    assert basis.coherence <= 0.4


def test_solver_is_deterministic_and_local():
    before = torch.get_rng_state()
    one, _ = soft_maximum(tight_frame(40, 9, seed=3), steps=60)
    two, _ = soft_maximum(tight_frame(40, 9, seed=3), steps=60)
    other, _ = soft_maximum(tight_frame(40, 9, seed=4), steps=60)
    assert torch.equal(one, two)
    assert not torch.equal(one, other)
    assert torch.equal(torch.get_rng_state(), before)


def test_solver_in_blocks_is_the_same(monkeypatch):
    whole, _ = soft_maximum(tight_frame(50, 12), steps=5)
    monkeypatch.setattr(importlib.import_module('ebv_mm.basis.solvers.soft_maximum'), 'BLOCK_ENTRIES', 50 * 7)
    blocks, _ = soft_maximum(tight_frame(50, 12), steps=5)
    assert torch.allclose(whole, blocks, atol=1e-4)


def test_solver_leaves_denormals_as_they_were():
    soft_maximum(tight_frame(10, 3), steps=3)
    assert float(torch.tensor(1e-40) * 1) != 0


def test_solver_refuses_a_start_without_numbers():
    start = tight_frame(10, 3)
    start[2, 1] = math.nan
    with pytest.raises(ValueError, match='NaN'):
        soft_maximum(start)


def test_algorithm1_reaches_its_alpha():
    vectors = algorithm1(60, 30, 0.25, lr=1e-2, max_steps=3000)
    assert coherence(vectors) <= 0.25 + 1e-4


def test_algorithm1_slices_do_not_matter():
    one = algorithm1(50, 20, 0.2, slice_size=7, max_steps=20)
    two = algorithm1(50, 20, 0.2, slice_size=130, max_steps=20)
    assert torch.allclose(one, two, atol=1e-5)


def test_algorithm1_stops_when_it_diverges():
    """As users reported: alpha below what is possible, a step too large."""
    start = time.monotonic()
    vectors = algorithm1(100, 20, 0.002, lr=0.5, patience=20)
    assert time.monotonic() - start < 60
    assert torch.isfinite(vectors).all()
    first = torch.nn.functional.normalize(torch.randn(100, 20, generator=torch.Generator().manual_seed(0)))
    assert coherence(vectors) <= coherence(first)


@pytest.mark.parametrize('method', ['solver', 'algorithm1', 'auto', 'polish'])
def test_time_limit(method):
    start = time.monotonic()
    make_basis(400, 50, method=method, alpha=0.142, time_limit=1)
    assert time.monotonic() - start < 20  # other jobs may slow this down


def test_progress_is_told_and_can_stop():
    told = []

    def report(seconds, best):
        told.append(best)
        return True

    basis = make_basis(300, 20, method='solver', progress=report)
    assert len(told) == 1
    assert basis.num_classes == 300


def test_alpha_ends_the_search_early():
    start = time.monotonic()
    basis = make_basis(300, 40, method='solver', alpha=0.4, time_limit=100)
    assert basis.coherence <= 0.4
    assert time.monotonic() - start < 50


@pytest.mark.parametrize(
    'kwargs, words',
    [
        (dict(num_classes=0, dim=3), 'num_classes = 0'),
        (dict(num_classes=3, dim=-1), 'dim = -1'),
        (dict(num_classes=3.0, dim=3), 'num_classes = 3.0'),
        (dict(num_classes=True, dim=3), 'num_classes = True'),
        (dict(num_classes=1000, dim=512, alpha=0.002), 'impossible.*dim >= '),
        (dict(num_classes=10, dim=5, alpha=1.0), 'alpha = 1.0'),
        (dict(num_classes=10, dim=5, alpha=math.nan), 'alpha = nan'),
        (dict(num_classes=10, dim=5, method='nonsense'), "'nonsense'"),
        (dict(num_classes=60, dim=6, method='polish'), "'polish', but"),
        (dict(num_classes=60, dim=6, time_limit=0), 'time_limit'),
        (dict(num_classes=5, dim=5, seed=2**63), 'seed = 9223372036854775808'),
        (dict(num_classes=5, dim=5, seed=-(2**63) - 1), 'seed = -9223372036854775809'),
        (dict(num_classes=5, dim=5, device='foo'), "device = 'foo' cannot be used"),
        (dict(num_classes=5, dim=5, device='meta'), "device = 'meta' cannot be used"),
        (dict(num_classes=5, dim=5, device='cuda:99'), "device = 'cuda:99' cannot be used"),
    ],
)
def test_bad_input(kwargs, words):
    with pytest.raises(ValueError, match=words):
        make_basis(**kwargs)


def test_watch():
    watch = Watch(target=0.5)
    assert not watch.see(0.7)
    assert watch.see(0.5)
    assert watch.over


class TestExtend:
    def check(self, basis, n_new, extension):
        extended = extension.basis
        assert extended.num_classes == basis.num_classes + n_new
        assert torch.equal(extended.vectors[: basis.num_classes], basis.vectors)
        assert extended.coherence == pytest.approx(coherence(extended.vectors), abs=2e-6)
        assert extension.before == basis.coherence
        assert f'{extended.min_angle:.3f}' in str(extension)

    def test_orthonormal_within_the_dimension(self):
        basis = make_basis(5, 9)
        extension = extend_basis(basis, 4)
        self.check(basis, 4, extension)
        assert coherence(extension.basis.vectors) < 2e-6

    @pytest.mark.parametrize('seed', [0, 7])
    def test_closed_form_goes_on(self, seed):
        basis = make_basis(500, 64, method='kerdock', seed=seed)
        extension = extend_basis(basis, 900)
        self.check(basis, 900, extension)
        assert extension.cost == pytest.approx(0, abs=1e-3)

    def test_closed_form_goes_on_and_on(self):
        basis = make_basis(500, 64, method='kerdock')
        once, twice = extend_basis(basis, 200), extend_basis(extend_basis(basis, 100).basis, 100)
        assert torch.equal(once.basis.vectors, twice.basis.vectors)
        assert once.basis.method == twice.basis.method == 'kerdock'

    def test_free_directions_of_foreign_vectors(self):
        basis = DenseBasis(torch.nn.functional.pad(make_basis(12, 4, method='kerdock').vectors, (0, 3)))
        extension = extend_basis(basis, 3)
        self.check(basis, 3, extension)
        assert extension.basis.coherence == pytest.approx(basis.coherence, abs=2e-6)

    def test_by_the_solver(self):
        basis = make_basis(30, 12, method='solver', time_limit=1)
        extension = extend_basis(basis, 6, time_limit=2)
        self.check(basis, 6, extension)
        assert extension.cost > 0
        random = torch.nn.functional.normalize(torch.randn(6, 12, generator=torch.Generator().manual_seed(0)))
        assert extension.basis.coherence < coherence(torch.cat([basis.vectors, random]))

    def test_bad_count(self):
        with pytest.raises(ValueError, match='n_new = 0'):
            extend_basis(make_basis(3, 3), 0)


def test_basis_checks_its_vectors():
    for vectors, words in (
        (torch.eye(3)[0], 'shape'),
        (torch.eye(3).half(), 'float16'),
        (torch.full((2, 2), math.inf), 'infinity in row 0'),
        (2 * torch.eye(3), 'norm 2'),
    ):
        with pytest.raises(BasisError, match=words):
            DenseBasis(vectors)
