"""Converted models train: one of each kind here, all of the zoo in benchmarks/zoo_coverage.py."""

import pytest
from mmengine.config import Config

from ebv_mm.conversion.configs import converted, plan, read_config
from ebv_mm.conversion.trial import first_losses, run_once

SAMPLE = [
    'mmpretrain::deit/deit-tiny-distilled_4xb256_in1k.py',
    'mmdet::retinanet/retinanet_r18_fpn_1x_coco.py',
    pytest.param('mmdet::centernet/centernet_r18_8xb16-crop512-140e_coco.py', marks=pytest.mark.slow),
    pytest.param('mmdet::detr/detr_r18_8xb2-500e_coco.py', marks=pytest.mark.slow),
    pytest.param('mmdet::yolox/yolox_tiny_8xb8-300e_coco.py', marks=pytest.mark.slow),
    pytest.param('mmseg::point_rend/pointrend_r50_4xb2-80k_cityscapes-512x1024.py', marks=pytest.mark.slow),
    pytest.param('mmdet::double_heads/dh-faster-rcnn_r50_fpn_1x_coco.py', marks=pytest.mark.slow),
]


def one_step(cfg: Config) -> dict:
    conversion = plan(cfg)
    return run_once(cfg, converted(cfg, conversion), conversion.found.classifiers)


def test_one_step_of_several_tasks():
    tasks = dict(colour=dict(type='LinearClsHead', num_classes=3), shape=dict(type='LinearClsHead', num_classes=4))
    model = dict(
        type='ImageClassifier',
        backbone=dict(type='ResNet', depth=18, base_channels=4, stem_channels=4),
        neck=dict(type='GlobalAveragePooling'),
        head=dict(type='MultiTaskHead', in_channels=32, task_heads=tasks),
    )
    result = one_step(Config(dict(default_scope='mmpretrain', model=model)))
    assert result['ran'] == 'trained' and result['without_gradient'] == []


@pytest.mark.parametrize('address', SAMPLE)
def test_one_step(address):
    result = one_step(read_config(address))
    assert result['ran'] == 'trained' and result['without_gradient'] == []


@pytest.mark.parametrize(
    'address',
    [
        'mmdet::retinanet/retinanet_r18_fpn_1x_coco.py',
        pytest.param('mmdet::fcos/fcos_r50-caffe_fpn_gn-head_1x_coco.py', marks=pytest.mark.slow),
    ],
)
def test_sigmoids_begin_as_those_of_fc(address):
    """With the prior, the first loss of EBV is FC's; without it, it would be twenty times as large."""
    cfg = read_config(address)
    fc, ebv = (first_losses(each)['loss_cls'] for each in (cfg, converted(cfg, plan(cfg))))
    assert ebv == pytest.approx(fc, rel=0.1)
