"""Basis files: .safetensors with one tensor, ``basis``, and its description as metadata."""

import re
from pathlib import Path
from typing import Optional, Sequence, Tuple, Union

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from ..output import whole_file
from .basis import Basis, BasisError, DenseBasis
from .commands import COMMAND, make_command

FORMAT_VERSION = '1'
TENSOR_NAME = 'basis'


def size_in_name(path: Union[str, Path]) -> Optional[Tuple[int, int]]:
    """(N, d) as told by a file name that starts with ``NxD``, such as ``81x81.safetensors``; None if it tells none."""
    match = re.match(r'(\d+)x(\d+)(?!\d)', Path(path).name)
    return (int(match[1]), int(match[2])) if match else None


def check_name(path: Union[str, Path], shape: Sequence[int]) -> None:
    """Raise :class:`BasisError` where the name of a file tells another size than that of its matrix."""
    named = size_in_name(path)
    if named is not None and named != tuple(shape):
        raise BasisError(
            f'basis {str(path)!r} is named {named[0]}x{named[1]}, but its matrix has the shape {tuple(shape)}; '
            f'call it {"x".join(map(str, shape))}{Path(path).suffix}, or make one of the size in the name'
        )


def save_basis(basis: Basis, path: Union[str, Path]) -> None:
    """Write a basis, atomically: under ``path`` there is either the whole file or what was there before."""
    check_name(path, (basis.num_classes, basis.dim))
    metadata = {
        'version': FORMAT_VERSION,
        'num_classes': str(basis.num_classes),
        'dim': str(basis.dim),
        'method': basis.method,
        'seed': '' if basis.seed is None else str(basis.seed),
        'coherence': repr(basis.coherence),
    }
    with whole_file(path) as part:
        try:
            save_file({TENSOR_NAME: basis.vectors}, part, metadata)
        except SafetensorError as error:  # what a full disk gives
            raise OSError(f'{str(path)!r} cannot be written ({error}); make room or choose another place') from error


def load_basis(path: Union[str, Path]) -> DenseBasis:
    """Read and check a basis file; every defect has its own sentence."""
    source = f'basis {str(path)!r}'
    if not Path(path).is_file():
        command = make_command(*(size_in_name(path) or ('N', 'D')), path)
        raise FileNotFoundError(f'{source} does not exist; make it with: {command}')
    try:
        with safe_open(str(path), framework='pt') as file:
            metadata = file.metadata() or {}
            if TENSOR_NAME not in file.keys():
                raise BasisError(
                    f'{source} holds the tensors {sorted(file.keys())}, but a basis file holds one called '
                    f'{TENSOR_NAME!r}; write it with: {COMMAND}'
                )
            vectors = file.get_tensor(TENSOR_NAME)
    except SafetensorError as error:
        raise BasisError(f'{source} is not a readable .safetensors file ({error}); make it anew') from error
    check_name(path, vectors.shape)
    return DenseBasis(
        vectors,
        metadata.get('method', 'given'),
        _number(int, metadata.get('seed')),
        source,
        _number(float, metadata.get('coherence')),
    )


def _number(kind: type, text: Optional[str]):
    try:
        return kind(text) if text else None
    except ValueError:
        return None
