"""Closed forms: bases that need no iteration."""

import torch
from torch import Tensor


def orthonormal(num_classes: int, dim: int, seed: int = 0) -> Tensor:
    """N <= d orthonormal rows in general position: a seeded random rotation of the first N unit vectors.

    The Q factor whose R has a positive diagonal is unique, so that every linear algebra library returns the same.
    """
    if num_classes > dim:
        raise ValueError(f'num_classes = {num_classes} exceeds dim = {dim}, but at most d vectors are orthogonal in R^d')
    generator = torch.Generator().manual_seed(seed)
    gaussian = torch.randn(dim, num_classes, dtype=torch.float64, generator=generator)
    q, r = torch.linalg.qr(gaussian)
    return (q * r.diagonal().sign()).T.contiguous()
