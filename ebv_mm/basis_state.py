"""The fixed vectors as part of a module's state: on which device, in which precision, in and out of checkpoints."""

import warnings
from typing import Optional

import torch
from torch import Tensor
from torch.nn import functional

from .basis import Basis, BasisError, DenseBasis, DenseProducts, Products, Recipe, StructuredBasis
from .basis.basis import check_vectors, nearly_same
from .basis_argument import FixedBasis
from .ranks import seal_for

# How far the norms of rows may be from 1 that a checkpoint holds in half precision: bfloat16 rounds by 2^-9.
HALF_TOLERANCE = 5e-3
CONVERT = 'python -m ebv_mm.conversion CONFIG CHECKPOINT --out FOLDER'
# bytes; a recipe has some two hundred
LONGEST_RECIPE = 1000
# A layer may use the first N of more vectors, but a checkpoint may not ask for any number of them to be made.
MOST_UNUSED = 100


class HoldsBasis:
    """A module with N fixed vectors: a mixin for :class:`torch.nn.Module`.

    Dense vectors are the buffer ``basis``. Structured ones are no buffer, because hooks average, broadcast and round
    buffers: a checkpoint has their recipe, as the bytes of its text, under ``basis_recipe``. While the vectors are
    awaited from a checkpoint there is neither.

    A checkpoint's basis wins over the configured one, with a warning, because its projection was trained against it.

    Attributes:
        present: In training only so many of the first vectors take part, while classes come in waves; None: all.
    """

    present: Optional[int] = None

    def hold(self, fixed: FixedBasis, num_vectors: int, reserve: int, device: torch.device) -> None:
        """Take the vectors; N of them, also while they are awaited, of which the last are reserved."""
        self.num_vectors = num_vectors
        self.reserve = reserve
        self.basis_name = fixed.name
        self.register_buffer('basis', None)
        self._take(fixed.basis, device)
        self.why_no_basis = fixed.why_no_basis

    def _take(self, basis: Optional[Basis], device: torch.device) -> None:
        self.why_no_basis = None
        self.structured = self.basis = self._real = self._restricted = None
        self.seal = seal_for(basis)
        if isinstance(basis, StructuredBasis):
            self.structured = basis
        elif basis is not None:
            self._place(basis.vectors.clone(), device)

    @property
    def products(self) -> Products:
        """Inner products with the class vectors that have an output, blockwise, dense or structured."""
        if self.structured is None:
            return DenseProducts(self.basis[: self.num_outputs])
        return self.structured.products if self.num_outputs == self.num_vectors else self._first(self.num_outputs)

    @property
    def num_outputs(self) -> int:
        """In training all vectors have one, or those present; then those of the classes, without the reserve."""
        if not self.training:
            return self.num_vectors - self.reserve
        return self.num_vectors if self.present is None else self.present

    def _first(self, count: int) -> Products:
        """Kept, because it holds what it needs on its device."""
        if self._restricted is None or self._restricted.num_classes != count:
            self._restricted = self.structured.products.first(count)
        return self._restricted

    @property
    def vectors(self) -> Tensor:
        """All vectors (N, d), the reserve included; those of a structured basis are made now."""
        return self.basis if self.structured is None else self.structured.vectors.to(self.weight.device)

    def check_basis(self) -> None:
        """Raise FileNotFoundError, with the remedy, while the vectors are awaited; BasisError if rank 0 has others."""
        if self.why_no_basis is not None:
            raise FileNotFoundError(self.why_no_basis)
        if self.seal is not None:
            self.seal.check(self.basis_name)

    def _apply(self, fn, *args, **kwargs):
        """Move the basis with the module, but keep its numbers: ``half`` would bend them, ``to_empty`` lose them."""
        exact, self.basis = self.basis, None
        try:
            super()._apply(fn, *args, **kwargs)
        finally:
            self.basis = exact
        if exact is not None:
            self._place(exact if self._real is None else self._real, fn(exact[:0]).device)
        return self

    def _place(self, vectors: Tensor, device: torch.device) -> None:
        self.basis = vectors.to(device)
        # kept while the module is on the meta device, where no numbers are
        self._real = vectors if device.type == 'meta' else None

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        if self.structured is not None:
            text = self.structured.recipe.to_text()
            destination[f'{prefix}basis_recipe'] = torch.tensor(list(text.encode()), dtype=torch.uint8)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing, unexpected, errors) -> None:
        key = f'{prefix}basis'
        mismatch = self._meet(state_dict, key)
        if mismatch is not None:
            errors.append(mismatch)  # which hosts log, and go on with what does fit
        # What was brought is taken, or refused, by now: torch sees no basis but the module's own.
        state_dict = {name: value for name, value in state_dict.items() if name not in (key, f'{key}_recipe')}
        if self.basis is not None:
            state_dict[key] = self.basis
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing, unexpected, errors)

    def _meet(self, state_dict: dict, key: str) -> Optional[str]:
        """Take the basis that a checkpoint brings; returns why not, where its size does not fit."""
        matrix, recipe = _plain(state_dict, key), _recipe_in(state_dict, key)
        weight = f'{key[: -len("basis")]}weight'
        if matrix is None and recipe is None:
            if weight in state_dict:
                warnings.warn(
                    f"the checkpoint has {weight!r}, but no basis beside it: it is FC's classifier, and no projection "
                    f'onto {self.basis_name}; convert it with: {CONVERT}',
                    stacklevel=2,
                )
            return None
        # compared before anything is built
        size = tuple(matrix.shape) if recipe is None else (recipe.first, recipe.dim)
        awaited = self.why_no_basis is not None
        if size[:1] != (self.num_vectors,) or (size[1:] != (self.dim,) and not awaited):
            own = f'{self.num_vectors} x {self.dim}'
            theirs = ' x '.join(map(str, size))
            if getattr(state_dict.get(weight), 'shape', None) == self.weight.shape:
                warnings.warn(
                    f'{weight!r} of the checkpoint is loaded, but was trained against another basis, {theirs} and not '
                    f'{own}: the classes begin anew; to keep them, take a basis that extends the old one',
                    stacklevel=2,
                )
            return f'size mismatch for {key}: the checkpoint has {theirs}, the current model {own}.'
        if self._is_own(matrix, recipe):
            return None
        brought = _dense(matrix, f"the checkpoint's {key!r}") if recipe is None else _built(recipe)
        if awaited:
            self.resize_projection(brought.dim)
        elif not self._is_nearly_own(brought):
            warnings.warn(
                f"the checkpoint's {key!r} differs from the configured {self.basis_name}; the checkpoint's is used, "
                'because its projection was trained against it',
                stacklevel=2,
            )
        self._take(brought, self.weight.device)
        return None

    def _is_own(self, matrix: Optional[Tensor], recipe: Optional[Recipe]) -> bool:
        """Whether a checkpoint has the module's own vectors; a matrix perhaps in half precision."""
        if recipe is not None:
            return self.structured is not None and self.structured.recipe == recipe
        own = self.basis if self._real is None else self._real
        return own is not None and matrix.is_floating_point() and torch.equal(own.to(matrix), matrix)

    def _is_nearly_own(self, brought: Basis) -> bool:
        own = self.basis if self._real is None else self._real
        if own is None or isinstance(brought, StructuredBasis):
            return False
        return nearly_same(brought.vectors.to(own), own)


