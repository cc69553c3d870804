"""The trainings behind docs/results.md."""

import math
from collections.abc import Sequence
from copy import deepcopy
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from mmengine.config import Config

REPO = Path(__file__).parents[1]
TEST = 'test'  # a folder within that of a run
SEEDS = (0, 1, 2)
TAU = 0.07


class Run(NamedTuple):
    """One training: its folder's name, its config, what differs from that, and its seed."""

    name: str
    config: str
    options: dict[str, object]
    seed: int = 0

    def train(self, work_dir: Path) -> list[str]:
        return ['tools/train.py', f'{self.config}.py', '--resume', *self._common(work_dir / self.name)]

    def test(self, checkpoint: Path) -> list[str]:
        """Test a checkpoint into a folder beside it."""
        return ['tools/test.py', f'{self.config}.py', str(checkpoint), *self._common(checkpoint.parent / TEST)]

    def all_options(self) -> dict[str, object]:
        return {**self.options, 'randomness.seed': self.seed}

    def _common(self, folder: Path) -> list[str]:
        pairs = [f'{key}={value}'.replace(' ', '').replace("'", '') for key, value in self.all_options().items()]
        return ['--work-dir', str(folder), '--cfg-options', *pairs]


class Study(NamedTuple):
    """Runs to be compared: a line of the table for each setting, which has a run for each seed.

    ``metrics`` and ``losses`` map the hosts' names to headings. ``classifier`` is the name of the weight whose
    beginning and end are looked at: FC's matrix, or EBV's projection.
    """

    title: str
    metrics: dict[str, str]
    settings: dict[str, list[Run]]
    losses: dict[str, str] = {'loss': 'training loss'}
    classifier: str = 'head.fc.weight'


# -- long-tailed CIFAR-10 ----------------------------------------------------------------------------------------------

FC = 'FC'
DEFAULT, KAIMING, BALANCED = "EBV, torch's default", 'EBV, Kaiming', 'EBV, balanced'
# Cao et al. initialise so, whose schedule the paper's long-tailed runs follow: a norm of sqrt(2 d).
KAIMING_NORMAL = {'_delete_': True, 'type': 'Kaiming', 'layer': 'Linear', 'mode': 'fan_in'}


class Arm(NamedTuple):
    """A classifier: what it adds to the name of a run, which configs it has, and what it sets in the head."""

    name: str
    configs: str = 'configs/mmpretrain/resnet32_ebv'
    head: dict[str, object] = {}


def beginning(**how: object) -> dict[str, object]:
    return {'balanced_init': False, **how}


NORM = {f'norm_cfg.{key}': value for key, value in dict(type='BN1d', affine=False).items()}
_TRAINED = 'benchmarks/configs/resnet32_trained-vectors'
ARMS = {
    FC: Arm('fc', 'configs/mmpretrain/resnet32_fc'),
    DEFAULT: Arm('ebv', head=beginning()),
    KAIMING: Arm('ebv-kaiming', head=beginning(**{f'init_cfg.{key}': value for key, value in KAIMING_NORMAL.items()})),
    BALANCED: Arm('ebv-balanced', head=beginning(balanced_init=True)),
    'EBV, balanced, norm of the embedding': Arm('ebv-norm', head=beginning(balanced_init=True, **NORM)),
    'vectors trained, balanced': Arm('trained-balanced', _TRAINED, beginning(balanced_init=True)),
    "vectors trained, torch's default": Arm('trained', _TRAINED, beginning()),
}
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


def cifar(
    prefix: str,
    arm: str,
    seeds: Sequence[int] = (0,),
    data: str = 'lt-100_30e',
    options: dict[str, object] | None = None,
    **head: object,
) -> list[Run]:
    """An arm on long-tailed CIFAR-10, a run for each seed; ``head`` is what else is set there."""
    name, configs, settings = ARMS[arm]
    changes = {f'model.head.{key}': value for key, value in {**settings, **head}.items()}
    changes = {**CIFAR, **(options or {}), **changes}
    return [Run(f'{prefix}_{name}_s{seed}', f'{configs}_cifar10-{data}', changes, seed) for seed in seeds]


def eight(arm: str, prefix: str = 'lt100-8e', options: dict[str, object] | None = None, **head: object) -> list[Run]:
    """An arm with eight epochs and one seed."""
    return cifar(prefix, arm, options={**SHORT, **(options or {})}, **head)


