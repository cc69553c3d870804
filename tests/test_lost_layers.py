"""No EBV layer gets lost where a host builds the model by itself, without our tools."""

import subprocess
import sys
import textwrap
from types import SimpleNamespace

import pytest
from mmdet.registry import MODELS as MMDET_MODELS
from mmengine.registry import MODELS, DefaultScope, Registry
from mmengine.runner import Runner
from torch import nn

from ebv_mm.head import EBV_LAYERS
from ebv_mm.lost_layers import watch_builds

BASIS = dict(num_classes=6, dim=6)
LINEAR, CONV = (dict(type=f'EBV{kind}', basis=BASIS) for kind in ('Linear', 'Conv2d'))
SIGMOID = dict(type='FocalLoss', use_sigmoid=True)
# The heads of Double-Head R-CNN; Sparse R-CNN and QueryInst; PointRend. Each loses what it is given.
LOSE = {
    'DoubleConvFCBBoxHead': dict(
        num_convs=1, num_fcs=1, in_channels=8, conv_out_channels=8, fc_out_channels=8, roi_feat_size=2,
        cls_predictor_cfg=LINEAR),
    'DIIHead': dict(
        in_channels=8, num_heads=2, feedforward_channels=8, roi_feat_size=2, num_cls_fcs=1, num_reg_fcs=1,
        dynamic_conv_cfg=dict(type='DynamicConv', in_channels=8, feat_channels=4, out_channels=8, input_feat_shape=2),
        loss_iou=dict(type='GIoULoss'), cls_predictor_cfg=LINEAR),
    'CoarseMaskHead': dict(num_fcs=1, in_channels=8, conv_out_channels=8, fc_out_channels=8, predictor_cfg=CONV),
}  # fmt: skip
KEEP = {
    'Shared2FCBBoxHead': dict(in_channels=8, fc_out_channels=8, roi_feat_size=2, cls_predictor_cfg=LINEAR),
    'DynamicMaskHead': dict(
        in_channels=8, conv_out_channels=8, num_convs=1, predictor_cfg=CONV, roi_feat_size=2,
        dynamic_conv_cfg=dict(type='DynamicConv', in_channels=8, feat_channels=4, out_channels=8, input_feat_shape=2)),
}  # fmt: skip


def build(name: str, arguments: dict, registry: Registry = MMDET_MODELS) -> nn.Module:
    with DefaultScope.overwrite_default_scope('mmdet'):
        return registry.build(dict(type=name, num_classes=5, **arguments))


@pytest.mark.parametrize('name', LOSE)
@pytest.mark.parametrize('registry', [MODELS, MMDET_MODELS])
def test_a_head_that_loses_its_layer_raises(name, registry):
    with pytest.raises(ValueError, match=f'config of {name} names 1 EBV layers, but {name} has 0.*EBVHead'):
        build(name, LOSE[name], registry)


@pytest.mark.parametrize('name', KEEP)
def test_a_head_that_keeps_its_layer_is_built(name):
    assert sum(isinstance(part, EBV_LAYERS) for part in build(name, KEEP[name]).modules()) == 1


@pytest.mark.parametrize('name', ['DoubleConvFCBBoxHead', 'DIIHead'])
def test_the_remedy_works(name):
    arguments = {key: value for key, value in LOSE[name].items() if key != 'cls_predictor_cfg'}
    head = build('EBVHead', dict(arguments, head=name, layer='fc_cls', basis=BASIS))
    assert type(head.fc_cls).__name__ == 'EBVLinear'


def test_a_head_without_remedy_says_so():
    arguments = {key: value for key, value in LOSE['CoarseMaskHead'].items() if key != 'predictor_cfg'}
    with pytest.raises(TypeError, match='CoarseMaskHead cannot become an EBV head, because one linear layer gives'):
        build('EBVHead', dict(arguments, head='CoarseMaskHead', layer='fc_logits', basis=BASIS))


def test_mmengine_builds_models_by_it():
    """Both runners build what a config names by mmengine's registry, inside of which the host builds its heads."""
    from mmengine._strategy import SingleDeviceStrategy

    extractor = dict(type='SingleRoIExtractor', out_channels=8, featmap_strides=[4],
                     roi_layer=dict(type='RoIAlign', output_size=2))  # fmt: skip
    head = dict(type='DoubleConvFCBBoxHead', num_classes=5, **LOSE['DoubleConvFCBBoxHead'])
    model = dict(type='StandardRoIHead', bbox_roi_extractor=extractor, bbox_head=head)
    for runner in (Runner, SingleDeviceStrategy):
        with DefaultScope.overwrite_default_scope('mmdet'):
            with pytest.raises(ValueError, match='DoubleConvFCBBoxHead has 0'):
                runner.build_model(SimpleNamespace(), model)


def test_watching_twice_changes_nothing():
    before = MODELS.build_func
    watch_builds()
    assert MODELS.build_func is before


def test_a_host_that_is_imported_later_is_watched_too():
    code = """
    import ebv_mm, mmdet.registry, mmseg.registry
    registries = mmdet.registry.MODELS, mmseg.registry.MODELS
    print(all(hasattr(each.build_func, 'looks_for_lost_layers') for each in registries))
    """
    code = textwrap.dedent(code)
    done = subprocess.run([sys.executable, '-W', 'ignore', '-c', code], capture_output=True, text=True)
    assert done.stdout.strip() == 'True', done.stderr
