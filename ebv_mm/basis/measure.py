"""How good a set of unit vectors is, over all pairs, in blocks of rows so that no N x N matrix is ever held."""

import math
from typing import Iterator, Optional

import torch
from torch import Tensor

BLOCK_ENTRIES = 1 << 22


def absolute_cosines(vectors: Tensor) -> Iterator[Tensor]:
    """Yield the |cosines| of all pairs i < j, some rows i at a time, with zeros in the places of j <= i."""
    num_classes = vectors.shape[0]
    rows = max(1, BLOCK_ENTRIES // num_classes)
    for start in range(0, num_classes, rows):
        stop = min(start + rows, num_classes)
        block = (vectors[start:stop] @ vectors[start:].T).abs_()
        block[:, : stop - start].triu_(1)
        yield block


def coherence(vectors: Tensor) -> float:
    """Largest absolute cosine between two different rows; 0 for a single row."""
    return min(1.0, max(float(block.max()) for block in absolute_cosines(vectors)))


def coherence_at_least(vectors: Tensor, work: float) -> float:
    """A lower bound on the coherence, by about so many multiplications: of some rows, at random, with all.

    Where that is enough for all rows, it is the coherence.
    """
    num_classes, dim = vectors.shape
    count = max(1, int(work / (num_classes * dim)))
    if count >= num_classes:
        return coherence(vectors)
    largest = 0.0
    for rows in _sample(num_classes, count).split(max(1, BLOCK_ENTRIES // num_classes)):
        cosines = (vectors[rows] @ vectors.T).abs_()
        cosines[torch.arange(len(rows)), rows] = 0
        largest = max(largest, float(cosines.max()))
    return min(1.0, largest)


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
        rows = _sample(num_classes, sample)
        angles = (vectors[rows] @ vectors.T).abs_().clamp_(max=1).asin_()
        angles[torch.arange(sample), rows] = 0
        return math.degrees(float(angles.double().sum())) / (sample * (num_classes - 1))
    total = sum(float(block.clamp_(max=1).asin_().double().sum()) for block in absolute_cosines(vectors))
    return math.degrees(total) * 2 / (num_classes * (num_classes - 1))


def _sample(num_classes: int, count: int) -> Tensor:
    return torch.randperm(num_classes, generator=torch.Generator().manual_seed(0))[:count]
