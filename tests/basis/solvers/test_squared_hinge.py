import pytest

from ebv_mm.basis import best_bound, coherence
from ebv_mm.basis.solvers import squared_hinge, tight_frame


@pytest.mark.parametrize('size', [(60, 24), (100, 40), (120, 12)])
def test_hinge_levels_a_random_frame(size):
    start = tight_frame(*size)
    vectors, largest = squared_hinge(start, 1.1 * best_bound(*size))
    assert coherence(vectors) == pytest.approx(largest, abs=1e-4)
    assert best_bound(*size) - 1e-6 <= largest < 0.75 * coherence(start)