def sweep(key: str, values: dict[float, dict[str, object]]) -> dict[str, list[Run]]:
    """EBV with one setting of the head changed in turn, from two beginnings; FC first."""
    runs = {FC: eight(FC)}
    for arm in (DEFAULT, BALANCED):
        for value, head in values.items():
            prefix = f'lt100-8e-{key}{value}' if head else 'lt100-8e'
            runs[f'{key} = {value}{arm.removeprefix("EBV")}'] = eight(arm, prefix, **head)
    return runs


TOP1 = {'accuracy/top1': 'top-1'}
# FC from the norm that balances EBV, in place of torch's; EBV with a projection that stays as it was.
_NORMAL = {'_delete_': True, 'type': 'Normal', 'layer': 'Linear', 'std': round(1 / (TAU * math.sqrt(64 * 10)), 3)}
WIDE = {f'init_cfg.{key}': value for key, value in _NORMAL.items()}
FIXED = {'optim_wrapper.paramwise_cfg.custom_keys.fc.lr_mult': 0.0}

# -- a slice of VOC ----------------------------------------------------------------------------------------------------

LONG = {'train_cfg.max_iters': 1200, 'train_cfg.val_interval': 400, 'param_scheduler.1.end': 1200}


def voc(
    prefix: str,
    config: str,
    heads: Sequence[str],
    arm: str,
    seeds: Sequence[int] = (0,),
    options: dict[str, object] | None = None,
) -> list[Run]:
    """An arm on the slice of VOC; ``heads`` are the places of the EBV heads in the model."""
    name, kind, changes = {
        FC: ('fc', 'fc', {}),
        HOST: ('ebv', 'ebv', beginning()),
        BALANCED: ('ebv-balanced', 'ebv', beginning(balanced_init=True)),
        KAIMING: ('ebv-kaiming', 'ebv', beginning(**{f'init_cfg.{key}': KAIMING_CONV[key] for key in KAIMING_CONV})),
    }[arm]
    options = {**(options or {}), **{f'model.{head}.{key}': changes[key] for head in heads for key in changes}}
    return [Run(f'{prefix}_{name}_s{seed}', config.format(kind), options, seed) for seed in seeds]


HOST = "EBV, the host's beginning"
KAIMING_CONV = {'type': 'Kaiming', 'mode': 'fan_in', 'override.name': 'conv_seg'}
_SEG = ('configs/mmseg/upernet_r50_{}_voc', ('decode_head', 'auxiliary_head'))
_DET = ('configs/mmdet/mask_rcnn_r50_{}_voc', ('roi_head.bbox_head', 'roi_head.mask_head'))
_RETINA = ('benchmarks/one_stage/retinanet_voc_{}', ('bbox_head',))
_DETR = ('benchmarks/one_stage/detr_voc_{}', ('bbox_head',))
_BOXES = {'coco/bbox_mAP': 'box AP', 'coco/bbox_mAP_50': 'box AP50'}
_SEG_STUDY = dict(
    metrics={'mIoU': 'mIoU', 'mAcc': 'mAcc', 'aAcc': 'aAcc'},
    losses={'decode.loss_ce': 'loss of the decode head', 'aux.loss_ce': 'loss of the auxiliary head'},
    classifier='decode_head.conv_seg.weight',
)