def _plain(state_dict: dict, name: str) -> Optional[Tensor]:
    """An entry of a checkpoint, if it is there: numbers, and no more of them than are stored."""
    value = state_dict.get(name)
    if value is None:
        return None
    if not isinstance(value, Tensor) or value.layout is not torch.strided or value.device.type == 'meta':
        raise BasisError(f"the checkpoint's {name!r} is no plain tensor; its file is damaged")
    if value.numel() * value.element_size() > value.untyped_storage().nbytes():
        raise BasisError(f"the checkpoint's {name!r} has more entries than numbers are stored; its file is damaged")
    return value


def _dense(matrix: Tensor, source: str) -> DenseBasis:
    """The basis that is a checkpoint's matrix, checked."""
    if matrix.dtype in (torch.float16, torch.bfloat16):
        matrix = matrix.float()
        check_vectors(matrix, source, HALF_TOLERANCE)
        matrix = functional.normalize(matrix)
    return DenseBasis(matrix, source=source)


def _built(recipe: Recipe) -> StructuredBasis:
    """The basis of a checkpoint's recipe, unless making it could take hours for the few vectors that are used."""
    if recipe.num_classes > MOST_UNUSED * recipe.first:
        raise BasisError(
            f'{recipe} makes more than {MOST_UNUSED} times the vectors that it uses; its file is damaged, or give the '
            'layer the same basis in the config'
        )
    return recipe.build()


def _recipe_in(state_dict: dict, key: str) -> Optional[Recipe]:
    """The recipe that a checkpoint has; 0.1.0 wrote its bytes as the float32 numbers of the buffer itself."""
    coded = _plain(state_dict, f'{key}_recipe')
    if coded is None:
        coded = _plain(state_dict, key)
        if coded is None or coded.ndim != 1:
            return None
    if coded.ndim != 1 or len(coded) > LONGEST_RECIPE or coded.is_complex():
        raise BasisError(f'the recipe of {key!r} is none that ebv_mm writes; its file is damaged')
    try:
        # rounded: GPUs average over n ranks by a factor of 1 / n, which may end just below a whole number
        text = bytes(coded.cpu().float().round().to(torch.int64).tolist()).decode()
    except ValueError as error:
        raise BasisError(f'the recipe of {key!r} is no text ({error}); its file is damaged') from error
    return Recipe.from_text(text)
