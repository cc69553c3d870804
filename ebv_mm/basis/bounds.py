"""How small the largest |cosine| between N unit vectors in R^d can be."""

import math


def welch_bound(num_classes: int, dim: int) -> float:
    r"""Welch's bound :math:`\sqrt{(N - d) / (d (N - 1))}`, 0 for N <= d.

    L. R. Welch, Lower bounds on the maximum cross correlation of signals, IEEE Trans. Inf. Theory 20 (1974).
    """
    if num_classes <= dim:
        return 0.0
    return math.sqrt((num_classes - dim) / (dim * (num_classes - 1)))


def best_bound(num_classes: int, dim: int) -> float:
    """The largest of the bounds known for (N, d)."""
    return welch_bound(num_classes, dim)
