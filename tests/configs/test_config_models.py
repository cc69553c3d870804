"""Every model is built, counted, and run forward and backward on tiny random images."""

import re
from functools import lru_cache

import numpy as np
import pytest
import torch
from experiments import CONFIGS, SMALL, load, plain
from mmengine.config import Config
from mmengine.model import revert_sync_batchnorm
from mmengine.registry import MODELS, DefaultScope
from torch import nn

from ebv_mm.basis import closed_form_basis, save_basis, size_in_name
from ebv_mm.config_bases import basis_paths
from ebv_mm.layers import EBVConv2d, EBVLinear

# What exists at one length only.
ALONE = [f'mmseg/{net}_{head}_160k' for net in ('upernet_swin_tiny', 'fpn_r50') for head in ('fc', 'ebv')]
# Another optimizer, schedule or data set makes no other model.
SAME_MODEL = re.compile(r'adamw|05e|_lr|_tv_|_plain|lt-50|lt-10(_30e)?$|160k|8xb4|_3x')
MODEL_CONFIGS = [name for name in CONFIGS + SMALL if not SAME_MODEL.search(name) or name in ALONE]


def model_config(name: str) -> Config:
    """The model as the runner would build it, but never with pretrained weights, which are on the network."""
    config = load(name)
    model = config.model
    if 'data_preprocessor' in config:
        model.setdefault('data_preprocessor', config.data_preprocessor)
    model.backbone.pop('init_cfg', None)
    model.pop('pretrained', None)
    return config


def build(name: str) -> nn.Module:
    config = model_config(name)
    with DefaultScope.overwrite_default_scope(config.default_scope):
        return revert_sync_batchnorm(MODELS.build(config.model))


def trainable(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters() if parameter.requires_grad)


@lru_cache(maxsize=None)
def backbone_size(name: str) -> int:
    return trainable(MODELS.build(dict(load(name).model.backbone, _scope_='mmpretrain')))


# Millions, as the paper prints them, and exactly: backbone + C * d + d, resp. C * N + N for FC.
SIZES = {
    'mmpretrain/resnet50_fc_a1': (25.6, 2048 * 1000 + 1000),
    'mmpretrain/resnet50_ebv_a1': (25.6, 2048 * 1000 + 1000),
    'mmpretrain/resnet50_ebv_a2_d100': (23.7, 2048 * 100 + 100),
    'mmpretrain/resnet50_ebv_a2_d2000': (27.6, 2048 * 2000 + 2000),
    'mmpretrain/swin_tiny_fc_a1': (28.3, 768 * 1000 + 1000),
    'mmpretrain/swin_tiny_ebv_a1': (28.3, 768 * 1000 + 1000),
    'mmpretrain/resnet50_fc_100k': (228.4, 2048 * 100000 + 100000),
    'mmpretrain/resnet50_ebv_100k': (33.8, 2048 * 5000 + 5000),
    'mmpretrain/resnet50_ebv_inat2018': (40.2, 2048 * 8142 + 8142),
    'mmpretrain/resnet32_fc_cifar10-lt-100': (0.46, 64 * 10 + 10),
    'mmpretrain/resnet32_ebv_cifar10-lt-100': (0.46, 64 * 10 + 10),
}


