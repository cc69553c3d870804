"""What the trainings of studies.py have left."""

import json
import math
import statistics
from functools import cached_property
from pathlib import Path
from typing import Dict, Iterator, List, Tuple

import torch
from mmengine.logging import MMLogger
from mmengine.registry import MODELS, init_default_scope
from mmengine.runner import set_random_seed
from mmengine.utils import import_modules_from_strings
from studies import CLASSES, TEST, Run, resolve

from ebv_mm.trainings import read_scalars

RECALLS = 'single-label/recall_classwise'
CLASSIFIER = 'head.fc.weight'  # FC's matrix, or EBV's projection


class History:
    """The scalars of a run, of all its parts if it was cut off and resumed.

    Attributes:
        train: Records with the losses, by iteration.
        val: Records with the metrics, by epoch, or by iteration where the run has no epochs.
        total: The last epoch or iteration.
        recalls: The accuracy in percent of each class, if `classes` has tested it: at most one list.
    """

    def __init__(self, run: Run, work_dir: Path) -> None:
        self.run = run
        cfg = resolve(run)
        self.total = cfg.train_cfg.get('max_epochs') or cfg.train_cfg.max_iters
        self.batch_size = cfg.train_dataloader.batch_size
        self.train: Dict[int, dict] = {}
        self.val: Dict[int, dict] = {}
        folder = work_dir / run.name
        by_epoch = 'max_epochs' in cfg.train_cfg
        self.unit = 'epoch' if by_epoch else 'iteration'
        self.last_checkpoint = folder / f'{"epoch" if by_epoch else "iter"}_{self.total}.pth'
        # Folders are named by the time at which they were begun.
        for file in sorted(folder.glob('*/vis_data/scalars.json')):
            records = list(read_scalars(file))
            begin = min((record['step'] for record in records if 'loss' in record), default=math.inf)
            # what was done again replaces what was lost
            self.train = {step: record for step, record in self.train.items() if step < begin}
            for record in records:
                (self.train if 'loss' in record else self.val)[record['step']] = record
        for metrics in _tests(folder / TEST):
            self.val[self.total] = metrics
        self.recalls = [metrics[RECALLS] for metrics in _tests(folder / CLASSES)][-1:]

    @property
    def finished(self) -> bool:
        return self.total in self.val

    def last(self, metric: str) -> float:
        """A metric at the end; NaN, a gap in a curve, of a run that is not finished."""
        return self.val[self.total][metric] if self.finished else math.nan

    @property
    def done(self) -> int:
        """The epoch, or iteration, that the run is at."""
        last = max(self.train, default=0)
        return self.train[last].get('epoch', last) if last else 0

    def losses(self, key: str = 'loss') -> Tuple[List[int], List[float]]:
        """Where, and the mean of a loss there: a point for each epoch, or for each twentieth of the iterations."""
        points: Dict[int, List[float]] = {}
        width = max(1, self.total // 20)
        for step, record in sorted(self.train.items()):
            at = record['epoch'] if 'epoch' in record else math.ceil(step / width) * width
            points.setdefault(at, []).append(record[key])
        return list(points), [statistics.mean(losses) for losses in points.values()]

    @cached_property  # a run is part of several studies
    def classifier(self) -> Tuple[float, float, float]:
        """Of the last classifier's weight: norm, stable rank (how many directions carry it), cosine with its start."""
        end = torch.load(self.last_checkpoint, map_location='cpu')['state_dict'][CLASSIFIER]
        begin = first_weights(self.run)[CLASSIFIER]
        norm = end.norm().item()
        stable_rank = (norm / torch.linalg.matrix_norm(end, 2).item()) ** 2
        return norm, stable_rank, torch.cosine_similarity(begin.flatten(), end.flatten(), dim=0).item()

    def speed(self) -> Tuple[float, float]:
        """Images per second, and the share of the time that went into waiting for data."""
        seconds = statistics.median(record['time'] for record in self.train.values())
        waiting = statistics.median(record['data_time'] for record in self.train.values())
        return self.batch_size / seconds, waiting / seconds


def _tests(folder: Path) -> Iterator[dict]:
    """What tools/test.py has written into a folder, the newest last."""
    for file in sorted(folder.glob('*/*.json')):
        yield json.loads(file.read_text())


def first_weights(run: Run) -> Dict[str, torch.Tensor]:
    """The weights that a training begins with, which its seed determines."""
    cfg = resolve(run)
    MMLogger.get_current_instance().setLevel('WARNING')  # or it tells the initialisation of every weight
    import_modules_from_strings(**cfg.custom_imports)
    init_default_scope(cfg.default_scope)
    set_random_seed(cfg.randomness.seed)
    model = MODELS.build(cfg.model)
    model.init_weights()
    return model.state_dict()
