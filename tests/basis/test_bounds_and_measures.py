"""Bounds and measures against formulas written here anew."""

import math

import numpy as np
import pytest
import scipy.special
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ebv_mm.basis import (
    best_bound,
    capacity,
    coherence,
    levenshtein_bound,
    mean_deviation,
    measure,
    min_angle,
    orthoplex_bound,
    smallest_dim,
    welch_bound,
)
from ebv_mm.basis.bounds import _log_double_cap, cap_bound


def test_known_values():
    assert welch_bound(1000, 100) == pytest.approx(0.09492, abs=5e-6)
    assert math.degrees(math.acos(welch_bound(1000, 500))) == pytest.approx(88.187, abs=5e-4)
    assert math.degrees(math.acos(levenshtein_bound(30000, 200))) == pytest.approx(84.79, abs=5e-3)
    assert welch_bound(81, 81) == 0
    assert orthoplex_bound(11, 4) == 0.5
    assert orthoplex_bound(10, 4) == 0


def test_where_the_bounds_are_met():
    """The 28 lines in R^7, the 240 / 2 roots of E8, the 24 / 2 of D4, the icosahedron, the regular polygon."""
    assert welch_bound(28, 7) == pytest.approx(1 / 3)
    assert levenshtein_bound(120, 8) == pytest.approx(1 / 2)
    assert levenshtein_bound(12, 4) == pytest.approx(1 / 2)
    assert welch_bound(6, 3) == pytest.approx(1 / math.sqrt(5))
    assert cap_bound(7, 2) == pytest.approx(math.cos(math.pi / 7))


@settings(deadline=None, max_examples=50)
@given(num_classes=st.integers(1, 5000), dim=st.integers(1, 200))
def test_best_bound_is_a_bound_and_monotone(num_classes, dim):
    bound = best_bound(num_classes, dim)
    assert 0 <= bound <= 1
    assert best_bound(num_classes + 1, dim) >= bound - 1e-12
    assert best_bound(num_classes, dim + 1) <= bound + 1e-12
    generator = torch.Generator().manual_seed(num_classes)
    few = torch.nn.functional.normalize(torch.randn(min(num_classes, 60), dim, generator=generator).double())
    assert coherence(few) >= best_bound(len(few), dim) - 1e-9


@pytest.mark.parametrize(
    'dim, degrees', [(2, 10), (3, 44), (10, 1), (64, 30), (200, 20), (500, 30), (1000, 40), (1800, 45)]
)
def test_the_area_of_a_cap(dim, degrees):
    angle = math.radians(degrees)
    share = scipy.special.betainc((dim - 1) / 2, 0.5, math.sin(angle) ** 2)
    assert _log_double_cap(angle, dim) == pytest.approx(math.log(share), abs=1e-9)


@settings(deadline=None, max_examples=15)
@given(dim=st.integers(1, 60), alpha=st.floats(0, 0.8))
def test_capacity_is_where_the_bound_turns(dim, alpha):
    most = capacity(dim, alpha)
    assert best_bound(most, dim) <= alpha + 1e-9
    assert best_bound(most + 1, dim) > alpha
    assert best_bound(most, smallest_dim(most, alpha)) <= alpha + 1e-9


def test_capacity_rejects():
    for dim, alpha in ((0, 0.5), (5, 1.0), (5, -0.1), (5, math.nan)):
        with pytest.raises(ValueError):
            capacity(dim, alpha)


@pytest.mark.parametrize('size', [(1, 3), (2, 2), (7, 3), (200, 20)])
@pytest.mark.parametrize('block', [5, 64, 1 << 24])
def test_measures_over_all_pairs(size, block, monkeypatch):
    monkeypatch.setattr(measure, 'BLOCK_ENTRIES', block)
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=size)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    pairs = [abs(vectors[i] @ vectors[j]) for i in range(size[0]) for j in range(i)]
    angles = np.degrees(np.arccos(np.clip(pairs, 0, 1)))
    rows = torch.from_numpy(vectors)
    assert coherence(rows) == pytest.approx(max(pairs, default=0), abs=1e-12)
    assert min_angle(rows) == pytest.approx(min(angles, default=90), abs=1e-9)
    assert mean_deviation(rows) == pytest.approx(np.mean(90 - angles) if pairs else 0, abs=1e-9)


def test_mean_deviation_from_a_sample():
    rows = torch.nn.functional.normalize(torch.randn(400, 30, generator=torch.Generator().manual_seed(0)))
    assert mean_deviation(rows, sample=100) == pytest.approx(mean_deviation(rows), rel=0.02)
    assert mean_deviation(rows, sample=400) == mean_deviation(rows)
