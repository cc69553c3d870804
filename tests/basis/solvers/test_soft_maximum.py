import math

import pytest
import torch

from ebv_mm.basis import best_bound
from ebv_mm.basis.solvers import cosines, soft_maximum, tight_frame


def angle(vectors):
    cosines = (vectors.double() @ vectors.double().T).abs().fill_diagonal_(0)
    return math.degrees(math.acos(float(cosines.max())))


@pytest.mark.parametrize('size, at_least', [((60, 24), 79.7), ((40, 10), 70.5), ((7, 3), 54.7), ((5, 2), 35.9)])
def test_solver_comes_close_to_the_bound(size, at_least):
    found = [soft_maximum(tight_frame(*size, seed), steps=500) for seed in range(3)]
    for vectors, largest in found:
        assert angle(vectors) == pytest.approx(math.degrees(math.acos(largest)), abs=1e-2)
        assert largest >= best_bound(*size) - 1e-6
    assert max(angle(vectors) for vectors, _ in found) >= at_least


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
    monkeypatch.setattr(cosines, 'BLOCK_ENTRIES', 50 * 7)
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
