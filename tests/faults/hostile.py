"""Files that are made to do harm: to run code, to take memory or time, to crash the interpreter."""

import io
import pickle
import struct
import zipfile
from functools import lru_cache
from typing import Dict, List

import numpy as np
import torch

MAGIC, PROTOCOL, SYSTEM = (pickle.dumps(x, 2) for x in (0x1950A86A20F9469CFC6C, 1001, dict(little_endian=True)))


def text(value: str) -> bytes:
    return b'X' + struct.pack('<I', len(value)) + value.encode()


def whole_number(value: int) -> bytes:
    return pickle.dumps(value, 2)[2:-1]


def name(module: str, attribute: str) -> bytes:
    return f'c{module}\n{attribute}\n'.encode()


def storage(key: str = '0', kind: str = 'FloatStorage', numel: int = 1) -> bytes:
    return b'(' + text('storage') + name('torch', kind) + text(key) + text('cpu') + whole_number(numel) + b'tQ'


def tensor(size: List[int], stride: List[int], numbers: bytes = b'') -> bytes:
    """Instructions that leave a tensor on the stack."""
    shape, steps = (b'(' + b''.join(map(whole_number, values)) + b't' for values in (size, stride))
    arguments = b'(' + (numbers or storage()) + whole_number(0) + shape + steps + b'\x89}t'
    return name('torch._utils', '_rebuild_tensor_v2') + arguments + b'R'


def program(*instructions: bytes) -> bytes:
    return b'\x80\x02' + b''.join(instructions) + b'.'


def in_zip(pickled: bytes, numbers: bytes = bytes(4), compression: int = zipfile.ZIP_STORED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, 'w', compression) as archive:
        archive.writestr('archive/data.pkl', pickled)
        archive.writestr('archive/data/0', numbers)
    return out.getvalue()


def in_legacy(pickled: bytes, numel: int = 1, numbers: bytes = bytes(4)) -> bytes:
    return MAGIC + PROTOCOL + SYSTEM + pickled + pickle.dumps(['0'], 2) + struct.pack('<q', numel) + numbers


