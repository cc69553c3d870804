"""Basis files: .safetensors with one tensor, ``basis``, and its description as metadata."""

import math
import re
from pathlib import Path
from typing import Optional, Sequence, Tuple, Union

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from ..output import whole_file
from ..regular_files import check_is_file
from .basis import Basis, BasisError, DenseBasis, check_vectors, in_a_sentence
from .bounds import best_bound
from .commands import COMMAND, make_command
from .measure import coherence_at_least

FORMAT_VERSION = '1'
TENSOR_NAME = 'basis'
LONGEST_METHOD = 100
# multiplications to look whether a file tells the truth: less than a second
MEASURED_WORK = 1.5e10
# between what a theorem says and what float32 has
COHERENCE_TOLERANCE = 1e-5


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
    _check_method(basis.method, basis.source)
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


def _check_method(method: str, source: str) -> None:
    if not method.isprintable() or len(method) > LONGEST_METHOD:
        raise BasisError(
            f'{source} says that it was made by {method[:LONGEST_METHOD]!r}, but a method is a line of at most '
            f'{LONGEST_METHOD} letters; name it so'
        )


def load_basis(path: Union[str, Path]) -> DenseBasis:
    """Read and check a basis file; every defect has its own sentence."""
    source = f'basis {str(path)!r}'
    check_is_file(path, source, f'make it with: {make_command(*(size_in_name(path) or ("N", "D")), path)}')
    try:
        with safe_open(str(path), framework='pt') as file:
            metadata = file.metadata() or {}
            names = sorted(file.keys())
            vectors = file.get_tensor(TENSOR_NAME) if TENSOR_NAME in names else None
    except Exception as error:  # a damaged file, or a type of numbers that this torch does not know, may end in any
        raise BasisError(
            f'{source} is not a readable .safetensors file ({in_a_sentence(error)}); make it anew'
        ) from error
    if vectors is None:
        raise BasisError(
            f'{source} holds the tensors {str(names)[:200]}, but a basis file holds one called {TENSOR_NAME!r}; '
            f'write it with: {COMMAND}'
        )
    check_name(path, vectors.shape)
    check_vectors(vectors, source)
    method = metadata.get('method', 'given')
    _check_method(method, source)
    seed, text = metadata.get('seed', ''), metadata.get('coherence', '')
    if not re.fullmatch(r'(-?[0-9]{1,19})?', seed):
        raise BasisError(f'{source} says that its seed is {seed[:99]!r}, which is no seed; make it anew')
    known = _verified_coherence(vectors, text, source) if text else None
    return DenseBasis(vectors, method, int(seed) if seed else None, source, known)


def _verified_coherence(vectors: Tensor, text: str, source: str) -> float:
    """The largest |cosine| that a file tells, where it is possible and the vectors do not say otherwise.

    All pairs of up to about 2,500 x 2,500 vectors are measured; of more, some rows with all.
    """
    try:
        told = float(text)
    except ValueError:
        told = math.nan
    bound = best_bound(*vectors.shape)
    if not bound - COHERENCE_TOLERANCE <= told <= 1:
        raise BasisError(
            f'{source} says that its largest |cosine| is {text[:30]!r}, but that of {vectors.shape[0]} vectors in '
            f'R^{vectors.shape[1]} is a number from {bound:.6f} to 1; make it anew'
        )
    seen = coherence_at_least(vectors.float(), MEASURED_WORK)
    if seen > told + COHERENCE_TOLERANCE:
        raise BasisError(
            f'{source} says that its largest |cosine| is {told:.6f}, but two of its vectors have {seen:.6f}; '
            'make it anew'
        )
    return told
