"""One way downhill: what every solver relies on, on a slope that can be followed by hand."""

import math

import pytest
import torch
from torch.nn import functional

from ebv_mm.basis.solvers.descent import descend
from ebv_mm.basis.watch import Watch

START = torch.tensor([[3.0, 0.0], [1.0, 1.0]])


def pair(w, done, rate=0.1):
    """The product of two rows as what is to become small."""
    return w.flip(0).clone(), float((w[0] @ w[1]).abs()), rate


def test_steps_momentum_and_the_best_rows():
    w, velocity, seen = functional.normalize(START), torch.zeros(2, 2), []
    for _ in range(30):
        seen.append((float((w[0] @ w[1]).abs()), w))
        tangent = w.flip(0) - (w.flip(0) * w).sum(1, keepdim=True) * w
        velocity = 0.9 * velocity - 0.1 * tangent
        w = functional.normalize(w + velocity)
    largest, rows = min(seen, key=lambda item: item[0])
    found, reached = descend(START, pair, watch=Watch(), steps=30, momentum=0.9)
    assert reached == pytest.approx(largest, abs=1e-5)
    assert torch.allclose(found, rows, atol=1e-5)


def test_fixed_rows_stay_and_steps_may_be_relative_to_the_gradient():
    found, _ = descend(START, pair, watch=Watch(), steps=2, relative=True, fixed=1)
    assert torch.equal(found[0], torch.tensor([1.0, 0.0]))
    # both rows have a gradient of the same length; the one row that moves is the root mean square
    length = math.sqrt(0.5) * 0.1
    assert math.tan(math.acos(float(found[1] @ functional.normalize(START)[1]))) == pytest.approx(length, rel=1e-4)


def test_the_share_of_the_way_is_told_and_the_slope_may_end_it():
    told = []

    def slope(w, done):
        told.append(done)
        return pair(w, done, rate=None if done >= 0.5 else 0.1)

    descend(START, slope, watch=Watch(), steps=4)
    assert told == [0, 0.25, 0.5]


def test_the_watch_may_end_it():
    told = []
    found, _ = descend(START, pair, watch=Watch(report=lambda *_: told.append(1) or True), steps=100)
    assert len(told) == 1
    assert torch.equal(found, functional.normalize(START))


def test_numbers_are_asked_for():
    with pytest.raises(ValueError, match='NaN'):
        descend(START * math.nan, pair, watch=Watch(), steps=1)
