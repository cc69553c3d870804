"""EBVClsHead without the B x N logits: the same losses, gradients, predictions and accuracies as with them."""

import pytest
import torch
from mmengine.registry import DefaultScope
from mmpretrain.registry import METRICS, MODELS
from mmpretrain.structures import DataSample

import ebv_mm
from ebv_mm.classification.head import MANY_CLASSES

CLASSES, BATCH = 90, 7
BASES = [dict(num_classes=100, dim=16, method='kerdock', structured=value) for value in (False, True)]
BOTH = pytest.mark.parametrize('basis', BASES, ids=['dense', 'structured'])


def head(basis, num_classes=CLASSES, **kwargs):
    torch.manual_seed(0)
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        return MODELS.build(dict(type='EBVClsHead', num_classes=num_classes, in_channels=12, basis=basis, **kwargs))


def samples(soft=False):
    torch.manual_seed(1)
    labels = torch.randint(CLASSES, (BATCH,))
    out = [DataSample().set_gt_label(label) for label in labels]
    if soft:
        for sample, label in zip(out, labels):
            score = torch.zeros(CLASSES)
            score[label], score[label - 1] = 0.7, 0.3
            sample.set_gt_score(score)
    return out


@BOTH
@pytest.mark.parametrize(
    'loss, soft',
    [
        (dict(type='CrossEntropyLoss', loss_weight=2.0), False),
        (dict(type='CrossEntropyLoss', class_weight=[0.5 + k / 90 for k in range(CLASSES)]), False),
        (dict(type='CrossEntropyLoss', use_soft=True), True),
        (dict(type='LabelSmoothLoss', label_smooth_val=0.1, num_classes=CLASSES), False),
        (dict(type='LabelSmoothLoss', label_smooth_val=0.1, num_classes=CLASSES, mode='classy_vision'), True),
    ],
    ids=['hard', 'weighted', 'soft', 'smooth', 'smooth and soft'],
)
def test_losses_and_gradients_are_the_same(basis, loss, soft):
    results = []
    for streaming in (False, True):
        module = head(basis, loss=loss, streaming=streaming)
        features = torch.randn(BATCH, 12, generator=torch.Generator().manual_seed(2)).requires_grad_()
        value = module.loss((features,), samples(soft))['loss']
        value.backward()
        results.append((value.detach(), features.grad, module.fc.weight.grad, module.fc.bias.grad))
    for expected, found in zip(*results):
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@BOTH
def test_predictions_and_accuracies_are_the_same(basis):
    features = torch.randn(200, 12)
    plain, streamed = head(basis), head(basis, predict_topk=5)
    labels = plain((features,)).topk(4, 1).indices[torch.arange(200), torch.arange(200) % 4]
    metrics = []
    for module, kind in ((plain, 'Accuracy'), (plain, 'StreamingAccuracy'), (streamed, 'StreamingAccuracy')):
        out = module.predict((features,), [DataSample().set_gt_label(label) for label in labels])
        metric = METRICS.build(dict(type=kind, topk=(1, 3, 5)))
        metric.process(None, [sample.to_dict() for sample in out])
        metrics.append(metric.compute_metrics(metric.results))
    assert metrics[0] == metrics[1] == metrics[2]
    expected, found = plain.predict((features,)), streamed.predict((features,))
    for a, b in zip(expected, found):
        assert torch.equal(a.pred_label, b.pred_label) and 'pred_score' not in b
        torch.testing.assert_close(b.top_scores, a.pred_score.topk(5).values, rtol=1e-4, atol=1e-6)


def test_a_folded_head_predicts_the_same_classes():
    module, features = head(BASES[0], predict_topk=3), torch.randn(50, 12)
    expected = module.predict((features,))
    for keep_norm in (False, True):
        for a, b in zip(expected, ebv_mm.fold(module, keep_norm=keep_norm).predict((features,))):
            assert torch.equal(a.top_classes, b.top_classes)
            if keep_norm:
                torch.testing.assert_close(b.top_scores, a.top_scores, rtol=1e-4, atol=1e-6)


def test_too_few_predictions_for_the_metric():
    sample = head(BASES[0], predict_topk=2).predict((torch.randn(1, 12),), samples()[:1])[0]
    metric = METRICS.build(dict(type='StreamingAccuracy', topk=(1, 5)))
    with pytest.raises(ValueError, match='set predict_topk=5'):
        metric.process(None, [sample.to_dict()])


def test_more_predictions_than_classes_are_refused_before_the_training():
    with pytest.raises(ValueError, match='predict_topk = 91, but there are 90 classes'):
        head(BASES[0], predict_topk=91)


def test_many_classes_stream_by_themselves_where_they_can():
    basis = dict(num_classes=MANY_CLASSES, dim=256, method='kerdock', structured=True)
    assert head(basis, MANY_CLASSES).streaming
    assert not head(basis, MANY_CLASSES, cal_acc=True).streaming
    assert not head(basis, MANY_CLASSES, streaming=False).streaming
    assert not head(BASES[0]).streaming
    with pytest.raises(ValueError, match='needs all logits'):
        head(BASES[0], streaming=True, loss=dict(type='CrossEntropyLoss', use_sigmoid=True))
