"""Configs of the hosts' zoos: what their classifiers become, in memory and as a file."""

import pytest
from mmengine.config import Config

from ebv_mm import to_ebv
from ebv_mm.conversion import ConversionError, find_classifiers
from ebv_mm.conversion.classifiers import uses_sigmoid
from ebv_mm.conversion.command import delta, plan
from ebv_mm.conversion.configs import read_config

# Address: for each classifier its new type, its layer, N and prior.
ZOO = {
    'mmpretrain::resnet/resnet18_8xb32_in1k.py': [('EBVClsHead', None, 1000, None)],
    'mmpretrain::resnet/resnet50_8xb256-rsb-a1-600e_in1k.py': [('EBVHead', 'fc', 1001, 0.01)],
    'mmpretrain::mobilenet_v3/mobilenet-v3-small_8xb128_in1k.py': [('EBVHead', 'layers.-1.fc', 1000, None)],
    'mmpretrain::vgg/vgg11_8xb32_in1k.py': [('EBVHead', 'classifier.-1', 1000, None)],
    'mmpretrain::arcface/resnet50-arcface_8xb32_inshop.py': [('EBVHead', 'norm_product', 3997, None)],
    'mmdet::mask_rcnn/mask-rcnn_r50_fpn_1x_coco.py': [('EBVBBoxHead', None, 81, None), ('EBVMaskHead', None, 81, None)],
    'mmdet::seesaw_loss/mask-rcnn_r50_fpn_seesaw-loss_random-ms-2x_lvis-v1.py': [
        ('EBVHead', 'fc_cls', 1205, None), ('EBVMaskHead', None, 1203, None)],
    'mmdet::cascade_rcnn/cascade-rcnn_r50_fpn_1x_coco.py': [('EBVBBoxHead', None, 81, None)] * 3,
    'mmdet::double_heads/dh-faster-rcnn_r50_fpn_1x_coco.py': [('EBVHead', 'fc_cls', 81, None)],
    'mmdet::sparse_rcnn/sparse-rcnn_r50_fpn_1x_coco.py': [('EBVHead', 'fc_cls', 81, 0.01)] * 6,
    'mmdet::retinanet/retinanet_r50_fpn_1x_coco.py': [('EBVHead', 'retina_cls', 81, 0.01)],
    'mmdet::ssd/ssd300_coco.py': [('EBVHead', 'cls_convs.*.-1', 81, None)],
    'mmdet::detr/detr_r50_8xb2-150e_coco.py': [('EBVHead', 'fc_cls', 81, None)],
    'mmdet::mask2former/mask2former_r50_8xb2-lsj-50e_coco.py': [('EBVHead', 'cls_embed', 81, None)],
    'mmseg::upernet/upernet_r18_4xb4-80k_ade20k-512x512.py': [('EBVDecodeHead', None, 150, None)] * 2,
    'mmseg::point_rend/pointrend_r50_4xb2-80k_cityscapes-512x1024.py': [
        ('EBVDecodeHead', None, 19, None), ('EBVHead', 'fc_seg', 19, None)],
    'mmseg::danet/danet_r50-d8_4xb2-40k_cityscapes-512x1024.py': [
        ('EBVHead', ['conv_seg', 'pam_conv_seg', 'cam_conv_seg'], 19, None), ('EBVDecodeHead', None, 19, None)],
}  # fmt: skip


@pytest.mark.parametrize('address', ZOO)
def test_what_the_classifiers_become_and_the_file_says_the_same(address, tmp_path):
    cfg = read_config(address)
    conversion = plan(cfg)
    got = [
        (changes['type'], changes.get('layer'), size[0], changes.get('prior'))
        for changes, size in zip(conversion.changes, conversion.sizes)
    ]
    assert got == ZOO[address]
    file = tmp_path / 'ebv.py'
    file.write_text(delta(cfg, address, conversion, tmp_path, None))
    assert without_scope(Config.fromfile(str(file)).model.to_dict()) == to_ebv(cfg).model.to_dict()
    assert len(file.read_text().splitlines()) < 60


def without_scope(node):
    """mmengine notes the host of a dict that it inherits from an address."""
    if isinstance(node, dict):
        return {key: without_scope(value) for key, value in node.items() if key != '_scope_'}
    return type(node)(map(without_scope, node)) if isinstance(node, (list, tuple)) else node


REFUSED = {
    'mmseg::knet/knet-s3_r50-d8_fcn_8xb2-adamw-80k_ade20k-512x512.py': 'class kernels',
    'mmdet::yolo/yolov3_d53_8xb8-320-273e_coco.py': 'boxes, objectness and classes together',
    'mmdet::guided_anchoring/ga-retinanet_r50_fpn_1x_coco.py': 'masked convolution',
    'mmdet::rpn/rpn_r50_fpn_1x_coco.py': 'objectness',
    'mmpretrain::mae/mae_vit-base-p16_8xb512-amp-coslr-300e_in1k.py': 'no head',
}


@pytest.mark.parametrize('address', REFUSED)
def test_what_cannot_be_converted_says_why(address):
    cfg = read_config(address)
    with pytest.raises(ConversionError, match=REFUSED[address]):
        find_classifiers(cfg)


def test_a_detector_that_counts_outputs_needs_d_equal_to_n():
    with pytest.raises(ConversionError, match='takes the outputs of the layer for the classes'):
        to_ebv('mmdet::dino/dino-4scale_r50_8xb2-12e_coco.py', dim=100)


def test_imports_of_the_base_are_kept():
    cfg = to_ebv(
        Config(
            dict(
                default_scope='mmpretrain',
                custom_imports=dict(imports='mmpretrain.models'),
                model=dict(type='ImageClassifier', head=dict(type='LinearClsHead', num_classes=7, in_channels=4)),
            )
        )
    )
    assert cfg.custom_imports.imports == ['mmpretrain.models', 'ebv_mm']


@pytest.mark.parametrize(
    'loss, sigmoid',
    [
        (dict(type='CrossEntropyLoss'), False),
        (dict(type='CrossEntropyLoss', use_sigmoid=True), True),
        (dict(type='mmdet.FocalLoss'), True),
        (dict(type='LabelSmoothLoss', mode='multi_label'), True),
        ([dict(type='CrossEntropyLoss'), dict(type='DiceLoss')], False),
        (None, False),
    ],
)
def test_sigmoid_losses_are_known(loss, sigmoid):
    assert uses_sigmoid(loss) is sigmoid
