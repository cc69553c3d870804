r"""Inner products of embeddings with the N class vectors of a basis, and the transpose, a block of classes at a time.

Two operations are all that training and prediction need, and a basis with structure has fast ones:

- ``cosines(unit, start, stop)``: :math:`\langle u_i, w_k \rangle` for the classes start <= k < stop;
- ``combine(coefficients, start)``: :math:`\sum_k c_{ik} w_k` for the classes from start on, the gradient's direction.

Both are in the coordinates in which the vectors have their structure; ``enter`` takes embeddings there.

Shapes: B embeddings, N classes, d dimensions.
"""

import hashlib
import math
from copy import copy
from typing import Dict, Iterator, List, Optional, Tuple

import torch
from torch import Tensor
from torch.nn import functional

from .hadamard import hadamard
from .rotation import Rotation

# Logits that are held at a time. On a CPU they should stay in the cache between the passes over them; elsewhere a
# block must be large enough to hide the cost of a launch.
CPU_DENSE_ENTRIES = 1 << 20
CPU_STRUCTURED_ENTRIES = 1 << 19
DEVICE_ENTRIES = 1 << 24
# Rows of embeddings at a time. A dense block is read again for each chunk of rows; a structured one costs nothing.
CPU_DENSE_ROWS = 2048
CPU_STRUCTURED_ROWS = 16
DEVICE_ROWS = 4096
# Rows to turn at a time: the transform's own copies of them should stay small.
TURNED_ROWS = 256


Scratch = Optional[Tuple[Tensor, Tensor]]


