"""Pickles of tensors, read as data.

A pickle is a program for a small machine, and Python's own machine runs whatever a file asks for. This one knows the
instructions that tensors in plain containers need, calls none but the functions below, and refuses all else. It makes
no tensor: what it returns says where the numbers of each are. So time and memory grow with the instructions that the
file holds, of which there may be ``MAX_INSTRUCTIONS``, and with nothing that an instruction claims.
"""

import pickletools
from dataclasses import dataclass
from pickle import UnpicklingError
from typing import Any, BinaryIO, Callable, Dict, List, Optional, Tuple, Union

import torch
from torch import Tensor

# about 6,000 tensors; half a second
MAX_INSTRUCTIONS = 200_000
# of a function; and dimensions of a tensor, as torch has it. Both are counted at each of many calls.
MAX_ARGUMENTS = 16
MAX_DIMENSIONS = 64
MISFIT = 'the instructions of its pickle do not fit together'
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
CONSTANTS = {'NONE': None, 'NEWTRUE': True, 'NEWFALSE': False, 'EMPTY_TUPLE': ()}
# instructions whose argument is the value
LITERALS = frozenset(
    'INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT STRING BINSTRING SHORT_BINSTRING UNICODE BINUNICODE '
    'SHORT_BINUNICODE BINUNICODE8 BINBYTES SHORT_BINBYTES BINBYTES8'.split()
)


@dataclass(frozen=True, eq=False)
class StorageRef:
    """Where numbers are: under a key of the torch file, or in a torch file of their own within a plain pickle."""

    dtype: Optional[torch.dtype] = None
    key: Optional[str] = None
    file: Union[None, bytes, str] = None  # a str holds bytes as latin1


@dataclass(frozen=True, eq=False)
class TensorRef:
    """A tensor as its file describes it."""

    storage: StorageRef
    offset: int
    size: Tuple[int, ...]
    stride: Tuple[int, ...]

    def view(self, numbers: Tensor) -> Tensor:
        """The tensor on the numbers of its storage; never larger than these, whatever its strides are."""
        if 0 in self.size:
            return numbers.new_empty(self.size)
        count, last = 1, self.offset
        for n, step in zip(self.size, self.stride):
            count, last = count * n, last + (n - 1) * step
        if max(count - 1, last) >= len(numbers):
            raise UnpicklingError('a tensor reaches beyond its storage')
        return numbers.as_strided(self.size, self.stride, self.offset)


class Mapping(list):
    """The values of a dict; nobody asks for the keys, which could be anything."""


@dataclass(frozen=True)
class _StorageType:
    dtype: torch.dtype


def read_pickle(stream: BinaryIO, storages: Dict[str, StorageRef]) -> Any:
    """The next pickle of a stream; the storages that it refers to by key are added to ``storages``."""
    machine = _Machine(storages)
    for number, (instruction, argument, _) in enumerate(pickletools.genops(stream)):
        if number == MAX_INSTRUCTIONS:
            raise UnpicklingError(f'its pickle has more than {MAX_INSTRUCTIONS} instructions')
        try:
            machine.step(instruction.name, argument)
        except (IndexError, KeyError) as error:  # an empty stack, an unknown memo
            raise UnpicklingError(MISFIT) from error
    return machine.stack[-1] if machine.stack else None


def tensors(value: Any) -> List[TensorRef]:
    """All tensors in nested containers, each once, however often and however deep it is in there."""
    found, seen, waiting = [], set(), [value]
    while waiting:
        value = waiting.pop()
        if id(value) not in seen:
            seen.add(id(value))
            if isinstance(value, TensorRef):
                found.append(value)
            elif isinstance(value, (list, tuple)):
                waiting.extend(value)
    return found


