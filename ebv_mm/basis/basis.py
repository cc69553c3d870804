"""What a basis is: N unit vectors in R^d that can be multiplied with."""

from functools import cached_property
from typing import Optional

import torch
from torch import Tensor

from .bounds import best_bound
from .measure import coherence, mean_deviation, to_degrees
from .products import DenseProducts, Products

UNIT_TOLERANCE = 1e-3
SPARE_BITS = 4
# Two bases closer than this, entry by entry, are the same one up to the linear algebra of the machine.
SAME_BASIS_TOLERANCE = 1e-5


class BasisError(ValueError):
    """A set of vectors that cannot serve as a basis; the message says why and what to do."""


def in_a_sentence(error: Exception) -> str:
    """What another library says of a file, cut and made printable: the file can make it say anything."""
    text = f'{type(error).__name__}: {error}'[:200]
    return ' '.join(''.join(letter if letter.isprintable() else ' ' for letter in text).split())


class Basis:
    r"""N fixed unit vectors, the rows :math:`w_k` of an N x d matrix, and where they came from.

    The interface of its two kinds: :class:`DenseBasis` holds the matrix, :class:`~.structured.StructuredBasis` the
    kilobytes that it is made of. Both are never changed once they are made.

    Args:
        products: Inner products with the vectors, blockwise.
        method: How it was made.
        seed: The seed it was made with, None if it does not depend on one.
        source: What error messages call it.
        known_coherence: The coherence, where a theorem or a measurement has told it; None to measure it when asked.
    """

    def __init__(
        self,
        products: Products,
        method: str,
        seed: Optional[int],
        source: str,
        known_coherence: Optional[float],
    ) -> None:
        self.products = products
        self.method = method
        self.seed = seed
        self.source = source
        self.known_coherence = known_coherence

    @property
    def vectors(self) -> Tensor:
        """The matrix (N, d), float32."""
        raise NotImplementedError

    def first(self, num_classes: int) -> 'Basis':
        """The first ``num_classes`` vectors."""
        if not 1 <= num_classes <= self.num_classes:
            raise BasisError(
                f'{self.source} has {self.num_classes} vectors, not {num_classes}; ask for 1 to {self.num_classes}, or '
                'make more'
            )
        return self if num_classes == self.num_classes else self._first(num_classes)

    def _first(self, num_classes: int) -> 'Basis':
        raise NotImplementedError

    @property
    def num_classes(self) -> int:
        return self.products.num_classes

    @property
    def dim(self) -> int:
        return self.products.dim

    @cached_property
    def coherence(self) -> float:
        """Largest absolute cosine between two different vectors."""
        return coherence(self.vectors) if self.known_coherence is None else self.known_coherence

    @property
    def bound(self) -> float:
        """The largest known lower bound on the coherence of any N vectors in R^d."""
        return best_bound(self.num_classes, self.dim)

    @property
    def min_angle(self) -> float:
        """Smallest angle between two of the lines, in degrees."""
        return to_degrees(self.coherence)

    @property
    def mean_deviation(self) -> float:
        """Mean over all pairs of |angle - 90|, in degrees."""
        return mean_deviation(self.vectors)

    def __repr__(self) -> str:
        size = f'num_classes={self.num_classes}, dim={self.dim}'
        return f'{type(self).__name__}({size}, method={self.method!r}, seed={self.seed})'


class DenseBasis(Basis):
    """A basis that is a matrix.

    The entries are rounded to 20 significant bits, a relative change of at most 5e-7, for two reasons.
    Averaging the buffer over up to 16 ranks, as ``SyncBuffersHook`` does, is then exact (n x and n x / n need no
    rounding; GPUs multiply by 1 / n, which needs none for 2, 4, 8 and 16), so a basis stays bit-identical in training.
    And a closed form computed in float64 gives the same bits on machines whose linear algebra differs in the last
    digits.

    Args:
        vectors: (N, d) matrix of unit rows, float32 or float64. Not modified.
        method, seed, source, known_coherence: As in :class:`Basis`.
    """

    def __init__(
        self,
        vectors: Tensor,
        method: str = 'given',
        seed: Optional[int] = None,
        source: str = 'basis',
        known_coherence: Optional[float] = None,
    ) -> None:
        check_vectors(vectors, source)
        rounded = round_significant(vectors.detach().to('cpu', torch.float32, copy=True).contiguous())
        super().__init__(DenseProducts(rounded), method, seed, source, known_coherence)

    @property
    def vectors(self) -> Tensor:
        return self.products.vectors

    def _first(self, num_classes: int) -> 'DenseBasis':
        # fewer vectors may have a smaller coherence: it is measured when asked for
        return DenseBasis(self.vectors[:num_classes], self.method, self.seed, self.source)


def round_significant(vectors: Tensor) -> Tensor:
    """Round float32 entries, in place, so that their last ``SPARE_BITS`` mantissa bits are zero."""
    bits = vectors.view(torch.int32)
    bits.add_(1 << (SPARE_BITS - 1)).bitwise_and_(-(1 << SPARE_BITS))
    return vectors


def nearly_same(vectors: Tensor, others: Tensor) -> bool:
    return torch.allclose(vectors, others, rtol=0, atol=SAME_BASIS_TOLERANCE)


def check_vectors(vectors: Tensor, source: str = 'basis', tolerance: float = UNIT_TOLERANCE) -> None:
    """Raise :class:`BasisError` unless ``vectors`` is a matrix of finite unit rows."""
    if vectors.ndim != 2 or 0 in vectors.shape:
        raise BasisError(
            f'{source} has shape {tuple(vectors.shape)}, but a basis is a matrix of N >= 1 rows and d >= 1 columns; '
            'save the (N, d) matrix itself'
        )
    if vectors.dtype not in (torch.float32, torch.float64):
        raise BasisError(
            f'{source} has dtype {vectors.dtype}, but a basis needs float32 or float64, because cosines are divided '
            'by a small tau; make it anew in float32'
        )
    if not torch.isfinite(vectors).all():
        row = int((~torch.isfinite(vectors)).any(1).nonzero()[0])
        raise BasisError(f'{source} holds NaN or infinity in row {row}, but all entries must be finite; make it anew')
    norms = torch.linalg.vector_norm(vectors, dim=1, dtype=torch.float64)
    error, row = (norms - 1).abs().max(0)
    if error > tolerance:
        raise BasisError(
            f'{source} has a row of norm {norms[row]:.6g} (row {int(row)}), but every row must have norm 1; '
            'divide each row by its norm'
        )
