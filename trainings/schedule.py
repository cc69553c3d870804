"""One scheduler: trainings as subprocesses, some at a time, one thread each, with a log and a lock in their folder."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from rich.console import Console

from ebv_mm.output import Progress

from .scalars import read_scalars

INTERRUPTED = 130  # the exit code of Ctrl-C
POLL_SECONDS = 0.5
PATIENCE_SECONDS = 10
LAST_LINES = 15
# One thread for each training: small models gain little from a second one, and every machine computes the same.
ENVIRONMENT = {
    'OMP_NUM_THREADS': '1',
    'MKL_NUM_THREADS': '1',
    # Or glibc returns every large activation to the system and fetches it again.
    'MALLOC_ARENA_MAX': '1',
    'MALLOC_MMAP_THRESHOLD_': str(2**33),
    'MALLOC_TRIM_THRESHOLD_': str(2**34),
}


class Training:
    """A training in a folder of its own. Its log is locked while it lasts, so that nobody trains into the same folder.

    Args:
        name: What messages call it.
        folder: Where its log and what the host writes go.
        total: Its last epoch, or its last iteration if the host does not count epochs.

    Attributes:
        environment: Variables that it is started with.
    """

    environment = ENVIRONMENT

    def __init__(self, name: str, folder: Path, total: int) -> None:
        self.name, self.folder, self.total = name, folder, total
        self.log = folder / 'train.log'
        self.process: subprocess.Popen | None = None

    def command(self) -> list[str]:
        """What Python is to run, asked for at the start."""
        raise NotImplementedError

    def finished(self) -> bool:
        """Whether all is there that a training leaves."""
        raise NotImplementedError

    def start(self) -> None:
        """Start it, unless another process has the log."""
        self.started = time.monotonic()
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.log.open('a') as log, suppress(BlockingIOError):
            fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the subprocess inherits it
            self.process = subprocess.Popen(
                [sys.executable, *self.command()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self.environment},
            )

    def ended(self) -> bool:
        return self.process is None or self.process.poll() is not None

    def failure(self) -> str | None:
        """Why an ended training is not finished: a sentence and the end of its log."""
        if self.process is None:
            return f'{self.name} is being trained by another process, which has locked {self.log}; left to it'
        if self.process.returncode == 0 and self.finished():
            return None
        last = '\n'.join(self.log.read_text(errors='replace').splitlines()[-LAST_LINES:])
        return f'{self.name} failed (exit code {self.process.returncode}); the end of {self.log}:\n{last}'

    def records(self) -> list[dict]:
        """What the host has written down so far: losses, and metrics where it has validated."""
        return [record for part in read_scalars(self.folder) for record in part]

    def progress(self) -> tuple[int, str]:
        """The epoch or iteration that it is at, and its loss."""
        losses = [record for record in self.records() if 'loss' in record]
        if not losses:
            return 0, 'starting'
        return losses[-1].get('epoch', losses[-1]['step']), f'loss {losses[-1]["loss"]:.3f}'

    def stop(self) -> None:
        """End the process, by force if it does not end when it is asked to."""
        self.process.terminate()
        try:
            self.process.wait(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def train_all(trainings: Sequence[Training], jobs: int, console: Console, ended: Callable[[Training], None]) -> None:
    """Train, ``jobs`` at a time, and call ``ended`` with every training that ends, well or not.

    Ctrl-C, or an error that ``ended`` raises, stops the trainings that run.
    """
    waiting, running = list(trainings), []
    with Progress(console) as progress:
        try:
            while waiting or running:
                while waiting and len(running) < jobs:
                    running.append(waiting.pop(0))
                    running[-1].start()
                time.sleep(POLL_SECONDS)
                for training in list(running):
                    over = training.ended()
                    done, state = training.progress()
                    progress.show(training.name, done, training.total, 'ended' if over else state, over)
                    if over:
                        running.remove(training)
                        ended(training)
        finally:
            for training in running:
                if not training.ended():
                    training.stop()


@contextmanager
def interruptible() -> Iterator[None]:
    """Let a request to terminate end the block as Ctrl-C does."""
    previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