@pytest.mark.parametrize('name', SIZES)
def test_trainable_parameters(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # no basis file is here, so that nothing is read; the name tells its size
    millions, head_size = SIZES[name]
    with torch.device('meta'):  # 800 MB of weights, or 2 GB of basis, take no memory
        head = MODELS.build(dict(load(name).model.head, _scope_='mmpretrain'))
    assert trainable(head) == head_size
    total = backbone_size('mmpretrain/resnet50_fc_a1' if 'resnet50' in name else name) + head_size
    assert round(total / 1e6, 2 if millions < 1 else 1) == millions


# -- forward and backward ----------------------------------------------------------------------------------------------


@pytest.fixture(scope='module')
def bases(tmp_path_factory):
    """A folder that has the bases that the configs name; made when asked for."""
    folder = tmp_path_factory.mktemp('user')

    def provide(name: str):
        for path in basis_paths(load(name).model.to_dict()):
            if not (folder / path).exists():
                save_basis(closed_form_basis(*size_in_name(path), rotate=False), folder / path)
        return folder

    return provide


def classification_batch(size: int, num_classes: int) -> dict:
    from mmpretrain.structures import DataSample

    samples = [DataSample().set_gt_label(int(label)) for label in torch.randint(num_classes, (2,))]
    return dict(inputs=list(torch.randint(256, (2, 3, size, size), dtype=torch.uint8)), data_samples=samples)


def detection_batch(size: int, num_classes: int) -> dict:
    from mmdet.structures import DetDataSample
    from mmdet.structures.mask import BitmapMasks
    from mmengine.structures import InstanceData

    masks = np.zeros((2, size, size), dtype=np.uint8)
    masks[0, 4:40, 4:40] = masks[1, 20:60, 30:60] = 1
    instances = InstanceData(
        bboxes=torch.tensor([[4.0, 4.0, 40.0, 40.0], [30.0, 20.0, 60.0, 60.0]]),
        labels=torch.tensor([0, num_classes - 1]),
        masks=BitmapMasks(masks, size, size),
    )
    meta = dict(img_shape=(size, size), ori_shape=(size, size), scale_factor=(1.0, 1.0))
    sample = DetDataSample(metainfo=meta, gt_instances=instances)
    return dict(inputs=[torch.randint(256, (3, size, size), dtype=torch.uint8)], data_samples=[sample])


def segmentation_batch(size: int, num_classes: int) -> dict:
    from mmengine.structures import PixelData
    from mmseg.structures import SegDataSample

    samples = []
    for _ in range(2):
        labels = torch.randint(num_classes, (1, size, size))
        labels[:, :4] = 255  # to be ignored
        meta = dict(img_shape=(size, size), ori_shape=(size, size))
        samples.append(SegDataSample(metainfo=meta, gt_sem_seg=PixelData(data=labels)))
    return dict(inputs=list(torch.randint(256, (2, 3, size, size), dtype=torch.uint8)), data_samples=samples)


def test_every_model_is_run_once():
    models = [repr(plain(model_config(name).model)) for name in MODEL_CONFIGS]
    assert len(set(models)) == len(models)
    assert {repr(plain(model_config(name).model)) for name in CONFIGS + SMALL} == set(models)


@pytest.mark.parametrize(
    'name', [pytest.param(name, marks=pytest.mark.slow if '100k' in name else ()) for name in MODEL_CONFIGS]
)
def test_forward_and_backward(name, bases, monkeypatch):
    monkeypatch.chdir(bases(name))
    host = name.split('/')[0]
    model = build(name)
    model.train()
    if host == 'mmpretrain':
        size = 32 if 'resnet32' in name else 224 if 'swin' in name else 64  # Swin needs seven windows
        batch = classification_batch(size, model.head.num_classes)
    elif host == 'mmdet':
        heads = model.roi_head.bbox_head
        batch = detection_batch(64, (heads[0] if isinstance(heads, nn.ModuleList) else heads).num_classes)
    else:
        model.data_preprocessor.size = (64, 64)
        batch = segmentation_batch(64, model.decode_head.num_classes)
    data = model.data_preprocessor(batch, training=True)
    loss, _ = model.parse_losses(model(**data, mode='loss'))
    loss.backward()
    assert torch.isfinite(loss)
    layers = [module for module in model.modules() if isinstance(module, (EBVLinear, EBVConv2d))]
    for layer in layers:
        assert not layer.basis.requires_grad and layer.weight.grad.abs().sum() > 0
    # boxes of one image may miss a part of a detector, but every classifier is complete
    unused = [key for key, parameter in model.named_parameters() if parameter.requires_grad and parameter.grad is None]
    assert not unused
