"""New classes for a basis that is in use."""

from dataclasses import dataclass
from typing import Optional, Union

import torch
from torch import Tensor
from torch.nn import functional

from .arguments import whole_number
from .basis import Basis, DenseBasis
from .bounds import best_bound
from .constructions import closed_forms, materialise
from .measure import to_degrees
from .solvers import soft_maximum
from .watch import Report, Watch


@dataclass(frozen=True)
class Extension:
    """An extended basis, and what it costs to have kept the old rows.

    Args:
        basis: The old rows, bit-identical, and the new ones after them.
        before: Coherence of the old basis.
        fresh: Coherence of the best closed form for the new size; the bound where there is none.
    """

    basis: Basis
    before: float
    fresh: float

    @property
    def cost(self) -> float:
        """Degrees of minimum angle that a fresh basis would have more; not positive if it would not."""
        return to_degrees(self.fresh) - self.basis.min_angle

    def __str__(self) -> str:
        return (
            f'{self.basis.num_classes} x {self.basis.dim}: min angle {self.basis.min_angle:.3f} '
            f'(before {to_degrees(self.before):.3f}, a fresh basis {to_degrees(self.fresh):.3f})'
        )


def extend_basis(
    basis: Basis,
    n_new: int,
    *,
    seed: int = 0,
    time_limit: Optional[float] = None,
    device: Union[None, str, torch.device] = None,
    progress: Optional[Report] = None,
) -> Extension:
    """Add vectors, leaving the old rows bit-identical and the coherence as low as it can be.

    Three ways, the first that works: the next rows of the closed form that the basis is the beginning of; directions
    orthogonal to all old rows; the solver, with the old rows fixed, from the directions that they cover least.
    """
    n_new = whole_number('n_new', n_new)
    total = basis.num_classes + n_new
    offers = closed_forms(total, basis.dim)
    fresh = offers[0].coherence if offers else best_bound(total, basis.dim)
    old = basis.vectors
    new = _continued(basis, old, total)
    known: Optional[float] = None
    method = f'{basis.method}+{n_new}'
    if new is None:
        new = _uncovered(old, n_new, seed)
        if n_new > _num_uncovered(old):
            watch = Watch(time_limit, max(basis.coherence, best_bound(total, basis.dim)), progress)
            rows = torch.cat([old, new]).to(device or 'cpu')
            new = soft_maximum(rows, fixed=basis.num_classes, watch=watch)[0][basis.num_classes :].cpu()
    else:
        method = basis.method  # so that it can be continued again
        known = max(offer.coherence for offer in offers if offer.method == method)
    vectors = torch.cat([old, new])
    return Extension(DenseBasis(vectors, method, basis.seed, known_coherence=known), basis.coherence, fresh)


def _continued(basis: Basis, old: Tensor, total: int) -> Optional[Tensor]:
    """The next rows of the closed form that begins with this basis; None if there is no such form."""
    for offer in closed_forms(total, basis.dim):
        if offer.method == basis.method:
            frame = offer.build()
            for rotate in (True, False) if basis.seed is not None else (False, True):
                rows = materialise(frame, total, basis.dim, rotate=rotate, seed=basis.seed or 0)
                whole = DenseBasis(rows).vectors
                if torch.equal(whole[: basis.num_classes], old):
                    return whole[basis.num_classes :]
    return None


def _num_uncovered(vectors: Tensor) -> int:
    """Dimension of the space orthogonal to all rows."""
    return vectors.shape[1] - int(torch.linalg.matrix_rank(vectors.double(), tol=1e-4))


def _uncovered(vectors: Tensor, count: int, seed: int) -> Tensor:
    """Unit rows along the directions that the given rows cover least: orthonormal as long as these are free."""
    old = vectors.double()
    values, directions = torch.linalg.eigh(old.T @ old)
    free = directions[:, : min(count, old.shape[1])].T
    sign = free.gather(1, free.abs().argmax(1, keepdim=True)).sign()
    rows = [free * sign]
    if count > len(free):
        generator = torch.Generator().manual_seed(seed)
        random = torch.randn(count - len(free), old.shape[1], generator=generator, dtype=torch.float64)
        rows.append(functional.normalize(random @ (directions * values.clamp_min(1e-3).rsqrt()).T))
    return torch.cat(rows).float()
