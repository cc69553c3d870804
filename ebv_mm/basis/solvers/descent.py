"""The way downhill that all solvers take: unit rows stay unit rows, and the best that were seen are kept."""

import math
from typing import Callable, Optional, Tuple

import torch
from torch import Tensor
from torch.nn import functional

from ..watch import Watch

# Of rows w and the share of the way that is done, 0 to 1: a gradient (N, d), the largest |cosine| of the rows, and the
# size of the step to take, None to end here.
Slope = Callable[[Tensor, float], Tuple[Tensor, float, Optional[float]]]


def descend(
    start: Tensor,
    slope: Slope,
    *,
    watch: Watch,
    steps: Optional[int] = None,
    share: float = 1.0,
    momentum: float = 0.0,
    relative: bool = False,
    fixed: int = 0,
) -> Tuple[Tensor, float]:
    """Heavy-ball descent on a product of spheres.

    Args:
        start: (N, d) rows, on the device to compute on. Not modified.
        slope: Where it goes down, and how far to go.
        watch: May end the descent sooner.
        steps: How many; None to go by the watch's time limit, which makes the result depend on the machine's speed.
        share: Share of the watch's remaining time that may be used.
        relative: Step sizes are relative to the root mean square of the gradient's rows.
        fixed: The first ``fixed`` rows stay as they are.

    Returns:
        The best rows seen, and their largest |cosine|.
    """
    if not torch.isfinite(start).all():
        raise ValueError('the start of the solver holds NaN or infinity; give finite rows')
    begin, allowance = watch.elapsed, watch.remaining * share
    w = functional.normalize(start.float())
    best, best_cosine = w.clone(), math.inf
    velocity = torch.zeros_like(w)
    step, done = 0, 0.0
    while done < 1:
        gradient, largest, rate = slope(w, done)
        if largest < best_cosine:
            best.copy_(w)
            best_cosine = largest
        if watch.see(largest) or rate is None:
            break
        # of a step along w the normalisation would leave nothing
        gradient -= (gradient * w).sum(1, keepdim=True) * w
        if relative:
            gradient *= math.sqrt(len(w) - fixed) / gradient.norm().clamp_min(1e-30)
        velocity.mul_(momentum).sub_(gradient, alpha=rate)
        w[fixed:] = functional.normalize(w[fixed:] + velocity[fixed:])
        step += 1
        done = step / steps if steps is not None else (watch.elapsed - begin) / allowance
    return best, best_cosine
