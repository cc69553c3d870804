"""How far the predictions of two models agree, image by image."""

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Dict, Iterable, List

import torch
from torch import Tensor, nn


@dataclass
class Agreement:
    """What two models said to the same images.

    Args:
        images: How many.
        same: Of images, pixels or detections, by the kind of model: how many have the same class.
        of: How many there are.
        largest: Largest difference by what it is of: 'score', 'logit', 'box' (in pixels).
    """

    images: int = 0
    same: int = 0
    of: int = 0
    largest: Dict[str, float] = field(default_factory=dict)

    def see(self, **differences: Tensor) -> None:
        for name, difference in differences.items():
            size = float(difference.abs().max()) if difference.numel() else 0.0
            self.largest[name] = max(self.largest.get(name, 0.0), size)

    def __str__(self) -> str:
        largest = ', '.join(f'{name} {value:.2g}' for name, value in self.largest.items())
        return f'{self.images} images: {self.same} of {self.of} classes are the same; largest difference: {largest}'


@torch.no_grad()
def agreement(first: nn.Module, second: nn.Module, batches: Iterable[dict]) -> Agreement:
    """Compare what two models of one host predict for the same batches of a data loader.

    Detections are compared in the order of their scores, and classifiers by the scores of all classes, also where a
    head predicts the best ones only.
    """
    result = Agreement()
    first, second = _with_all_scores(first), _with_all_scores(second)
    for batch in batches:
        for one, other in zip(_predicted(first, batch), _predicted(second, batch)):
            result.images += 1
            _compare(one, other, result)
    return result


def _with_all_scores(model: nn.Module) -> nn.Module:
    if getattr(getattr(model, 'head', None), 'predict_topk', None) is None:
        return model
    model = deepcopy(model)
    model.head.predict_topk = None
    return model


def _predicted(model: nn.Module, batch: dict) -> List:
    data = model.data_preprocessor(batch, False)
    samples = [sample.clone() for sample in data['data_samples']] if data.get('data_samples') else None
    return model.eval()(data['inputs'], samples, mode='predict')


def _compare(one, other, result: Agreement) -> None:
    if 'pred_instances' in one:
        a, b = one.pred_instances, other.pred_instances
        count = min(len(a), len(b))
        same = a.labels[:count] == b.labels[:count]
        result.of += max(len(a), len(b))
        result.same += int(same.sum())
        result.see(score=a.scores[:count] - b.scores[:count], box=(a.bboxes[:count] - b.bboxes[:count])[same])
        if 'masks' in a:
            differ = (torch.as_tensor(a.masks)[:count] != torch.as_tensor(b.masks)[:count]).flatten(1)
            result.see(mask=differ[same].sum(1).float())
    elif 'pred_sem_seg' in one:
        a, b = one.pred_sem_seg.data, other.pred_sem_seg.data
        result.of += a.numel()
        result.same += int((a == b).sum())
        scores = [torch.softmax(sample.seg_logits.data, 0) for sample in (one, other)]
        result.see(score=scores[0] - scores[1])
    else:
        result.of += 1
        result.same += int(one.pred_label == other.pred_label)
        result.see(score=one.pred_score - other.pred_score)
