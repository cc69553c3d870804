"""The kernel of hadamard.c: softmax sums and the best classes, by fast Walsh-Hadamard transforms."""

import ctypes
import logging
from functools import lru_cache
from pathlib import Path
from typing import Optional, Tuple

import torch
from torch import Tensor

from ..soft_sums import SoftSums, log_sum
from ..threads import over_rows
from .build import NoKernelError, load

# embeddings that the kernel takes side by side
LANES = 16
# up to so many, classes lie side by side instead
FEW_ROWS = 8
LOWEST = -1e30
# bytes that a workspace is aligned to
ALIGNMENT = 64


class _Basis(ctypes.Structure):
    _fields_ = [
        ('signs', ctypes.c_void_p),
        ('forms', ctypes.c_int64),
        ('size', ctypes.c_int64),
        ('num_classes', ctypes.c_int64),
        ('dim', ctypes.c_int64),
        ('scale', ctypes.c_float),
    ]


class HadamardKernel:
    """Softmax sums and best classes of one basis of sign patterns.

    Args:
        library: Of hadamard.c.
        signs: (A, size) of +-1, int8, on the CPU.
        num_classes, dim, scale: As in :class:`~..structured_products.HadamardProducts`.
    """

    def __init__(self, library: ctypes.CDLL, signs: Tensor, num_classes: int, dim: int, scale: float) -> None:
        self.library = library
        self.signs = signs.contiguous()
        self.dim = dim
        self.basis = _Basis(self.signs.data_ptr(), len(signs), signs.shape[1], num_classes, dim, scale)

    def soft_sums(self, z: Tensor, named: Tensor, with_mean: bool) -> SoftSums:
        """As :func:`~..soft_sums.soft_sums`, for float32 embeddings (B, d) on the CPU."""
        z, named = z.contiguous(), named.contiguous()
        batch, k = named.shape
        out = SoftSums(z.new_empty(batch), z.new_empty(batch), z.new_empty(batch, k), None)
        if with_mean:
            # the coordinates beyond the patterns stay zero
            out = out._replace(mean=z.new_zeros(batch, self.dim))

        def work(rows: slice) -> None:
            tensors = (out.maximum, out.total, out.picked)
            pointers = [_pointer(tensor, rows.start) for tensor in tensors]
            mean = None if out.mean is None else _pointer(out.mean, rows.start)
            head = ctypes.byref(self.basis), _pointer(z, rows.start), ctypes.c_int64(rows.stop - rows.start)
            workspace = self._workspace(3)
            self.library.soft_sums(
                *head, _pointer(named, rows.start), ctypes.c_int64(k), *pointers, mean, _aligned(workspace)
            )

        over_rows(batch, LANES, work)
        return out

    def largest(self, z: Tensor, k: int) -> Tuple[Tensor, Tensor, Tensor]:
        """As :func:`~..soft_sums.largest`, for float32 embeddings (B, d) on the CPU."""
        z, batch = z.contiguous(), len(z)
        values, classes = z.new_full((batch, k), LOWEST), torch.zeros(batch, k, dtype=torch.int64)
        maximum, total = z.new_empty(batch), z.new_empty(batch)

        def work(rows: slice) -> None:
            head = ctypes.byref(self.basis), _pointer(z, rows.start), ctypes.c_int64(rows.stop - rows.start)
            pointers = [_pointer(tensor, rows.start) for tensor in (values, classes, maximum, total)]
            workspace = self._workspace(2)
            library = self.library
            best = library.largest_of_few if rows.stop - rows.start <= FEW_ROWS else library.largest
            best(*head, ctypes.c_int64(k), *pointers, _aligned(workspace))

        over_rows(batch, LANES, work)
        return values, classes, log_sum(maximum, total)

    def _workspace(self, vectors: int) -> Tensor:
        return torch.empty(vectors * self.basis.size * LANES * 4 + ALIGNMENT, dtype=torch.uint8)


def _pointer(tensor: Tensor, row: int) -> ctypes.c_void_p:
    return ctypes.c_void_p(tensor.data_ptr() + row * tensor.stride(0) * tensor.element_size())


def _aligned(workspace: Tensor) -> ctypes.c_void_p:
    return ctypes.c_void_p(-(-workspace.data_ptr() // ALIGNMENT) * ALIGNMENT)


def hadamard_kernel(signs: Tensor, num_classes: int, dim: int, scale: float) -> Optional[HadamardKernel]:
    """The kernel for a basis; None where it cannot be compiled, which is logged once."""
    library, _ = hadamard_library()
    return None if library is None else HadamardKernel(library, signs, num_classes, dim, scale)


@lru_cache(maxsize=None)
def hadamard_library() -> Tuple[Optional[ctypes.CDLL], str]:
    """The compiled hadamard.c, or None and why."""
    try:
        library = load(Path(__file__).with_name('hadamard.c'))
        for function in (library.soft_sums, library.largest, library.largest_of_few):
            function.restype = None
        return library, 'compiled'
    except NoKernelError as error:
        reason = f'torch does the work of a compiled kernel, several times slower: {error}'
        logging.getLogger('ebv_mm').warning(reason)
        return None, reason
