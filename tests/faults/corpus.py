"""Whole basis files of every kind, and what can happen to them."""

import io
import pickle
import pickletools
import random
import zipfile
from functools import lru_cache
from typing import Dict, List

import hostile
import numpy as np
import torch
from safetensors.torch import save

from ebv_mm.basis import make_basis


@lru_cache(None)
def whole_files() -> Dict[str, bytes]:
    """A 14 x 7 basis as each of the formats that can be read; those called safetensors are ours."""
    basis = make_basis(14, 7)
    vectors = basis.vectors

    def torch_file(value, **kwargs) -> bytes:
        out = io.BytesIO()
        torch.save(value, out, **kwargs)
        return out.getvalue()

    array = io.BytesIO()
    np.save(array, vectors.numpy())
    metadata = dict(
        version='1', num_classes='14', dim='7', method=basis.method, seed='0', coherence=repr(basis.coherence)
    )
    old = dict(_use_new_zipfile_serialization=False)
    return {
        'safetensors': save({'basis': vectors}, metadata),
        'zip': torch_file(vectors),
        'zip of a state dict': torch_file({'fc.weight': torch.nn.Parameter(vectors), 'fc.bias': vectors[0].clone()}),
        'legacy': torch_file(vectors, **old),
        'legacy state dict': torch_file({'fc.bias': vectors[0].clone(), 'fc.weight': vectors}, **old),
        'pickle 2': pickle.dumps(vectors, 2),
        'pickle 5': pickle.dumps([vectors], 5),
        'npy': array.getvalue(),
    }


NUMBERS = [bytes([0]), bytes([255]), bytes([127]), bytes(8), b'\xff' * 8, b'\xff\xff\xff\x7f', b'\xff' * 7 + b'\x7f']


def damaged(rng: random.Random, whole: bytes) -> bytes:
    """One to four accidents: bytes flipped, lost, doubled, moved, overwritten with telling numbers, or an early end."""
    raw = bytearray(whole)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        # headers are where the harm is
        place = rng.randrange(min(len(raw), 700) if rng.random() < 0.7 else len(raw)) if raw else 0
        stop = place + rng.choice((1, 1, 2, 8, 64))
        accident = rng.randrange(6)
        if accident == 0:
            raw[place:stop] = bytes(byte ^ (1 << rng.randrange(8)) for byte in raw[place:stop])
        elif accident == 1:
            del raw[place:stop]
        elif accident == 2:
            raw[place:place] = raw[place:stop]
        elif accident == 3:
            raw[place:stop] = rng.randbytes(stop - place)
        elif accident == 4:
            number = rng.choice(NUMBERS)
            raw[place : place + len(number)] = number
        else:
            del raw[place:]
    return bytes(raw)


@lru_cache(None)
def instructions() -> Dict[str, List[bytes]]:
    """The pickles within the whole files, cut into their instructions."""
    sources = {kind: whole_files()[kind] for kind in ('pickle 2', 'pickle 5')}
    for kind in ('zip', 'zip of a state dict'):
        with zipfile.ZipFile(io.BytesIO(whole_files()[kind])) as archive:
            sources[kind] = archive.read(next(name for name in archive.namelist() if name.endswith('data.pkl')))
    pieces = {}
    for kind, raw in sources.items():
        places = [place for _, _, place in pickletools.genops(raw)] + [len(raw)]
        pieces[kind] = [raw[start:stop] for start, stop in zip(places, places[1:])]
    return pieces


HARM = [
    *(opcode.code.encode('latin1') for opcode in pickletools.opcodes if opcode.arg is None),
    *(
        hostile.name(*names)
        for names in (('os', 'mkdir'), ('posix', 'system'), ('builtins', 'eval'), ('torch', 'load'))
    ),
    *(hostile.name('torch._utils', name) for name in ('_rebuild_tensor_v2', '_rebuild_parameter')),
    *(hostile.name(*names) for names in (('torch.storage', '_load_from_bytes'), ('collections', 'OrderedDict'))),
    *(hostile.whole_number(value) for value in (0, 1, -1, 2**31, 2**62, 2**64, 10**30)),
    hostile.text('executed'),
    hostile.text('storage'),
    hostile.text('0'),
    b'r\xff\xff\xff\x7f',
    b'j\xff\xff\xff\x7f',
    b'q\x00',
    b'h\x00',
    b'\x94' * 10,
    hostile.storage(),
    hostile.tensor([14, 7], [0, 0]),
    hostile.tensor([1 << 16, 1 << 16], [0, 0]),
]


def hostile_program(rng: random.Random) -> bytes:
    """A torch file or pickle whose instructions were moved, lost, doubled and mixed with harmful ones."""
    kind = rng.choice(list(instructions()))
    pieces = list(instructions()[kind])
    if rng.random() < 0.2:  # a program of harm alone
        pieces = [b'\x80\x02', *rng.choices(HARM, k=rng.randrange(1, 60)), b'.']
    for _ in range(rng.randrange(1, 12)):
        place, other = rng.randrange(len(pieces)), rng.randrange(len(pieces))
        accident = rng.randrange(5)
        if accident == 0:
            pieces[place], pieces[other] = pieces[other], pieces[place]
        elif accident == 1:
            pieces[place] = b''
        elif accident == 2:
            pieces[place:place] = pieces[other : other + rng.choice((1, 1, 5))]
        else:
            pieces.insert(place, rng.choice(HARM))
    raw = b''.join(pieces)
    if kind.startswith('zip'):
        return hostile.in_zip(raw, bytes(14 * 7 * 4))
    return hostile.in_legacy(raw) if rng.random() < 0.3 else raw
