"""The fast solver: it levels the cosines of a random frame in a few hundred steps, and leaves the rest to another."""

import math
from typing import Optional, Tuple

import torch
from torch import Tensor
from torch.nn import functional

from ..bounds import welch_bound
from ..watch import Watch
from .soft_maximum import Cosines

# steps where nobody sets a time limit; more gain little
DEFAULT_STEPS = 300


def squared_hinge(
    start: Tensor,
    level: float,
    *,
    watch: Optional[Watch] = None,
    share: float = 1.0,
    momentum: float = 0.95,
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
    w = functional.normalize(start.float())
    velocity = torch.zeros_like(w)
    cosines = Cosines(w)
    best, best_cosine = w.clone(), math.inf
    begin, allowance = watch.elapsed, watch.remaining * share
    step, progress = 0, 0.0
    while progress < 1:
        threshold = welch_bound(num_classes, dim) * (1 - progress) + level * progress
        gradient, largest = torch.zeros_like(w), 0.0
        for rows, signed, absolute in cosines(w):
            largest = max(largest, float(absolute.max()))
            torch.mm(functional.softshrink(signed, threshold), w, out=gradient[rows])
        if largest < best_cosine:
            best.copy_(w)
            best_cosine = largest
        if watch.see(largest):
            break
        gradient -= (gradient * w).sum(1, keepdim=True) * w
        velocity.mul_(momentum).sub_(gradient, alpha=dim / num_classes)
        w = functional.normalize(w + velocity)
        step += 1
        progress = step / DEFAULT_STEPS if watch.time_limit is None else (watch.elapsed - begin) / allowance
    return best, best_cosine
