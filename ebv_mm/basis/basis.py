"""What a basis is: N unit vectors in R^d, and where they came from."""

import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import Callable, Optional

import torch
from torch import Tensor

from .bounds import best_bound
from .measure import coherence, mean_deviation, to_degrees
from .products import DenseProducts, Products

UNIT_TOLERANCE = 1e-3
SPARE_BITS = 4
RECIPE_VERSION = 1


class BasisError(ValueError):
    """A set of vectors that cannot serve as a basis; the message says why and what to do."""


@dataclass(frozen=True, eq=False)
class Basis:
    r"""N fixed unit vectors, the rows :math:`w_k` of an N x d matrix.

    The entries are rounded to 20 significant bits, a relative change of at most 5e-7, for two reasons.
    Averaging the buffer over up to 16 ranks, as ``SyncBuffersHook`` does, is then exact (n x and n x / n need no
    rounding; GPUs multiply by 1 / n, which needs none for 2, 4, 8 and 16), so a basis stays bit-identical in training.
    And a closed form computed in float64 gives the same bits on machines whose linear algebra differs in the last
    digits.

    Args:
        vectors: (N, d) matrix of unit rows, float32 or float64. Not modified.
        method: How it was made.
        seed: The seed it was made with, None if it does not depend on one.
        source: What error messages call it.
        known_coherence: The coherence, where a theorem or a measurement has told it; None to measure it when asked.
    """

    vectors: Tensor
    method: str = 'given'
    seed: Optional[int] = None
    source: str = field(default='basis', repr=False)
    known_coherence: Optional[float] = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_vectors(self.vectors, self.source)
        rounded = round_significant(self.vectors.detach().to('cpu', torch.float32, copy=True).contiguous())
        object.__setattr__(self, 'vectors', rounded)

    @property
    def num_classes(self) -> int:
        return self.vectors.shape[0]

    @property
    def dim(self) -> int:
        return self.vectors.shape[1]

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

    @property
    def products(self) -> Products:
        """Inner products with the vectors, blockwise."""
        return DenseProducts(self.vectors)


class StructuredBasis(Basis):
    """A basis that is computed with, and stored, as its structure; ``vectors`` makes the matrix when it is asked for.

    Args:
        products: The structure.
        materialise: Makes the first n vectors, (n, d).
        made_of: (num_classes, dim, method) of the call that made it. (It may be the first N of more vectors.)
        seed: Of the rotation; None for the natural coordinates of the closed form.
        known_coherence: By theorem.
    """

    def __init__(
        self,
        products: Products,
        materialise: Callable[[int], Tensor],
        made_of: tuple,
        seed: Optional[int],
        known_coherence: float,
    ) -> None:
        for name, value in dict(
            products=products, materialise=materialise, made_of=made_of, method=made_of[2], seed=seed, source='basis',
            known_coherence=known_coherence,
        ).items():  # fmt: skip
            self.__dict__[name] = value  # the dataclass is frozen

    products: Products = None

    @property
    def num_classes(self) -> int:
        return self.products.num_classes

    @property
    def dim(self) -> int:
        return self.products.dim

    @cached_property
    def vectors(self) -> Tensor:
        return round_significant(self.materialise(self.num_classes))

    def first(self, num_classes: int) -> 'StructuredBasis':
        """The first ``num_classes`` vectors."""
        if not 1 <= num_classes <= self.num_classes:
            raise BasisError(f'{self} has no {num_classes} vectors; ask for 1 to {self.num_classes}, or make more')
        products = self.products.first(num_classes)
        return StructuredBasis(products, self.materialise, self.made_of, self.seed, self.known_coherence)

    @cached_property
    def recipe(self) -> str:
        """All that is needed to make it again, and a digest to tell that it is the same, as json."""
        num_classes, dim, method = self.made_of
        return json.dumps(
            dict(
                num_classes=num_classes,
                dim=dim,
                method=method,
                seed=self.seed,
                first=self.num_classes,
                sha256=self.products.digest(),
                version=RECIPE_VERSION,
            )
        )

    def __reduce__(self) -> tuple:
        """Pickled, and copied, as the recipe."""
        from .make import from_recipe  # which imports this module

        return from_recipe, (self.recipe,)

    def __repr__(self) -> str:
        return f'StructuredBasis(num_classes={self.num_classes}, dim={self.dim}, method={self.method!r})'


def round_significant(vectors: Tensor) -> Tensor:
    """Round float32 entries, in place, so that their last ``SPARE_BITS`` mantissa bits are zero."""
    bits = vectors.view(torch.int32)
    bits.add_(1 << (SPARE_BITS - 1)).bitwise_and_(-(1 << SPARE_BITS))
    return vectors


def check_vectors(vectors: Tensor, source: str = 'basis') -> None:
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
    if error > UNIT_TOLERANCE:
        raise BasisError(
            f'{source} has a row of norm {norms[row]:.6g} (row {int(row)}), but every row must have norm 1; '
            'divide each row by its norm'
        )