class Products:
    """The interface; on one device and in one precision, see ``to``.

    Args:
        num_classes: N.
        dim: d.

    Attributes:
        rotation: What the vectors of the basis have been turned by; None where they have not.
    """

    rotation: Optional[Rotation] = None
    cpu_rows = CPU_STRUCTURED_ROWS
    cpu_entries = CPU_STRUCTURED_ENTRIES
    # classes of a block are a multiple of this
    unit_of_classes = 1

    def __init__(self, num_classes: int, dim: int) -> None:
        self.num_classes = num_classes
        self.dim = dim
        self._placed: Dict[Tuple[torch.device, torch.dtype], Products] = {}

    @property
    def tables(self) -> Dict[str, Tensor]:
        """All numbers that the vectors are made of."""
        raise NotImplementedError

    @property
    def device(self) -> torch.device:
        return next(iter(self.tables.values())).device

    def enter(self, unit: Tensor) -> Tensor:
        """Embeddings (B, d) in the coordinates of the products: turned back where the vectors have been turned."""
        if self.rotation is None or not len(unit):  # torch refuses the Fourier transform of nothing
            return unit
        return torch.cat([self.rotation.back(part) for part in unit.split(TURNED_ROWS)])

    def cosines(self, unit: Tensor, start: int, stop: int, scratch: Scratch = None) -> Tensor:
        """(B, d) to (B, stop - start), a tensor that the caller may overwrite; it may lie in the scratch."""
        raise NotImplementedError

    def combine(self, coefficients: Tensor, start: int, scratch: Scratch = None) -> Tensor:
        """(B, n) to (B, d); with a scratch, the coefficients may be overwritten."""
        raise NotImplementedError

    def scratch(self, batch: int) -> Scratch:
        """Memory for all chunks of a batch in turn, so that it stays in the cache; None where it is no use."""
        return None

    def rows(self, index: Tensor) -> Tensor:
        """The vectors (n, d) of some classes (n,)."""
        raise NotImplementedError

    def _move(self, device: torch.device, dtype: torch.dtype) -> 'Products':
        raise NotImplementedError

    def first(self, num_classes: int) -> 'Products':
        """Of the first ``num_classes`` classes only; the tables stay whole."""
        out = copy(self)
        out.num_classes = num_classes
        return out

    def __getstate__(self) -> dict:
        """What is kept by ``to`` stays out of copies and files: those may come to another device."""
        return {**self.__dict__, '_placed': {}}

    def to(self, device: torch.device, dtype: torch.dtype) -> 'Products':
        """The same on a device and in a precision; kept, so that asking in every step costs nothing."""
        key = (torch.device(device), dtype)
        if key not in self._placed:
            with torch.inference_mode(False):  # a training that follows takes what an inference has made
                placed = self._move(*key)
                placed.rotation = None if self.rotation is None else self.rotation.to(*key)
            self._placed[key] = placed  # whole: another thread may be waiting for it
        return self._placed[key]

    @property
    def _rows(self) -> int:
        return self.cpu_rows if self.device.type == 'cpu' else DEVICE_ROWS

    def row_chunks(self, batch: int) -> Iterator[slice]:
        for start in range(0, batch, self._rows):
            yield slice(start, min(start + self._rows, batch))

    @property
    def _entries(self) -> int:
        return self.cpu_entries if self.device.type == 'cpu' else DEVICE_ENTRIES

    def class_blocks(self, rows: int) -> Iterator[Tuple[int, int]]:
        """(start, stop) of blocks so small that ``rows`` logits for each of their classes may be held."""
        # few rows leave room for many classes, but a block of them is not worth more than this
        width = min(self._entries // max(rows, 1), 1 << 15)
        width = max(width // self.unit_of_classes, 1) * self.unit_of_classes
        for start in range(0, self.num_classes, width):
            yield start, min(start + width, self.num_classes)

    def _in_units(self, coefficients: Tensor, start: int) -> Tuple[int, Tensor]:
        """The first of the units that have some of the classes, and the coefficients of all classes of these units."""
        first, before = divmod(start, self.unit_of_classes)
        behind = -(before + coefficients.shape[1]) % self.unit_of_classes
        if before or behind:
            coefficients = functional.pad(coefficients, (before, behind))
        return first, coefficients

    def digest(self) -> str:
        """SHA-256 of the tables: two bases with the same one are the same, bit by bit."""
        state = hashlib.sha256(f'{type(self).__name__} {self.num_classes} {self.dim}'.encode())
        tables = dict(self.tables)
        if self.rotation is not None:
            tables.update(turn=self.rotation.signs.to(torch.int8), order=self.rotation.order)
        for name, table in tables.items():
            state.update(f'{name} {tuple(table.shape)} {table.dtype}'.encode())
            state.update(table.cpu().contiguous().numpy().tobytes())
        return state.hexdigest()


class DenseProducts(Products):
    """Of a matrix (N, d)."""

    cpu_rows = CPU_DENSE_ROWS
    cpu_entries = CPU_DENSE_ENTRIES

    def __init__(self, vectors: Tensor) -> None:
        super().__init__(*vectors.shape)
        self.vectors = vectors

    @property
    def tables(self) -> Dict[str, Tensor]:
        return dict(vectors=self.vectors)

    def cosines(self, unit: Tensor, start: int, stop: int, scratch: Scratch = None) -> Tensor:
        return unit @ self.vectors[start:stop].T

    def combine(self, coefficients: Tensor, start: int, scratch: Scratch = None) -> Tensor:
        return coefficients @ self.vectors[start : start + coefficients.shape[1]]

    def rows(self, index: Tensor) -> Tensor:
        return self.vectors[index]

    def to(self, device: torch.device, dtype: torch.dtype) -> 'Products':
        """Not kept: the matrix may be large, and a layer has it where it is needed."""
        return self._move(device, dtype)

    def _move(self, device: torch.device, dtype: torch.dtype) -> 'Products':
        return DenseProducts(self.vectors.to(device, dtype))


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

    def cosines(self, unit: Tensor, start: int, stop: int, scratch: Scratch = None) -> Tensor:
        return unit[:, start:stop].clone()

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
        return HadamardProducts(self.signs.to(device, dtype), self.num_classes, self.dim, self.scale)

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

    def cosines(self, unit: Tensor, start: int, stop: int, scratch: Scratch = None) -> Tensor:
        unit = unit[:, : self.size]
        first = start // self.size
        signs = self.signs[first : -(-stop // self.size)]
        shape = len(unit), len(signs), self.size
        x, between = _of_shape(shape, scratch) if scratch else (signs.new_empty(shape), signs.new_empty(shape))
        out = self._transform(torch.mul(unit[:, None], signs, out=x), x, between).flatten(1)
        if stop > len(self.signs) * self.size:
            out = torch.cat([out, unit], 1)
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
        return functional.pad(out, (0, self.dim - self.size))

    def rows(self, index: Tensor) -> Tensor:
        block, row = index // self.size, index % self.size
        left, right = self.left[row // len(self.right)], self.right[row % len(self.right)]
        out = (left[:, :, None] * right[:, None]).flatten(1)
        out *= self.signs[block.clamp(max=len(self.signs) - 1)]
        units = (block == len(self.signs))[:, None]
        out = torch.where(units, functional.one_hot(row, self.size).to(out), out)
        return functional.pad(out, (0, self.dim - self.size))


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

    def cosines(self, unit: Tensor, start: int, stop: int, scratch: Scratch = None) -> Tensor:
        per_support = len(self.patterns)
        first = start // per_support
        supports = self.supports[first : -(-stop // per_support)]
        gathered = unit.index_select(1, supports.flatten())
        out = (gathered.view(-1, supports.shape[1]) @ self.patterns.T).view(len(unit), len(supports) * per_support)
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
