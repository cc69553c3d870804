"""The good solver: descent on a soft maximum of |cosine| that is made sharper and sharper."""

import contextlib
import math
from typing import Iterator, Optional, Tuple

import torch
from torch import Tensor
from torch.nn import functional

from ..watch import Watch

BLOCK_ENTRIES = 1 << 22
# a minute or less on two cores
DEFAULT_WORK = 2e12


def step_work(num_classes: int, dim: int) -> float:
    """Arithmetic operations of a step: two matrix products, and some twenty passes over the cosines."""
    return num_classes**2 * (4.0 * dim + 100.0)


def default_steps(num_classes: int, dim: int) -> int:
    """How many steps to take when nobody sets a time limit."""
    return int(min(6000, max(50, DEFAULT_WORK / step_work(num_classes, dim))))


def soft_maximum(
    start: Tensor,
    *,
    steps: Optional[int] = None,
    watch: Optional[Watch] = None,
    share: float = 1.0,
    fixed: int = 0,
    sharpness: Tuple[float, float] = (3.0, 3000.0),
    step_size: Tuple[float, float] = (0.3, 2e-4),
    momentum: float = 0.9,
) -> Tuple[Tensor, float]:
    r"""Minimise :math:`\max_{i \ne j} |w_i \cdot w_j|` over unit rows, from a given start.

    Riemannian heavy-ball descent on :math:`\frac1\beta \log \sum_{i \ne j} e^{\beta |w_i \cdot w_j|}`. The sharpness
    beta, relative to the largest |cosine|, rises geometrically from soft, where the landscape has few bad minima, to
    sharp, where it is the maximum; the step falls geometrically, relative to the root mean square of the gradient's
    rows. The end of the schedule is set by ``steps`` or, if that is None, by the watch's time limit: then the result
    depends on the speed of the machine. Rows are taken in blocks, so that no N x N matrix is held.

    Args:
        start: (N, d) unit rows, on the device to compute on. Not modified.
        steps: Number of steps; None to go by time, or by :func:`default_steps` where the watch has no limit.
        watch: May end the iteration sooner.
        share: Share of the watch's remaining time that may be used.
        fixed: The first ``fixed`` rows stay as they are.
        sharpness: beta times coherence, first and last.
        step_size: First and last.

    Returns:
        The best rows seen, and their coherence.
    """
    watch = watch or Watch()
    if not torch.isfinite(start).all():
        raise ValueError('the start of the solver holds NaN or infinity; give finite rows')
    if steps is None and watch.time_limit is None:
        steps = default_steps(*start.shape)
    begin, allowance = watch.elapsed, watch.remaining * share
    w = functional.normalize(start.float())
    best, best_cosine = w.clone(), math.inf
    velocity = torch.zeros_like(w)
    cosines = Cosines(w)
    reference, step, progress = None, 0, 0.0
    with _flushed_denormals():
        while progress < 1:
            beta = sharpness[0] * (sharpness[1] / sharpness[0]) ** progress
            rate = step_size[0] * (step_size[1] / step_size[0]) ** progress
            if reference is None:
                reference = max(cosines.largest(w, fixed), 1e-30)
            gradient, largest = cosines.gradient(w, beta / reference, reference, fixed)
            reference = max(largest, 1e-30)
            if largest < best_cosine:
                best.copy_(w)
                best_cosine = largest
            if watch.see(largest):
                break
            gradient -= (gradient * w).sum(1, keepdim=True) * w
            gradient *= math.sqrt(len(w) - fixed) / gradient.norm().clamp_min(1e-30)
            velocity.mul_(momentum).sub_(gradient, alpha=rate * (1 - momentum))
            w[fixed:] = functional.normalize(w[fixed:] + velocity[fixed:])
            step += 1
            progress = step / steps if steps is not None else (watch.elapsed - begin) / allowance
    return best, best_cosine


class Cosines:
    """The cosines of all rows, some rows at a time, in two buffers that are used again and again."""

    def __init__(self, w: Tensor) -> None:
        self.size = min(len(w), max(1, BLOCK_ENTRIES // len(w)))
        self.signed, self.absolute = w.new_empty(2, self.size, len(w))

    def __call__(self, w: Tensor, first: int = 0) -> Iterator[Tuple[slice, Tensor, Tensor]]:
        """Yield the numbers of the rows, their cosines, with 0 for themselves, and the absolute values of these."""
        for start in range(first, len(w), self.size):
            rows = slice(start, min(start + self.size, len(w)))
            count = rows.stop - rows.start
            signed = torch.mm(w[rows], w.T, out=self.signed[:count])
            signed.diagonal(start).zero_()
            yield rows, signed, torch.abs(signed, out=self.absolute[:count])

    def largest(self, w: Tensor, first: int = 0) -> float:
        return max(float(absolute.max()) for _, _, absolute in self(w, first))

    def gradient(self, w: Tensor, beta: float, reference: float, fixed: int) -> Tuple[Tensor, float]:
        """Gradient of the soft maximum, up to a factor, and the largest |cosine| of the rows that are not fixed.

        The weights are relative to the largest |cosine| of the step before, so that one pass is enough.
        """
        gradient = torch.zeros_like(w)
        largest = 0.0
        for rows, signed, absolute in self(w, fixed):
            highest = float(absolute.max())
            largest = max(largest, highest)
            weights = absolute.sub_(reference).mul_(beta)
            if (highest - reference) * beta > 40:
                weights.clamp_(max=40.0)
            weights = torch.copysign(weights.exp_(), signed, out=signed)
            # the weight of a row with itself only adds a multiple of it, which the projection takes away
            torch.mm(weights, w, out=gradient[rows])
        return gradient, largest


@contextlib.contextmanager
def _flushed_denormals() -> Iterator[None]:
    """Weights far below the maximum would be denormal numbers, which are slow. Restores the default: not flushed."""
    flushed = torch.set_flush_denormal(True)
    try:
        yield
    finally:
        if flushed:
            torch.set_flush_denormal(False)