def npy(header: str, numbers: bytes = b'') -> bytes:
    padded = header.ljust(-(-(len(header) + 11) // 64) * 64 - 11) + '\n'
    return b'\x93NUMPY\x01\x00' + struct.pack('<H', len(padded)) + padded.encode() + numbers


def doubled(build: bytes, pair: bytes, times: int = 60) -> bytes:
    """A container of two references to a container of two references to ...: 2 ** times when walked naively."""
    steps = [build + b'q\x00']
    for _ in range(times):
        steps.append(pair + b'q\x00')
    return b''.join(steps)


def lying_zip() -> bytes:
    """An entry that claims 1 TB."""
    raw = bytearray(in_zip(program(tensor([2, 2], [2, 1])), bytes(16)))
    for signature, place in ((b'PK\x03\x04', 18), (b'PK\x01\x02', 20)):
        where = raw.index(b'archive/data/0', raw.index(signature)) - (30 if place == 18 else 46)
        raw[where + place : where + place + 8] = struct.pack('<II', 0xFFFFFFF0, 0xFFFFFFF0)
    return bytes(raw)


def many_calls(function: bytes, arguments: bytes, times: int = 40_000) -> bytes:
    """The same large arguments, by reference, for each of many calls."""
    return program(function, b'q\x01', arguments, b'q\x02', b'h\x01h\x02R0' * times, b'N')


def evil(module: str, attribute: str, *arguments: str) -> bytes:
    return program(name(module, attribute), b'(', *map(text, arguments), b'tR')


LARGE = b'B' + struct.pack('<I', 1 << 20) + bytes(1 << 20)
LARGE_TEXT = b'X' + struct.pack('<I', 1 << 20) + bytes(1 << 20)
EXPANDED = program(tensor([25_000, 25_000], [0, 0]))


def nested_file(depth: int = 300) -> bytes:
    """A torch file within a torch file within ..."""
    raw = b'x'
    for _ in range(depth):
        raw = program(name('torch.storage', '_load_from_bytes'), b'(B', struct.pack('<I', len(raw)), raw, b'tR')
    inner = b'(B' + struct.pack('<I', len(raw)) + raw + b't'
    return program(tensor([1, 1], [1, 1], name('torch.storage', '_load_from_bytes') + inner + b'R'))


def complex_npy() -> bytes:
    out = io.BytesIO()
    np.save(out, np.eye(3) * 1j + np.eye(3))
    return out.getvalue()


def complex_torch() -> bytes:
    out = io.BytesIO()
    torch.save(torch.eye(3) * 1j, out)
    return out.getvalue()


@lru_cache(None)
def hostile_files() -> Dict[str, bytes]:
    """All of them by name; every one must be refused, at once."""
    function = name('torch._utils', '_rebuild_tensor_v2')
    bomb = in_zip(program(tensor([2048, 2048], [2048, 1])), bytes(1 << 24), zipfile.ZIP_DEFLATED)  # 16 MB in 16 kB
    return {
        'expanded zip': in_zip(EXPANDED),
        'expanded legacy': in_legacy(EXPANDED),
        'overlapping rows': in_zip(program(tensor([100_000, 100_000], [1, 1])), bytes(800_000)),
        'no storage': EXPANDED,
        'memo of 2 ** 29': program(b'Nr\xff\xff\xff\x1f'),
        'memo of 2 ** 31': program(b'Nr\xff\xff\xff\x7f'),
        'shared lists': program(doubled(b']', b'](h\x00h\x00e')),
        'shared tuples': program(doubled(b')', b'h\x00h\x00\x86')),
        'shared tuples as a key': program(b'}', doubled(b')', b'h\x00h\x00\x86'), b'Ns'),
        'shared tuples as a name': program(doubled(b')', b'h\x00h\x00\x86'), b'h\x00\x93'),
        'shared tuples as a reference': program(doubled(b')', b'h\x00h\x00\x86'), b'Q'),
        'shared lists called': program(doubled(b']', b'](h\x00h\x00e'), b')R'),
        'deep tuples': program(b')', b'\x85' * 150_000),
        'deep lists': program(b']' * 90_000, b'a' * 89_999),
        'deep dicts': program(b'}N' * 60_000, b'N', b's' * 60_000),
        'marks': program(b'(' * 150_000),
        'too many instructions': program(b'N0' * 1_000_000),
        'a list that holds itself': program(b']q\x00h\x00a'),
        'state of a function': program(function, b'}', text('__doc__'), b'Nsb'),
        'state of a type': program(name('torch', 'FloatStorage'), b'}', text('dtype'), b'Nsb'),
        'slots of a function': program(function, b'N}', text('__code__'), b'Ns\x86b'),
        'large text': b'\x80\x04\x8d' + struct.pack('<Q', 1 << 40) + b'x.',
        'large bytes': b'\x80\x04\x8e' + struct.pack('<Q', 1 << 62) + b'x.',
        'long number': b'\x80\x02\x8b' + struct.pack('<i', 1 << 20) + bytes([1]) * (1 << 20) + b'.',
        'long digits': b'I' + b'9' * 1_000_000 + b'\n.',
        'huge shape': in_zip(program(tensor([2**62, 2**62], [2**62, 2**62]))),
        'longer shape': in_zip(program(tensor([10**4000, 2], [2, 1]))),
        'negative stride': in_zip(program(tensor([1, 1], [-1, -1]))),
        'legacy of 2 ** 60 numbers': in_legacy(program(tensor([2, 2], [2, 1])), 1 << 60),
        'legacy of -1 numbers': in_legacy(program(tensor([2, 2], [2, 1])), -1),
        'compressed numbers': bomb,
        'compressed pickle': in_zip(program(b'N0' * (1 << 22)), compression=zipfile.ZIP_DEFLATED),
        'an entry that lies': lying_zip(),
        'files in files': nested_file(),
        'one file, many storages': many_calls(name('torch.storage', '_load_from_bytes'), LARGE + b'\x85'),
        'one text, many bytes': many_calls(name('_codecs', 'encode'), LARGE_TEXT + text('latin1') + b'\x86'),
        'many arguments': many_calls(name('collections', 'OrderedDict'), b'(' + b'N' * 30_000 + b't'),
        'many dimensions': many_calls(function, b'(' + storage() + b'K\x00(' + b'K\x01' * 30_000 + b't2t'),
        'npy of 8 TB': npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000, 1000000), }", bytes(64)),
        'npy of 20 GB a number': npy("{'descr': '|V2000000000', 'fortran_order': False, 'shape': (10, 1), }"),
        'npy of nothing': npy("{'descr': '|V0', 'fortran_order': False, 'shape': (1000000000, 1000000000), }"),
        'npy of text': npy("{'descr': '<U1', 'fortran_order': False, 'shape': (2, 2), }", bytes(16)),
        'npy that computes': npy("{'descr': '<f8', 'fortran_order': False, 'shape': (9**9**9, 1), }"),
        'npy of objects': npy("{'descr': '|O', 'fortran_order': False, 'shape': (1, 1), }", evil('os', 'abort')),
        'npy of dates': npy("{'descr': '<M8[s]', 'fortran_order': False, 'shape': (1, 1), }", bytes(8)),
        'complex npy': complex_npy(),
        'complex torch file': complex_torch(),
        'big-endian torch file': big_endian(),
        'mkdir': evil('os', 'mkdir', 'executed'),
        'system': in_zip(evil('posix', 'system', 'mkdir executed')),
        'eval': in_legacy(evil('builtins', 'eval', "__import__('os').mkdir('executed')")),
        'getattr': evil('builtins', 'getattr', 'a', 'b'),
        'torch.load': evil('torch', 'load', 'file'),
        'a class': b'(iposixpath\njoin\n.',
        'an object': program(b'(', name('os', 'mkdir'), text('executed'), b'o'),
        'a new object': program(name('os', 'mkdir'), text('executed'), b'\x85\x81'),
        'an extension': b'\x80\x02\x82\x01.',
        'a persistent name': b'Pexecuted\n.',
        'out of band': b'\x80\x05\x97.',
    }


def big_endian() -> bytes:
    raw = io.BytesIO(in_zip(program(tensor([1, 1], [1, 1])), b'\x3f\x80\x00\x00'))
    with zipfile.ZipFile(raw, 'a') as archive:
        archive.writestr('archive/byteorder', 'big')
    return raw.getvalue()