STUDIES = {
    'lt100-8e': Study(
        'CIFAR-10-LT, imbalance 100, 8 epochs',
        TOP1,
        {arm: cifar('lt100-8e', arm, SEEDS, options=SHORT) for arm in ARMS},
    ),
    'lt100': Study(
        'CIFAR-10-LT, imbalance 100, 30 epochs',
        TOP1,
        {arm: cifar('lt100', arm, SEEDS) for arm in (FC, BALANCED)},
    ),
    'lt100-bf16': Study(
        'CIFAR-10-LT, imbalance 100, 30 epochs, backbone in bfloat16',
        TOP1,
        {arm: cifar('lt100-bf16', arm, SEEDS, options={'model.backbone.bfloat16': True}) for arm in ARMS},
    ),
    'lt100-step': Study(
        'CIFAR-10-LT, imbalance 100, 30 epochs, step decay',
        TOP1,
        {arm: cifar('lt100-step', arm, data='lt-100', options=STEPS) for arm in (FC, DEFAULT)},
    ),
    'lt10': Study(
        'CIFAR-10-LT, imbalance 10, 30 epochs',
        TOP1,
        {arm: cifar('lt10', arm, SEEDS, 'lt-10_30e') for arm in (FC, DEFAULT, BALANCED)},
    ),
    'voc-det': Study(
        'VOC slice, Mask R-CNN R50, 500 iterations',
        {**_BOXES, 'coco/segm_mAP': 'mask AP', 'coco/segm_mAP_50': 'mask AP50'},
        {arm: voc('voc-det', *_DET, arm, SEEDS) for arm in (FC, HOST, BALANCED)},
        {'loss_cls': 'box classification loss', 'loss_mask': 'mask loss'},
        'roi_head.bbox_head.fc_cls.weight',
    ),
    'voc-seg': Study(
        'VOC slice, UperNet R50, 400 iterations',
        settings={arm: voc('voc-seg', *_SEG, arm, SEEDS) for arm in (FC, HOST, KAIMING, BALANCED)},
        **_SEG_STUDY,
    ),
    'voc-seg-long': Study(
        'VOC slice, UperNet R50, 1,200 iterations',
        settings={arm: voc('voc-seg-long', *_SEG, arm, SEEDS, LONG) for arm in (FC, HOST, BALANCED)},
        **_SEG_STUDY,
    ),
    'voc-retina': Study(
        'VOC slice, RetinaNet R50 (sigmoids), 1,000 iterations',
        _BOXES,
        {arm: voc('voc-retina', *_RETINA, arm, SEEDS) for arm in (FC, HOST)},
        {'loss_cls': 'loss of classes', 'loss_bbox': 'loss of boxes'},
        'bbox_head.retina_cls.weight',
    ),
    'voc-detr': Study(
        'VOC slice, DETR R50 (queries, softmax), 200 iterations',
        _BOXES,
        {arm: voc('voc-detr', *_DETR, arm, SEEDS) for arm in (FC, HOST)},
        {'loss_cls': 'loss of classes', 'loss_bbox': 'loss of boxes', 'loss': 'all losses'},
        'bbox_head.fc_cls.weight',
    ),
    'tau': Study(
        'tau, at d = 10 (imbalance 100, 8 epochs)',
        TOP1,
        sweep('tau', {value: {} if value == TAU else dict(tau=value) for value in (0.02, 0.05, TAU, 0.1, 0.2)}),
    ),
    'd': Study(
        'd, at tau = .07 (imbalance 100, 8 epochs)',
        TOP1,
        sweep('d', {dim: {} if dim == 10 else dict(basis=f'data/ebv/10x{dim}.safetensors') for dim in (3, 5, 10, 20)}),
    ),
    'rate': Study(
        'learning rate (imbalance 100, 8 epochs)',
        TOP1,
        {
            f'{arm}, lr {rate}': eight(arm) if rate == 0.1 else eight(arm, f'lt100-8e-lr{rate}', {LR: rate})
            for arm in (FC, BALANCED)
            for rate in (0.03, 0.1, 0.3)
        },
    ),
    'fixed': Study(
        'what is trained (imbalance 100, 8 epochs)',
        TOP1,
        {
            FC: eight(FC),
            'FC, from a norm of 14': eight(FC, 'lt100-8e-wide', **WIDE),
            BALANCED: eight(BALANCED),
            'EBV, balanced, projection not trained': eight(BALANCED, 'lt100-8e-fixed', FIXED),
        },
    ),
    'voc-seg-rate': Study(
        'learning rate of UperNet (VOC slice, 400 iterations)',
        settings={
            f'{arm}, lr {rate}': voc('voc-seg', *_SEG, arm)
            if rate == 0.01
            else voc(f'voc-seg-lr{rate}', *_SEG, arm, options={LR: rate})
            for arm in (FC, HOST)
            for rate in (0.003, 0.01, 0.03)
        },
        **_SEG_STUDY,
    ),
}


def runs_of(studies: Sequence[str]) -> list[Run]:
    """The runs of some studies, each once; one seed of every setting before the next seed."""
    rounds = (seed for name in studies for seed in zip_longest(*STUDIES[name].settings.values()))
    return list({run.name: run for seed in rounds for run in seed if run}.values())


def classifier_of(run: Run) -> str:
    """The weight that the study of a run looks at."""
    return next(study.classifier for study in STUDIES.values() if any(run in runs for runs in study.settings.values()))


@lru_cache(maxsize=None)
def _read(config: str) -> Config:
    return Config.fromfile(REPO / f'{config}.py')


def resolve(run: Run) -> Config:
    """The config of a run with its options."""
    cfg = deepcopy(_read(run.config))
    cfg.merge_from_dict(run.all_options())
    return cfg
