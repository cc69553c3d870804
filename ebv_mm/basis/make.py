"""Make a basis for N classes in R^d."""

from typing import Optional, Union

import torch

from .basis import Basis
from .bounds import best_bound
from .constructions import orthonormal
from .solvers import algorithm1
from .watch import Report, Watch, as_report


def closed_form_basis(num_classes: int, dim: int, *, method: str = 'auto', seed: int = 0) -> Basis:
    """Make a basis without iteration: at once, and the same on every rank. Raises where no closed form exists."""
    check_size(num_classes, dim)
    if num_classes > dim or method not in ('auto', 'orthonormal'):
        raise ValueError(
            f'there is no closed form for num_classes = {num_classes}, dim = {dim}, method = {method!r}; make a file '
            f'with: {make_command(num_classes, dim)}, and give its path as the basis'
        )
    return Basis(orthonormal(num_classes, dim, seed), 'orthonormal', seed)


def make_basis(
    num_classes: int,
    dim: int,
    *,
    method: str = 'auto',
    alpha: Optional[float] = None,
    seed: int = 0,
    time_limit: Optional[float] = None,
    device: Union[None, str, torch.device] = None,
    progress: Union[bool, Report] = False,
) -> Basis:
    """Make N unit vectors in R^d whose largest |cosine| is small."""
    check_size(num_classes, dim)
    if num_classes <= dim and method in ('auto', 'orthonormal'):
        return closed_form_basis(num_classes, dim, seed=seed)
    if alpha is None:
        alpha = 1.2 * best_bound(num_classes, dim)
    watch = Watch(time_limit, 0.0, as_report(progress))
    return Basis(algorithm1(num_classes, dim, alpha, seed=seed, watch=watch), 'algorithm1', seed)


def check_size(num_classes: int, dim: int) -> None:
    for name, value in (('num_classes', num_classes), ('dim', dim)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f'{name} = {value!r}, but a basis needs a whole number >= 1; give one')


def make_command(num_classes: object, dim: object, out: str = 'FILE.safetensors') -> str:
    """The command line that makes a basis, for error messages."""
    return f'python tools/make_basis.py --num-classes {num_classes} --dim {dim} --out {out}'
