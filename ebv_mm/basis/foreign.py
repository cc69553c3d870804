"""Bases that others saved: pickles and torch files, read without executing anything in them, and .npy."""

import io
import pickle
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any, BinaryIO, Dict, List, Union

import torch
from torch import Tensor
from torch.nn import functional

from .basis import Basis, BasisError

LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
DTYPES = {
    'FloatStorage': torch.float32,
    'DoubleStorage': torch.float64,
    'HalfStorage': torch.float16,
    'BFloat16Storage': torch.bfloat16,
    'LongStorage': torch.int64,
    'IntStorage': torch.int32,
    'ShortStorage': torch.int16,
    'CharStorage': torch.int8,
    'ByteStorage': torch.uint8,
    'BoolStorage': torch.bool,
}


def import_basis(path: Union[str, Path], *, normalise: bool = True) -> Basis:
    """Read a basis from a torch file (.pt, .pth, the authors' pickles), a pickle or a .npy file.

    Only numbers are taken: a pickle that asks for anything but tensors and plain containers is refused, never run.

    Args:
        normalise: Divide the rows by their norms, as they may come un-normalised out of an optimiser.
    """
    path = Path(path)
    source = f'basis {str(path)!r}'
    if not path.is_file():
        raise FileNotFoundError(f'{source} does not exist; give the path of a .npy, .pt or pickle of tensors')
    try:
        tensors = _tensors(_read(path))
    except BasisError:
        raise
    except Exception as error:  # a damaged file may end in any
        raise BasisError(
            f'{source} cannot be read as a .npy, .pt or pickle of tensors ({type(error).__name__}: {error}); '
            'save the matrix alone'
        ) from error
    matrices = [tensor for tensor in tensors if tensor.ndim == 2]
    if len(matrices) != 1:
        raise BasisError(f'{source} holds {len(matrices)} matrices, but a basis is one; save the (N, d) matrix alone')
    matrix = matrices[0].to(torch.float64)
    if normalise and torch.isfinite(matrix).all() and (matrix.norm(dim=1) > 0).all():
        matrix = functional.normalize(matrix)
    return Basis(matrix, 'imported', None, source)


def _read(path: Path) -> Any:
    with open(path, 'rb') as file:
        start = file.read(6)
        file.seek(0)
        if start == b'\x93NUMPY':
            import numpy

            return torch.from_numpy(numpy.load(file, allow_pickle=False))
        if start[:2] == b'PK':
            return _read_zip(file)
        return _read_stream(file)


def _tensors(value: Any) -> List[Tensor]:
    """All tensors in a tree of containers."""
    if isinstance(value, Tensor):
        return [value.detach()]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in _tensors(item)]
    return []


class _Storage:
    """A storage of a torch file: what it holds and, when known, its numbers."""

    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype
        self.data: Tensor = torch.empty(0)

    def fill(self, raw: bytes) -> None:
        self.data = torch.frombuffer(bytearray(raw), dtype=self.dtype) if raw else torch.empty(0, dtype=self.dtype)


class _StorageType:
    """What the name of a storage class in a pickle becomes; calling it is refused."""

    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype


def _rebuild_tensor(storage: _Storage, offset: int, size: tuple, stride: tuple, *_) -> '_Lazy':
    return _Lazy(storage, offset, tuple(size), tuple(stride))


def _rebuild_parameter(data: '_Lazy', *_) -> '_Lazy':
    return data


class _Lazy:
    """A tensor whose storage may be read later, as in the legacy format."""

    def __init__(self, storage: _Storage, offset: int, size: tuple, stride: tuple) -> None:
        self.view = storage, offset, size, stride

    def __setstate__(self, state: object) -> None:
        """Attributes that were pickled with a tensor are of no interest."""

    def tensor(self) -> Tensor:
        storage, offset, size, stride = self.view
        numbers = (offset, *size, *stride)
        if len(size) != len(stride) or not all(isinstance(x, int) and x >= 0 for x in numbers):
            raise pickle.UnpicklingError('a tensor has an impossible shape')
        last = offset + sum((n - 1) * s for n, s in zip(size, stride)) if all(size) else -1
        if last >= len(storage.data):
            raise pickle.UnpicklingError('a tensor reaches beyond its storage')
        return storage.data.as_strided(size, stride, offset).clone()


