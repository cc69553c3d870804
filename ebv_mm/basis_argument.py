"""What a ``basis=`` argument becomes: N fixed vectors, or the wait for a checkpoint that brings them."""

import inspect
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple, Optional, Union

import torch

from .basis import Basis, BasisError, closed_form_basis, load_basis, make_command, size_in_name
from .basis.arguments import check_size

BasisLike = Union[str, Path, dict, Basis]


class FixedBasis(NamedTuple):
    """A ``basis`` argument made concrete.

    Args:
        name: What messages call it.
        dim: d.
        basis: The N vectors; None while they are awaited.
        why_no_basis: The error to raise while there are none.
    """

    name: str
    dim: int
    basis: Optional[Basis] = None
    why_no_basis: Optional[str] = None


def resolve(basis: BasisLike, num_classes: int, reserve: int = 0) -> FixedBasis:
    """The first vectors of a basis given as a path, as the arguments of a closed form, or as itself.

    As many as there are classes, and those that are reserved for classes to come.
    """
    if isinstance(reserve, bool) or not isinstance(reserve, int) or reserve < 0:
        raise ValueError(f'reserve = {reserve!r}, but it is a number of classes to come; give a whole number >= 0')
    # whatever the default device is, which torch knows from 2.0 on
    with torch.device('cpu') if hasattr(torch.device, '__enter__') else nullcontext():
        fixed = _made_concrete(basis, num_classes + reserve, reserve)
    if fixed.dim < 2:
        raise BasisError(
            f'{fixed.name} has one dimension, in which every embedding is +1 or -1 and passes no gradient; '
            f'take at least two: {make_command(num_classes + reserve, 2)}'
        )
    return fixed


def _made_concrete(basis: BasisLike, num_vectors: int, reserve: int) -> FixedBasis:
    if isinstance(basis, Basis):
        name = basis.source
    elif isinstance(basis, dict):
        name = f'basis {dict(basis)}'
        _check_keys(basis, name)
        basis = closed_form_basis(**basis)
    elif isinstance(basis, (str, Path)):
        name = f'basis {str(basis)!r}'
        if not Path(basis).exists():
            return _await_checkpoint(basis, num_vectors)
        basis = load_basis(basis)
    else:
        raise TypeError(
            f'basis is a {type(basis).__name__}, but a layer takes the path of a basis file or a dict such as '
            f'dict(num_classes={num_vectors}, dim={num_vectors})'
        )
    if basis.num_classes < num_vectors:
        outputs = (
            f'{num_vectors - reserve} classes and {reserve} reserved' if reserve else 'one for each of its outputs'
        )
        background = ' (in a box head the background is one of them)' if basis.num_classes == num_vectors - 1 else ''
        dim = max(basis.dim, num_vectors) if basis.dim >= basis.num_classes else basis.dim
        raise BasisError(
            f'{name} has {basis.num_classes} vectors, but the layer needs {num_vectors}, {outputs}{background}; make '
            f'one with: {make_command(num_vectors, dim)}'
        )
    return FixedBasis(name, basis.dim, basis.first(num_vectors))


def _check_keys(arguments: dict, name: str) -> None:
    """Raise where a dict is not what a closed form takes; most often a name is misspelt."""
    known = list(inspect.signature(closed_form_basis).parameters)
    wrong = [f'the unknown key {key!r}' for key in arguments if key not in known]
    wrong += [f'no {key!r}' for key in ('num_classes', 'dim') if key not in arguments]
    if wrong:
        raise BasisError(f'{name} has {" and ".join(wrong)}; the keys of a basis are {", ".join(known)}')


def _await_checkpoint(path: Union[str, Path], num_vectors: int) -> FixedBasis:
    """Stand in for a missing file, because a trained model brings its basis in its checkpoint."""
    size = size_in_name(path)
    if size is not None:
        check_size(*size)
        if size[0] < num_vectors:
            raise BasisError(
                f'basis {str(path)!r} does not exist, and by its name would have {size[0]} vectors, but the layer '
                f'needs {num_vectors}; name a file of at least {num_vectors} vectors'
            )
    command = make_command(*(size or (num_vectors, 'DIM')), path)
    why = f'basis {str(path)!r} does not exist, and no checkpoint has brought one; make it with: {command}'
    # A name that tells no size leaves d to the checkpoint; until then any d will do.
    return FixedBasis(f'basis {str(path)!r}', size[1] if size else max(num_vectors, 2), why_no_basis=why)