class _Machine:
    """The stack machine of pickle, for data only."""

    def __init__(self, storages: Dict[str, StorageRef]) -> None:
        self.storages = storages
        self.stack: List[Any] = []
        self.marks: List[int] = []
        self.memo: Dict[int, Any] = {}

    def step(self, name: str, argument: Any) -> None:
        if name in LITERALS:
            self.stack.append(argument)
        elif name in CONSTANTS:
            self.stack.append(CONSTANTS[name])
        elif name in _INSTRUCTIONS:
            _INSTRUCTIONS[name](self, argument)
        else:
            raise UnpicklingError(f'it uses the instruction {name}, which no tensor data need')

    def since_mark(self) -> List[Any]:
        start = self.marks.pop()
        items = self.stack[start:]
        del self.stack[start:]
        return items

    def top(self, kind: type) -> Any:
        if not isinstance(self.stack[-1], kind):
            raise UnpicklingError(MISFIT)
        return self.stack[-1]

    def take(self, count: int) -> None:
        """Replace the last values by a tuple of them."""
        items = tuple(self.stack.pop() for _ in range(count))
        self.stack.append(items[::-1])

    def remember(self, index: int) -> None:
        self.memo[index] = self.stack[-1]

    def append(self, items: List[Any]) -> None:
        self.top(list).extend(items)

    def set_items(self, items: List[Any]) -> None:
        self.top(Mapping).extend(items[1::2])

    def find(self, module: Any, name: Any) -> None:
        if not (isinstance(module, str) and isinstance(name, str)):
            raise UnpicklingError(MISFIT)
        # a CUDA storage differs from a CPU one only in where it lived
        if module in ('torch', 'torch.cuda') and name in DTYPES:
            self.stack.append(_StorageType(DTYPES[name]))
        elif (module, name) in _FUNCTIONS:
            self.stack.append(_FUNCTIONS[module, name])
        else:
            raise UnpicklingError(f'it asks for {f"{module}.{name}"[:100]!r}, which is no tensor data')

    def find_on_stack(self) -> None:
        name, module = self.stack.pop(), self.stack.pop()
        self.find(module, name)

    def call(self) -> None:
        arguments, function = self.stack.pop(), self.stack.pop()
        if function not in _FUNCTIONS.values() or not isinstance(arguments, tuple) or len(arguments) > MAX_ARGUMENTS:
            raise UnpicklingError(MISFIT)
        self.stack.append(function(*arguments))

    def set_state(self) -> None:
        """Attributes that were pickled with a tensor or a state dict are of no interest; nothing else has any."""
        self.stack.pop()
        self.top((TensorRef, Mapping))

    def refer(self) -> None:
        """A storage, by the tuple that torch writes: ('storage', type, key, location, size, view)."""
        reference = self.stack.pop()
        if not (
            isinstance(reference, tuple)
            and len(reference) in (5, 6)
            and reference[0] == 'storage'
            and isinstance(reference[1], _StorageType)
            and (isinstance(reference[2], str) or _is_count(reference[2]))
        ):
            raise UnpicklingError('it refers to what is no storage')
        if len(reference) == 6 and reference[5] is not None:
            raise UnpicklingError('it holds views of storages in a format older than torch 0.4')
        key = str(reference[2])
        storage = self.storages.setdefault(key, StorageRef(reference[1].dtype, key))
        if storage.dtype != reference[1].dtype:
            raise UnpicklingError('it holds a storage of two types')
        self.stack.append(storage)


