import pytest
import torch
from mmengine.evaluator import Evaluator
from mmengine.registry import METRICS, DefaultScope
from mmpretrain.structures import DataSample

import ebv_mm  # noqa: F401, registers the names
from ebv_mm.classification import StreamingAccuracy


def evaluate(metric: dict, scores: torch.Tensor, labels: torch.Tensor) -> dict:
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        evaluator = Evaluator([METRICS.build(metric)])
    for score, label in zip(scores, labels):
        evaluator.process([DataSample().set_pred_score(score).set_gt_label(int(label))])
    return evaluator.evaluate(len(labels))


@pytest.mark.parametrize('options', [dict(), dict(topk=(1, 5)), dict(topk=5), dict(topk=(1, 3), thrs=(0.1, 0.2, None))])
@pytest.mark.parametrize('seed', range(3))
def test_equals_the_accuracy_of_the_host(options, seed):
    generator = torch.Generator().manual_seed(seed)
    scores = (4 * torch.randn(200, 12, generator=generator)).softmax(-1)
    labels = torch.randint(12, (200,), generator=generator)
    streaming = evaluate(dict(type='StreamingAccuracy', **options), scores, labels)
    assert streaming == evaluate(dict(type='Accuracy', **options), scores, labels)
    assert 0 < min(streaming.values()) < 100


def test_counts_by_hand():
    scores = torch.tensor([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2], [0.5, 0.3, 0.2], [0.1, 0.8, 0.1]])
    result = evaluate(dict(type='StreamingAccuracy', topk=(1, 2)), scores, torch.tensor([0, 1, 2, 1]))
    assert result == {'accuracy/top1': 50.0, 'accuracy/top2': 75.0}


def test_a_model_that_diverged_is_never_right():
    scores = torch.full((4, 3), float('nan'))
    assert evaluate(dict(type='StreamingAccuracy'), scores, torch.tensor([0, 1, 2, 0])) == {'accuracy/top1': 0.0}


def test_keeps_few_scores():
    metric = StreamingAccuracy(topk=(1, 5))
    metric.process(None, [dict(pred_score=torch.rand(100000), gt_label=torch.tensor([3]))])
    assert sum(value.numel() for value in metric.results[0].values()) == 6
