"""What is wrong with a path to read from or to write to, in a sentence."""

import os
import stat
from pathlib import Path
from typing import Union


def check_is_file(path: Union[str, Path], source: str, remedy: str) -> None:
    """Raise OSError, with the remedy, unless there is a regular file, or a link to one, to be read."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        if os.path.islink(path):
            raise FileNotFoundError(f'{source} is a link to a file that does not exist; {remedy}') from None
        raise FileNotFoundError(f'{source} does not exist; {remedy}') from None
    except NotADirectoryError:
        raise FileNotFoundError(f'{source} does not exist; {remedy}') from None
    except (OSError, ValueError) as error:  # a name too long, a link to itself, a NUL
        reason = getattr(error, 'strerror', None) or error
        raise OSError(f'{source} cannot be opened ({reason}); {remedy}') from error
    if not stat.S_ISREG(mode):
        raise OSError(f'{source} is {kind(mode)}, but a file is needed; {remedy}')


def check_may_become_file(path: Union[str, Path]) -> None:
    """Raise OSError where a file of that name would take the place of something that is no file."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:  # a name too long, a file where a folder should be, a link to itself, a NUL
        reason = getattr(error, 'strerror', None) or error
        raise OSError(f'{str(path)!r} cannot be written ({reason}); give another name') from error
    if not stat.S_ISREG(mode):
        raise OSError(f'{str(path)!r} is {kind(mode)}; give the name of a file')


def kind(mode: int) -> str:
    tests = {
        'a folder': stat.S_ISDIR,
        'a device': lambda mode: stat.S_ISCHR(mode) or stat.S_ISBLK(mode),
        'a pipe': stat.S_ISFIFO,
        'a socket': stat.S_ISSOCK,
    }
    return next((name for name, test in tests.items() if test(mode)), 'no regular file')
