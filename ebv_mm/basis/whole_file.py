"""Files that are there whole or not at all."""

import os
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
