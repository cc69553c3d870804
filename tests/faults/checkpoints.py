"""Checkpoints whose basis, or recipe of one, is damaged or made to do harm, loaded into a layer."""

import json
import random
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from corpus import damaged
from torch import Tensor

from ebv_mm import EBVLinear
from ebv_mm.basis import BasisError, closed_form_basis

N, D = 20, 8
VALUES = [None, True, False, 0, -1, 1, 7, 10**8, 10**30, -(10**30), 2**63, 0.5, 1e400, float('nan'), '', 'x', 'kerdock',
          'gold', 'taylor', 'a' * 5000, [], {}, [[]] * 9, {'a': {}}]  # fmt: skip


@lru_cache(None)
def whole_recipe() -> str:
    return closed_form_basis(N, D, structured=True).recipe.to_text()


def new_layer(rng: random.Random) -> EBVLinear:
    """One with the structured basis, one with a dense one, one that waits for its checkpoint."""
    kinds = (
        dict(num_classes=N, dim=D, structured=True),
        dict(num_classes=N, dim=D),
        dict(num_classes=N, dim=D, seed=3, structured=True),
        f'{N}x{D}.safetensors',
        'somewhere.safetensors',
    )
    return EBVLinear(4, N, basis=rng.choice(kinds))


def load(layer: EBVLinear, **content: Any) -> None:
    """As a host does; what torch itself says of another size is a sentence as well."""
    state = {key: value for key, value in layer.state_dict().items() if not key.startswith('basis')}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            layer.load_state_dict({**state, **content})
    except RuntimeError as error:
        if 'Error(s) in loading state_dict' in str(error):
            raise BasisError('what torch said') from None
        raise
    try:
        logits = layer(torch.randn(3, 4))
    except FileNotFoundError as error:  # the checkpoint brought none
        raise BasisError(str(error)) from None
    assert logits.shape == (3, N) and bool(torch.isfinite(logits).all()) and logits.abs().max() < 1.01 / layer.tau


def damaged_recipe(index: int, rng: random.Random, folder: Path) -> None:
    if rng.random() < 0.5:
        raw = damaged(rng, whole_recipe().encode())
    else:
        content = json.loads(whole_recipe())
        for _ in range(rng.choice((1, 1, 2, 4))):
            key = rng.choice([*content, 'another'])
            if rng.random() < 0.2:
                content.pop(key, None)
            else:
                content[key] = rng.choice([*VALUES, rng.randrange(1, 300), 2 ** rng.randrange(70)])
        raw = json.dumps(content).encode() if rng.random() < 0.95 else b'[' * 100_000
    if rng.random() < 0.7:
        load(new_layer(rng), basis_recipe=torch.tensor(list(raw), dtype=torch.uint8))
    else:  # as 0.1.0 wrote it
        numbers = torch.tensor(list(raw), dtype=torch.float32)
        if len(numbers) and rng.random() < 0.3:
            numbers[rng.randrange(len(numbers))] = rng.choice((float('nan'), float('inf'), -1.0, 1e30, 300.0, 0.4))
        load(new_layer(rng), basis=numbers)


def damaged_checkpoint(index: int, rng: random.Random, folder: Path) -> None:
    key = 'basis_recipe' if rng.random() < 0.1 else 'basis'
    load(new_layer(rng), **{key: strange_tensor(rng)})


def strange_tensor(rng: random.Random) -> Any:
    vectors = closed_form_basis(N, D).vectors.clone()
    place = rng.randrange(N), rng.randrange(D)
    number = rng.choice((float('nan'), float('inf'), -float('inf'), 1e30, 3.4e38, 1e-3, 0.0, 5.0))

    def with_number() -> Tensor:
        vectors[place] = number
        return vectors

    def with_bytes() -> Tensor:
        raw = bytearray(vectors.numpy().tobytes())
        for _ in range(rng.choice((1, 4, 40))):
            raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
        return torch.frombuffer(raw, dtype=torch.float32).view(N, D)

    return rng.choice(
        (
            with_number,
            with_number,
            with_bytes,
            with_bytes,
            lambda: torch.full((N, D), number),
            lambda: vectors * rng.choice((0.0, 0.5, -1.0, 1e19, 1e-30)),
            lambda: vectors.to(rng.choice((torch.float16, torch.bfloat16, torch.float64))),
            lambda: vectors.to(rng.choice((torch.int64, torch.uint8, torch.bool, torch.complex64))),
            lambda: vectors.to(rng.choice((torch.float16, torch.bfloat16))) * rng.choice((0.9, 1.001, float('nan'))),
            lambda: vectors[: rng.randrange(N)],
            lambda: vectors[:, : rng.randrange(D)],
            lambda: vectors.T.contiguous(),
            lambda: vectors[None],
            lambda: vectors[0],
            lambda: vectors[0, 0],
            lambda: torch.empty(0),
            lambda: torch.zeros(1, 1).expand(N, 1 << 26),
            lambda: torch.zeros(1).expand(1 << 26),
            lambda: vectors.to_sparse(),
            lambda: vectors.to('meta'),
            lambda: None,
            lambda: 'text',
            lambda: vectors.tolist(),
            lambda: 3,
        )
    )()
