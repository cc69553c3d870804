"""How small the largest |cosine| between N unit vectors in R^d can be."""

import math
from functools import lru_cache
from typing import Optional, Tuple

import numpy as np

from .measure import to_degrees

ALPHA_TOLERANCE = 1e-6


def welch_bound(num_classes: int, dim: int) -> float:
    r"""Welch's bound :math:`\sqrt{(N - d) / (d (N - 1))}`, 0 for N <= d.

    Met only by equiangular tight frames, so only for N <= d (d + 1) / 2.
    L. R. Welch, Lower bounds on the maximum cross correlation of signals, IEEE Trans. Inf. Theory 20 (1974).
    """
    if num_classes <= dim:
        return 0.0
    return math.sqrt((num_classes - dim) / (dim * (num_classes - 1)))


def orthoplex_bound(num_classes: int, dim: int) -> float:
    r""":math:`1/\sqrt d` for N > d (d + 1) / 2, else 0.

    J. H. Conway, R. H. Hardin, N. J. A. Sloane, Packing lines, planes, etc., Exp. Math. 5 (1996).
    """
    return 1 / math.sqrt(dim) if 2 * num_classes > dim * (dim + 1) else 0.0


def levenshtein_bound(num_classes: int, dim: int) -> float:
    r"""Levenshtein's bound :math:`\sqrt{(3N - d^2 - 2d) / ((d + 2)(N - d))}` for N > d (d + 1) / 2, else 0.

    Met, among others, by Kerdock sets at N = d (d + 2) / 2.
    V. I. Levenshtein, Bounds on the maximal cardinality of a code with bounded modulus of the inner product, Soviet
    Math. Dokl. 25 (1982).
    """
    if 2 * num_classes <= dim * (dim + 1):
        return 0.0
    squared = (3 * num_classes - dim * dim - 2 * dim) / ((dim + 2) * (num_classes - dim))
    return math.sqrt(min(max(squared, 0.0), 1.0))


def cap_bound(num_classes: int, dim: int) -> float:
    r"""What the volume of the sphere allows: N pairs of opposite caps of half the angle do not overlap.

    The only one of these bounds that goes to 1 as N grows. The cap's share is
    :math:`\frac12 I_{\sin^2 \phi}((d - 1)/2, 1/2)`; N of them, doubled, cover at most 1.
    """
    if dim == 1:
        return 1.0 if num_classes > 1 else 0.0
    if num_classes < 2:
        return 0.0
    low, high = 0.0, math.pi / 4
    for _ in range(45):
        middle = (low + high) / 2
        low, high = (middle, high) if _log_double_cap(middle, dim) < -math.log(num_classes) else (low, middle)
    return max(0.0, math.cos(2 * high))


def _log_double_cap(angle: float, dim: int) -> float:
    """Logarithm of the share of the sphere in R^d that lies within ``angle`` of a line, by Gauss' rule."""
    constant = math.lgamma(dim / 2) - math.lgamma((dim - 1) / 2) - 0.5 * math.log(math.pi)
    # Below the angle the integrand sin^(d-2) falls at least as fast as exp((x - angle) (d - 2) / tan(angle)): what is
    # left out is e^-40 of it. Relative to its largest value nothing underflows.
    width = min(angle, 40 * math.tan(angle) / max(dim - 2, 1))
    nodes, weights = _gauss()
    x = angle - width * (1 - nodes) / 2
    integral = width / 2 * float(weights @ (np.sin(x) / math.sin(angle)) ** (dim - 2))
    return math.log(2) + constant + (dim - 2) * math.log(math.sin(angle)) + math.log(integral)


@lru_cache(maxsize=None)
def _gauss() -> Tuple[np.ndarray, np.ndarray]:
    return np.polynomial.legendre.leggauss(64)


def best_bound(num_classes: int, dim: int) -> float:
    """The largest of the bounds known for (N, d)."""
    bounds = [welch_bound, orthoplex_bound, levenshtein_bound]
    if num_classes > dim * dim:  # below that it is the weakest of all
        bounds.append(cap_bound)
    return max(bound(num_classes, dim) for bound in bounds)


def capacity(dim: int, alpha: float) -> int:
    """The largest N for which :func:`best_bound` does not forbid a coherence of alpha in R^d: no more can fit."""
    if dim < 1:
        raise ValueError(f'dim = {dim!r}, but it must be a whole number >= 1')
    if not 0 <= alpha < 1:
        raise ValueError(f'alpha = {alpha!r}, but a coherence to reach lies in [0, 1)')
    fits, too_many = 1, 2
    while best_bound(too_many, dim) <= alpha + 1e-12:
        fits, too_many = too_many, 2 * too_many
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if best_bound(middle, dim) <= alpha + 1e-12:
            fits = middle
        else:
            too_many = middle
    return fits


def smallest_dim(num_classes: int, alpha: float) -> int:
    """The smallest d for which :func:`best_bound` does not forbid N vectors with a coherence of alpha."""
    if not 0 <= alpha < 1:
        raise ValueError(f'alpha = {alpha!r}, but a coherence to reach lies in [0, 1)')
    forbidden, allowed = 0, num_classes
    while allowed - forbidden > 1:
        middle = (forbidden + allowed) // 2
        if best_bound(num_classes, middle) <= alpha + 1e-12:
            allowed = middle
        else:
            forbidden = middle
    return allowed


def check_alpha(alpha: Optional[float], num_classes: int, dim: int) -> None:
    """Raise ValueError where no N vectors in R^d have a largest |cosine| of alpha; None asks for nothing."""
    if alpha is None:
        return
    if not (math.isfinite(alpha) and 0 <= alpha < 1):
        raise ValueError(f'alpha = {alpha!r}, but a largest |cosine| to reach lies in [0, 1); give such a number')
    bound = best_bound(num_classes, dim)
    if alpha < bound - ALPHA_TOLERANCE:
        raise ValueError(
            f'alpha = {alpha!r} is impossible: no {num_classes} vectors in R^{dim} have a largest |cosine| below '
            f'{bound:.6f} ({to_degrees(bound):.3f} degrees); ask for at least that, or for dim >= '
            f'{smallest_dim(num_classes, alpha)}'
        )
