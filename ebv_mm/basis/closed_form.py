"""A basis without iteration, dense or structured."""

from typing import Iterable

from .arguments import check_seed, check_size
from .basis import Basis, DenseBasis
from .commands import make_command
from .constructions import Offer, closed_forms, materialise
from .structured import StructuredBasis, structured_forms


def closed_form_basis(
    num_classes: int,
    dim: int,
    *,
    method: str = 'auto',
    seed: int = 0,
    rotate: bool = True,
    structured: bool = False,
) -> Basis:
    """Make a basis without iteration: at once, and the same on every rank. Raises where no closed form exists.

    Args:
        method: One of the closed forms that exist for (N, d), 'auto' for the best of them.
        seed: Of the random rotation.
        rotate: False keeps the natural coordinates, in which most closed forms are sparse or signs.
        structured: Never store the matrix, but the kilobytes that it is made of: see :class:`StructuredBasis`. The
            vectors are the same.
    """
    num_classes, dim = check_size(num_classes, dim)
    seed = check_seed(seed)
    offers = (structured_forms if structured else closed_forms)(num_classes, dim)
    offer = next((offer for offer in offers if method in ('auto', offer.method)), None)
    if offer is None:
        kind = 'structured basis' if structured else 'closed form'
        raise ValueError(
            f'there is no {kind} for num_classes = {num_classes}, dim = {dim}, method = {method!r}; '
            + _remedy(offers, num_classes, dim, structured)
        )
    if structured:
        return StructuredBasis(offer, num_classes, dim, seed=seed, rotate=rotate)
    return dense_from_offer(offer, num_classes, dim, seed=seed, rotate=rotate)


def _remedy(offers: Iterable[Offer], num_classes: int, dim: int, structured: bool) -> str:
    if offers:
        return f'choose one of: {quoted(offer.method for offer in offers)}'
    if structured:
        return 'take a power of two as dim, or a dense one'
    return f'make a file with: {make_command(num_classes, dim)}, and give its path as the basis'


def dense_from_offer(offer: Offer, num_classes: int, dim: int, *, seed: int = 0, rotate: bool = True) -> DenseBasis:
    vectors = materialise(offer.build(), num_classes, dim, rotate=rotate, seed=seed)
    return DenseBasis(vectors, offer.method, seed if rotate else None, known_coherence=offer.coherence)


def quoted(names: Iterable[str]) -> str:
    return ', '.join(map(repr, names))
