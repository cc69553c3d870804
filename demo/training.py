"""The trainings of the demo: which are reused, and what they leave."""

import contextlib
import json
import shutil
import time
from pathlib import Path
from typing import NamedTuple

from mmengine.config import Config
from rich.console import Console

from ebv_mm.output import whole_file
from trainings import Training, train_all

RESULT = 'result.json'
TRAIN = 'tools/train.py'


class Result(NamedTuple):
    """What a finished training leaves; ``stamp`` tells from what."""

    stamp: str
    metrics: dict[str, float]
    seconds: float
    checkpoint: str


class DemoError(RuntimeError):
    """A step of the demo failed; the message ends with what it printed last."""


class DemoTraining(Training):
    """One run of tools/train.py into a folder of its own, which begins anew unless it is finished.

    Args:
        config: The config file.
        seed: Of weights and batches.
        work_dir: Where its folder is.
        stamp: A checksum of all that the model depends on but the seed: a result with the same stamp is reused.
    """

    def __init__(self, config: Path, seed: int, work_dir: Path, stamp: str) -> None:
        name = f'{config.stem}_s{seed}'
        super().__init__(name, work_dir / name, Config.fromfile(config).train_cfg.max_iters)
        self.config, self.seed, self.stamp = config, seed, stamp

    def command(self) -> list[str]:
        options = ['--work-dir', str(self.folder), '--cfg-options', f'randomness.seed={self.seed}']
        return [TRAIN, str(self.config), *options]

    def start(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        super().start()

    def finished(self) -> bool:
        """Whether the host has tested the model, which is the last thing that it does."""
        records = self.records()
        return bool(records) and 'loss' not in records[-1]

    def result(self) -> Result | None:
        """The result of this run, or of an earlier one from the same stamp."""
        with contextlib.suppress(OSError, ValueError, TypeError):
            result = Result(**json.loads((self.folder / RESULT).read_text()))
            if result.stamp == self.stamp and Path(result.checkpoint).is_file():
                return result
        return None

    def write_result(self) -> None:
        checkpoint = self.folder / (self.folder / 'last_checkpoint').read_text().strip()
        result = Result(self.stamp, self.records()[-1], time.monotonic() - self.started, str(checkpoint))
        with whole_file(self.folder / RESULT) as part:
            part.write_text(json.dumps(result._asdict(), indent=2))


def train_demo(trainings: list[DemoTraining], jobs: int, console: Console) -> dict[str, Result]:
    """Train what is not finished yet, ``jobs`` models at a time; returns the results by name."""
    waiting = [training for training in trainings if training.result() is None]
    for training in trainings:
        if training not in waiting:
            console.print(f'{training.name}: already trained, reused (--fresh trains anew)')
    train_all(waiting, jobs, console, _keep_result)
    return {training.name: training.result() for training in trainings}


def _keep_result(training: DemoTraining) -> None:
    failure = training.failure()
    if failure:
        raise DemoError(failure)
    training.write_result()
