"""EBV in mmdet beyond the contract: other ConvFC heads, cascades, and a whole Mask R-CNN's losses."""

from types import SimpleNamespace

import pytest
import torch
from mmengine.registry import MODELS, DefaultScope
from torch import nn

import ebv_mm  # noqa: F401, registers the names
from ebv_mm import EBVBBoxHead, EBVConv2d, EBVLinear, EBVMaskHead, fold

pytestmark = pytest.mark.both_stacks


@pytest.fixture(autouse=True)
def _mmdet():
    with DefaultScope.overwrite_default_scope('mmdet'):
        yield


@pytest.mark.parametrize(
    'head',
    [
        dict(type='Shared2FCBBoxHead'),
        dict(type='Shared4Conv1FCBBoxHead', conv_out_channels=8),
        dict(type='ConvFCBBoxHead', num_shared_fcs=1, num_cls_fcs=1),
        dict(type='SCNetBBoxHead', num_shared_fcs=2),
    ],
    ids=lambda head: head['type'],
)
def test_any_convfc_head_takes_the_layer(head, basis_file):
    predictor = dict(type='EBVLinear', basis=basis_file(6, 4 + 5), tau=0.05)
    built = MODELS.build(
        dict(in_channels=8, fc_out_channels=16, roi_feat_size=3, num_classes=5, cls_predictor_cfg=predictor, **head)
    )
    built.init_weights()
    assert isinstance(built.fc_cls, EBVLinear) and built.fc_cls.tau == 0.05
    assert built.fc_cls.weight.std().item() == pytest.approx(0.01, rel=0.4)
    assert built(torch.randn(3, 8, 3, 3))[0].shape == (3, 6)


def test_background_is_the_last_vector(basis_file):
    head = EBVBBoxHead(in_channels=8, fc_out_channels=16, roi_feat_size=3, num_classes=5, basis=basis_file(6, 6))
    with torch.no_grad():
        head.fc_cls.weight.zero_()
        head.fc_cls.bias.copy_(head.fc_cls.basis[-1])
    scores = head(torch.randn(2, 8, 3, 3))[0].softmax(1)
    assert (scores.argmax(1) == 5).all() and head.loss_cls(scores, torch.tensor([5, 5])) < 2


def test_masks_use_the_box_basis_without_background(basis_file):
    basis = basis_file(6, 6)
    box = EBVBBoxHead(in_channels=8, fc_out_channels=16, roi_feat_size=3, num_classes=5, basis=basis)
    mask = EBVMaskHead(in_channels=8, conv_out_channels=8, num_convs=1, num_classes=5, basis=basis)
    assert isinstance(mask.conv_logits, EBVConv2d)
    assert torch.equal(mask.conv_logits.basis, box.fc_cls.basis[:5])


def test_custom_class_counts_are_honoured(basis_file):
    """Seesaw loss adds an objectness pair to the classes: the head then needs one vector for each output."""
    arguments = dict(
        type='Shared2FCBBoxHead',
        in_channels=8,
        fc_out_channels=16,
        roi_feat_size=3,
        num_classes=5,
        loss_cls=dict(type='SeesawLoss', num_classes=5),
    )
    built = MODELS.build(dict(arguments, cls_predictor_cfg=dict(type='EBVLinear', basis=basis_file(7, 7))))
    assert built(torch.randn(2, 8, 3, 3))[0].shape == (2, 7)
    with pytest.raises(ValueError, match='has 6 vectors, but the layer needs 7'):
        MODELS.build(dict(arguments, cls_predictor_cfg=dict(type='EBVLinear', basis=basis_file(6, 7))))


def test_two_predictors_are_an_error(basis_file):
    with pytest.raises(TypeError, match='cls_predictor_cfg'):
        EBVBBoxHead(num_classes=5, basis=basis_file(6, 6), cls_predictor_cfg=dict(type='Linear'))


def test_the_class_check_of_mmdet_sees_the_heads_only(basis_file):
    """NumClassCheckHook compares ``num_classes`` of every module that has one with the data set's."""
    from mmdet.engine.hooks import NumClassCheckHook

    box = MODELS.build(dict(type='EBVBBoxHead', in_channels=4, roi_feat_size=2, num_classes=5, basis=basis_file(6, 6)))
    runner = SimpleNamespace(
        model=nn.ModuleDict(dict(box=box, folded=fold(box, keep_norm=True))),
        train_dataloader=SimpleNamespace(dataset=SimpleNamespace(metainfo=dict(classes=tuple('abcde')))),
    )
    NumClassCheckHook().before_train_epoch(runner)
    box.num_classes = 4
    with pytest.raises(AssertionError, match='EBVBBoxHead'):
        NumClassCheckHook().before_train_epoch(runner)