_INSTRUCTIONS: Dict[str, Callable[[_Machine, Any], None]] = {
    'PROTO': lambda machine, _: None,
    'FRAME': lambda machine, _: None,
    'STOP': lambda machine, _: None,
    'MARK': lambda machine, _: machine.marks.append(len(machine.stack)),
    'POP': lambda machine, _: machine.stack.pop(),
    'POP_MARK': lambda machine, _: machine.since_mark(),
    'DUP': lambda machine, _: machine.stack.append(machine.stack[-1]),
    **dict.fromkeys(('PUT', 'BINPUT', 'LONG_BINPUT'), _Machine.remember),
    'MEMOIZE': lambda machine, _: machine.remember(len(machine.memo)),
    **dict.fromkeys(('GET', 'BINGET', 'LONG_BINGET'), lambda machine, index: machine.stack.append(machine.memo[index])),
    'EMPTY_LIST': lambda machine, _: machine.stack.append([]),
    'EMPTY_DICT': lambda machine, _: machine.stack.append(Mapping()),
    'LIST': lambda machine, _: machine.stack.append(machine.since_mark()),
    'DICT': lambda machine, _: machine.stack.append(Mapping(machine.since_mark()[1::2])),
    'TUPLE': lambda machine, _: machine.stack.append(tuple(machine.since_mark())),
    'TUPLE1': lambda machine, _: machine.take(1),
    'TUPLE2': lambda machine, _: machine.take(2),
    'TUPLE3': lambda machine, _: machine.take(3),
    'APPEND': lambda machine, _: machine.append([machine.stack.pop()]),
    'APPENDS': lambda machine, _: machine.append(machine.since_mark()),
    'SETITEM': lambda machine, _: machine.set_items([machine.stack.pop(), machine.stack.pop()][::-1]),
    'SETITEMS': lambda machine, _: machine.set_items(machine.since_mark()),
    'GLOBAL': lambda machine, both: machine.find(*both.split(' ', 1)),
    'STACK_GLOBAL': lambda machine, _: machine.find_on_stack(),
    'REDUCE': lambda machine, _: machine.call(),
    'BUILD': lambda machine, _: machine.set_state(),
    'BINPERSID': lambda machine, _: machine.refer(),
}


def _ordered_dict(*items: Any) -> Mapping:
    """As Python 3 writes it, empty; or as Python 2 does, with a list of [key, value]."""
    return Mapping(items)


def _bytes_of(text: Any, encoding: Any) -> str:
    """How protocols below 3 write bytes; they stay a str until they are needed."""
    if not isinstance(text, str) or encoding != 'latin1':
        raise UnpicklingError('it holds text in an encoding other than latin1')
    return text


def _storage_in(file: Any) -> StorageRef:
    """A storage within a plain pickle of a tensor: a torch file of its own, as ``pickle.dump(tensor)`` writes it."""
    if not isinstance(file, (bytes, str)):
        raise UnpicklingError('a storage is expected')
    return StorageRef(file=file)


def _tensor(storage: Any, offset: Any, size: Any, stride: Any, *more: Any) -> TensorRef:
    """A tensor; ``more`` is whether it needs a gradient, its hooks, and flags such as a lazy minus sign."""
    if not (isinstance(storage, StorageRef) and isinstance(size, (tuple, list)) and isinstance(stride, (tuple, list))):
        raise UnpicklingError('a tensor has no storage or no shape')
    if not len(size) == len(stride) <= MAX_DIMENSIONS or not all(map(_is_count, (offset, *size, *stride))):
        raise UnpicklingError('a tensor has an impossible shape')
    if len(more) > 2 and more[2]:
        raise UnpicklingError('a tensor has flags; save a plain copy of it')
    return TensorRef(storage, offset, tuple(size), tuple(stride))


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and 0 <= value < 2**63


def _parameter(data: Any, *_: Any) -> TensorRef:
    if not isinstance(data, TensorRef):
        raise UnpicklingError('a parameter has no tensor')
    return data


_FUNCTIONS: Dict[Tuple[str, str], Callable] = {
    ('_codecs', 'encode'): _bytes_of,
    ('collections', 'OrderedDict'): _ordered_dict,
    ('torch.storage', '_load_from_bytes'): _storage_in,
    ('torch._utils', '_rebuild_tensor'): _tensor,
    ('torch._utils', '_rebuild_tensor_v2'): _tensor,
    ('torch._utils', '_rebuild_parameter'): _parameter,
}
