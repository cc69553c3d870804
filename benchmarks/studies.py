"""The trainings behind docs/results.md, and what they leave."""

import json
import math
import statistics
from copy import deepcopy
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import torch
from mmengine.config import Config

from ebv_mm.trainings import read_scalars

REPO = Path(__file__).parents[1]
TEST, CLASSES = 'test', 'classes'  # folders within that of a run
RECALLS = 'single-label/recall_classwise'


class Run(NamedTuple):
    """One training: its folder's name, its config, and what differs from that."""

    name: str
    config: str
    options: Dict[str, object] = {}

    def train(self, work_dir: Path) -> List[str]:
        return ['tools/train.py', f'configs/{self.config}.py', '--resume', *self._common(work_dir / self.name)]

    def test(self, checkpoint: Path, folder: str, **options: object) -> List[str]:
        """Test a checkpoint into a folder beside it."""
        common = self._common(checkpoint.parent / folder, options)
        return ['tools/test.py', f'configs/{self.config}.py', str(checkpoint), *common]

    def _common(self, folder: Path, more: Optional[dict] = None) -> List[str]:
        options = {**self.options, **(more or {})}
        pairs = [f'{key}={value}'.replace(' ', '').replace("'", '') for key, value in options.items()]
        return ['--work-dir', str(folder), *(['--cfg-options', *pairs] if pairs else [])]


class Study(NamedTuple):
    """Runs to be compared: a line of the table for each setting, which has a run for each seed.

    ``metrics`` and ``losses`` map the hosts' names to headings; the losses and the first metric become a picture.
    ``classifier`` is a weight that is looked at too: FC's matrix, or EBV's projection.
    """

    title: str
    metrics: Dict[str, str]
    settings: Dict[str, List[Run]]
    losses: Dict[str, str] = {'loss': 'training loss'}
    classifier: str = ''


# The host's data set asks for the official archive, ours takes any copy; its test images are balanced too.
CIFAR = {
    **{f'{loader}_dataloader.dataset.type': 'LongTailCIFAR10' for loader in ('val', 'test')},
    **{f'{loader}_dataloader.dataset.check_md5': False for loader in ('train', 'val', 'test')},
}
SHORT = {'train_cfg.max_epochs': 8, 'train_cfg.val_interval': 4, 'param_scheduler.1.end': 8}
TAUS = (0.02, 0.05, 0.07, 0.1, 0.2)
DIMS = (3, 5, 10, 20)
LR = 'optim_wrapper.optimizer.lr'
# What a recipe may change, beside a learning rate of 0.1 with a warm-up of one epoch.
RECIPES = {
    'lr 0.03': {LR: 0.03},
    'lr 0.3': {LR: 0.3},
    'warm-up of 3 epochs': {'param_scheduler.0.end': 3, 'param_scheduler.1.begin': 3},
}
LABELS = {'tau': 'tau', 'dim': 'd'}


def cifar(name: str, head: str, imbalance: int = 100, seed: int = 0, schedule: Optional[dict] = None, **changes) -> Run:
    """A training on long-tailed CIFAR-10; ``changes`` are those of the head."""
    options = {**CIFAR, **(schedule or {}), 'randomness.seed': seed}
    options.update({f'model.head.{key}': value for key, value in changes.items()})
    return Run(name, f'mmpretrain/resnet32_{head}_cifar10-lt-{imbalance}_30e', options)


def short(name: str, head: str, schedule: Optional[dict] = None, **changes) -> Run:
    return cifar(name, head, schedule={**SHORT, **(schedule or {})}, **changes)


def long_tail(head: str, imbalance: int, seeds: Sequence[int], variant: str = '', **changes) -> List[Run]:
    return [cifar(f'lt{imbalance}_{head}{variant}_s{seed}', head, imbalance, seed, **changes) for seed in seeds]


def voc(task: str, config: str, heads: Sequence[str], rate: float, others: Sequence[float]) -> Dict[str, List[Run]]:
    """The twins on the slice of VOC with some learning rates, and EBV with balanced heads at the first of them."""
    runs = {
        f'{head.upper()}, lr {lr:g}': Run(f'voc_{task}_{head}_lr{lr:g}', config.format(head), {LR: lr})
        for lr in (rate, *others)
        for head in ('fc', 'ebv')
    }
    begun = runs[f'EBV, lr {rate:g}']
    balanced = {**begun.options, **{f'model.{head}.balanced_init': True for head in heads}}
    runs[f'EBV, balanced, lr {rate:g}'] = Run(f'{begun.name}-balanced', begun.config, balanced)
    return {setting: [run] for setting, run in runs.items()}


def sweep(key: str, values: Sequence[float], variant: str = '', **changes) -> Dict[float, Run]:
    """EBV with one setting of the head changed in turn."""
    runs = {}
    for value in values:
        head = dict(tau=value) if key == 'tau' else dict(tau=0.07, basis=f'data/ebv/10x{value}.safetensors')
        runs[value] = short(f'{key}_{value}{variant}', 'ebv', **head, **changes)
    return runs


def recipe(name: str, head: str, variant: str = '', **changes) -> Run:
    folder = f'recipe_{name.replace(" ", "-")}_{head}{variant}'
    return short(folder, head, RECIPES[name], **changes)


