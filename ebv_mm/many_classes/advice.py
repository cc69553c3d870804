r"""Which d, tau and helpers to take for N classes, as numbers. docs/large_n.md has the measurements behind them.

Two ratios decide whether a fixed basis starts to learn. N / d: a step of the projection moves all logits by the Gram
matrix of the basis, in root mean square sqrt(N / d - 1) times as much as it moves the one that it is meant for. And
1 / (tau sqrt(d)), the spread of the first logits.
"""

import math
import warnings
from dataclasses import dataclass

# the spread 1 / (tau sqrt(d)) of the first logits: the best one, and what still learns where N > d
SPREAD, LEAST_SPREAD, MOST_SPREAD = 1.6, 0.6, 5.0
# N / d that is aimed at, and above which a head warns
RATIO, MOST_RATIO = 2, 25
# Kerdock sets have the dimensions 4^m and up to d (d / 2 + 1) vectors; the largest whose projection is affordable
DIMS = (1024, 4096, 16384)
# up to so many classes d = N: an orthonormal basis
FEW = 1024
PAPER_TAU = 0.07  # of 1,000 classes, .02 was ahead of it
HIDDEN = 4096
NORM = "dict(type='BN1d', affine=False)"
DEFAULT_FEATURES = 2048
NORM_REASON = (
    'A batch norm of the embedding: with AdamW it learns in far fewer steps, and without a long warm-up. '
    'It needs two images or more in each process.'
)


@dataclass(frozen=True)
class Advice:
    """What to take for ``num_classes`` classes from ``features`` features.

    Attributes:
        dim: d.
        tau: Where it is constant.
        tau_start, tau_stop: Where it falls, over three quarters of the training; None: leave it constant.
        hidden: Units of a hidden layer before the projection; 0: none.
        norm: Whether the embedding gets a batch norm.
        first_wave: Classes to begin with, if the loss does not leave log N; None: all.
        reasons: Why, in sentences.
    """

    num_classes: int
    features: int
    dim: int
    tau: float
    tau_start: float | None
    tau_stop: float | None
    hidden: int
    norm: bool
    first_wave: int | None
    reasons: tuple[str, ...]

    @property
    def config(self) -> str:
        """The lines of an mmpretrain config."""
        if self.num_classes <= self.dim:
            # a matrix of many classes would fill every checkpoint
            structured = ", method='kerdock', structured=True" if self.dim > FEW else ''
            norm = f', norm_cfg={NORM}' if self.norm else ''
            return (
                f'basis = dict(num_classes={self.num_classes}, dim={self.dim}{structured})\n'
                f"model = dict(head=dict(type='EBVClsHead', basis=basis, tau={self.tau:g}{norm}))"
            )
        basis = f"basis = dict(num_classes={self.num_classes}, dim={self.dim}, method='kerdock', structured=True)"
        return '\n'.join(
            [
                basis,
                '# in place of GlobalAveragePooling, which it has inside',
                f"neck = dict(_delete_=True, type='LinearNeck', in_channels={self.features}, gap_dim=2,",
                f"            out_channels={self.hidden}, norm_cfg=dict(type='BN1d'), act_cfg=dict(type='ReLU'))",
                f"head = dict(type='EBVClsHead', in_channels={self.hidden}, basis=basis, tau={self.tau_start:g},",
                f'            norm_cfg={NORM}, predict_topk=5)',
                'model = dict(neck=neck, head=head)',
                "val_evaluator = dict(type='StreamingAccuracy', topk=(1, 5))",
                '# end: three quarters of your iterations',
                f"custom_hooks = [dict(type='TauHook', start={self.tau_start:g}, stop={self.tau_stop:g}, end=...),",
                "                dict(type='EBVMonitorHook')]",
            ]
        )

    def __str__(self) -> str:
        return '\n'.join([*self.reasons, '', self.config])


