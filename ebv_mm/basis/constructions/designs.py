"""Frames from a design and a Hadamard matrix (Steiner-type frames), sparse, with coherence t / r."""

import math
from typing import Callable, Iterator

import torch
from torch import Tensor

from ..basis import round_significant
from ..fields import Field, field, prime_powers
from ..hadamard import num_sign_patterns, sign_patterns
from ..structured_products import DesignProducts
from .frame import Frame, Offer

# of polynomials; a larger one has more vectors than anybody needs, far apart from the bound
MAX_DEGREE = 3


class Design(Frame):
    r"""Supports of r coordinates, any two with at most t in common; on each of them sign patterns / sqrt(r).

    Two vectors on different supports have a cosine of at most t/r, and so have two on the same one, because the
    patterns' inner products are at most t (:func:`~ebv_mm.basis.hadamard.sign_patterns`).
    M. Fickus, D. G. Mixon, J. C. Tremain, Steiner equiangular tight frames, Linear Algebra Appl. 436 (2012).

    Args:
        dim: Number of coordinates.
        num_supports: Number of supports.
        size: r, the number of coordinates of each.
        overlap: t.
        supports: Gives the (n, r) coordinates of the supports with given numbers (n,).
    """

    def __init__(
        self, dim: int, num_supports: int, size: int, overlap: int, supports: Callable[[Tensor], Tensor]
    ) -> None:
        self.patterns = sign_patterns(size, overlap) / math.sqrt(size)
        self.supports = supports
        super().__init__(num_supports * len(self.patterns), dim)

    def rows(self, start: int, stop: int) -> Tensor:
        index = torch.arange(start, stop)
        support, pattern = index // len(self.patterns), index % len(self.patterns)
        first = start // len(self.patterns)
        coordinates = self.supports(torch.arange(first, int(support[-1]) + 1))
        out = torch.zeros(stop - start, self.dim, dtype=torch.float64)
        return out.scatter_(1, coordinates[support - first], self.patterns[pattern])

    def products(self, num_classes: int, dim: int) -> DesignProducts:
        supports = self.supports(torch.arange(-(-num_classes // len(self.patterns)))).to(torch.int32)
        return DesignProducts(supports, round_significant(self.patterns.float()), num_classes, dim)


def polynomial_supports(f: Field, size: int, first_values: int, degree: int) -> Callable[[Tensor], Tensor]:
    """The graphs of the polynomials of at most this degree with f(0) < ``first_values``, at r points of GF(q).

    Coordinates are pairs (point, value): the point 0 with ``first_values`` values, then r - 1 points with q values
    each, the last one, if r = q + 1, being infinity, whose value is the leading coefficient. Two polynomials agree
    in at most ``degree`` points (Reed-Solomon; for degree 1 this is a transversal design). After them come disjoint
    sets of r values at one point: they meet each graph once.
    """
    count = first_values * f.q**degree
    per_point = f.q // size
    points = torch.arange(1, size)
    infinite = points == f.q

    def supports(number: Tensor) -> Tensor:
        group = number[number >= count] - count
        start = first_values + group // max(per_point, 1) * f.q + group % max(per_point, 1) * size
        return torch.cat([graphs(number[number < count]), start[:, None] + torch.arange(size)])

    def graphs(number: Tensor) -> Tensor:
        constant, rest = number % first_values, number // first_values
        coefficients = [constant]
        for _ in range(degree):
            coefficients.append(rest % f.q)
            rest = rest // f.q
        finite = torch.where(infinite, 0, points)
        value = torch.zeros(len(number), len(points), dtype=torch.int64)
        for coefficient in reversed(coefficients):
            value = f.add(f.mul(value, finite), coefficient[:, None])
        value = torch.where(infinite, coefficients[-1][:, None], value)
        return torch.cat([constant[:, None], first_values + (points - 1) * f.q + value], 1)

    return supports


def polynomial_offers(num_classes: int, dim: int) -> Iterator[Offer]:
    """For each degree t the largest r with (r - 1) q + s <= d and enough vectors; of those the fewest coordinates."""
    for degree in range(1, MAX_DEGREE + 1):
        offer = _best_polynomials(num_classes, dim, degree)
        if offer is not None:
            yield offer


def _best_polynomials(num_classes: int, dim: int, degree: int):
    powers = prime_powers(dim + 1)
    for size in range(math.isqrt(dim) + 2, degree, -1):
        patterns = num_sign_patterns(size, degree)
        best = None
        for q in powers:
            if q < size - 1:
                continue
            if (size - 1) * q >= dim:
                break
            groups = (size - 1) * (q // size)
            values = max(1, -(-(-(-num_classes // patterns) - groups) // q**degree))
            used = (size - 1) * q + values
            if values <= q and used <= dim and (best is None or used < best[0]):
                best = used, q, values
        if best is not None:
            used, q, values = best
            count = values * q**degree + (size - 1) * (q // size)

            def build(used=used, q=q, values=values, count=count, size=size) -> Design:
                return Design(used, count, size, degree, polynomial_supports(field(q), size, values, degree))

            name = 'transversal' if degree == 1 else 'reed-solomon'
            detail = f'r = {size}, q = {q}' if degree == 1 else f'r = {size}, q = {q}, degree {degree}'
            return Offer(name, detail, count * patterns, used, degree / size, build, structured=True)
    return None