def recipes() -> Dict[str, List[Run]]:
    """The three classifiers, each as in the sweeps and with every other recipe."""
    classifiers = {'FC': dict(head='fc'), **{name: dict(head='ebv', **how) for name, how in BEGINNINGS.items()}}
    usual = [SWEEP_FC, *(runs[0.07] for runs in SWEEPS['tau'].values())]
    runs = {f'{name}, lr 0.1': run for name, run in zip(classifiers, usual)}
    runs.update({f'{name}, {what}': recipe(what, **how) for what in RECIPES for name, how in classifiers.items()})
    return {setting: [run] for setting, run in runs.items()}


TOP1 = {'accuracy/top1': 'top-1'}
AUTHORS, BALANCED = dict(variant=''), dict(variant='-balanced', balanced_init=True)
BEGINNINGS = {"EBV, the authors' initialisation": AUTHORS, 'EBV, balanced': BALANCED}
SWEEP_FC = short('tau_fc', 'fc')
# By what is swept, and by how the projection begins.
SWEEPS = {
    key: {name: sweep(key, values, **beginning) for name, beginning in BEGINNINGS.items()}
    for key, values in (('tau', TAUS), ('dim', DIMS))
}
for _name in BEGINNINGS:
    SWEEPS['dim'][_name][10] = SWEEPS['tau'][_name][0.07]  # the same
STUDIES = {
    'long-tail': Study(
        'CIFAR-10-LT, 30 epochs',
        TOP1,
        {
            'imbalance 100, FC': long_tail('fc', 100, (0, 1, 2)),
            'imbalance 100, EBV': long_tail('ebv', 100, (0, 1, 2)),
            'imbalance 100, EBV, balanced': long_tail('ebv', 100, (0, 1, 2), **BALANCED),
            'imbalance 10, FC': long_tail('fc', 10, (0,)),
            'imbalance 10, EBV': long_tail('ebv', 10, (0,)),
            'imbalance 10, EBV, balanced': long_tail('ebv', 10, (0,), **BALANCED),
        },
    ),
    **{
        key + beginning['variant']: Study(
            f'CIFAR-10-LT, imbalance 100, 8 epochs, {LABELS[key]}: {name}',
            TOP1,
            {'FC': [SWEEP_FC], **{f'{LABELS[key]} = {value}': [run] for value, run in by_name[name].items()}},
            classifier='head.fc.weight',
        )
        for key, by_name in SWEEPS.items()
        for name, beginning in BEGINNINGS.items()
    },
    'recipe': Study(
        'CIFAR-10-LT, imbalance 100, 8 epochs: learning rate and warm-up', TOP1, recipes(), classifier='head.fc.weight'
    ),
    'voc-det': Study(
        'VOC slice, Mask R-CNN R50',
        {
            'coco/bbox_mAP': 'box AP',
            'coco/bbox_mAP_50': 'box AP50',
            'coco/segm_mAP': 'mask AP',
            'coco/segm_mAP_50': 'mask AP50',
        },
        voc('det', 'mmdet/mask_rcnn_r50_{}_voc', ('roi_head.bbox_head', 'roi_head.mask_head'), 0.005, (0.0025, 0.01)),
        {'loss_cls': 'box classification loss', 'loss_mask': 'mask loss'},
    ),
    'voc-seg': Study(
        'VOC slice, UperNet R50',
        {'mIoU': 'mIoU', 'mAcc': 'mAcc', 'aAcc': 'aAcc'},
        voc('seg', 'mmseg/upernet_r50_{}_voc', ('decode_head', 'auxiliary_head'), 0.01, (0.003, 0.03)),
        {'decode.loss_ce': 'loss of the decode head', 'aux.loss_ce': 'loss of the auxiliary head'},
    ),
}


def runs_of(studies: Sequence[str]) -> List[Run]:
    """The runs of some studies, each once; one seed of every setting before the next seed."""
    rounds = (seed for name in studies for seed in zip_longest(*STUDIES[name].settings.values()))
    return list({run.name: run for seed in rounds for run in seed if run}.values())


@lru_cache(maxsize=None)
def _read(config: str) -> Config:
    return Config.fromfile(REPO / 'configs' / f'{config}.py')


def resolve(run: Run) -> Config:
    """The config of a run with its options."""
    cfg = deepcopy(_read(run.config))
    cfg.merge_from_dict(run.options)
    return cfg


class History:
    """The scalars of a run, of all its parts if it was cut off and resumed.

    Attributes:
        train: Records with the losses, by iteration.
        val: Records with the metrics, by epoch, or by iteration where the run has no epochs.
        total: The last epoch or iteration.
        recalls: The accuracy in percent of each class, if `classes` has tested it: at most one list.
    """

    def __init__(self, run: Run, work_dir: Path) -> None:
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

    def norm_and_rank(self, weight: str) -> Tuple[float, float]:
        """The norm of one of the last checkpoint's weights, and its stable rank: how many directions carry it."""
        matrix = torch.load(self.last_checkpoint, map_location='cpu')['state_dict'][weight]
        norm = matrix.norm().item()
        return norm, (norm / torch.linalg.matrix_norm(matrix, 2).item()) ** 2

    def speed(self) -> Tuple[float, float]:
        """Images per second, and the share of the time that went into waiting for data."""
        seconds = statistics.median(record['time'] for record in self.train.values())
        waiting = statistics.median(record['data_time'] for record in self.train.values())
        return self.batch_size / seconds, waiting / seconds


def _tests(folder: Path) -> Iterator[dict]:
    """What tools/test.py has written into a folder, the newest last."""
    for file in sorted(folder.glob('*/*.json')):
        yield json.loads(file.read_text())
