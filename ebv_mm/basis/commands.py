"""The command line that makes a basis, for error messages: it works wherever the package is installed."""

import shlex
from pathlib import Path
from typing import Union

COMMAND = 'python -m ebv_mm.basis'


def make_command(num_classes: object, dim: object, out: Union[str, Path] = 'FILE.safetensors') -> str:
    """What makes a basis of a size."""
    return f'{COMMAND} --num-classes {num_classes} --dim {dim} --out {shlex.quote(str(out))}'


def config_command(config: Union[str, Path]) -> str:
    """What makes every basis that a config names."""
    return f'{COMMAND} {shlex.quote(str(config))}'