def _encode(text: str, encoding: str) -> bytes:
    """How protocols below 3 write bytes."""
    if encoding != 'latin1':
        raise pickle.UnpicklingError(f'unknown encoding {encoding!r}')
    return text.encode('latin1')


_ALLOWED: Dict[tuple, Any] = {
    ('_codecs', 'encode'): _encode,
    ('collections', 'OrderedDict'): OrderedDict,
    ('torch._utils', '_rebuild_tensor'): _rebuild_tensor,
    ('torch._utils', '_rebuild_tensor_v2'): _rebuild_tensor,
    ('torch._utils', '_rebuild_parameter'): _rebuild_parameter,
}


class _TensorUnpickler(pickle.Unpickler):
    """Knows tensors, their storages and plain containers, and refuses every other name."""

    def __init__(self, file: BinaryIO, storages: Dict[str, _Storage]) -> None:
        super().__init__(file, encoding='latin1')
        self.storages = storages

    def find_class(self, module: str, name: str) -> Any:
        # a CUDA storage differs from a CPU one only in where it lived
        if module in ('torch', 'torch.cuda') and name in DTYPES:
            return _StorageType(DTYPES[name])
        if (module, name) in _ALLOWED:
            return _ALLOWED[module, name]
        if (module, name) == ('torch.storage', '_load_from_bytes'):
            return _load_from_bytes
        raise pickle.UnpicklingError(f'it asks for {module}.{name}, which is no tensor data')

    def persistent_load(self, pid: Any) -> _Storage:
        kind, storage_type, key = pid[:3]
        if kind != 'storage' or not isinstance(storage_type, _StorageType):
            raise pickle.UnpicklingError(f'unknown reference {kind!r}')
        key = str(key)
        if key not in self.storages:
            self.storages[key] = _Storage(storage_type.dtype)
        if len(pid) > 5 and pid[5] is not None:
            raise pickle.UnpicklingError('it holds views of storages in a format older than torch 0.4')
        return self.storages[key]


def _load_from_bytes(raw: bytes) -> _Storage:
    """A storage within a plain pickle of a tensor: a torch file of its own, as ``pickle.dump(tensor)`` writes it."""
    value = (
        _read_zip(io.BytesIO(raw), finish=False) if raw[:2] == b'PK' else _read_stream(io.BytesIO(raw), finish=False)
    )
    if not isinstance(value, _Storage):
        raise pickle.UnpicklingError('a storage is expected')
    return value


def _read_zip(file: BinaryIO, finish: bool = True) -> Any:
    """The format of torch >= 1.6: a zip archive with data.pkl and one entry a storage."""
    with zipfile.ZipFile(file) as archive:
        names = [name for name in archive.namelist() if name.endswith('/data.pkl') or name == 'data.pkl']
        if len(names) != 1:
            raise pickle.UnpicklingError('the archive holds no data.pkl')
        folder = names[0][: -len('data.pkl')]
        storages: Dict[str, _Storage] = {}
        value = _TensorUnpickler(io.BytesIO(archive.read(names[0])), storages).load()
        for key, storage in storages.items():
            storage.fill(archive.read(f'{folder}data/{key}'))
    return _finish(value) if finish else value


def _read_stream(file: BinaryIO, finish: bool = True) -> Any:
    """The legacy format of torch, five pickles and the raw storages; or one plain pickle."""
    storages: Dict[str, _Storage] = {}
    value = _TensorUnpickler(file, storages).load()
    if value == LEGACY_MAGIC:
        for _ in ('protocol version', 'system information'):
            _TensorUnpickler(file, storages).load()
        value = _TensorUnpickler(file, storages).load()
        for key in _TensorUnpickler(file, storages).load():
            storage = storages[str(key)]
            numel = int.from_bytes(file.read(8), 'little')
            storage.fill(file.read(numel * torch.empty(0, dtype=storage.dtype).element_size()))
    return _finish(value) if finish else value


def _finish(value: Any) -> Any:
    """Containers with their tensors made."""
    if isinstance(value, _Lazy):
        return value.tensor()
    if isinstance(value, dict):
        return {key: _finish(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finish(item) for item in value]
    return value
