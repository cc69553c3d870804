"""Compile a C file of this folder once, and keep it in the user's cache."""

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import List

FLAGS = ['-O3', '-std=gnu11', '-fno-math-errno', '-ffp-contract=fast', '-shared', '-fPIC']
SWITCH = 'EBV_MM_KERNELS'


class NoKernelError(Exception):
    """Why there is no compiled kernel here, as a sentence."""


def load(source: Path) -> ctypes.CDLL:
    """The library of a C file, compiled for this processor unless the cache has it."""
    if os.environ.get(SWITCH, '') in ('0', 'off'):
        raise NoKernelError(f'{SWITCH}={os.environ[SWITCH]} switches compiled kernels off')
    compiler = os.environ.get('CC') or next(filter(shutil.which, ('cc', 'gcc', 'clang')), None)
    if compiler is None:
        raise NoKernelError('there is no C compiler; install one (Debian: apt install gcc)')
    text = source.read_bytes()
    key = hashlib.sha256(b'\n'.join([text, _version(compiler), _processor(), ' '.join(FLAGS).encode()])).hexdigest()
    try:
        return ctypes.CDLL(str(_cached(source, compiler.split(), f'{source.stem}-{key[:16]}.so')))
    except OSError as error:
        raise NoKernelError(f'the compiled {source.name} cannot be used ({error})') from error


def _cached(source: Path, compiler: List[str], name: str) -> Path:
    base = Path(os.environ.get('XDG_CACHE_HOME') or Path('~/.cache').expanduser())
    folder = base / 'ebv_mm' / 'kernels'
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / name).is_file():
            return folder / name
        handle, part = tempfile.mkstemp(dir=folder, suffix='.so')
    except OSError:  # a home that cannot be written to: this process compiles for itself
        folder = Path(tempfile.mkdtemp(prefix='ebv_mm-'))
        handle, part = tempfile.mkstemp(dir=folder, suffix='.so')
    os.close(handle)
    try:
        _compile(source, compiler, part)
        os.replace(part, folder / name)
    finally:
        Path(part).unlink(missing_ok=True)
    return folder / name


def _compile(source: Path, compiler: List[str], out: str) -> None:
    # some compilers know no -march=native
    for tuning in (['-march=native'], []):
        command = [*compiler, *FLAGS, *tuning, str(source), '-o', out]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NoKernelError(f'{compiler[0]} cannot be run ({error})') from error
        if done.returncode == 0:
            return
    raise NoKernelError(f'{" ".join(compiler)} cannot compile {source.name} ({done.stderr.strip()[-300:]})')


def _version(compiler: str) -> bytes:
    try:
        return subprocess.run([*compiler.split(), '--version'], capture_output=True, timeout=60).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoKernelError(f'{compiler} cannot be run ({error})') from error


def _processor() -> bytes:
    """What -march=native depends on: a home may be shared by machines of several kinds."""
    try:
        lines = Path('/proc/cpuinfo').read_text().splitlines()
        return '\n'.join(
            sorted({line for line in lines if line.startswith(('model name', 'flags', 'Features'))})
        ).encode()
    except OSError:
        return f'{platform.machine()} {platform.processor()}'.encode()
