"""Where a solver may begin."""

import torch
from torch import Tensor
from torch.nn import functional


def random_rows(num_classes: int, dim: int, seed: int = 0) -> Tensor:
    """Independent uniform unit rows."""
    generator = torch.Generator().manual_seed(seed)
    return functional.normalize(torch.randn(num_classes, dim, generator=generator))


def tight_frame(num_classes: int, dim: int, seed: int = 0, rounds: int = 10) -> Tensor:
    """Random unit rows that are nearly a tight frame, W^T W = (N/d) I, as every set that meets Welch's bound is.

    Alternating projections: onto the tight frames (by the inverse square root of W^T W), onto the unit rows.
    """
    w = random_rows(num_classes, dim, seed).double()
    for _ in range(rounds):
        values, vectors = torch.linalg.eigh(w.T @ w)
        w = functional.normalize(w @ (vectors * values.clamp_min(1e-12).rsqrt()) @ vectors.T)
    return w.float()


def shaken(vectors: Tensor, num_classes: int, noise: float, seed: int = 0) -> Tensor:
    """Given rows, moved a little to break their symmetry, and random rows after them if there are fewer than N."""
    num_rows, dim = vectors.shape
    rows = random_rows(num_classes, dim, seed)
    moved = vectors[:num_classes] + noise * rows[:num_rows]
    return torch.cat([functional.normalize(moved), rows[num_rows:]])
