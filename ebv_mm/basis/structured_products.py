"""Fast inner products with the vectors of the closed forms that have structure.

Shapes: B embeddings, N classes, d dimensions.
"""

import math
from typing import Dict, List, Optional, Tuple

import torch
from torch import Tensor
from torch.nn import functional

from .hadamard import hadamard
from .kernels import HadamardKernel, hadamard_kernel
from .products import CPU_DENSE_ENTRIES, CPU_DENSE_ROWS, Products, Scratch
from .soft_sums import SoftSums


class UnitProducts(Products):
    """Of the unit vectors: a cosine is a coordinate. With them EBV is l2-normalising the logits of a linear layer.

    Args:
        one: A tensor, which tells device and precision.
    """

    cpu_rows = CPU_DENSE_ROWS
    cpu_entries = CPU_DENSE_ENTRIES

    def __init__(self, num_classes: int, dim: int, one: Tensor) -> None:
        super().__init__(num_classes, dim)
        self.one = one

    @property
    def tables(self) -> Dict[str, Tensor]:
        return dict(one=self.one)

    def _move(self, device: torch.device, dtype: torch.dtype) -> 'Products':
        return UnitProducts(self.num_classes, self.dim, self.one.to(device, dtype))

    def with_all(self, z: Tensor, channel_dim: int = -1) -> Tensor:
        if self.rotation is not None:
            return super().with_all(z, channel_dim)
        return z.narrow(channel_dim, 0, self.num_classes)

    def inner(self, z: Tensor, start: int, stop: int, scratch: Scratch = None) -> Tensor:
        return z[:, start:stop].clone()

    def combine(self, coefficients: Tensor, start: int, scratch: Scratch = None) -> Tensor:
        return functional.pad(coefficients, (start, self.dim - start - coefficients.shape[1]))

    def rows(self, index: Tensor) -> Tensor:
        return functional.one_hot(index, self.dim).to(self.one)


