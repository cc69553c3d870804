"""predict_topk in the hands of mmpretrain's own tools: the inferencer, and metrics."""

import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.evaluator import Evaluator
from mmpretrain import ImageClassificationInferencer, get_model
from mmpretrain.evaluation import Accuracy
from mmpretrain.structures import DataSample
from small_models import lenet

from ebv_mm.classification import EBVClsHead

CLASSES = list('abcdefg')


def head(**settings) -> EBVClsHead:
    torch.manual_seed(0)
    return EBVClsHead(7, 12, basis=dict(num_classes=7, dim=8), **settings).eval()


def test_the_scores_are_those_of_all_classes_but_for_the_rest():
    features = (torch.randn(3, 12),)
    samples = [DataSample().set_gt_label(label) for label in (1, 2, 3)]
    few, all_scores = head(predict_topk=2).predict(features, samples), head().predict(features)
    for label, best, full in zip((1, 2, 3), few, all_scores):
        values, places = full.pred_score.topk(2)
        wanted = torch.zeros(7).scatter(0, places, values)
        torch.testing.assert_close(best.pred_score, wanted)
        assert best.pred_label == full.pred_label and best.gt_label == label
        fields = best.to_dict()
        assert 'pred_score' not in dict(fields)  # who keeps the fields does not keep the scores of all classes
        torch.testing.assert_close(fields['pred_score'], wanted)


def test_the_hosts_accuracy_counts_the_best_classes_too():
    features, labels = torch.randn(40, 12), torch.randint(7, (40,))
    results = []
    for topk in (None, 5):
        samples = [DataSample().set_gt_label(label) for label in labels.tolist()]
        metric = Evaluator(Accuracy(topk=(1, 5)))
        metric.process(head(predict_topk=topk).predict((features,), samples))
        results.append(metric.evaluate(40))
    assert results[0] == results[1] and set(results[0]) == {'accuracy/top1', 'accuracy/top5'}


@pytest.mark.parametrize('topk', [None, 2])
def test_the_inferencer_of_mmpretrain(topk):
    head = dict(num_classes=7, basis=dict(num_classes=7, dim=8), predict_topk=topk)
    pipeline = [dict(type='LoadImageFromFile'), dict(type='Resize', scale=(32, 32)), dict(type='PackInputs')]
    cfg = Config(
        dict(
            default_scope='mmpretrain',
            custom_imports=dict(imports=['ebv_mm'], allow_failed_imports=False),
            model=lenet(head, data_preprocessor=dict(mean=[127.5], std=[64.0])),
            test_dataloader=dict(dataset=dict(type='CustomDataset', pipeline=pipeline)),
        )
    )
    model = get_model(cfg, pretrained=False, device='cpu')
    model.backbone.features[0] = torch.nn.Conv2d(3, 6, 5)
    inferencer = ImageClassificationInferencer(model, classes=CLASSES)
    image = np.random.default_rng(0).integers(0, 256, (40, 40, 3), dtype=np.uint8)
    (result,) = inferencer(image)
    assert result['pred_class'] == CLASSES[result['pred_label']]
    assert result['pred_scores'][result['pred_label']] == pytest.approx(result['pred_score'])
    assert (result['pred_scores'] > 0).sum() == (topk or 7)
