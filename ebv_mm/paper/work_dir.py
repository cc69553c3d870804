"""What lies in the work dir of a training: how far it is, which checkpoint is tested, how long it took.

Everything is read from the host's own files, so that a training that was started by hand counts too. The host writes
checkpoints in place, and anything may have been cut off anywhere: a file that is not whole is as if it were not there.
"""

import json
import re
import zipfile
from datetime import datetime
from pathlib import Path
from typing import Dict, Iterator, Optional

from mmengine.config import Config

_STAMP = re.compile(r'\d{8}_\d{6}')
_LOG_TIME = re.compile(r'^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d', re.MULTILINE)


class WorkDir:
    """A training's folder.

    Args:
        folder: It need not exist.
        cfg: The config of the training.
    """

    def __init__(self, folder: Path, cfg: Config) -> None:
        self.folder, self.cfg = folder, cfg
        epochs = cfg.train_cfg.get('max_epochs')
        self.unit, self.length = ('epoch', epochs) if epochs else ('iter', cfg.train_cfg.max_iters)

    @property
    def begun(self) -> bool:
        """Whether there is a checkpoint to go on from."""
        return self.newest is not None

    @property
    def trained(self) -> bool:
        return self._number(self.newest) == self.length

    @property
    def progress(self) -> str:
        return 'trained' if self.trained else f'{self.unit} {self._number(self.newest)} of {self.length}'

    @property
    def newest(self) -> Optional[Path]:
        """The newest checkpoint that is whole; ``last_checkpoint`` may name one that is not."""
        return max(self._whole(f'{self.unit}_*.pth'), key=self._number, default=None)

    @property
    def to_test(self) -> Optional[Path]:
        """The checkpoint of the table, once trained: the best one where the config keeps it, or else the last."""
        best = self.cfg.default_hooks.checkpoint.get('save_best')
        if not self.trained:
            return None
        if not best:
            return self.newest
        scores = self.scores(best)
        found = [file for file in self._whole(f'best_*_{self.unit}_*.pth') if self._number(file) in scores]
        return max(found, key=lambda file: (scores[self._number(file)], self._number(file)), default=None)

    @property
    def to_test_pattern(self) -> str:
        """What ``to_test`` will be called, for a command that is only shown."""
        best = self.cfg.default_hooks.checkpoint.get('save_best')
        return str(self.folder / (f'best_*_{self.unit}_*.pth' if best else f'{self.unit}_{self.length}.pth'))

    def scores(self, metric: str) -> Dict[int, float]:
        """A metric of every validation, by epoch or iteration."""
        return {record['step']: record[metric] for record in self._records() if metric in record}

    @property
    def validated(self) -> bool:
        """Whether the last validation has ended; a training cut off within it does not make up for it."""
        best = self.cfg.default_hooks.checkpoint.get('save_best')
        return not best or self.length in self.scores(best)

    @property
    def hours(self) -> float:
        """From the first to the last line of each log: what interruptions cost is not counted."""
        return sum(map(_duration, self.folder.glob('*/*.log'))) / 3600

    def _records(self) -> Iterator[dict]:
        for file in sorted(self.folder.glob('*/vis_data/scalars.json')):
            for line in file.read_text().splitlines():
                try:
                    yield json.loads(line)
                except ValueError:  # cut off while it was written
                    continue

    def _whole(self, pattern: str) -> Iterator[Path]:
        return (file for file in self.folder.glob(pattern) if zipfile.is_zipfile(file))

    @staticmethod
    def _number(file: Optional[Path]) -> int:
        return int(file.stem.rsplit('_', 1)[1]) if file else 0


def _duration(log: Path) -> float:
    if not _STAMP.fullmatch(log.parent.name):
        return 0.0
    times = _LOG_TIME.findall(log.read_text(errors='replace'))
    if not times:
        return 0.0
    first, last = (datetime.strptime(time, '%Y/%m/%d %H:%M:%S') for time in (times[0], times[-1]))
    return (last - first).total_seconds()
