"""A basis as the structure of a closed form, and the recipe by which it is stored."""

import json
from dataclasses import asdict, dataclass, fields
from typing import List, Optional

from torch import Tensor

from .arguments import check_seed, check_size
from .basis import Basis, BasisError, round_significant
from .constructions import Offer, closed_forms, materialise
from .rotation import Rotation

RECIPE_VERSION = 1


class StructuredBasis(Basis):
    """A basis that is computed with, and stored, as its structure; ``vectors`` makes the matrix each time it is asked.

    Args:
        offer: The closed form, one with fast products.
        num_classes, dim: The size it was asked for, which decides which frame of its family it is.
        seed: Of the rotation.
        rotate: False keeps the natural coordinates of the closed form.
    """

    def __init__(self, offer: Offer, num_classes: int, dim: int, *, seed: int, rotate: bool) -> None:
        self._frame = offer.build()
        self._asked_for = num_classes, dim
        products = self._frame.products(num_classes, dim)
        products.rotation = Rotation(dim, seed) if rotate else None
        super().__init__(products, offer.method, seed if rotate else None, 'basis', offer.coherence)

    @property
    def vectors(self) -> Tensor:
        rotate = self.seed is not None
        rows = materialise(self._frame, self.num_classes, self.dim, rotate=rotate, seed=self.seed or 0)
        return round_significant(rows)

    def _first(self, num_classes: int) -> 'StructuredBasis':
        out = object.__new__(StructuredBasis)
        vars(out).update(vars(self), products=self.products.first(num_classes))
        return out

    @property
    def recipe(self) -> 'Recipe':
        """All that is needed to make it again, and a digest to tell that it is the same."""
        num_classes, dim = self._asked_for
        return Recipe(num_classes, dim, self.method, self.seed, self.num_classes, self.products.digest())

    def __deepcopy__(self, memo: dict) -> 'StructuredBasis':
        return self  # nothing ever changes it

    def __reduce__(self) -> tuple:
        """Pickled as the recipe."""
        return from_recipe, (self.recipe.to_text(),)


@dataclass(frozen=True)
class Recipe:
    """What makes a structured basis again: the arguments of the call, how many of its vectors, and their digest."""

    num_classes: int
    dim: int
    method: str
    seed: Optional[int]
    first: int
    sha256: str
    version: int = RECIPE_VERSION

    def __post_init__(self) -> None:
        if self.version != RECIPE_VERSION:
            raise BasisError(f'{self} is of another version; use the ebv_mm that wrote it')
        for name, kinds in dict(
            num_classes=int, dim=int, method=str, seed=(int, type(None)), first=int, sha256=str
        ).items():
            value = getattr(self, name)
            if not isinstance(value, kinds) or isinstance(value, bool):
                raise BasisError(f'{self} has the {name} {value!r}; take the checkpoint from where it came from anew')
        try:
            check_size(self.num_classes, self.dim)
            check_seed(self.seed or 0)
        except ValueError as error:
            raise BasisError(f'{self} asks for no basis ({error})') from error
        if not 1 <= self.first <= self.num_classes:
            raise BasisError(f'{self} asks for {self.first} vectors of {self.num_classes}; its file is damaged')

    @classmethod
    def from_text(cls, text: str) -> 'Recipe':
        """Read what ``to_text`` has written; whatever is wrong with it is a :class:`BasisError`."""
        try:
            content = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise BasisError(f'{text[:200]!r} is no recipe of a basis ({error}); its file is damaged') from error
        names = {field.name for field in fields(cls)}
        if not isinstance(content, dict) or set(content) != names:
            raise BasisError(f'{text[:200]!r} is no recipe of a basis, which has {", ".join(sorted(names))}')
        return cls(**content)

    def to_text(self) -> str:
        return json.dumps(asdict(self))

    def build(self) -> StructuredBasis:
        """Make the basis, and check that it is the same, bit by bit."""
        offers = {offer.method: offer for offer in structured_forms(self.num_classes, self.dim)}
        if self.method not in offers:
            raise BasisError(f'{self} names no closed form that exists here; use the ebv_mm that wrote it')
        whole = StructuredBasis(
            offers[self.method], self.num_classes, self.dim, seed=self.seed or 0, rotate=self.seed is not None
        )
        basis = whole.first(self.first)
        if basis.products.digest() != self.sha256:
            raise BasisError(
                f'{self} gives another basis here (sha256 {basis.products.digest()}); use the ebv_mm that wrote it'
            )
        return basis


def from_recipe(text: str) -> StructuredBasis:
    """The basis whose ``recipe.to_text()`` this is."""
    return Recipe.from_text(text).build()


def structured_forms(num_classes: int, dim: int) -> List[Offer]:
    """The closed forms that have fast products, the best first."""
    offers = [offer for offer in closed_forms(num_classes, dim) if offer.structured]
    # the unit vectors that may fill up a frame are no part of its structure
    return [offer for offer in offers if offer.num_vectors >= num_classes]
