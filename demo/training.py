"""Train models through tools/train.py, several at once, each a subprocess with its own log; show how far they are."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Tuple

from mmengine.config import Config
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ebv_mm.output import whole_file
from ebv_mm.trainings import read_scalars, stop

POLL_SECONDS = 0.5
# Where no terminal can redraw a line, print a new one this often.
PLAIN_SECONDS = 15
RESULT = 'result.json'
TRAIN = 'tools/train.py'


class Result(NamedTuple):
    """What a finished training leaves; ``stamp`` tells from what."""

    stamp: str
    metrics: Dict[str, float]
    seconds: float
    checkpoint: str


class DemoError(RuntimeError):
    """A step of the demo failed; the message ends with what it printed last."""


class Training:
    """One run of tools/train.py into a folder of its own.

    Args:
        config: The config file.
        folder: Where log, checkpoint and result go. What an unfinished run has left there is removed.
        stamp: A checksum of all that the model depends on: a result with the same stamp is reused.
    """

    def __init__(self, config: Path, folder: Path, stamp: str) -> None:
        self.config, self.folder, self.stamp = config, folder, stamp
        self.name = config.stem
        self.log = folder / 'train.log'
        self.total = Config.fromfile(config).train_cfg.max_iters
        self.process: Optional[subprocess.Popen] = None

    def finished(self) -> Optional[Result]:
        """The result of an earlier run from the same stamp."""
        with contextlib.suppress(OSError, ValueError, TypeError):
            result = Result(**json.loads((self.folder / RESULT).read_text()))
            if result.stamp == self.stamp and Path(result.checkpoint).is_file():
                return result
        return None

    def start(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        command = [sys.executable, TRAIN, str(self.config), '--work-dir', str(self.folder)]
        # One thread for each model: small models gain little from a second one, and every machine computes the same.
        environment = {**os.environ, 'OMP_NUM_THREADS': '1', 'MKL_NUM_THREADS': '1'}
        with self.log.open('w') as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=environment
            )
        self.started = time.monotonic()

    def poll(self) -> Optional[Result]:
        """The result once the training has ended, None before; raises if it has failed."""
        code = self.process.poll()
        if code is None:
            return None
        records = self.records()
        if code != 0 or not records or 'loss' in records[-1]:
            last = '\n'.join(self.log.read_text(errors='replace').splitlines()[-15:])
            raise DemoError(f'{self.name} failed (exit code {code}); the end of {self.log}:\n{last}')
        checkpoint = self.folder / (self.folder / 'last_checkpoint').read_text().strip()
        seconds = time.monotonic() - self.started
        result = Result(self.stamp, records[-1], seconds, str(checkpoint))
        with whole_file(self.folder / RESULT) as part:
            part.write_text(json.dumps(result._asdict(), indent=2))
        return result

    def records(self) -> List[dict]:
        """What the host has written down so far: losses by iteration and, at the very end, the metrics."""
        files = self.folder.glob('*/vis_data/scalars.json')
        return [record for file in files for record in read_scalars(file)]

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            stop(self.process)


def train_all(trainings: List[Training], jobs: int, console: Console) -> Dict[str, Result]:
    """Train what is not finished yet, ``jobs`` models at a time; returns the results by name."""
    results = {training.name: training.finished() for training in trainings}
    for name in (name for name, result in results.items() if result):
        console.print(f'{name}: already trained, reused (--fresh trains anew)')
    waiting = [training for training in trainings if results[training.name] is None]
    running: List[Training] = []
    with _Display(console) as display:
        try:
            while waiting or running:
                while waiting and len(running) < jobs:
                    running.append(waiting.pop(0))
                    running[-1].start()
                time.sleep(POLL_SECONDS)
                for training in list(running):
                    result = results[training.name] = training.poll()
                    display.update(training, result)
                    if result is not None:
                        running.remove(training)
        finally:
            for training in running:
                training.stop()
    return results


class _Display:
    """One live line for each model in a terminal; a line now and then where there is none."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.progress = Progress(
            TextColumn('{task.description:18}'),
            BarColumn(bar_width=12),
            MofNCompleteColumn(),
            TextColumn('{task.fields[state]:10}'),
            TimeElapsedColumn(),
            TextColumn('left'),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self.lines: Dict[str, int] = {}
        self.printed: Dict[str, float] = {}
        # The first iteration seen and when: a pace without the seconds that importing a host takes.
        self.first: Dict[str, Tuple[int, float]] = {}

    def __enter__(self) -> '_Display':
        self.progress.start()
        return self

    def __exit__(self, *error) -> None:
        self.progress.stop()

    def update(self, training: Training, result: Optional[Result]) -> None:
        losses = [record for record in training.records() if 'loss' in record]
        done = losses[-1]['step'] if losses else 0
        if result is not None:
            state = 'done'
        elif not losses:
            state = 'starting'
        elif done == training.total:
            state = 'testing'
        else:
            state = f'loss {losses[-1]["loss"]:.3f}'
        if self.console.is_terminal:
            if training.name not in self.lines:
                self.lines[training.name] = self.progress.add_task(training.name, total=training.total, state=state)
            self.progress.update(self.lines[training.name], completed=done, state=state)
        elif result is not None or time.monotonic() - self.printed.get(training.name, 0) > PLAIN_SECONDS:
            self.printed[training.name] = time.monotonic()
            elapsed = time.monotonic() - training.started
            self.console.print(
                f'{training.name}: {done}/{training.total}, {state}, {elapsed:.0f} s{self._left(training, done)}'
            )

    def _left(self, training: Training, done: int) -> str:
        if not 0 < done < training.total:
            return ''
        first, since = self.first.setdefault(training.name, (done, time.monotonic()))
        if done == first:
            return ''
        return f', {(time.monotonic() - since) / (done - first) * (training.total - done):.0f} s left'
