"""Files that are there whole or not at all."""

import os
import shutil
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Iterator, Union

from ..regular_files import check_may_become_file

PART = '.part-'
# a file under a temporary name that nobody has written to for so long is what a killed process has left
LEFT_BEHIND_SECONDS = 3600


@contextmanager
def whole_file(path: Union[str, Path]) -> Iterator[Path]:
    """Give the name of a file to write, which takes the place of ``path`` at the end of the block.

    An error or an interruption leaves what was there before; what is no file, such as a device, is never replaced. The
    name has the suffix of ``path``, because some writers tell the format by that. What killed processes have left in
    the folder is removed.
    """
    path = Path(path)
    check_may_become_file(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_left_behind(path.parent)
    handle, part = tempfile.mkstemp(dir=path.parent, prefix=PART, suffix=path.suffix)
    os.close(handle)
    try:
        yield Path(part)
        os.chmod(part, 0o666 & ~umask())  # mkstemp lets nobody else read it
        os.replace(part, path)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise


def remove_left_behind(folder: Path) -> None:
    """Remove the temporary files of processes that were killed while they wrote."""
    for part in folder.glob(f'{PART}*'):
        with suppress(OSError):  # another process was faster, or it is not ours to remove
            if part.is_file() and time.time() - part.stat().st_mtime > LEFT_BEHIND_SECONDS:
                part.unlink()


def umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def check_writable(path: Union[str, Path], size: int = 0) -> None:
    """Raise OSError, with the remedy, unless a file of so many bytes can be written: better told before the work."""
    path = Path(path)
    check_may_become_file(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise OSError(f'{str(path)!r} cannot be written ({error}); choose another place for it') from error
    free = shutil.disk_usage(path.parent).free
    if free < size:
        raise OSError(
            f'{str(path)!r} needs {size} bytes, but the disk has {free} left; make room or choose another place'
        )
