"""The solver of the paper, for reproduction."""

from typing import Optional, Tuple, Union

import torch
from torch import Tensor

from ..watch import Watch
from .cosines import Cosines
from .descent import descend

TOLERANCE = 1e-4  # of the authors' test whether alpha is reached
SLICE = 130  # rows taken at a time, as by the authors; without influence on the result


def algorithm1(
    num_classes: int,
    dim: int,
    alpha: float,
    *,
    lr: float = 1e-3,
    last_lr: Optional[float] = None,
    tightness: float = 0.0,
    max_steps: int = 100_000,
    patience: int = 2000,
    seed: int = 0,
    device: Union[None, str, torch.device] = None,
    watch: Optional[Watch] = None,
) -> Tensor:
    r"""The paper's Algorithm 1: minimise :math:`\sum_{i \ne j} \max(|w_i \cdot w_j| - \alpha, 0)` by gradient descent.

    Starts from normalised Gaussian rows and re-normalises before each step; the sum runs over slices of rows, so
    that no N x N matrix is held. Stops when the largest |cosine| over ALL slices is at most alpha + tolerance, or
    after ``max_steps``, and returns the best rows it saw either way. If alpha is out of reach the hinge may pull
    vectors together instead: when the largest |cosine| has not improved for ``patience`` steps and is worse than at
    the start, or two vectors coincide, the iteration has diverged and ends with the best rows as well.

    ``last_lr`` and ``tightness`` are ours. The gradient of a hinge does not fade near its goal, so that steps of one
    size end in a dance around it; and as long as most pairs are above alpha, each row is pushed by hundreds of others.

    Args:
        alpha: The largest |cosine| to reach.
        lr: Step size; the first one, where there is a last.
        last_lr: Step size after ``max_steps``, to which it falls geometrically; None for the same all the time.
        tightness: The hinge begins at this share of the present largest |cosine| as long as that is above alpha, which
            makes alpha fall from loose to tight. 0 for the paper's fixed alpha; below 1.
        watch: May end the iteration sooner.
    """
    check_options(lr, last_lr, tightness, max_steps, patience)
    start = torch.randn(num_classes, dim, generator=torch.Generator().manual_seed(seed)).to(device or 'cpu')
    cosines = Cosines(start, SLICE)
    decay = (last_lr or lr) / lr
    seen: list = []  # the largest |cosine| of the start, of the best rows, of the last rows
    waited = 0

    def slope(w: Tensor, done: float) -> Tuple[Tensor, float, Optional[float]]:
        nonlocal seen, waited
        first, best, last = seen or [cosines.largest(w)] * 3
        level = max(alpha, tightness * last)
        gradient, largest = torch.zeros_like(w), 0.0
        for rows, signed, absolute in cosines(w):
            largest = max(largest, float(absolute.max()))
            active = signed.sign_().mul_(absolute > level)
            gradient[rows] += active @ w
            gradient += active.T @ w[rows]
        waited = 0 if largest < best else waited + 1
        seen = [first, min(best, largest), largest]
        diverged = largest > first and (largest > 0.999 or waited > patience)
        return gradient, largest, None if largest <= alpha + TOLERANCE or diverged else lr * decay**done

    return descend(start, slope, watch=watch or Watch(), steps=max_steps)[0]


def check_options(lr: float, last_lr: Optional[float], tightness: float, max_steps: int, patience: int) -> None:
    for name, value in (('lr', lr), ('last_lr', last_lr)):
        if value is not None and not value > 0:
            raise ValueError(f'{name} = {value!r}, but a step size must be positive; give one, such as 0.001')
    for name, value in (('max_steps', max_steps), ('patience', patience)):
        if value < 1:
            raise ValueError(f'{name} = {value!r}, but at least 1 step is needed; give a larger number')
    if not 0 <= tightness < 1:
        raise ValueError(f'tightness = {tightness!r}, but a share of the largest |cosine| lies in [0, 1); give one')
