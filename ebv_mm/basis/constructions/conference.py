"""Equiangular lines from conference matrices, Hadamard difference sets and the Hermitian unital: all meet Welch."""

import math
from typing import Iterator

import torch
from torch import Tensor

from ..fields import field, prime_power
from ..hadamard import hadamard
from .frame import DenseFrame, Frame, Offer


class Conference(Frame):
    r"""q + 1 = 2d lines in R^d at :math:`1/\sqrt q`, for a prime power q = 1 mod 4.

    Paley's symmetric conference matrix C of order q + 1 has the eigenvalues :math:`\pm\sqrt q`, each d times, so that
    :math:`I + C/\sqrt q` is the Gram matrix. Its eigenvectors are known: the additive characters of GF(q) at the
    squares a, which come in pairs a, -a, in the real form cos + sin; and one vector of two values.
    P. W. H. Lemmens, J. J. Seidel, Equiangular lines, J. Algebra 24 (1973).
    """

    def __init__(self, q: int) -> None:
        super().__init__(q + 1, (q + 1) // 2)
        self.field = field(q)
        self.squares = self.field.exp[: q - 1 : 2]

    def rows(self, start: int, stop: int) -> Tensor:
        f, q = self.field, self.field.q
        element = torch.arange(start, min(stop, q))
        angle = f.trace(f.mul(element[:, None], self.squares)).double() * (2 * math.pi / f.p)
        out = torch.zeros(stop - start, self.dim, dtype=torch.float64)
        out[: len(element), :-1] = (angle.cos() + angle.sin()) * math.sqrt(2 / q)
        out[: len(element), -1] = 1 / math.sqrt(q)
        out[len(element) :, -1] = 1
        return out


def conference_offers(num_classes: int, dim: int) -> Iterator[Offer]:
    """The largest q that d allows; then the smallest that N still allows is no better, so one is enough."""
    for q in range(2 * dim - 1, 4, -1):
        if q % 4 == 1 and prime_power(q):
            yield Offer('conference', f'q = {q}', q + 1, (q + 1) // 2, 1 / math.sqrt(q), lambda q=q: Conference(q))
            return


class Bent(Frame):
    r"""4^m lines in dimension :math:`2^{2m-1} \mp 2^{m-1}` at coherence :math:`1/(2^m \mp 1)`.

    The 4^m characters of the group Z_2^{2m}, restricted to the support D of the bent function
    x_1 y_1 + ... + x_m y_m or to its complement: D is a difference set, so that all sums of characters over it have
    the same absolute value 2^(m-1). J. F. Dillon, Elementary Hadamard difference sets (1974).
    """

    def __init__(self, m: int, complement: bool) -> None:
        half = torch.arange(2**m)
        value = (half[:, None] & half).flatten()
        parity = torch.zeros_like(value)
        for bit in range(m):
            parity ^= value >> bit & 1
        self.support = (parity == (0 if complement else 1)).nonzero().flatten()
        self.m = m
        super().__init__(4**m, len(self.support))

    def rows(self, start: int, stop: int) -> Tensor:
        return sylvester_rows(torch.arange(start, stop), 2 * self.m)[:, self.support] / math.sqrt(self.dim)


def sylvester_rows(index: Tensor, n: int) -> Tensor:
    """Rows of Sylvester's Hadamard matrix of order 2^n, as products of rows of two smaller ones."""
    low = n // 2
    high_part = hadamard(2 ** (n - low))[index >> low]
    low_part = hadamard(2**low)[index & (2**low - 1)]
    return (high_part[:, :, None] * low_part[:, None, :]).flatten(1)


def bent_offers(num_classes: int, dim: int) -> Iterator[Offer]:
    m = 2
    while 2 ** (2 * m - 1) - 2 ** (m - 1) <= dim:
        for complement, sign in ((False, -1), (True, 1)):
            size = 2 ** (2 * m - 1) + sign * 2 ** (m - 1)
            yield Offer('bent', f'4^{m}', 4**m, size, 1 / (2**m + sign), lambda m=m, c=complement: Bent(m, c))
        m += 1


# its orthogonalisation costs q^7 operations
MAX_TAYLOR = 31


def taylor(q: int) -> DenseFrame:
    r"""q^3 + 1 lines in dimension q^2 - q + 1 at coherence 1/q, for an odd prime power q.

    The points x of the Hermitian curve in PG(2, q^2) with the signs :math:`S_{xy} = \eta(h(x, y))`, eta the quadratic
    character of GF(q^2), h the Hermitian form. S or -S has the eigenvalues q^2 and -q, so that I +- S/q is a Gram
    matrix of rank d. D. E. Taylor, Regular 2-graphs, Proc. London Math. Soc. 35 (1977).
    """
    points = _hermitian_curve(q)
    num_vectors, dim = q**3 + 1, q * q - q + 1
    generator = torch.Generator().manual_seed(0)
    some = torch.randperm(num_vectors, generator=generator)[: 2 * dim]
    signs = torch.cat([_hermitian_signs(q, part, points[some]) for part in points.split(4096)])
    # S^2 = +-(q^2 - q) S + q^3 I tells which sign it is
    two = _hermitian_signs(q, points, points[some[:2]])
    square = two[:, 0] @ two[:, 1]
    sign = 1.0 if square * signs[some[0], 1] > 0 else -1.0
    gram = signs * (sign / q)
    gram[some, torch.arange(len(some))] = 1
    mixing = torch.randint(0, 2, (len(some), dim), generator=generator).double() * 2 - 1
    factor, triangle = torch.linalg.qr(gram @ mixing)
    return DenseFrame(factor * triangle.diagonal().sign() * math.sqrt(num_vectors / dim))


def _hermitian_curve(q: int) -> Tensor:
    """The q^3 + 1 points x with x_0 x_2^q + x_1^(q+1) + x_2 x_0^q = 0."""
    f = field(q * q)
    numbers = torch.arange(q * q)
    norm = f.power(numbers, q + 1)
    trace = f.add(numbers, f.power(numbers, q))
    second, third = (f.add(norm[:, None], trace[None]) == 0).nonzero().unbind(1)
    affine = torch.stack([torch.ones_like(second), second, third], 1)
    return torch.cat([affine, torch.tensor([[0, 0, 1]])])


def _hermitian_signs(q: int, left: Tensor, right: Tensor) -> Tensor:
    """The quadratic character of h(x, y) for all x in ``left``, y in ``right``; 0 where x = y."""
    f = field(q * q)
    conjugate = f.power(right, q)
    total = torch.zeros(len(left), len(right), dtype=torch.int64)
    for i in range(3):
        total = f.add(total, f.mul(left[:, i : i + 1], conjugate[:, 2 - i]))
    return f.quadratic_character(total).double()


def taylor_offers(num_classes: int, dim: int) -> Iterator[Offer]:
    q = 3
    while q * q - q + 1 <= dim and q <= MAX_TAYLOR:
        if prime_power(q):
            yield Offer('taylor', f'q = {q}', q**3 + 1, q * q - q + 1, 1 / q, lambda q=q: taylor(q))
        q += 2
