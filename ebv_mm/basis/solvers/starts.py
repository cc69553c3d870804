"""Where a solver may begin."""

from typing import Optional

import torch
from torch import Tensor
from torch.nn import functional

from ..watch import Watch

# of alternating projections
ROUNDS = 10


def random_rows(num_classes: int, dim: int, seed: int = 0) -> Tensor:
    """Independent uniform unit rows."""
    generator = torch.Generator().manual_seed(seed)
    return functional.normalize(torch.randn(num_classes, dim, generator=generator))


def tight_frame(num_classes: int, dim: int, seed: int = 0, watch: Optional[Watch] = None) -> Tensor:
    """Random unit rows that are nearly a tight frame, W^T W = (N/d) I, as every set that meets Welch's bound is.

    Alternating projections: onto the tight frames, onto the unit rows. Any square root of W^T W makes W tight, up to a
    rotation of R^d that no cosine sees; Cholesky's costs least. N <= d rows are left as they are, and all rows as soon
    as the watch's time is over.
    """
    w = random_rows(num_classes, dim, seed).double()
    for _ in range(ROUNDS if num_classes > dim else 0):
        if watch is not None and watch.over:
            break
        root = torch.linalg.cholesky(w.T @ w)
        w = functional.normalize(torch.linalg.solve_triangular(root, w.T, upper=False).T)
    return w.float().contiguous()


def shaken(vectors: Tensor, num_classes: int, noise: float, seed: int = 0) -> Tensor:
    """Given rows, moved a little to break their symmetry, and random rows after them if there are fewer than N."""
    num_rows, dim = vectors.shape
    rows = random_rows(num_classes, dim, seed)
    moved = vectors[:num_classes] + noise * rows[:num_rows]
    return torch.cat([functional.normalize(moved), rows[num_rows:]])
