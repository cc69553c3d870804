"""How well an EBV classifier agrees with the FC classifier that it was made of, and the temperature for that."""

import math
from typing import List, NamedTuple, Optional, Sequence

import torch
from torch import Tensor

LARGEST_SHARPNESS = 1e5
SEARCH_STEPS = 200


class Agreement(NamedTuple):
    """Of FC and EBV on the same features.

    Args:
        same_class: Share of features with the same largest logit.
        score_change: Mean change of a feature's scores: total variation of softmaxes, largest change of sigmoids.
        features: How many there were.
    """

    same_class: float
    score_change: float
    features: int


class Logits(NamedTuple):
    """FC's logits and EBV's at a temperature of 1, without its prior; each (n, N)."""

    fc: Tensor
    ebv: Tensor


def typical_length(seen: List[Logits], groups: Sequence[int], prior: Optional[float]) -> float:
    """The root mean square of FC's logits as vectors, without the prior and what a softmax does not notice."""
    squares = total = 0.0
    for pair in seen:
        logits = pair.fc - _logit(prior)
        parts = [part - part.mean(1, keepdim=True) for part in logits.split(list(groups), 1)] if groups else [logits]
        squares += sum(float(part.square().sum()) for part in parts)
        total += len(logits)
    return math.sqrt(squares / max(total, 1))


def fit_temperature(seen: List[Logits], groups: Sequence[int], prior: Optional[float]) -> float:
    r"""The tau that minimises the cross-entropy of EBV's scores with respect to FC's.

    The cross-entropy of softmax(s e) or sigmoid(s e + p) with any target is convex in s = 1 / tau: ternary search.
    """
    low, high = 0.0, LARGEST_SHARPNESS

    def loss(sharpness: float) -> float:
        return sum(_cross_entropy(pair, sharpness, groups, prior) for pair in seen)

    for _ in range(SEARCH_STEPS):
        third = (high - low) / 3
        if third < 1e-6 * high:
            break
        if loss(low + third) < loss(high - third):
            high -= third
        else:
            low += third
    return 2 / (low + high)


def agreement(seen: List[Logits], tau: float, groups: Sequence[int], prior: Optional[float]) -> Agreement:
    """Compare the classes and the scores."""
    same = change = total = 0.0
    for fc, ebv in seen:
        same += float((fc.argmax(1) == ebv.argmax(1)).sum())
        ours, theirs = _scores(ebv / tau + _logit(prior), groups), _scores(fc, groups)
        difference = (ours - theirs).abs()
        change += float((difference.sum(1) / 2 if groups else difference.amax(1)).sum())
        total += len(fc)
    return Agreement(same / total, change / total, int(total)) if total else Agreement(math.nan, math.nan, 0)


def _cross_entropy(pair: Logits, sharpness: float, groups: Sequence[int], prior: Optional[float]) -> float:
    logits = pair.ebv * sharpness + _logit(prior)
    if not groups:
        target = pair.fc.sigmoid()
        return float(torch.nn.functional.binary_cross_entropy_with_logits(logits, target, reduction='sum'))
    targets, ours = pair.fc.split(list(groups), 1), logits.split(list(groups), 1)
    return -sum(float((t.softmax(1) * o.log_softmax(1)).sum()) for t, o in zip(targets, ours))


def _scores(logits: Tensor, groups: Sequence[int]) -> Tensor:
    return torch.cat([part.softmax(1) for part in logits.split(list(groups), 1)], 1) if groups else logits.sigmoid()


def _logit(prior: Optional[float]) -> float:
    return 0.0 if prior is None else math.log(prior / (1 - prior))
