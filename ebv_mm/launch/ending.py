"""How a tool ends where something is wrong: with one sentence, once, last on the screen."""

import os
import sys
import time
from contextlib import contextmanager
from typing import Iterator

from torch.distributed.elastic.multiprocessing.errors import get_error_handler

from ..compat import lacks_ops, why_no_ops
from .configs import ConfigError, described

# The other ranks let rank 0 speak; where it fails too, the launcher has ended them by then.
PATIENCE_SECONDS = 10


@contextmanager
def one_sentence(traceback: bool = False) -> Iterator[None]:
    """End the process with the message of an error in this block; ``traceback`` lets the error through.

    For the reading of configs and the building of models only: what happens in training keeps its traceback.
    """
    try:
        yield
    except Exception as error:
        if traceback:
            raise
        _end(sentence(error), error)


def sentence(error: Exception) -> str:
    """What to tell of an error: messages that bring their remedy as they are, others with their kind."""
    text = str(error)
    if isinstance(error, (ConfigError, OSError)) or (isinstance(error, (ValueError, TypeError)) and '; ' in text):
        return text
    if lacks_ops(error):
        return why_no_ops(error)
    return f'{described(error)} (--traceback shows where)'


def _end(text: str, error: Exception) -> None:
    rank = int(os.environ.get('RANK') or os.environ.get('SLURM_PROCID') or 0)
    get_error_handler().record_exception(error)  # torchrun shows it at the end of its report
    if rank != 0:
        time.sleep(PATIENCE_SECONDS)
        text = f'rank {rank}: {text}'
    print(f'error: {text}', file=sys.stderr)
    sys.exit(1)
