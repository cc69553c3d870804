"""What the trainings of studies.py have left in their folders."""

import json
import math
import platform
import statistics
from pathlib import Path

import mmengine
import torch
from mmengine.logging import MMLogger
from mmengine.registry import MODELS, init_default_scope
from mmengine.runner import set_random_seed
from mmengine.utils import import_modules_from_strings
from run_records import MEASURED, Classifier, Record
from studies import TEST, Run, classifier_of, resolve

import ebv_mm
from trainings import read_scalars


class History:
    """The scalars of a run, of all its parts if it was cut off and resumed.

    Attributes:
        train: Records with the losses, by iteration.
        val: Records with the metrics, by epoch, or by iteration where the run has no epochs.
        total: The last epoch or iteration.
    """

    def __init__(self, run: Run, work_dir: Path) -> None:
        self.run = run
        self.folder = work_dir / run.name
        train_cfg = resolve(run).train_cfg
        self.unit = 'epoch' if 'max_epochs' in train_cfg else 'iteration'
        self.total = train_cfg.get('max_epochs') or train_cfg.max_iters
        self.last_checkpoint = self.folder / f'{"epoch" if self.unit == "epoch" else "iter"}_{self.total}.pth'
        self.train: dict[int, dict] = {}
        self.val: dict[int, dict] = {}
        for records in read_scalars(self.folder):
            begin = min((record['step'] for record in records if 'loss' in record), default=math.inf)
            # what was done again replaces what was lost
            self.train = {step: record for step, record in self.train.items() if step < begin}
            for record in records:
                (self.train if 'loss' in record else self.val)[record['step']] = record
        for file in sorted((self.folder / TEST).glob('*/*.json')):
            self.val[self.total] = json.loads(file.read_text())

    @property
    def finished(self) -> bool:
        return self.total in self.val

    def losses(self, key: str) -> dict[int, float]:
        """The mean of a loss, by epoch, or by twentieths of the iterations."""
        points: dict[int, list[float]] = {}
        width = max(1, self.total // 20)
        for step, record in sorted(self.train.items()):
            at = record['epoch'] if 'epoch' in record else math.ceil(step / width) * width
            points.setdefault(at, []).append(record[key])
        return {at: round(statistics.mean(losses), 4) for at, losses in points.items()}

    def record(self, metrics: list[str], losses: list[str]) -> Record:
        """What is worth keeping of a finished run."""
        return Record(
            source=MEASURED,
            seed=self.run.seed,
            unit=self.unit,
            total=self.total,
            metrics={step: {key: self.val[step][key] for key in metrics} for step in sorted(self.val)},
            losses={key: self.losses(key) for key in losses},
            classifier=self.classifier(),
            versions={
                'ebv_mm': ebv_mm.__version__,
                'torch': torch.__version__,
                'mmengine': mmengine.__version__,
                'python': platform.python_version(),
            },
        )

    def classifier(self) -> Classifier:
        """How the classifier's weight began and ended."""
        key = classifier_of(self.run)
        end = torch.load(self.last_checkpoint, map_location='cpu')['state_dict'][key]
        begin = first_weights(self.run)[key]
        norms = round(begin.norm().item(), 3), round(end.norm().item(), 3)
        if resolve(self.run).default_scope == 'mmdet':  # where the seed does not give the same beginning again
            return Classifier(*norms)
        cosine = torch.cosine_similarity(begin.flatten(), end.flatten(), dim=0)
        return Classifier(*norms, round(cosine.item(), 3))


def first_weights(run: Run) -> dict[str, torch.Tensor]:
    """The weights that a training begins with, which its seed determines."""
    cfg = resolve(run)
    MMLogger.get_current_instance().setLevel('WARNING')  # or it tells the initialisation of every weight
    if 'custom_imports' in cfg:
        import_modules_from_strings(**cfg.custom_imports)
    init_default_scope(cfg.default_scope)
    set_random_seed(cfg.randomness.seed)
    model = MODELS.build(cfg.model)
    model.init_weights()
    return model.state_dict()
