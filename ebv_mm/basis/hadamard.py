"""Hadamard matrices, and sets of sign patterns of any length that are almost orthogonal."""

from functools import lru_cache
from typing import Optional

import torch
from torch import Tensor

from .fields import field, prime_power


@lru_cache(maxsize=None)
def hadamard_kind(order: int) -> Optional[str]:
    """How :func:`hadamard` makes a matrix of this order; None if it cannot."""
    if order in (1, 2):
        return 'sylvester'
    if order < 1 or order % 4:
        return None
    if hadamard_kind(order // 2):
        return 'sylvester'
    if prime_power(order - 1):
        return 'paley1'
    if prime_power(order // 2 - 1) and (order // 2 - 1) % 4 == 1:
        return 'paley2'
    for factor in range(4, int(order**0.5) + 1, 4):
        if order % factor == 0 and hadamard_kind(factor) and hadamard_kind(order // factor):
            return f'kronecker{factor}'
    return None


@lru_cache(maxsize=32)
def hadamard(order: int) -> Tensor:
    """A matrix of +-1 with orthogonal rows, float64, whose first column is all ones.

    J. J. Sylvester (1867) for doubling and products; R. E. A. C. Paley, On orthogonal matrices, J. Math. Phys. 12
    (1933), for q + 1 with q = 3 mod 4 and 2 (q + 1) with q = 1 mod 4.
    """
    kind = hadamard_kind(order)
    if kind is None:
        raise ValueError(f'order = {order}, but no Hadamard matrix of that order is known here')
    if order == 1:
        return torch.ones(1, 1, dtype=torch.float64)
    if kind == 'sylvester':
        matrix = torch.kron(torch.tensor([[1, 1], [1, -1]], dtype=torch.float64), hadamard(order // 2))
    elif kind == 'paley1':
        matrix = conference(order - 1) + torch.eye(order, dtype=torch.float64)
    elif kind == 'paley2':
        plus = torch.tensor([[1, 1], [1, -1]], dtype=torch.float64)
        minus = torch.tensor([[1, -1], [-1, -1]], dtype=torch.float64)
        c = conference(order // 2 - 1)
        matrix = torch.kron(c, plus) + torch.kron(torch.eye(len(c), dtype=torch.float64), minus)
    else:
        factor = int(kind[len('kronecker') :])
        matrix = torch.kron(hadamard(factor), hadamard(order // factor))
    return matrix * matrix[:, :1]


def conference(q: int) -> Tensor:
    """Paley's conference matrix of order q + 1, q odd: zero diagonal, +-1 elsewhere, C C^T = q I.

    Symmetric for q = 1 mod 4, skew for q = 3 mod 4.
    """
    f = field(q)
    numbers = torch.arange(q)
    minus_one = f.exp[(q - 1) // 2]
    difference = f.add(numbers[:, None], f.mul(minus_one, numbers)[None])
    out = torch.zeros(q + 1, q + 1, dtype=torch.float64)
    out[1:, 1:] = f.quadratic_character(difference).double()
    out[0, 1:] = 1
    out[1:, 0] = 1 if q % 4 == 1 else -1
    return out


def num_sign_patterns(length: int, slack: int = 1) -> int:
    """How many sign patterns :func:`sign_patterns` has; at least 1."""
    return next((h for h in range(length + slack, max(length - slack, 1) - 1, -1) if hadamard_kind(h)), 1)


def sign_patterns(length: int, slack: int = 1) -> Tensor:
    """Rows of +-1 of the given length, any two of them with an inner product of at most ``slack``, float64.

    A Hadamard matrix of an order within ``slack`` of the length, without its last columns, or with columns of ones
    added to it: each of them changes an inner product by one.
    """
    matrix = hadamard(num_sign_patterns(length, slack))
    if matrix.shape[1] >= length:
        return matrix[:, :length]
    return torch.nn.functional.pad(matrix, (0, length - matrix.shape[1]), value=1.0)
