"""Closed forms: bases that need no iteration."""

import torch
from torch import Tensor

from .rotation import BLOCK_ENTRIES, Rotation


def orthonormal(num_classes: int, dim: int, seed: int = 0) -> Tensor:
    """N <= d orthonormal rows in general position: a seeded random rotation of the first N unit vectors."""
    if num_classes > dim:
        raise ValueError(f'num_classes = {num_classes} exceeds dim = {dim}, but at most d vectors are orthogonal in R^d')
    rotation = Rotation(dim, seed)
    out = torch.empty(num_classes, dim)
    step = max(1, BLOCK_ENTRIES // dim)
    for start in range(0, num_classes, step):
        rows = torch.zeros(min(step, num_classes - start), dim, dtype=torch.float64)
        rows.diagonal(start).fill_(1)
        out[start : start + step] = rotation(rows)
    return out
