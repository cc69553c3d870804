"""The trainings of benchmarks/many_classes.py, by study."""

from dataclasses import asdict, dataclass, fields, replace
from typing import Dict, Optional, Tuple

from ebv_mm.many_classes.advice import SPREAD, tau_for

SEEDS = (0, 1)
# characters with fewer training images than this are taken only where there are not enough others
MANY_IMAGES, SOME_IMAGES = 8, 1
PLENTY = 30_000
# A balanced projection has the norm 1 / tau = 1.6 sqrt(d), torch's default sqrt(d / 3).
BALANCED = round(SPREAD * 3**0.5, 2)
SMALL = 0.01


@dataclass(frozen=True)
class Trial:
    """One training.

    ``waves`` are (first step, classes present from there on), ``skip`` leaves out characters, and with ``pixels`` the
    classifier sees the pixels themselves, without a backbone: seconds in place of minutes, and nothing but the
    classifier learns. Without ``negatives`` the loss is 1 - cosine to the vector of the class. With ``groups`` the
    projection has blocks: each part of the embedding is made from its share of the features. ``begin`` is the norm of
    the projection at first, torch's default = 1; balanced (docs/results.md) is BALANCED at the tau of the advice.
    """

    classifier: str
    num_classes: int
    steps: int
    dim: int = 0
    tau: float = 0.0
    tau_end: Optional[float] = None
    hidden: int = 0
    norm: bool = False
    waves: Tuple[Tuple[int, int], ...] = ()
    rate: float = 0.003
    batch: int = 256
    pretrained: bool = False
    pixels: bool = False
    negatives: bool = True
    groups: int = 1
    begin: float = 1.0
    skip: int = 0
    seed: int = 0

    @property
    def min_train(self) -> int:
        return MANY_IMAGES if self.num_classes + self.skip <= PLENTY else SOME_IMAGES

    @property
    def name(self) -> str:
        """What differs from the defaults, as a file name."""
        parts = [f'n{self.num_classes}', self.classifier]
        if self.dim:
            parts.append(f'd{self.dim}')
        if self.tau:
            parts.append(f'tau{self.tau:g}' + (f'-{self.tau_end:g}' if self.tau_end else ''))
        parts += [f'hidden{self.hidden}'] * bool(self.hidden) + ['norm'] * self.norm
        parts += ['waves' + '-'.join(str(present) for _, present in self.waves)] * bool(self.waves)
        parts += [f'rate{self.rate:g}'] * (self.rate != 0.003) + [f'batch{self.batch}'] * (self.batch != 256)
        parts += ['pretrained'] * self.pretrained + ['pixels'] * self.pixels + ['positive'] * (not self.negatives)
        parts += [f'groups{self.groups}'] * (self.groups > 1) + [f'begin{self.begin:g}'] * (self.begin != 1)
        parts += [f'skip{self.skip}'] * bool(self.skip)
        return '_'.join([*parts, f'{self.steps}steps', f'seed{self.seed}'])

    def tau_at(self, step: int) -> float:
        """Falling geometrically over three quarters of the steps, where there is an end."""
        if self.tau_end is None:
            return self.tau
        return self.tau * (self.tau_end / self.tau) ** min(1, step / (0.75 * self.steps))

    def present_at(self, step: int) -> int:
        return max((present for begin, present in self.waves if begin <= step), default=self.num_classes)

    def source(self) -> 'Trial':
        """The training of the backbone that a pretrained trial begins with: FC on 3,000 other characters."""
        return Trial('fc', 3000, 600, hidden=4096, skip=self.num_classes)

    def as_dict(self) -> dict:
        """Without what is at its default."""
        return {field.name: asdict(self)[field.name] for field in fields(self)
                if getattr(self, field.name) != field.default}  # fmt: skip


def plain(num_classes: int, steps: int, dim: int, **kwargs) -> Trial:
    return Trial('ebv', num_classes, steps, dim, tau_for(dim), **kwargs)


def helped(num_classes: int, steps: int, dim: int, hidden: int = 4096, **kwargs) -> Trial:
    """Hidden layer, norm of the embedding, and a tau that falls from twice to half."""
    tau = tau_for(dim)
    return Trial('ebv', num_classes, steps, dim, 2 * tau, tau / 2, hidden=hidden, norm=True, **kwargs)


def with_seeds(*trials: Trial) -> Tuple[Trial, ...]:
    return tuple(replace(trial, seed=seed) for seed in SEEDS for trial in trials)


STEPS = {1000: 240, 5000: 400, 20000: 600}

PIXEL_STEPS = 200

