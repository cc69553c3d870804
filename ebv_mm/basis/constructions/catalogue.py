"""All closed forms, and which of them exist for a given (N, d)."""

from typing import Dict, Iterator, List

from .conference import bent_offers, conference_offers, taylor_offers
from .designs import polynomial_offers
from .elementary import orthonormal_offers, simplex_offers
from .frame import Offer
from .packings import packing_offers
from .quadratic_forms import quadratic_offers

FAMILIES = (
    orthonormal_offers,
    simplex_offers,
    conference_offers,
    bent_offers,
    taylor_offers,
    quadratic_offers,
    polynomial_offers,
    packing_offers,
)


def all_offers(num_classes: int, dim: int) -> Iterator[Offer]:
    """What all families have for (N, d), also where it is not enough vectors."""
    for family in FAMILIES:
        yield from family(num_classes, dim)


def closed_forms(num_classes: int, dim: int) -> List[Offer]:
    """All closed forms with N vectors in R^d, the best first; of each method only its best."""
    best: Dict[str, Offer] = {}
    for offer in all_offers(num_classes, dim):
        known = best.get(offer.method)
        if offer.fits(num_classes, dim) and (known is None or offer.coherence < known.coherence):
            best[offer.method] = offer
    # of equal ones the larger frame, to which vectors can be added later
    return sorted(best.values(), key=lambda offer: (offer.coherence, -offer.num_vectors))
