"""Sign patterns of binary quadratic forms: Kerdock, Delsarte-Goethals and Gold sets, 2^n dimensions."""

import math
from typing import Iterator

import torch
from torch import Tensor

from ..basis import round_significant
from ..fields import field
from ..structured_products import HadamardProducts
from .conference import sylvester_rows
from .frame import Frame, Offer


class QuadraticForms(Frame):
    r"""Vectors :math:`2^{-n/2} (-1)^{Q(v) + b \cdot v}`, v in F_2^n, for all b and some forms Q; and the unit vectors.

    For one Q these are 2^n orthonormal vectors, a row of signs times a Hadamard matrix. Two forms whose difference has
    rank n - 2j (as an alternating bilinear form) give cosines 0 or :math:`2^{j - n/2}`. Form number ``a`` is made of
    the base-q digits a_0, a_1, ... of ``a``, by the subclass.

    Args:
        n: Number of variables.
        num_forms: How many forms there are.
    """

    def __init__(self, n: int, num_forms: int) -> None:
        super().__init__((num_forms + 1) << n, 1 << n)
        self.n = n
        self.num_forms = num_forms

    def form(self, a: int) -> Tensor:
        """Values 0, 1 of form number ``a`` at all v."""
        raise NotImplementedError

    def signs(self, a: int) -> Tensor:
        return 1.0 - 2.0 * self.form(a).double()

    def rows(self, start: int, stop: int) -> Tensor:
        parts = []
        for a in range(start >> self.n, ((stop - 1) >> self.n) + 1):
            first = max(start - (a << self.n), 0)
            index = torch.arange(first, min(stop - (a << self.n), self.dim))
            if a < self.num_forms:
                parts.append(sylvester_rows(index, self.n) * self.signs(a) / math.sqrt(self.dim))
            else:
                parts.append(torch.nn.functional.one_hot(index, self.dim).double())
        return torch.cat(parts)

    def products(self, num_classes: int, dim: int) -> HadamardProducts:
        needed = min(-(-num_classes // self.dim), self.num_forms)
        signs = torch.stack([self.signs(a).to(torch.int8) for a in range(needed)])
        scale = round_significant(torch.tensor([1 / math.sqrt(self.dim)], dtype=torch.float32)).item()
        return HadamardProducts(signs, num_classes, dim, scale)


class DelsarteGoethals(QuadraticForms):
    r"""n even: :math:`2^{(n-1)(t+1)}` forms, coherence :math:`2^t / \sqrt d`; t = 0 is Kerdock's set.

    Its bases are mutually unbiased. On F + F_2 with F = GF(2^(n-1)):
    :math:`\sum_{j=1}^{(n-2)/2} Tr((ax)^{1+2^j}) + \epsilon\, Tr(ax)
    + \sum_{i=1}^t Tr(b_i x^{1+2^i})`. A. M. Kerdock, Inf. Control 20 (1972); P. Delsarte, J.-M. Goethals, J. Comb.
    Theory A 19 (1975); A. R. Hammons et al., IEEE Trans. Inf. Theory 40 (1994).
    """

    def __init__(self, n: int, t: int = 0) -> None:
        super().__init__(n, 1 << (n - 1) * (t + 1))
        self.field = f = field(1 << (n - 1))
        self.t = t
        self.elements = torch.arange(f.q)
        self.trace = f.trace(self.elements)
        self.quadric = torch.zeros_like(self.elements)
        for j in range(1, (n - 2) // 2 + 1):
            self.quadric ^= self.trace[f.power(self.elements, 1 + (1 << j))]

    def form(self, a: int) -> Tensor:
        f = self.field
        scaled = f.mul(torch.tensor(a % f.q), self.elements)
        value = self.quadric[scaled]
        for i in range(1, self.t + 1):
            a //= f.q
            value = value ^ self.trace[f.mul(torch.tensor(a % f.q), f.power(self.elements, 1 + (1 << i)))]
        return torch.cat([value, value ^ self.trace[scaled]])


class Gold(QuadraticForms):
    r"""n odd: :math:`2^{nt}` forms :math:`\sum_{i=1}^t Tr(a_i x^{1+2^i})`, coherence :math:`2^{t - 1/2} / \sqrt d`.

    x runs over GF(2^n). The radical of such a form is the kernel of a linearised polynomial of degree 2^(2t), and of
    odd dimension. R. Gold, IEEE Trans. Inf. Theory 14 (1968).
    """

    def __init__(self, n: int, t: int = 1) -> None:
        super().__init__(n, 1 << n * t)
        self.field = f = field(1 << n)
        self.t = t
        self.elements = torch.arange(f.q)
        self.trace = f.trace(self.elements)

    def form(self, a: int) -> Tensor:
        f = self.field
        value = torch.zeros_like(self.elements)
        for i in range(1, self.t + 1):
            value ^= self.trace[f.mul(torch.tensor(a % f.q), f.power(self.elements, 1 + (1 << i)))]
            a //= f.q
        return value


def quadratic_offers(num_classes: int, dim: int) -> Iterator[Offer]:
    """The smallest set with enough vectors, for every power of two up to d."""
    for n in range(2, dim.bit_length()):
        size = 1 << n
        if n % 2 == 0:
            for t in range(n // 2):
                count = size * ((1 << (n - 1) * (t + 1)) + 1)
                if count + dim - size >= num_classes:
                    name = 'delsarte-goethals' if t else 'kerdock'
                    detail = f'd = 2^{n}, t = {t}' if t else f'd = 2^{n}'
                    build = lambda n=n, t=t: DelsarteGoethals(n, t)  # noqa: E731
                    yield Offer(name, detail, count, size, 2**t / math.sqrt(size), build, structured=True)
                    break
        else:
            for t in range(1, (n - 1) // 2 + 1):
                count = size * ((1 << n * t) + 1)
                if count + dim - size >= num_classes:
                    build = lambda n=n, t=t: Gold(n, t)  # noqa: E731
                    coherence = 2 ** (t - 0.5) / math.sqrt(size)
                    yield Offer('gold', f'd = 2^{n}, t = {t}', count, size, coherence, build, structured=True)
                    break
