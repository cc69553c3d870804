"""The fast solver: it levels the cosines of a random frame in a few hundred steps, and leaves the rest to another."""

from typing import Optional, Tuple

import torch
from torch import Tensor
from torch.nn import functional

from ..bounds import welch_bound
from ..watch import Watch
from .cosines import Cosines
from .descent import descend

# steps where nobody sets a time limit; more gain little
DEFAULT_STEPS = 300
MOMENTUM = 0.95


def squared_hinge(
    start: Tensor, level: float, *, watch: Optional[Watch] = None, share: float = 1.0
) -> Tuple[Tensor, float]:
    r"""Bring all |cosines| of a tight frame of N > d unit rows below a level, as far as possible.

    Heavy-ball descent on :math:`\sum_{i \ne j} \max(|w_i \cdot w_j| - t, 0)^2`, with t rising from Welch's bound, which
    is the root mean square of the cosines, to ``level``: first everything above the mean is pressed down, then what
    already is low enough is let go. Its step, d/N, follows from the norm N/d of a tight frame's W^T W. The paper's
    Algorithm 1 has the hinge itself, whose gradient does not fade as a pair comes close to its goal.

    Returns:
        The best rows seen, and their coherence.
    """
    watch = watch or Watch()
    num_classes, dim = start.shape
    welch = welch_bound(num_classes, dim)
    cosines = Cosines(start.float())

    def slope(w: Tensor, done: float) -> Tuple[Tensor, float, float]:
        threshold = welch * (1 - done) + level * done
        gradient, largest = torch.zeros_like(w), 0.0
        for rows, signed, absolute in cosines(w):
            largest = max(largest, float(absolute.max()))
            torch.mm(functional.softshrink(signed, threshold), w, out=gradient[rows])
        return gradient, largest, dim / num_classes

    steps = DEFAULT_STEPS if watch.time_limit is None else None
    return descend(start, slope, watch=watch, steps=steps, share=share, momentum=MOMENTUM)
