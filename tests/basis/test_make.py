import math
import time

import pytest

from ebv_mm.basis import closed_form_basis, coherence, make_basis

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


def test_solver_by_name():
    basis = make_basis(40, 10, method='solver', alpha=0.4, time_limit=30)
    assert basis.method == 'solver'
    assert basis.coherence <= 0.4


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
        (dict(num_classes=9, dim=5, method='solver', options=dict(lr=1)), 'lr: only the method "algorithm1"'),
    ],
)
def test_bad_input(kwargs, words):
    with pytest.raises(ValueError, match=words):
        make_basis(**kwargs)
