"""The trainings of benchmarks/comparison.py: how many classes, how long, at which rate."""

import math
from dataclasses import dataclass
from typing import NamedTuple

from comparison_arms import ARMS, BATCH, EBV, Arm, Options

POINTS = 10  # of a curve
WARM_UP = 100
PACE_STEPS = 15
# Up to 10,000 classes all train for as many epochs; above, for as many seconds.
EPOCHS = {1_000: 5, 10_000: 1}
BUDGET, HOUR = 10, 60  # minutes
# what fits into the budget for EBV with d = 16,384, and for means of what EBV has trained
EQUAL_STEPS, EQUAL_MEANS = 511, 1177
RATE_EPOCHS = 2
SMALL, MEDIUM, LARGE = 1_000, 10_000, 90_000
# In the order of the split: N characters are trained, the next ones pretrain a backbone, the next ones are unknown.
# 90,000 + 3,000 + 1,606 are all that are in two families.
PRETRAINING, UNKNOWN = 3_000, 1_606
PRETRAINING_EPOCHS = 4
TESTED = 2_500
FEW_IMAGES, MANY_IMAGES = 1, 8  # training images that a class has at least, of 90,000 and of fewer

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
    warm_up: int | None = None  # steps; None: a tenth, WARM_UP at most
    minutes: int | None = None  # of the budget; None: as all others of its size

    @property
    def name(self) -> str:
        rate = [] if self.rate is None else [f'rate{self.rate:g}']
        epochs = [] if self.epochs is None or self.kind != TRAINED else [f'{self.epochs}epochs']
        steps = [] if self.steps is None else [f'{self.steps}steps']
        warm_up = [] if self.warm_up is None else [f'warm{self.warm_up}']
        minutes = [] if self.minutes is None else [f'{self.minutes}minutes']
        end = f's{self.seed}' if self.kind == TRAINED else self.kind
        return '_'.join([f'n{self.num_classes}', self.arm, *rate, *warm_up, *epochs, *steps, *minutes, end])

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


RATES = {'sgd': (0.03, 0.1, 0.3), 'adamw': (0.001, 0.003, 0.01, 0.03)}
DEFAULT_RATE = {'sgd': 0.1, 'adamw': 0.003}


def optimizer_of(arm: str) -> str:
    return 'sgd' if arm.endswith('-sgd') else 'adamw'


def every(num_classes: int, names: str, seeds: tuple[int, ...] = (0,)) -> list[Trial]:
    return [Trial(num_classes, name, seed) for seed in seeds for name in names.split()]


OTHERS = 'fc-sgd fc-256-sgd sampled sampled-256 sampled-ebv-256 sampled-cosine-256 arcface-256 means-256 means-ebv-256'
FRONT = 'ebv-1024 ebv-4096 ebv-16384 ebv-1024-bare ebv-4096-bare'
STUDIES: dict[str, list[Trial]] = {
    'rates': [
        Trial(SMALL, arm, rate=rate, epochs=RATE_EPOCHS)
        for arm in dict.fromkeys(arm.rate_of for arm in ARMS.values())
        for rate in RATES[optimizer_of(arm)]
    ],
    'beginning': [
        Trial(SMALL, arm, rate=0.003, epochs=RATE_EPOCHS, warm_up=warm_up)
        for arm in ('fc', 'ebv', 'ebv-plain', 'ebv-torch', 'ebv-small')
        for warm_up in (None, WARM_UP)
    ],
    'first': every(SMALL, 'ebv fc cosine-256'),
    'small': every(
        SMALL, f'ebv fc cosine-256 ebv-plain ebv-on-256 ebv-hidden fc-hidden fc-256 ebv-256 {OTHERS}', seeds=(0, 1)
    ),
    'medium': every(MEDIUM, f'fc fc-hidden fc-256 {FRONT} ebv ebv-on-256 ebv-4096-on-256 cosine-256 {OTHERS}'),
    'large': every(LARGE, f'fc fc-hidden fc-256 {FRONT} ebv-16384-bare ebv-16384-on-256 cosine-256 {OTHERS}'),
    'waves': every(MEDIUM, 'ebv-4096-waves fc-hidden-waves') + every(LARGE, 'ebv-16384-waves fc-waves'),
    'pretrained': [
        *every(SMALL, 'ebv-pretrained fc-pretrained'),
        *every(MEDIUM, 'ebv-4096-pretrained fc-pretrained fc-256-pretrained'),
        *every(LARGE, 'ebv-16384-bare-pretrained ebv-16384-pretrained ebv-4096-bare-pretrained '
                      'ebv-16384-on-256-pretrained fc-pretrained fc-256-pretrained sampled-256-pretrained '
                      'sampled-ebv-256-pretrained sampled-cosine-256-pretrained '
                      'means-256-pretrained means-ebv-256-pretrained'),
    ],
    # the rate that is best on 1,000 classes need not be so on more
    'other-rates': [
        *(Trial(SMALL, arm, rate=0.003) for arm in ('ebv', 'fc-256', 'sampled-256')),
        *(Trial(MEDIUM, arm, rate=rate)
          for arm in ('ebv-4096-bare', 'fc-256', 'sampled-256')
          for rate in (0.003, 0.03)),
        *(Trial(LARGE, f'{arm}-pretrained', rate=0.003)
          for arm in ('ebv-16384-bare', 'ebv-16384-on-256', 'fc-256', 'sampled-256')),
        *(Trial(LARGE, f'{arm}-pretrained', rate=0.01)
          for arm in ('ebv-1024-bare', 'ebv-4096-bare', 'ebv-16384-bare', 'ebv-16384-on-256')),
    ],
    'hour': [
        Trial(LARGE, arm, minutes=HOUR)
        for arm in ('means-ebv-256', 'sampled-256', 'means-256', 'sampled-ebv-256', 'fc-256', 'ebv-4096-bare',
                    'means-arcface-64-256', 'sampled-cosine-256')
    ],
    'steps': [
        Trial(LARGE, f'{arm}-pretrained', steps=EQUAL_STEPS)
        for arm in ('sampled-256', 'ebv-4096-bare', 'fc-256', 'sampled', 'cosine-256')
    ] + [Trial(LARGE, 'means-256', seed, steps=EQUAL_MEANS) for seed in (0, 1)],
    # what else trains the embedding of the means
    'embeddings': [
        *every(
            MEDIUM,
            'means-arcface-256 means-cosine-256 means-arcface-64-256 means-ebv-soft-256 means-ebv-margin-256',
            (0, 1),
        ),
        *(Trial(LARGE, arm, seed, steps=EQUAL_MEANS)
          for arm in ('means-arcface-64-256', 'means-cosine-256')
          for seed in (0, 1)),
    ],
    # of what is ahead
    'seeds': [
        *every(MEDIUM, 'means-ebv-256 means-256 fc-256', (1,)),
        Trial(LARGE, 'means-ebv-256', 1),
        *(Trial(LARGE, arm, 1, minutes=HOUR) for arm in ('sampled-ebv-256', 'sampled-256', 'means-ebv-256')),
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
        **_schedule(plan.iterations, trial.warm_up),
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
        also_means = trial.minutes is not None and not arm.means
        measure = dict(unknown=UNKNOWN, skip=n + PRETRAINING, means=arm.means, also_means=also_means)
        chosen |= {f'default_hooks.measure.{key}': value for key, value in measure.items()}
    return chosen


def _schedule(iterations: int, warm_up: int | None) -> Options:
    warm_up = warm_up or max(1, min(WARM_UP, iterations // 10))
    interval = math.ceil(iterations / POINTS)
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