STUDIES: Dict[str, Tuple[Trial, ...]] = {
    # the classifier alone, on pixels: what N / d and the parts of the recipe do to it
    'pixels': tuple(
        replace(trial, pixels=True)
        for trial in (
            Trial('fc', 1000, PIXEL_STEPS),
            *(plain(1000, PIXEL_STEPS, dim) for dim in (1024, 256, 64)),
            Trial('fc', 1000, PIXEL_STEPS, hidden=1024),
            *(plain(1000, PIXEL_STEPS, dim, hidden=1024) for dim in (1024, 256, 64)),
            *(helped(1000, PIXEL_STEPS, dim, hidden=1024) for dim in (1024, 256, 64)),
        )
    ),
    'pixels-tau': tuple(
        Trial('ebv', 1000, PIXEL_STEPS, 256, tau_for(256, value), hidden=1024, pixels=True)
        for value in (0.4, 0.8, 3.2, 6.4)
    ),
    # steps to an accuracy over N / d, against FC with the same backbone and with the same hidden layer
    'size': with_seeds(
        Trial('fc', 1000, STEPS[1000]),
        *(plain(1000, STEPS[1000], dim) for dim in (1024, 256, 64)),
    ),
    'recipe': with_seeds(
        Trial('fc', 1000, STEPS[1000], hidden=4096),
        *(helped(1000, STEPS[1000], dim) for dim in (1024, 256, 64)),
    ),
    # one part of the recipe at a time, where N / d = 4
    'parts': (
        plain(1000, STEPS[1000], 256, hidden=4096),
        plain(1000, STEPS[1000], 256, norm=True),
        Trial('ebv', 1000, STEPS[1000], 256, 2 * tau_for(256), tau_for(256) / 2),
        plain(1000, STEPS[1000], 256, waves=((0, 256), (60, 512), (90, 768), (120, 1000))),
        Trial('fc', 1000, STEPS[1000], waves=((0, 256), (60, 512), (90, 768), (120, 1000))),
        Trial('cosine', 1000, STEPS[1000], 256, tau_for(256)),
        plain(1000, STEPS[1000], 256, hidden=1024),
    ),
    # without negatives nothing pushes a logit that it is not meant for
    'negatives': tuple(plain(1000, STEPS[1000], dim, negatives=False) for dim in (1024, 256, 64)),
    # a projection of blocks costs a part of a whole one
    'groups': (
        plain(1000, STEPS[1000], 1024, groups=8),
        *(plain(5000, STEPS[5000], 4096, groups=groups) for groups in (8, 32)),
    ),
    # how far a step turns the projection
    'begin': (
        *(plain(1000, STEPS[1000], 1024, begin=begin) for begin in (BALANCED, 0.3, 0.1, SMALL)),
        *(plain(5000, STEPS[5000], 1024, begin=begin) for begin in (0.3, 0.1, SMALL)),
        *(plain(5000, STEPS[5000], 4096, begin=begin) for begin in (BALANCED, 0.3, SMALL)),
        *(helped(5000, STEPS[5000], 1024, begin=begin) for begin in (BALANCED, 0.1)),
        Trial('fc', 1000, STEPS[1000], begin=0.1),
        Trial('fc', 5000, STEPS[5000], begin=0.1),
    ),
    # a norm of the embedding alone, where N is about d, at two learning rates
    'norm': tuple(
        replace(trial, rate=rate)
        for n, dim in ((1000, 1024), (5000, 4096))
        for rate in (0.003, 0.01)
        for trial in (plain(n, STEPS[n], dim, norm=True), plain(n, STEPS[n], dim), Trial('fc', n, STEPS[n]))
    ) + (helped(5000, STEPS[5000], 4096, rate=0.01), plain(5000, STEPS[5000], 1024, norm=True, rate=0.01)),
    'tau': (
        *(Trial('ebv', 1000, STEPS[1000], 256, tau_for(256, value)) for value in (0.4, 0.8, 3.2, 6.4)),
        *(Trial('ebv', 1000, STEPS[1000], 1024, tau) for tau in (0.07, 0.04, 0.01)),
    ),
    'batch': tuple(
        trial for batch in (64, 1024)
        for trial in (plain(1000, STEPS[1000], 256, batch=batch), Trial('fc', 1000, STEPS[1000], batch=batch))
    ),
    'size-5000': with_seeds(
        Trial('fc', 5000, STEPS[5000]),
        *(plain(5000, STEPS[5000], dim) for dim in (4096, 1024)),
    ),
    'recipe-5000': with_seeds(
        Trial('fc', 5000, STEPS[5000], hidden=4096),
        *(helped(5000, STEPS[5000], dim) for dim in (1024, 4096)),
    ),
    'waves-5000': tuple(
        replace(trial, waves=((0, 1024), (100, 2048), (150, 3072), (200, 5000)))
        for trial in (Trial('fc', 5000, STEPS[5000], hidden=4096), plain(5000, STEPS[5000], 1024),
                      helped(5000, STEPS[5000], 1024))
    ),
    'pretrained-5000': tuple(
        replace(trial, pretrained=True)
        for trial in (Trial('fc', 5000, 200), plain(5000, 200, 1024), helped(5000, 200, 1024), plain(5000, 200, 4096),
                      plain(5000, 200, 4096, norm=True, rate=0.01), Trial('fc', 5000, 200, rate=0.01))
    ),
    # forty thousand classes from a backbone that knows other characters: all at once, and in waves
    'waves-40000': tuple(
        replace(trial, pretrained=True, waves=waves)
        for waves in ((), ((0, 4096), (75, 16384), (150, 40000)))
        for trial in (helped(40000, 300, 4096, begin=SMALL), Trial('fc', 40000, 300))
    ),
    'size-20000': (
        Trial('fc', 20000, STEPS[20000], hidden=4096, rate=0.001),
        Trial('fc', 20000, STEPS[20000], hidden=4096),
        helped(20000, STEPS[20000], 4096),
        helped(20000, STEPS[20000], 16384),
        plain(20000, STEPS[20000], 16384, begin=SMALL),
        plain(20000, STEPS[20000], 16384, norm=True, rate=0.01),
    ),
}  # fmt: skip
