"""Files that are there whole or not at all."""

import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator, Union


@contextmanager
def whole_file(path: Union[str, Path]) -> Iterator[Path]:
    """Give the name of a file to write, which takes the place of ``path`` at the end of the block.

    An error or an interruption leaves what was there before. The name ends as ``path`` does, because some writers tell
    the format by that.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, part = tempfile.mkstemp(dir=path.parent, prefix='.part-', suffix=f'-{path.name}')
    os.close(handle)
    try:
        yield Path(part)
        os.chmod(part, 0o666 & ~umask())  # mkstemp lets nobody else read it
        os.replace(part, path)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise


def umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def check_writable(path: Union[str, Path], size: int = 0) -> None:
    """Raise OSError, with the remedy, unless a file of so many bytes can be written: better told before the work."""
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise OSError(f'{str(path)!r} cannot be written ({error}); choose another place for it') from error
    if path.is_dir():
        raise OSError(f'{str(path)!r} is a folder; give the name of a file')
    free = shutil.disk_usage(path.parent).free
    if free < size:
        raise OSError(
            f'{str(path)!r} needs {size} bytes, but the disk has {free} left; make room or choose another place'
        )
