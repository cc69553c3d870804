"""Which solver runs from which start, and for how long."""

from typing import List, Optional, Tuple, Union

import torch
from torch import Tensor

from ..basis import DenseBasis
from ..bounds import best_bound, welch_bound
from ..constructions import Offer, materialise
from ..watch import Watch
from .soft_maximum import DEFAULT_WORK, default_steps, soft_maximum, step_work
from .squared_hinge import squared_hinge
from .starts import shaken, tight_frame

# below this many steps the solver does not get anywhere
FEWEST_STEPS = 100
# seen for 2 < N/d < 10: the solver comes to about bound * (1 + 0.042 N/d)
SOLVER_EXCESS = 0.042
# of a time limit, for levelling a random start
HINGE_SHARE = 0.7
# operations that two cores do in a second, to tell beforehand whether there is time for a solver
WORK_PER_SECOND = 5e10


def search(
    starts: List[Optional[Offer]],
    num_classes: int,
    dim: int,
    best: Optional[DenseBasis],
    *,
    seed: int,
    watch: Watch,
    device: Union[None, str, torch.device],
) -> DenseBasis:
    """Run the solver from each start in turn, within the watch's time; return the best of all and of ``best``.

    Args:
        starts: Closed forms to shake, None for a random tight frame.
        best: What is there already.
    """
    limited = watch.time_limit is not None
    for number, start in enumerate(starts):
        rows, step_size = _solver_start(start, num_classes, dim, seed + number, watch)
        steps = None if limited else max(FEWEST_STEPS, default_steps(num_classes, dim) // len(starts))
        share = 1 / (len(starts) - number)
        rows = rows.to(device or 'cpu')
        if start is None and num_classes > dim:
            level = welch_bound(num_classes, dim) * (1 + SOLVER_EXCESS * num_classes / dim)
            levelled, reached = squared_hinge(rows, min(level, 0.9), watch=watch, share=share * HINGE_SHARE)
            if best is None or reached < best.coherence:
                best = DenseBasis(levelled, 'solver', seed)
            if watch.over:
                break
            if limited:
                # what is left is too short to begin anew
                rows, step_size = levelled, (0.03, 2e-4)
        vectors, _ = soft_maximum(rows, steps=steps, watch=watch, share=share, step_size=step_size)
        found = DenseBasis(vectors, 'solver' if start is None else f'{start.method}+solver', seed)
        if best is None or found.coherence < best.coherence:
            best = found
        if watch.over:
            break
    return best


def _solver_start(
    offer: Optional[Offer], num_classes: int, dim: int, seed: int, watch: Watch
) -> Tuple[Tensor, Tuple[float, float]]:
    """Rows to begin with, and the first and last step size: a random tight frame, or a closed form, shaken."""
    if offer is None:
        return tight_frame(num_classes, dim, seed, watch=watch), (0.3, 2e-4)
    vectors = materialise(offer.build(), num_classes, dim, seed=seed)
    return shaken(vectors, num_classes, 0.01, seed), (0.1, 2e-4)


def random_starts(num_classes: int, dim: int) -> List[None]:
    """Several where a step costs nothing, which is where bad minima are."""
    return [None] * max(1, min(6, int(1e9 / step_work(num_classes, dim) / 40)))


def roomiest(offers: List[Offer]) -> Offer:
    """Of the closed forms that are about as good as the best the one that uses the fewest coordinates.

    One that uses all is usually rigid: the solver does not get away from it.
    """
    good = [offer for offer in offers if offer.coherence <= 1.25 * offers[0].coherence]
    return min(good, key=lambda offer: offer.dim)


def worth_trying(coherence: float, num_classes: int, dim: int, time_limit: Optional[float]) -> bool:
    """Whether a solver can be expected to improve on a closed form, and has time for it."""
    expected = best_bound(num_classes, dim) * (1 + SOLVER_EXCESS * num_classes / dim)
    work = DEFAULT_WORK if time_limit is None else time_limit * WORK_PER_SECOND
    return coherence > 0.98 * expected and work / step_work(num_classes, dim) >= FEWEST_STEPS
