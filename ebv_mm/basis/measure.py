"""How good a set of unit vectors is, over all pairs, in blocks of rows so that no N x N matrix is ever held."""

import math
from typing import Iterator, Optional

import torch
from torch import Tensor

BLOCK_ENTRIES = 1 << 24


def absolute_cosines(vectors: Tensor) -> Iterator[Tensor]:
    """Yield the |cosines| of all pairs i < j, some rows at a time, each block as a flat tensor."""
    num_classes = vectors.shape[0]
    rows = max(1, BLOCK_ENTRIES // num_classes)
    for start in range(0, num_classes, rows):
        stop = min(start + rows, num_classes)
        block = (vectors[start:stop] @ vectors[start:].T).abs_()
        yield block[torch.ones_like(block, dtype=torch.bool).triu_(1)]


def coherence(vectors: Tensor) -> float:
    """Largest absolute cosine between two different rows; 0 for a single row."""
    return min(1.0, max((float(block.max()) for block in absolute_cosines(vectors) if block.numel()), default=0.0))


def min_angle(vectors: Tensor) -> float:
    """Smallest of min(angle, 180 - angle) over all pairs, in degrees."""
    return to_degrees(coherence(vectors))


def to_degrees(cosine: float) -> float:
    """The angle, in degrees, between lines with this |cosine|."""
    return math.degrees(math.acos(min(cosine, 1.0)))


def mean_deviation(vectors: Tensor, *, sample: Optional[int] = None) -> float:
    r"""The paper's "Ave. Del. Ang.", :math:`\frac{2}{N (N - 1)} \sum_{i < j} |\theta_{ij} - 90|`, in degrees.

    The paper prints the factor inverted.

    Args:
        sample: Take only this many rows, drawn at random with a fixed seed, against all, for an estimate.
    """
    num_classes = vectors.shape[0]
    if num_classes < 2:
        return 0.0
    if sample is not None and sample < num_classes:
        rows = torch.randperm(num_classes, generator=torch.Generator().manual_seed(0))[:sample]
        angles = (vectors[rows] @ vectors.T).abs_().clamp_(max=1).asin_()
        angles[torch.arange(sample), rows] = 0
        return math.degrees(float(angles.double().sum())) / (sample * (num_classes - 1))
    total = sum(float(block.clamp_(max=1).asin_().double().sum()) for block in absolute_cosines(vectors))
    return math.degrees(total) * 2 / (num_classes * (num_classes - 1))
