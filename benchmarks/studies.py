"""The trainings behind docs/results.md."""

import math
from copy import deepcopy
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Sequence

from mmengine.config import Config

REPO = Path(__file__).parents[1]
TEST, CLASSES = 'test', 'classes'  # folders within that of a run


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
    ``classifier``: whether the classifier's weight is looked at too.
    """

    title: str
    metrics: Dict[str, str]
    settings: Dict[str, List[Run]]
    losses: Dict[str, str] = {'loss': 'training loss'}
    classifier: bool = False


# The host's data set asks for the official archive, ours takes any copy; its test images are balanced too.
CIFAR = {
    **{f'{loader}_dataloader.dataset.type': 'LongTailCIFAR10' for loader in ('val', 'test')},
    **{f'{loader}_dataloader.dataset.check_md5': False for loader in ('train', 'val', 'test')},
}
LR = 'optim_wrapper.optimizer.lr'
SHORT = {'train_cfg.max_epochs': 8, 'train_cfg.val_interval': 4, 'param_scheduler.1.end': 8}
# The step decay of the 200 epochs, scaled to 30; else as in the other 30 epochs.
STEPS = {
    'model.backbone.channels_last': True,
    'train_cfg.max_epochs': 30,
    'train_cfg.val_interval': 5,
    'param_scheduler.1.milestones': [24, 27],
    **{f'{loader}_dataloader.num_workers': 0 for loader in ('train', 'val', 'test')},
    **{f'{loader}_dataloader.persistent_workers': False for loader in ('train', 'val', 'test')},
}
TAU = 0.07
TAUS = (0.02, 0.05, TAU, 0.1, 0.2)
DIMS = (3, 5, 10, 20)
LABELS = {'tau': 'tau', 'dim': 'd'}


def cifar(
    name: str, head: str, data: str = 'lt-100_30e', seed: int = 0, options: Optional[dict] = None, **changes
) -> Run:
    """A training on long-tailed CIFAR-10; ``changes`` are those of the head."""
    options = {**CIFAR, **(options or {}), 'randomness.seed': seed}
    options.update({f'model.head.{key}': value for key, value in changes.items()})
    return Run(name, f'mmpretrain/resnet32_{head}_cifar10-{data}', options)


def short(name: str, head: str, options: Optional[dict] = None, **changes) -> Run:
    return cifar(name, head, options={**SHORT, **(options or {})}, **changes)


def long_tail(head: str, imbalance: int, seeds: Sequence[int], variant: str = '', **changes) -> List[Run]:
    data = f'lt-{imbalance}_30e'
    return [cifar(f'lt{imbalance}_{head}{variant}_s{seed}', head, data, seed, **changes) for seed in seeds]


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
        head = dict(tau=value) if key == 'tau' else dict(tau=TAU, basis=f'data/ebv/10x{value}.safetensors')
        runs[value] = short(f'{key}_{value}{variant}', 'ebv', **head, **changes)
    return runs


def recipe(name: str, what: str, options: dict) -> Dict[str, List[Run]]:
    """A recipe that differs in some options from that of the sweeps, for all classifiers."""
    return {
        f'{classifier}, {what}': [short(f'{name}_{short_name}', options=options, **head)]
        for classifier, (short_name, head) in CLASSIFIERS.items()
    }


TOP1 = {'accuracy/top1': 'top-1'}
AUTHORS, BALANCED = dict(balanced_init=False), dict(balanced_init=True)
THEIRS = "EBV, the authors' initialisation"
# What is added to the names of the runs, and what is set.
BEGINNINGS = {THEIRS: ('', AUTHORS), 'EBV, balanced': ('-balanced', BALANCED)}
CLASSIFIERS = {
    'FC': ('fc', dict(head='fc')),
    **{name: (f'ebv{variant}', dict(head='ebv', tau=TAU, **how)) for name, (variant, how) in BEGINNINGS.items()},
}
SWEEP_FC = short('tau_fc', 'fc')
# By what is swept, and by how the projection begins.
SWEEPS = {
    key: {name: sweep(key, values, variant, **how) for name, (variant, how) in BEGINNINGS.items()}
    for key, values in (('tau', TAUS), ('dim', DIMS))
}
for _name in BEGINNINGS:
    SWEEPS['dim'][_name][10] = SWEEPS['tau'][_name][TAU]  # the same
# The classifiers with the recipe of the sweeps.
USUAL = dict(zip(CLASSIFIERS, [[SWEEP_FC], *([runs[TAU]] for runs in SWEEPS['tau'].values())]))
# FC from the norm that balances EBV, in place of torch's; EBV with a projection that stays as it was.
NORMAL = {'_delete_': True, 'type': 'Normal', 'layer': 'Linear', 'std': round(1 / (TAU * math.sqrt(64 * 10)), 3)}
WIDE = {f'model.head.init_cfg.{key}': value for key, value in NORMAL.items()}
FIXED = {'optim_wrapper.paramwise_cfg.custom_keys.fc.lr_mult': 0.0}


def brief(title: str, settings: Dict[str, List[Run]]) -> Study:
    title = f'CIFAR-10-LT, imbalance 100, 8 epochs: {title}'
    return Study(title, TOP1, settings, classifier=True)


STUDIES = {
    'long-tail': Study(
        'CIFAR-10-LT, imbalance 100, 30 epochs',
        TOP1,
        {
            'FC': long_tail('fc', 100, (0, 1, 2)),
            THEIRS: long_tail('ebv', 100, (0, 1, 2), **AUTHORS),
            'EBV, balanced': long_tail('ebv', 100, (0, 1, 2), '-balanced', **BALANCED),
            'FC, step decay': [cifar('step_fc', 'fc', 'lt-100', options=STEPS)],
            f'{THEIRS}, step decay': [cifar('step_ebv', 'ebv', 'lt-100', options=STEPS, **AUTHORS)],
        },
        classifier=True,
    ),
    'long-tail-10': Study(
        'CIFAR-10-LT, imbalance 10, 30 epochs',
        TOP1,
        {
            'FC': long_tail('fc', 10, (0,)),
            THEIRS: long_tail('ebv', 10, (0,), **AUTHORS),
            'EBV, balanced': long_tail('ebv', 10, (0,), '-balanced', **BALANCED),
        },
        classifier=True,
    ),
    **{
        key + variant: brief(
            f'{LABELS[key]} ({name})',
            {'FC': [SWEEP_FC], **{f'{LABELS[key]} = {value}': [run] for value, run in by_name[name].items()}},
        )
        for key, by_name in SWEEPS.items()
        for name, (variant, _) in BEGINNINGS.items()
    },
    'rate': brief(
        'learning rate',
        {
            **recipe('rate_0.03', 'lr 0.03', {LR: 0.03}),
            **{f'{name}, lr 0.1': runs for name, runs in USUAL.items()},
            **recipe('rate_0.3', 'lr 0.3', {LR: 0.3}),
        },
    ),
    'warm-up': brief(
        'warm-up',
        {
            **{f'{name}, 1 epoch': runs for name, runs in USUAL.items()},
            **recipe('warm-up_3', '3 epochs', {'param_scheduler.0.end': 3, 'param_scheduler.1.begin': 3}),
        },
    ),
    'beginning': brief(
        'how the classifier begins',
        {
            **USUAL,
            'FC, from a norm of 14': [short('beginning_fc-wide', 'fc', WIDE)],
            'EBV, balanced, projection fixed': [short('beginning_ebv-fixed', 'ebv', FIXED, tau=TAU, **BALANCED)],
        },
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

LONG_TAILS = ('long-tail', 'long-tail-10')  # tested class by class too


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
