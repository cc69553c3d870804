r"""Inner products of embeddings with the N class vectors of a basis, and the transpose, a block of classes at a time.

Two operations are all that training and prediction need, and a basis with structure has fast ones:

- ``inner(z, start, stop)``: :math:`\langle z_i, w_k \rangle` for the classes start <= k < stop;
- ``combine(coefficients, start)``: :math:`\sum_k c_{ik} w_k` for the classes from start on, the gradient's direction.

Both are in the coordinates in which the vectors have their structure; ``enter`` takes embeddings there. ``with_all``
is the whole product at once, for layers.

Shapes: B embeddings, N classes, d dimensions.
"""

import hashlib
from copy import copy
from typing import Dict, Iterator, Optional, Tuple

import torch
from torch import Tensor
from torch.nn import functional

from .rotation import Rotation
from .soft_sums import SoftSums, largest, soft_sums

# Logits that are held at a time. On a CPU they should stay in the cache between the passes over them; elsewhere a
# block must be large enough to hide the cost of a launch.
CPU_DENSE_ENTRIES = 1 << 20
CPU_STRUCTURED_ENTRIES = 1 << 19
DEVICE_ENTRIES = 1 << 24
# Rows of embeddings at a time. A dense block is read again for each chunk of rows; a structured one costs nothing.
CPU_DENSE_ROWS = 2048
CPU_STRUCTURED_ROWS = 16
DEVICE_ROWS = 4096

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

    def with_all(self, z: Tensor, channel_dim: int = -1) -> Tensor:
        """Inner products of embeddings, which lie along one dimension of z, with all N vectors; differentiable."""
        z = z.movedim(channel_dim, -1)
        products = self.to(z.device, z.dtype)
        out = _InnerWithAll.apply(products.enter(z.reshape(-1, self.dim)), products)
        return out.view(*z.shape[:-1], self.num_classes).movedim(-1, channel_dim)

    def enter(self, z: Tensor) -> Tensor:
        """Embeddings (B, d) in the coordinates of the products: turned back where the vectors have been turned."""
        if self.rotation is None or not len(z):  # torch refuses the Fourier transform of nothing
            return z
        return self.rotation.turned_back(z, max(1, self._entries // self.dim))

    def inner(self, z: Tensor, start: int, stop: int, scratch: Scratch = None) -> Tensor:
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

    def row_chunks(self, first: int, last: int) -> Iterator[slice]:
        """Slices that cover the rows first ... last - 1."""
        for start in range(first, last, self._rows):
            yield slice(start, min(start + self._rows, last))

    def soft_sums(self, z: Tensor, named: Tensor, with_mean: bool) -> SoftSums:
        """Sums over all classes of the exponentials of the logits of embeddings that have entered."""
        return soft_sums(self, z, named, with_mean)

    def largest(self, z: Tensor, k: int) -> Tuple[Tensor, Tensor, Tensor]:
        """The k largest logits (B, k), best first, their classes, and the log of the sum of all exponentials."""
        return largest(self, z, k)

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


class _InnerWithAll(torch.autograd.Function):
    """All inner products, block by block; the gradient goes to the embedding only, and no intermediate is kept."""

    @staticmethod
    def forward(ctx, z: Tensor, products: Products) -> Tensor:
        ctx.products = products
        out = z.new_empty(len(z), products.num_classes)
        scratch = products.scratch(len(z))
        for rows in products.row_chunks(0, len(z)):
            for start, stop in products.class_blocks(rows.stop - rows.start):
                out[rows, start:stop] = products.inner(z[rows], start, stop, scratch)
        return out

    @staticmethod
    def backward(ctx, gradient: Tensor):
        return _CombineAll.apply(gradient, ctx.products), None


class _CombineAll(torch.autograd.Function):
    """The transpose of :class:`_InnerWithAll`; each is the gradient of the other, as often as is asked for."""

    @staticmethod
    def forward(ctx, coefficients: Tensor, products: Products) -> Tensor:
        ctx.products = products
        out = coefficients.new_zeros(len(coefficients), products.dim)
        for rows in products.row_chunks(0, len(coefficients)):
            for start, stop in products.class_blocks(rows.stop - rows.start):
                out[rows] += products.combine(coefficients[rows, start:stop], start)
        return out

    @staticmethod
    def backward(ctx, gradient: Tensor):
        return _InnerWithAll.apply(gradient, ctx.products), None


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

    def with_all(self, z: Tensor, channel_dim: int = -1) -> Tensor:
        vectors = self.vectors.to(z.dtype)
        if channel_dim == -1:
            return functional.linear(z, vectors)
        # a matrix product and not a 1x1 convolution, which cuDNN would run in TF32 unless told otherwise
        out = torch.matmul(vectors, z.flatten(channel_dim + 1))
        # ONNX knows unflatten from opset 13 on only
        return out.reshape(*out.shape[:-1], *z.shape[channel_dim + 1 :])

    def inner(self, z: Tensor, start: int, stop: int, scratch: Scratch = None) -> Tensor:
        return z @ self.vectors[start:stop].T

    def combine(self, coefficients: Tensor, start: int, scratch: Scratch = None) -> Tensor:
        return coefficients @ self.vectors[start : start + coefficients.shape[1]]

    def rows(self, index: Tensor) -> Tensor:
        return self.vectors[index]

    def to(self, device: torch.device, dtype: torch.dtype) -> 'Products':
        """Not kept: the matrix may be large, and a layer has it where it is needed."""
        return self._move(device, dtype)

    def _move(self, device: torch.device, dtype: torch.dtype) -> 'Products':
        return DenseProducts(self.vectors.to(device, dtype))
