"""Orthonormal vectors and the simplex."""

from typing import Iterator

import torch
from torch import Tensor

from ..structured_products import UnitProducts
from .frame import Frame, Offer


class Orthonormal(Frame):
    """The unit vectors of R^n."""

    def __init__(self, dim: int) -> None:
        super().__init__(dim, dim)

    def rows(self, start: int, stop: int) -> Tensor:
        out = torch.zeros(stop - start, self.dim, dtype=torch.float64)
        out.diagonal(start).fill_(1)
        return out

    def products(self, num_classes: int, dim: int) -> UnitProducts:
        return UnitProducts(num_classes, dim, torch.ones(1))


class Simplex(Frame):
    r"""The d + 1 corners of the regular simplex in R^d: all cosines are -1/d, which meets Welch's bound.

    Corner i is column i of the orthonormal Helmert matrix (d rows, orthogonal to the all-ones vector), scaled by
    :math:`\sqrt{(d + 1)/d}`: row k is (1, ..., 1, -k, 0, ..., 0) / sqrt(k (k + 1)) with k ones.
    """

    def __init__(self, dim: int) -> None:
        super().__init__(dim + 1, dim)

    def rows(self, start: int, stop: int) -> Tensor:
        corner = torch.arange(start, stop, dtype=torch.float64)[:, None]
        k = torch.arange(1, self.dim + 1, dtype=torch.float64)
        entry = torch.where(corner < k, 1.0, torch.where(corner == k, -k, 0.0))
        return entry / (k * (k + 1)).sqrt() * ((self.dim + 1) / self.dim) ** 0.5


def orthonormal_offers(num_classes: int, dim: int) -> Iterator[Offer]:
    """N <= d: exact."""
    if num_classes <= dim:
        build = lambda: Orthonormal(num_classes)  # noqa: E731
        yield Offer('orthonormal', '', num_classes, num_classes, 0.0, build, structured=True)


def simplex_offers(num_classes: int, dim: int) -> Iterator[Offer]:
    """N = d + 1."""
    if num_classes == dim + 1:
        yield Offer('simplex', '', dim + 1, dim, 1 / dim, lambda: Simplex(dim))
