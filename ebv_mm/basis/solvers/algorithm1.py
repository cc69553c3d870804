"""The solver of the paper, for reproduction."""

from typing import Optional, Union

import torch
from torch import Tensor
from torch.nn import functional

from ..measure import coherence
from ..watch import Watch

TOLERANCE = 1e-4  # of the authors' test whether alpha is reached


def algorithm1(
    num_classes: int,
    dim: int,
    alpha: float,
    *,
    slice_size: int = 130,
    tolerance: float = TOLERANCE,
    lr: float = 1e-3,
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

    Args:
        alpha: The largest |cosine| to reach.
        slice_size: Rows taken at a time; without influence on the result.
        tolerance: Of the test whether alpha is reached.
        lr: Step size.
        watch: May end the iteration sooner.
    """
    generator = torch.Generator().manual_seed(seed)
    w = functional.normalize(torch.randn(num_classes, dim, generator=generator)).to(device or 'cpu')
    best, best_cosine = w.clone(), coherence(w)
    first_cosine, best_step = best_cosine, 0
    watch = watch or Watch()
    for step in range(max_steps):
        gradient = torch.zeros_like(w)
        largest = 0.0
        for start in range(0, num_classes, slice_size):
            rows = slice(start, start + slice_size)
            cosines = w[rows] @ w.T
            cosines.diagonal(start).zero_()
            size = cosines.abs()
            largest = max(largest, float(size.max()))
            active = cosines.sign().mul_(size > alpha)
            gradient[rows] += active @ w
            gradient += active.T @ w[rows]
        if largest < best_cosine:
            best, best_cosine, best_step = w.clone(), largest, step
        diverged = largest > first_cosine and (largest > 0.999 or step - best_step > patience)
        if watch.see(largest) or largest <= alpha + tolerance or diverged:
            break
        # through the normalisation only the part orthogonal to w counts
        gradient -= (gradient * w).sum(1, keepdim=True) * w
        w = functional.normalize(w - lr * gradient)
    return best
