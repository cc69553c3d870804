"""What every closed form is made of: a frame, whose rows come on request, and an offer, known before any work."""

from dataclasses import dataclass, field
from typing import Callable

import torch
from torch import Tensor

from ..products import Products
from ..rotation import BLOCK_ENTRIES, Rotation


class Frame:
    """A set of unit vectors in its natural coordinates, often sparse; no matrix is held unless it must be.

    Args:
        num_vectors: How many vectors there are.
        dim: How many coordinates they have.
    """

    def __init__(self, num_vectors: int, dim: int) -> None:
        self.num_vectors = num_vectors
        self.dim = dim

    def rows(self, start: int, stop: int) -> Tensor:
        """Vectors ``start`` to ``stop``, float64."""
        raise NotImplementedError

    def products(self, num_classes: int, dim: int) -> Products:
        """Fast products with the first N vectors, in R^d; of structured frames only."""
        raise NotImplementedError(f'{type(self).__name__} has no fast products')


class DenseFrame(Frame):
    """A frame that is a matrix."""

    def __init__(self, matrix: Tensor) -> None:
        super().__init__(*matrix.shape)
        self.matrix = matrix

    def rows(self, start: int, stop: int) -> Tensor:
        return self.matrix[start:stop]


@dataclass(frozen=True)
class Offer:
    """What a closed form has for a given (N, d), found without making it.

    Args:
        method: The name of the family.
        detail: Its parameters, for people.
        num_vectors: How many vectors it has, not counting unit vectors in unused coordinates.
        dim: How many of the d coordinates it uses.
        coherence: The largest |cosine|, by theorem.
        build: Makes the frame.
        structured: Whether the frame has fast products.
    """

    method: str
    detail: str
    num_vectors: int
    dim: int
    coherence: float
    build: Callable[[], Frame] = field(repr=False, compare=False)
    structured: bool = False

    def fits(self, num_classes: int, dim: int) -> bool:
        """Whether it has N vectors in R^d; each unused coordinate gives one more, orthogonal to all."""
        return self.dim <= dim and self.num_vectors + dim - self.dim >= num_classes


def materialise(frame: Frame, num_classes: int, dim: int, *, rotate: bool = True, seed: int = 0) -> Tensor:
    """The first N vectors of a frame as a float32 matrix (N, d).

    Unused coordinates are zero; if N exceeds the frame's vectors, the unit vectors along unused coordinates follow.

    Args:
        rotate: Apply a seeded random rotation, which leaves all cosines as they are.
    """
    rotation = Rotation(dim, seed) if rotate else None
    out = torch.empty(num_classes, dim)
    step = max(1, BLOCK_ENTRIES // dim)
    for start in range(0, num_classes, step):
        stop = min(start + step, num_classes)
        rows = torch.zeros(stop - start, dim, dtype=torch.float64)
        inside = min(stop, frame.num_vectors)
        if start < inside:
            rows[: inside - start, : frame.dim] = frame.rows(start, inside)
        for extra in range(max(start, inside), stop):
            rows[extra - start, frame.dim + extra - frame.num_vectors] = 1
        out[start:stop] = rotation(rows) if rotation else rows
    return out