def tau_for(dim: int, spread: float = SPREAD) -> float:
    """The tau at which the first logits have the standard deviation ``spread``, to two digits."""
    return float(f'{1 / (spread * math.sqrt(dim)):.2g}')


def constant_tau(dim: int) -> float:
    """The tau of N <= d: the paper's or, from d = 80 on, the smaller one of the spread."""
    return min(PAPER_TAU, tau_for(dim))


def advise(num_classes: int, features: int = DEFAULT_FEATURES) -> Advice:
    """Say which d, tau, hidden layer, norm and waves to take.

    Args:
        num_classes: N.
        features: Number C of features before the projection.

    Example:
        >>> advise(num_classes=40_000).dim
        16384
    """
    if num_classes < 2 or features < 1:
        raise ValueError(f'num_classes = {num_classes}, features = {features}; give at least 2 classes and 1 feature')
    if num_classes <= FEW:
        tau = constant_tau(num_classes)
        reasons = [
            f'd = {num_classes}: with N <= d the vectors are orthogonal, and a step for one class moves no other.',
        ]
        few = tau == PAPER_TAU
        if few:
            reasons.append(f"tau = {tau:g}: the paper's.")
        else:
            reasons += [
                f"tau = {tau:g}: the first logits spread by {SPREAD}. The paper's {PAPER_TAU} starts more slowly.",
                NORM_REASON,
            ]
        return Advice(num_classes, features, num_classes, tau, None, None, 0, not few, None, tuple(reasons))
    dim = next((dim for dim in DIMS if num_classes <= RATIO * dim), DIMS[-1])
    tau = tau_for(dim)
    reasons = [
        f'd = {dim}: N / d = {num_classes / dim:.3g}; the larger N / d is, the more steps it takes to begin. '
        f'The projection has {features if num_classes <= dim else HIDDEN} x {dim} weights, whatever N is.',
        f'tau = {tau:g}: the first logits spread by 1 / (tau sqrt(d)) = {1 / (tau * math.sqrt(dim)):.2g}.',
        'With a small backbone FC or a sampled softmax on a bottleneck of 256 was ahead by the clock, and to train a '
        'tenth of the classes and classify all by their means (tools/class_means.py) ahead of both: docs/large_n.md.',
    ]
    if num_classes <= dim:
        return Advice(num_classes, features, dim, tau, None, None, 0, True, None, (*reasons, NORM_REASON))
    reasons += [
        f'tau falls from {2 * tau:g} to {tau / 2:g}, a hidden layer of {HIDDEN} and a batch norm of the embedding: '
        'together they take far fewer steps; give FC the same hidden layer when you compare. Beside a small backbone '
        'leave the hidden layer out: with 5,000 classes the norm alone was twice as fast by the clock.',
        f'If the loss stays at log N, begin with {dim} classes (WaveSampler, WaveHook).',
    ]
    return Advice(num_classes, features, dim, tau, 2 * tau, tau / 2, HIDDEN, True, dim, tuple(reasons))


def warn_if_far(num_classes: int, dim: int, tau: float) -> None:
    """Warn where d or tau is far outside of what has been seen to learn so many classes."""
    if num_classes <= dim:
        return
    advice, spread = advise(num_classes), 1 / (tau * math.sqrt(dim))
    if num_classes > MOST_RATIO * dim:
        warnings.warn(
            f'{num_classes} classes in d = {dim} dimensions are {num_classes / dim:.0f} to one, and may not begin to '
            f'learn from scratch; take dim={advice.dim} (python -m ebv_mm.basis --advise --num-classes {num_classes})',
            stacklevel=3,
        )
    if not LEAST_SPREAD <= spread <= MOST_SPREAD:
        warnings.warn(
            f'tau = {tau:g} at d = {dim} spreads the first logits by {spread:.2g}, and {LEAST_SPREAD} to {MOST_SPREAD} '
            f'learn with more classes than dimensions; take tau={tau_for(dim):g}',
            stacklevel=3,
        )
