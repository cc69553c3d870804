"""The classifiers that benchmarks/comparison.py compares."""

import math
from collections.abc import Callable
from typing import NamedTuple

from ebv_mm.many_classes.advice import HIDDEN, constant_tau

FEATURES, BOTTLENECK = 2048, 256
BATCH = 256
FC, EBV = 'benchmarks/configs/comparison_fc', 'benchmarks/configs/comparison_ebv'
Options = dict[str, object]


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


def in_head(**settings: object) -> Options:
    """Settings of the head as options of a config, those of a dict one by one."""
    out: Options = {}
    for key, value in settings.items():
        parts = {f'{key}.{part}': one for part, one in value.items()} if isinstance(value, dict) else {key: value}
        out |= {f'model.head.{name}': one for name, one in parts.items()}
    return out


def normal(std: float) -> dict[str, object]:
    return dict(type='Normal', layer='Linear', std=std)


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
    **in_head(type='SampledClsHead', least=BATCH),
    'default_hooks.sampled.type': 'SampledClassesHook',
}


def arcface(scale: float = 32.0, margin: float = 0.2) -> Options:
    """Cosines to trained vectors; the host's own scale of 64 and margin of .5 are for long trainings."""
    head = in_head(type='ArcFaceClsHead', loss=dict(type='CrossEntropyLoss'), _delete_=True)
    return {**ON_BOTTLENECK, **head, **in_head(scale=scale, margins=margin)}


def tau(start: float, stop: float) -> Options:
    return {'model.head.tau': start, 'default_hooks.tau.start': start, 'default_hooks.tau.stop': stop}


def ebv(dim: int | None, before: Options | None = None, norm: bool = True) -> Callable[[int], Options]:
    """EBV as advised in d dimensions; None: d = N. What is before it, unless it is said: a hidden layer where N > d."""

    def options(num_classes: int) -> Options:
        d = dim or num_classes
        basis = dict(num_classes=num_classes, dim=d, method='kerdock', structured=True)
        if dim is None:
            basis |= dict(method='orthonormal', rotate=False)
        crowded = num_classes > d
        constant = constant_tau(d)
        return {
            **in_head(basis=basis),
            **(before or (ON_HIDDEN if crowded else ON_FEATURES)),
            **(tau(2 * constant, constant / 2) if crowded else tau(constant, constant)),
            **({} if norm else in_head(norm_cfg=None)),
        }

    return options


def softer(num_classes: int) -> Options:
    """EBV with d = N on a bottleneck, at a larger tau."""
    larger = 1.75 * constant_tau(num_classes)
    return {**ebv(None, ON_BOTTLENECK)(num_classes), **tau(larger, larger)}


def with_margin(num_classes: int) -> Options:
    """EBV with d = N on a bottleneck, and the margin of ArcFace."""
    return {**ebv(None, ON_BOTTLENECK)(num_classes), **in_head(type='MarginEBVClsHead', margin=0.2)}


def plain(**head: object) -> Callable[[int], Options]:
    """EBV with d = N and no norm of the embedding; ``head`` is what else is set there."""
    return lambda num_classes: {**ebv(None, norm=False)(num_classes), **in_head(**head)}


def sampled(head: str, tau: float, std: float) -> Options:
    """A tenth of another classifier than FC on a bottleneck, whose rows begin with this standard deviation."""
    return {**ON_BOTTLENECK, **SAMPLED, **in_head(type=head, tau=tau, init_cfg=normal(std))}


def sampled_ebv(num_classes: int) -> Options:
    """A tenth of EBV with d = N, from a balanced beginning: a Frobenius norm of 1 / tau."""
    tau = constant_tau(num_classes)
    return sampled('SampledEBVClsHead', tau, std=round(1 / (tau * math.sqrt(num_classes * BOTTLENECK)), 4))


def sampled_cosine(num_classes: int) -> Options:
    """A tenth of trained vectors of d = 256, which begin with a norm of 1."""
    return sampled('SampledCosineClsHead', constant_tau(BOTTLENECK), std=round(1 / math.sqrt(BOTTLENECK), 4))


def trained_vectors(num_classes: int) -> Options:
    """Vectors that begin as a basis of d = 256, with the norm and the falling tau that EBV is given."""
    # Kerdock sets of d = 256 end at 33,024 vectors
    changed = in_head(type='TrainedVectorsClsHead', basis=dict(method='auto'))
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
    'sampled-cosine-256': Arm('a tenth of trained vectors, d = 256', sampled_cosine, 'cosine-256'),
    'cosine-256': Arm('trained vectors, d = 256', trained_vectors, 'cosine-256', EBV),
    'arcface-256': Arm('ArcFace on 256', fixed(arcface()), 'arcface-256'),
    'means-256': Arm('means of 256, trained by FC', fixed(ON_BOTTLENECK), 'fc-256', means=True),
    'means-cosine-256': Arm('means of 256, trained by cosines', fixed(arcface(margin=0.0)), 'arcface-256', means=True),
    'means-arcface-256': Arm('means of 256, trained by ArcFace', fixed(arcface()), 'arcface-256', means=True),
    'means-arcface-64-256': Arm(
        "means of 256, trained by ArcFace, the host's scale", fixed(arcface(64.0, 0.5)), 'arcface-256', means=True
    ),
    'ebv': Arm('EBV d = N', ebv(None), 'ebv', EBV),
    'ebv-on-256': Arm('EBV d = N on 256', ebv(None, ON_BOTTLENECK), 'ebv', EBV),
    'sampled-ebv-256': Arm('a tenth of EBV d = N on 256', sampled_ebv, 'ebv'),
    'means-ebv-256': Arm('means of 256, trained by EBV', ebv(None, ON_BOTTLENECK), 'ebv', EBV, means=True),
    'means-ebv-soft-256': Arm('means of 256, trained by EBV, larger tau', softer, 'ebv', EBV, means=True),
    'means-ebv-margin-256': Arm('means of 256, trained by EBV with a margin', with_margin, 'ebv', EBV, means=True),
    'ebv-plain': Arm('EBV d = N, no norm', plain(), 'ebv-plain', EBV),
    'ebv-torch': Arm("EBV d = N, no norm, torch's beginning", plain(balanced_init=False), 'ebv-plain', EBV),
    'ebv-small': Arm('EBV d = N, no norm, begins small', plain(init_cfg=normal(1e-4)), 'ebv-plain', EBV),
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
for name in ('fc', 'fc-256', 'sampled', 'sampled-256', 'sampled-ebv-256', 'sampled-cosine-256', 'cosine-256', 'ebv',
             'ebv-4096', 'ebv-16384', 'ebv-1024-bare', 'ebv-4096-bare', 'ebv-16384-bare',
             'ebv-16384-on-256', 'means-256', 'means-ebv-256'):  # fmt: skip
    ARMS[f'{name}-pretrained'] = ARMS[name]._replace(title=f'{ARMS[name].title}, pretrained', pretrained=True)
