"""The trainings of benchmarks/comparison.py: which classifiers, how many classes, how long."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from ebv_mm.many_classes.advice import HIDDEN, constant_tau

FEATURES, BOTTLENECK = 2048, 256
BATCH = 256
POINTS = 10  # of a curve
WARM_UP = 100
PACE_STEPS = 15
# Up to 10,000 classes all train for as many epochs; above, for as many seconds.
EPOCHS = {1_000: 5, 10_000: 1}
BUDGET = 600.0
# what fits into the budget for EBV with d = 16,384
EQUAL_STEPS = 511
RATE_EPOCHS = 2
SMALL, MEDIUM, LARGE = 1_000, 10_000, 90_000
# In the order of the split: N characters are trained, the next ones pretrain a backbone, the next ones are unknown.
# 90,000 + 3,000 + 1,606 are all that are in two families.
PRETRAINING, UNKNOWN = 3_000, 1_606
PRETRAINING_EPOCHS = 4
TESTED = 2_500
FEW_IMAGES, MANY_IMAGES = 1, 8  # training images that a class has at least, of 90,000 and of fewer

FC, EBV = 'benchmarks/configs/comparison_fc', 'benchmarks/configs/comparison_ebv'
Options = dict[str, object]

# -- classifiers -------------------------------------------------------------------------------------------------------


class Arm(NamedTuple):
    """A classifier.

    ``options`` of the number of classes are what it sets in the config; ``rate_of`` names the arm whose learning rate
    it takes; with ``waves`` the classes come in waves, with ``means`` a tenth of them is trained and all are classified
    by their means.
    """

    title: str
    options: Callable[[int], Options]
    rate_of: str
    config: str = FC
    waves: bool = False
    means: bool = False
    pretrained: bool = False


ON_FEATURES: Options = {'model.neck': None, 'model.head.in_channels': FEATURES}
ON_BOTTLENECK: Options = {
    'model.neck.out_channels': BOTTLENECK,
    'model.neck.act_cfg': None,
    'model.head.in_channels': BOTTLENECK,
}
ON_HIDDEN: Options = {'model.neck.out_channels': HIDDEN, 'model.head.in_channels': HIDDEN}
SGD: Options = {
    'optim_wrapper.optimizer.type': 'SGD',
    'optim_wrapper.optimizer.momentum': 0.9,
    'optim_wrapper.optimizer.weight_decay': 1e-4,
}
SAMPLED: Options = {
    'model.head.type': 'SampledClsHead',
    'model.head.least': BATCH,
    'default_hooks.sampled.type': 'SampledClassesHook',
}
# the host's scale of 64 and margin of .5 are for long trainings; these were not searched for
ARCFACE: Options = {
    **{f'model.head.{key}': value for key, value in dict(type='ArcFaceClsHead', scale=32.0, margins=0.2).items()},
    'model.head._delete_': True,
    'model.head.loss.type': 'CrossEntropyLoss',
}


def tau(start: float, stop: float) -> Options:
    return {'model.head.tau': start, 'default_hooks.tau.start': start, 'default_hooks.tau.stop': stop}


def ebv(dim: int | None, before: Options | None = None) -> Callable[[int], Options]:
    """EBV as advised in d dimensions; None: d = N. What is before it, unless it is said: a hidden layer where N > d."""

    def options(num_classes: int) -> Options:
        d = dim or num_classes
        basis = dict(num_classes=num_classes, dim=d, method='kerdock', structured=True)
        if dim is None:
            basis |= dict(method='orthonormal', rotate=False)
        crowded = num_classes > d
        constant = constant_tau(d)
        return {
            **{f'model.head.basis.{key}': value for key, value in basis.items()},
            **(before or (ON_HIDDEN if crowded else ON_FEATURES)),
            **(tau(2 * constant, constant / 2) if crowded else tau(constant, constant)),
            **({} if crowded else {'model.head.norm_cfg': None}),
        }

    return options


def begun_small(num_classes: int) -> Options:
    """EBV with d = N whose projection begins at nearly nothing."""
    begin = {
        f'model.head.init_cfg.{key}': value for key, value in dict(type='Normal', layer='Linear', std=1e-4).items()
    }
    return {**ebv(None)(num_classes), **begin}


def trained_vectors(num_classes: int) -> Options:
    """Vectors that begin as a basis of d = 256, with the norm and the falling tau that EBV is given."""
    # Kerdock sets of d = 256 end at 33,024 vectors
    changed = {'model.head.type': 'TrainedVectorsClsHead', 'model.head.basis.method': 'auto'}
    return {**ebv(BOTTLENECK, ON_FEATURES)(num_classes), **changed}


def fixed(*parts: Options) -> Callable[[int], Options]:
    return lambda num_classes: {key: value for part in parts for key, value in part.items()}


ARMS: dict[str, Arm] = {
    'fc-sgd': Arm('FC, SGD', fixed(ON_FEATURES, SGD), 'fc-sgd'),
    'fc': Arm('FC', fixed(ON_FEATURES), 'fc'),
    'fc-hidden': Arm('FC, hidden layer', fixed(ON_HIDDEN), 'fc-hidden'),
    'fc-256-sgd': Arm('FC on 256, SGD', fixed(ON_BOTTLENECK, SGD), 'fc-256-sgd'),
    'fc-256': Arm('FC on 256', fixed(ON_BOTTLENECK), 'fc-256'),
    'sampled': Arm('a tenth of FC', fixed(ON_FEATURES, SAMPLED), 'sampled'),
    'sampled-256': Arm('a tenth of FC on 256', fixed(ON_BOTTLENECK, SAMPLED), 'sampled-256'),
    'cosine-256': Arm('trained vectors, d = 256', trained_vectors, 'cosine-256', EBV),
    'arcface-256': Arm('ArcFace on 256', fixed(ON_BOTTLENECK, ARCFACE), 'arcface-256'),
    'means-256': Arm('means of 256', fixed(ON_BOTTLENECK), 'fc-256', means=True),
    'ebv': Arm('EBV d = N', ebv(None), 'ebv', EBV),
    'ebv-small': Arm('EBV d = N, begins small', begun_small, 'ebv', EBV),
    'ebv-hidden': Arm('EBV d = N, hidden layer', ebv(None, ON_HIDDEN), 'ebv-hidden', EBV),
    'ebv-256': Arm('EBV d = 256', ebv(256), 'ebv-256', EBV),
    'ebv-1024': Arm('EBV d = 1024', ebv(1024), 'ebv-256', EBV),
    'ebv-4096': Arm('EBV d = 4096', ebv(4096), 'ebv-256', EBV),
    'ebv-16384': Arm('EBV d = 16384', ebv(16384), 'ebv-256', EBV),
    'ebv-1024-bare': Arm('EBV d = 1024, no hidden layer', ebv(1024, ON_FEATURES), 'ebv-256', EBV),
    'ebv-4096-bare': Arm('EBV d = 4096, no hidden layer', ebv(4096, ON_FEATURES), 'ebv-256', EBV),
    'ebv-16384-bare': Arm('EBV d = 16384, no hidden layer', ebv(16384, ON_FEATURES), 'ebv-256', EBV),
    'ebv-4096-on-256': Arm('EBV d = 4096 on 256', ebv(4096, ON_BOTTLENECK), 'ebv-256', EBV),
    'ebv-16384-on-256': Arm('EBV d = 16384 on 256', ebv(16384, ON_BOTTLENECK), 'ebv-256', EBV),
}
for name in ('fc', 'fc-hidden', 'ebv-4096', 'ebv-16384'):
    ARMS[f'{name}-waves'] = ARMS[name]._replace(title=f'{ARMS[name].title}, waves', waves=True)
for name in ('fc', 'fc-256', 'sampled', 'sampled-256', 'cosine-256', 'ebv', 'ebv-4096', 'ebv-16384', 'ebv-4096-bare',
             'ebv-16384-bare', 'ebv-16384-on-256'):  # fmt: skip
    ARMS[f'{name}-pretrained'] = ARMS[name]._replace(title=f'{ARMS[name].title}, pretrained', pretrained=True)

# -- trainings ---------------------------------------------------------------------------------------------------------

TRAINED, PACE, SOURCE = 'trained', 'pace', 'source'


@dataclass(frozen=True)
class Trial:
    """A training. PACE: some steps, to measure their seconds. SOURCE: of a backbone, on the characters behind N."""

    num_classes: int
    arm: str
    seed: int = 0
    rate: float | None = None  # None: the best of the study of rates
    epochs: int | None = None
    kind: str = TRAINED
    steps: int | None = None  # as many for all, whatever they take

    @property
    def name(self) -> str:
        rate = [] if self.rate is None else [f'rate{self.rate:g}']
        steps = [] if self.steps is None else [f'{self.steps}steps']
        end = f's{self.seed}' if self.kind == TRAINED else self.kind
        return '_'.join([f'n{self.num_classes}', self.arm, *rate, *steps, end])

    @property
    def of(self) -> Arm:
        return ARMS[self.arm]

    @property
    def min_train(self) -> int:
        return FEW_IMAGES if self.num_classes > MEDIUM else MANY_IMAGES

    def pace(self) -> 'Trial | None':
        """What has to be measured before, if the training has a budget; pretrained weights are as fast as others."""
        given = self.epochs or self.steps or EPOCHS.get(self.num_classes)
        budgeted = self.kind == TRAINED and given is None
        return Trial(self.num_classes, self.arm.removesuffix('-pretrained'), kind=PACE) if budgeted else None

    def source(self) -> 'Trial | None':
        """What has to be trained before, if the backbone is pretrained: on characters that are not among the N."""
        if not self.of.pretrained:
            return None
        return Trial(max(self.num_classes, MEDIUM), 'fc', epochs=PRETRAINING_EPOCHS, kind=SOURCE)


RATES = {'sgd': (0.03, 0.1, 0.3), 'adamw': (0.001, 0.003, 0.01)}
DEFAULT_RATE = {'sgd': 0.1, 'adamw': 0.003}


def optimizer_of(arm: str) -> str:
    return 'sgd' if arm.endswith('-sgd') else 'adamw'


def every(num_classes: int, names: str, seeds: tuple[int, ...] = (0,)) -> list[Trial]:
    return [Trial(num_classes, name, seed) for seed in seeds for name in names.split()]


OTHERS = 'fc-sgd fc-256-sgd sampled sampled-256 arcface-256 means-256'
FRONT = 'ebv-1024 ebv-4096 ebv-16384 ebv-1024-bare ebv-4096-bare'
STUDIES: dict[str, list[Trial]] = {
    'rates': [
        Trial(SMALL, arm, rate=rate, epochs=RATE_EPOCHS)
        for arm in dict.fromkeys(arm.rate_of for arm in ARMS.values())
        for rate in RATES[optimizer_of(arm)]
    ],
    'beginning': [Trial(SMALL, 'ebv-small', rate=0.003, epochs=RATE_EPOCHS)],
    'first': every(SMALL, 'ebv fc cosine-256'),
    'small': every(SMALL, f'ebv fc cosine-256 ebv-hidden fc-hidden fc-256 ebv-256 {OTHERS}', (0, 1)),
    'medium': every(MEDIUM, f'fc fc-hidden fc-256 {FRONT} ebv-4096-on-256 cosine-256 {OTHERS}'),
    'large': every(LARGE, f'fc fc-hidden fc-256 {FRONT} ebv-16384-bare ebv-16384-on-256 cosine-256 {OTHERS}'),
    'waves': every(MEDIUM, 'ebv-4096-waves fc-hidden-waves') + every(LARGE, 'ebv-16384-waves fc-waves'),
    'pretrained': [
        *every(SMALL, 'ebv-pretrained fc-pretrained'),
        *every(MEDIUM, 'ebv-4096-pretrained fc-pretrained fc-256-pretrained'),
        *every(LARGE, 'ebv-16384-bare-pretrained ebv-16384-pretrained ebv-4096-bare-pretrained '
                      'ebv-16384-on-256-pretrained fc-pretrained fc-256-pretrained sampled-256-pretrained'),
    ],
    # the rate that is best on 1,000 classes need not be so on more
    'lower-rate': [
        *(Trial(MEDIUM, arm, rate=0.003) for arm in ('ebv-4096-bare', 'sampled-256')),
        *(Trial(LARGE, f'{arm}-pretrained', rate=0.003)
          for arm in ('ebv-16384-bare', 'ebv-16384-on-256', 'fc-256', 'sampled-256')),
    ],
    'steps': [
        Trial(LARGE, f'{arm}-pretrained', steps=EQUAL_STEPS)
        for arm in ('sampled-256', 'ebv-4096-bare', 'fc-256', 'sampled', 'cosine-256')
    ],
}  # fmt: skip
STUDIES['pace'] = [
    Trial(trial.num_classes, trial.arm, kind=PACE)
    for name in ('small', 'medium', 'large')
    for trial in STUDIES[name]
    if trial.seed == 0
]


def trials_of(studies: list[str]) -> list[Trial]:
    """The trials of some studies, each once."""
    return list(dict.fromkeys(trial for name in studies for trial in STUDIES[name]))


# -- their options -----------------------------------------------------------------------------------------------------


class Plan(NamedTuple):
    """What is decided when a training begins: its learning rate and its iterations, and the pace that they rest on."""

    rate: float
    iterations: int
    seconds_a_step: float | None = None


def options(trial: Trial, plan: Plan, clock: str, data: str, backbone: str | None = None) -> Options:
    """All that a trial sets in its config."""
    arm, n = trial.of, trial.num_classes
    trained, skip = (PRETRAINING, n) if trial.kind == SOURCE else (n // 10 if arm.means else n, 0)
    chosen: Options = {
        'data_preprocessor.num_classes': trained,
        **arm.options(trained),
        'model.head.num_classes': trained,
        'optim_wrapper.optimizer.lr': plan.rate,
        'train_dataloader.batch_size': BATCH,
        'default_hooks.measure.clock': clock,
        **_schedule(plan.iterations),
    }
    for loader in ('train', 'val', 'test'):
        tested = n if loader == 'test' and trial.kind != SOURCE else trained
        subset = dict(data_root=data, num_classes=tested, min_train=trial.min_train, skip=skip)
        subset['every'] = 1 if loader == 'train' else max(1, tested // TESTED)
        chosen |= {f'{loader}_dataloader.dataset.{key}': value for key, value in subset.items()}
    if arm.config == EBV:
        chosen['default_hooks.tau.end'] = max(1, 3 * plan.iterations // 4)
    if arm.waves:
        chosen |= _waves(n, plan.iterations)
    if backbone is not None:
        pretrained = dict(type='Pretrained', checkpoint=backbone, prefix='backbone.')
        chosen |= {f'model.backbone.init_cfg.{key}': value for key, value in pretrained.items()}
    if trial.kind == PACE:
        chosen.pop('default_hooks.checkpoint.interval')
        return {**chosen, 'default_hooks.checkpoint': None}
    if trial.kind == TRAINED and trial.epochs is None:
        measure = dict(unknown=UNKNOWN, skip=n + PRETRAINING, means=arm.means)
        chosen |= {f'default_hooks.measure.{key}': value for key, value in measure.items()}
    return chosen


def _schedule(iterations: int) -> Options:
    warm_up, interval = max(1, min(WARM_UP, iterations // 10)), math.ceil(iterations / POINTS)
    return {
        'train_cfg.max_iters': iterations,
        'train_cfg.val_interval': interval,
        'param_scheduler.0.end': warm_up,
        'param_scheduler.1.begin': warm_up,
        'param_scheduler.1.end': max(iterations, warm_up + 1),
        'default_hooks.checkpoint.interval': interval,
    }


def _waves(num_classes: int, iterations: int) -> Options:
    """An eighth of the classes, a quarter, a half, all: the first eighth, the second, the third, and the rest."""
    waves = [(k * iterations // 8, num_classes // 2 ** (3 - k)) for k in range(3)] + [(3 * iterations // 8, None)]
    sampler = dict(_delete_=True, type='WaveSampler', waves=waves, batch_size=BATCH)
    return {
        **{f'train_dataloader.sampler.{key}': value for key, value in sampler.items()},
        'default_hooks.waves.type': 'WaveHook',
        'default_hooks.waves.waves': waves,
    }
