"""The good solver: descent on a soft maximum of |cosine| that is made sharper and sharper."""

import contextlib
from typing import Iterator, Optional, Tuple

import torch
from torch import Tensor

from ..watch import Watch
from .cosines import Cosines
from .descent import descend

# a minute or less on two cores
DEFAULT_WORK = 2e12
# beta times the largest |cosine|, first and last
SHARPNESS = (3.0, 3000.0)
MOMENTUM = 0.9


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
    step_size: Tuple[float, float] = (0.3, 2e-4),
) -> Tuple[Tensor, float]:
    r"""Minimise :math:`\max_{i \ne j} |w_i \cdot w_j|` over unit rows, from a given start.

    Heavy-ball descent on :math:`\frac1\beta \log \sum_{i \ne j} e^{\beta |w_i \cdot w_j|}`. The sharpness beta,
    relative to the largest |cosine|, rises geometrically from soft, where the landscape has few bad minima, to sharp,
    where it is the maximum; the step falls geometrically. The end of the schedule is set by ``steps`` or, if that is
    None, by the watch's time limit: then the result depends on the speed of the machine. Rows are taken in blocks, so
    that no N x N matrix is held.

    Args:
        start: (N, d) unit rows, on the device to compute on. Not modified.
        steps: Number of steps; None to go by time, or by :func:`default_steps` where the watch has no limit.
        watch: May end the iteration sooner.
        share: Share of the watch's remaining time that may be used.
        fixed: The first ``fixed`` rows stay as they are.
        step_size: First and last, relative to the root mean square of the gradient's rows.

    Returns:
        The best rows seen, and their coherence.
    """
    watch = watch or Watch()
    if steps is None and watch.time_limit is None:
        steps = default_steps(*start.shape)
    cosines = Cosines(start.float())
    reference: Optional[float] = None

    def slope(w: Tensor, done: float) -> Tuple[Tensor, float, float]:
        nonlocal reference
        beta, rate = (first * (last / first) ** done for first, last in (SHARPNESS, step_size))
        if reference is None:
            reference = max(cosines.largest(w, fixed), 1e-30)
        gradient, largest = soft_gradient(cosines, w, beta / reference, reference, fixed)
        reference = max(largest, 1e-30)
        return gradient, largest, rate * (1 - MOMENTUM)

    with _flushed_denormals():
        return descend(
            start, slope, watch=watch, steps=steps, share=share, momentum=MOMENTUM, relative=True, fixed=fixed
        )


def soft_gradient(cosines: Cosines, w: Tensor, beta: float, reference: float, fixed: int) -> Tuple[Tensor, float]:
    """Gradient of the soft maximum, up to a factor, and the largest |cosine| of the rows that are not fixed.

    The weights are relative to the largest |cosine| of the step before, so that one pass is enough.
    """
    gradient, largest = torch.zeros_like(w), 0.0
    for rows, signed, absolute in cosines(w, fixed):
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
