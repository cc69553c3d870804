"""What set-up looks at before it downloads gigabytes: each check says in one sentence what is missing."""

import importlib.util
import os
import shutil
import sys
import sysconfig
from pathlib import Path

from environment import STACKS, SetupError, dotted

# Measured: 5.4 GB in the end, 8.3 GB at the peak, while pip still holds the downloads that it unpacks.
DISK_GB = 9
INSTEAD = 'or take a prebuilt wheel with: make setup MMCV_FIND_LINKS=<address or folder>'


def check_python(env, version=tuple(sys.version_info), executable=sys.executable):
    first, last = env.stack.pythons
    if first <= tuple(version[:2]) <= last:
        return
    fits = [name for name, stack in STACKS.items() if stack.pythons[0] <= tuple(version[:2]) <= stack.pythons[1]]
    raise SetupError(
        f'{executable} is Python {dotted(version[:3])}, but the {env.name} stack ({env.pin("torch")}) needs Python '
        f'{dotted(first)} to {dotted(last)}; name one with: make setup PYTHON=/path/to/python{dotted(last)}'
        + (f', or take the stack that fits with: make setup STACK={fits[0]}' if fits else '')
    )


def check_venv_module(find_spec=importlib.util.find_spec):
    # Debian ships python3 without ensurepip, and venv fails half-way without it.
    if not find_spec('venv') or not find_spec('ensurepip'):
        raise SetupError(
            f'{sys.executable} has no venv module, but set-up needs it; install it (Debian: apt install python3-venv)'
        )


def check_compiler(env, which=shutil.which, include=None):
    compiler = os.environ.get('CXX') or 'c++'
    header = Path(include or sysconfig.get_paths()['include']) / 'Python.h'
    why = f'but {env.pin(env.stack.mmcv)} has to be compiled'
    if not which(compiler.split()[0]):
        raise SetupError(
            f'there is no C++ compiler ({compiler}), {why}; '
            f'install one (Debian: apt install build-essential) {INSTEAD}'
        )
    if not header.exists():
        raise SetupError(f'there is no {header}, {why}; install it (Debian: apt install python3-dev) {INSTEAD}')


def check_cuda_compiler(device, which=shutil.which):
    if device != 'cpu' and not os.environ.get('CUDA_HOME') and not which('nvcc'):
        raise SetupError(
            'torch sees a GPU but there is no CUDA compiler (nvcc), which mmcv needs for its GPU ops; install the '
            f'CUDA toolkit that torch was built with, {INSTEAD}, '
            'or compile for the CPU alone with: CUDA_VISIBLE_DEVICES= make setup'
        )


def check_disk(env, free=None, present=None):
    """Check the space; what an earlier run has installed counts."""
    free = shutil.disk_usage(str(env.root)).free if free is None else free
    present = folder_size(env.folder) if present is None else present
    needed = max(DISK_GB * 1e9 - present, 0.5e9)
    if free < needed:
        raise SetupError(
            f'{free / 1e9:.1f} GB are free under {env.root}, but set-up needs about {needed / 1e9:.1f} GB there; free '
            'some space, or move the clone to a larger disk (PIP_NO_CACHE_DIR=1 keeps pip from storing 3 GB more)'
        )


def folder_size(folder):
    walk = os.walk(str(folder))
    return sum(os.lstat(os.path.join(root, name)).st_size for root, _, names in walk for name in names)
