"""Bases that others saved: torch files, pickles of tensors, and .npy, read without trust.

Why not ``torch.load(weights_only=True)``? Up to torch 2.5.1 a file could get around that check and run code
(CVE-2025-32434), and we support torch from 2.1 on. Newer ones still make every tensor that a file describes, of
whatever size it claims to have. Here the file is read as data (``pickled_tensors.py``), and only the numbers of its
one matrix are ever loaded: memory is bounded by a multiple of the size of the file.
"""

import io
import mmap
import os
import zipfile
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, BinaryIO, Callable, Dict, Tuple, Union

import torch
from torch import Tensor

from ..regular_files import check_is_file
from .basis import BasisError, DenseBasis, in_a_sentence
from .pickled_tensors import StorageRef, read_pickle, tensors

LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
REMEDY = 'save the (N, d) matrix alone'


def import_basis(path: Union[str, Path]) -> DenseBasis:
    """Read a basis from a torch file (.pt, .pth, the authors' pickles), a pickle or a .npy file.

    Only numbers are taken: a pickle that asks for anything but tensors and plain containers is refused, never run.
    The rows are divided by their norms, as they may come un-normalised out of an optimiser.
    """
    source = f'basis {str(path)!r}'
    check_is_file(path, source, 'give the path of a .npy, .pt or pickle of tensors')
    try:
        matrix = _read(Path(path))
    except BasisError as error:
        raise BasisError(f'{source} {error}; {REMEDY}') from None
    except Exception as error:  # a damaged file may end in any
        raise BasisError(
            f'{source} cannot be read as a .npy, .pt or pickle of tensors ({in_a_sentence(error)}); {REMEDY}'
        ) from error
    matrix = matrix.to(torch.float64, copy=True, memory_format=torch.contiguous_format)
    norms = matrix.norm(dim=1, keepdim=True)
    if torch.isfinite(norms).all() and (norms > 0).all():
        matrix /= norms
    return DenseBasis(matrix, 'imported', None, source)


def _read(path: Path) -> Tensor:
    with open(path, 'rb') as file:
        start = file.read(6)
        if start == b'\x93NUMPY':
            return _read_npy(path)
        if start[:2] == b'PK':
            return _read_zip(file)
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as stream:
            return _the_matrix(*_read_stream(stream))


def _read_npy(path: Path) -> Tensor:
    import numpy

    # mapped, a header that claims more than the file holds is refused before anything is made of that size
    array = numpy.load(path, mmap_mode='r', allow_pickle=False)
    if array.dtype.kind not in 'biuf':
        raise BasisError(f'holds {str(array.dtype)[:50]}, but a basis is of real numbers')
    if array.ndim != 2:
        raise BasisError(f'holds an array of {array.ndim} dimensions, but a basis is a matrix')
    return torch.from_numpy(array.astype(numpy.float64))


def _the_matrix(value: Any, numbers: Callable[[StorageRef], Tensor]) -> Tensor:
    matrices = [tensor for tensor in tensors(value) if len(tensor.size) == 2]
    if len(matrices) != 1:
        raise BasisError(f'holds {len(matrices)} matrices, but a basis is one')
    return matrices[0].view(numbers(matrices[0].storage))


def _as_numbers(raw: bytes, dtype: torch.dtype) -> Tensor:
    return torch.frombuffer(bytearray(raw), dtype=dtype) if raw else torch.empty(0, dtype=dtype)


def _read_zip(file: BinaryIO) -> Tensor:
    """The format of torch >= 1.6: a zip archive with data.pkl and one entry a storage."""
    size = os.fstat(file.fileno()).st_size
    with zipfile.ZipFile(file) as archive:
        names = [name for name in archive.namelist() if name.endswith('/data.pkl') or name == 'data.pkl']
        if len(names) != 1:
            raise BasisError('is an archive, but not one that torch wrote')
        folder = names[0][: -len('data.pkl')]

        def entry(name: str) -> bytes:
            info = archive.getinfo(folder + name)
            # torch stores; what is compressed could be of any size
            if info.compress_type != zipfile.ZIP_STORED or info.header_offset + info.file_size > size:
                raise UnpicklingError(f'its entry {name[:50]!r} is compressed or larger than the file')
            return archive.read(info)

        if folder + 'byteorder' in archive.namelist() and entry('byteorder') != b'little':
            raise BasisError('was written by a big-endian machine, but only little-endian files can be read')
        value = read_pickle(io.BytesIO(entry('data.pkl')), {})
        return _the_matrix(value, lambda storage: _as_numbers(entry(f'data/{_key(storage)}'), storage.dtype))


def _read_stream(stream: Union[BinaryIO, mmap.mmap]) -> Tuple[Any, Callable[[StorageRef], Tensor]]:
    """The legacy format of torch, five pickles and the raw storages; or one plain pickle, of tensors in such files."""
    value = read_pickle(stream, {})
    if not isinstance(value, int) or value != LEGACY_MAGIC:
        return value, _numbers_in_file_of_its_own
    for _ in ('protocol version', 'system information'):
        read_pickle(stream, {})
    storages: Dict[str, StorageRef] = {}
    value = read_pickle(stream, storages)
    keys = read_pickle(stream, {})

    def numbers(wanted: StorageRef) -> Tensor:
        for key in keys if isinstance(keys, list) else ():
            storage = storages[key if isinstance(key, str) else '']
            length = int.from_bytes(stream.read(8), 'little') * torch.empty(0, dtype=storage.dtype).element_size()
            if storage is wanted:
                raw = stream.read(length)
                if len(raw) == length:
                    return _as_numbers(raw, storage.dtype)
                break
            stream.seek(length, os.SEEK_CUR)
        raise UnpicklingError('it ends before the numbers of its matrix')

    return value, numbers


def _numbers_in_file_of_its_own(storage: StorageRef) -> Tensor:
    file = storage.file.encode('latin1') if isinstance(storage.file, str) else storage.file
    if file is None:
        raise UnpicklingError('the numbers of its matrix are not in it')
    inner, numbers = _read_stream(io.BytesIO(file))
    if not isinstance(inner, StorageRef):
        raise UnpicklingError('a storage is expected')
    _key(inner)
    return numbers(inner)


def _key(storage: StorageRef) -> str:
    """The key of a storage in a torch file; a file within a file within a file is none that torch writes."""
    if storage.key is None:
        raise UnpicklingError('it nests files in files')
    return storage.key