class HadamardProducts(Products):
    r"""Of blocks of d = 2^n classes, each a pattern of signs times Sylvester's Hadamard matrix; then the unit vectors.

    Class a d + b is :math:`w(v) = s_a(v) H_{bv} / \sqrt d` (:class:`~.constructions.quadratic_forms.QuadraticForms`).
    H is the Kronecker product of two matrices of about sqrt(d) rows: with the embedding, its signs changed, seen as
    such a matrix X, the cosines with one block are H_p X H_q, which costs O(d^1.5) in place of O(d^2).

    Args:
        signs: (A, d) of +-1, int8.
        num_classes: N <= (A + 1) d; those above A d are the unit vectors.
        dim: At least the d of the signs; the coordinates beyond are not used.
        scale: 1 / sqrt(d).
    """

    kernel: Optional[HadamardKernel] = None

    def __init__(self, signs: Tensor, num_classes: int, dim: int, scale: float) -> None:
        super().__init__(num_classes, dim)
        self.signs = signs
        self.scale = scale
        self.size = self.unit_of_classes = signs.shape[1]
        n = self.size.bit_length() - 1
        sizes = 1 << (n // 2), 1 << (n - n // 2)
        left, right = (hadamard(size).to(signs.device, signs.dtype) for size in sizes)
        self.left, self.right = left * scale if signs.is_floating_point() else left, right

    @property
    def tables(self) -> Dict[str, Tensor]:
        return dict(signs=self.signs)

    def _move(self, device: torch.device, dtype: torch.dtype) -> 'Products':
        out = HadamardProducts(self.signs.to(device, dtype), self.num_classes, self.dim, self.scale)
        if device.type == 'cpu' and dtype == torch.float32:
            out.kernel = hadamard_kernel(self.signs.to('cpu', torch.int8), self.num_classes, self.dim, self.scale)
        return out

    def soft_sums(self, z: Tensor, named: Tensor, with_mean: bool) -> SoftSums:
        if self.kernel is None:
            return super().soft_sums(z, named, with_mean)
        return self.kernel.soft_sums(z, named, with_mean)

    def largest(self, z: Tensor, k: int) -> Tuple[Tensor, Tensor, Tensor]:
        return super().largest(z, k) if self.kernel is None else self.kernel.largest(z, k)

    def scratch(self, batch: int) -> Scratch:
        rows, blocks = min(batch, self._rows), -(-self.num_classes // self.size)
        entries = min(max(self._entries, rows * self.size), rows * blocks * self.size)
        return self.signs.new_empty(entries), self.signs.new_empty(entries)

    def _transform(self, x: Tensor, out: Tensor, between: Tensor) -> Tensor:
        """Multiply rows of length d by H / sqrt(d); ``out`` may be ``x``."""
        p, q = len(self.left), len(self.right)
        torch.mm(x.view(-1, q), self.right, out=between.view(-1, q))
        torch.bmm(self.left.expand(x.numel() // self.size, p, p), between.view(-1, p, q), out=out.view(-1, p, q))
        return out

    def inner(self, z: Tensor, start: int, stop: int, scratch: Scratch = None) -> Tensor:
        z = z[:, : self.size]
        first = start // self.size
        signs = self.signs[first : -(-stop // self.size)]
        shape = len(z), len(signs), self.size
        x, between = _of_shape(shape, scratch) if scratch else (signs.new_empty(shape), signs.new_empty(shape))
        out = self._transform(torch.mul(z[:, None], signs, out=x), x, between).flatten(1)
        if stop > len(self.signs) * self.size:
            out = torch.cat([out, z], 1)
        offset = first * self.size
        return out[:, start - offset : stop - offset]

    def combine(self, coefficients: Tensor, start: int, scratch: Scratch = None) -> Tensor:
        first, coefficients = self._in_units(coefficients, start)
        blocks = coefficients.reshape(len(coefficients), -1, self.size)
        signs = self.signs[first : first + blocks.shape[1]]
        x = blocks[:, : len(signs)].contiguous()
        out, between = (x, *_of_shape(x.shape, scratch[1:])) if scratch else (torch.empty_like(x), torch.empty_like(x))
        out = self._transform(x, out, between).mul_(signs).sum(1)
        if blocks.shape[1] > len(signs):
            out += blocks[:, -1]
        return self._to_dim(out)

    def rows(self, index: Tensor) -> Tensor:
        block, row = index // self.size, index % self.size
        left, right = self.left[row // len(self.right)], self.right[row % len(self.right)]
        out = (left[:, :, None] * right[:, None]).flatten(1)
        out *= self.signs[block.clamp(max=len(self.signs) - 1)]
        # a unit vector is 1 at its place and 0 elsewhere
        units, place = (block == len(self.signs))[:, None], row[:, None]
        out *= ~units
        out.scatter_(1, place, out.gather(1, place).masked_fill_(units, 1))
        return self._to_dim(out)

    def _to_dim(self, vectors: Tensor) -> Tensor:
        return functional.pad(vectors, (0, self.dim - self.size)) if self.dim > self.size else vectors


def _of_shape(shape: Tuple[int, ...], buffers: Tuple[Tensor, ...]) -> List[Tensor]:
    return [buffer[: math.prod(shape)].view(shape) for buffer in buffers]


class DesignProducts(Products):
    r"""Of vectors that live on few coordinates: P sign patterns / sqrt(r) on each of some supports of r coordinates.

    Class s P + p has pattern p on support s (:class:`~.constructions.designs.Design`). Gather the coordinates of the
    supports and multiply by the patterns: O(N r) in place of O(N d).

    Args:
        supports: (S, r) coordinates, int32.
        patterns: (P, r).
        num_classes: N <= S P.
        dim: d.
    """

    def __init__(self, supports: Tensor, patterns: Tensor, num_classes: int, dim: int) -> None:
        super().__init__(num_classes, dim)
        self.supports = supports
        self.patterns = patterns
        self.unit_of_classes = len(patterns)

    @property
    def tables(self) -> Dict[str, Tensor]:
        return dict(supports=self.supports, patterns=self.patterns)

    def _move(self, device: torch.device, dtype: torch.dtype) -> 'Products':
        return DesignProducts(self.supports.to(device), self.patterns.to(device, dtype), self.num_classes, self.dim)

    def inner(self, z: Tensor, start: int, stop: int, scratch: Scratch = None) -> Tensor:
        per_support = len(self.patterns)
        first = start // per_support
        supports = self.supports[first : -(-stop // per_support)]
        gathered = z.index_select(1, supports.flatten())
        out = (gathered.view(-1, supports.shape[1]) @ self.patterns.T).view(len(z), len(supports) * per_support)
        offset = first * per_support
        return out[:, start - offset : stop - offset]

    def combine(self, coefficients: Tensor, start: int, scratch: Scratch = None) -> Tensor:
        per_support = len(self.patterns)
        first, coefficients = self._in_units(coefficients, start)
        batch, count = len(coefficients), coefficients.shape[1] // per_support
        supports = self.supports[first : first + count]
        values = (coefficients.reshape(-1, per_support) @ self.patterns).view(batch, supports.numel())
        return values.new_zeros(batch, self.dim).index_add_(1, supports.flatten(), values)

    def rows(self, index: Tensor) -> Tensor:
        support, pattern = index // len(self.patterns), index % len(self.patterns)
        out = self.patterns.new_zeros(len(index), self.dim)
        return out.scatter_(1, self.supports[support].long(), self.patterns[pattern])
