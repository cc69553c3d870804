"""One step of training of a converted model: whether an EBV layer stands where the classifier was, and learns."""

from copy import deepcopy
from importlib import import_module
from itertools import product
from typing import Iterable, List, Tuple

import torch
from mmengine.config import Config
from mmengine.logging import MessageHub
from torch import Tensor, nn

from ..head import EBV_LAYERS, find
from .classifiers import Classifier, ConversionError
from .models import build, in_scope, named_layers, places

MOST_PARAMETERS = 500_000_000
# Images of so many pixels on a side, the next where a model needs more.
SIZES = (64, 128, 224, 320, 512)
# What a config has that trains on masks.
WITH_MASKS = ('mask_head', 'MaskFormer', 'Mask2Former', 'SOLO', 'RTMDetIns', 'PanopticFPN')
TRACKERS = ('ByteTrack', 'DeepSORT', 'SORT', 'OCSORT', 'StrongSORT', 'QDTrack', 'MaskTrackRCNN', 'Mask2FormerVideo')


def run_once(cfg: Config, ebv_cfg: Config, classifiers: List[Classifier]) -> dict:
    """Build, look, and train for one step; returns what came of it."""
    ebv_cfg = deepcopy(ebv_cfg)
    _for_a_trial(ebv_cfg.model)
    model = build(ebv_cfg)
    parameters = sum(part.numel() for part in model.parameters())
    if parameters > MOST_PARAMETERS:
        return dict(ran='too large', parameters=parameters)
    model.init_weights()
    _look(model, classifiers)
    if model.__class__.__name__ in TRACKERS or any(key in cfg.model for key in ('detector', 'reid')):
        return dict(ran='built', why='a tracker or a teacher: its parts are trained apart', parameters=parameters)
    heads = dict(named_layers(model, EBV_LAYERS))
    failure = None
    for size in _sizes(cfg):
        try:
            loss = _step(model, cfg, size)
            failure = None
            break
        except NotImplementedError:  # by which a host says that it does not train this
            raise
        except Exception as error:  # too small for its strides, most of the time
            failure = error
    if failure is not None:
        raise failure
    if not torch.isfinite(loss):
        raise ConversionError(f'the loss is {float(loss)}')
    still = [name for name, layer in heads.items() if layer.weight.grad is None or not layer.weight.grad.any()]
    if heads and len(still) == len(heads):
        raise ConversionError(f'no gradient reaches {", ".join(still)}')
    return dict(ran='trained', parameters=parameters, loss=round(float(loss), 3), without_gradient=still)


def _for_a_trial(node: object) -> None:
    """Take out of a config the addresses of pretrained weights, and weights of classes.

    By those mmseg 1.2 looks up ignored pixels too, and fails (PIDNet).
    """
    for child in node if isinstance(node, (list, tuple)) else node.values() if isinstance(node, dict) else ():
        _for_a_trial(child)
    if isinstance(node, dict):
        for key in ('pretrained', 'teacher_ckpt'):
            if isinstance(node.get(key), str):
                node[key] = None
        for loss in node['loss_decode'] if isinstance(node.get('loss_decode'), list) else [node.get('loss_decode')]:
            if loss:
                loss.pop('class_weight', None)
        init = node.get('init_cfg')
        if isinstance(init, dict) and init.get('type') == 'Pretrained':
            del node['init_cfg']


def _look(model: nn.Module, classifiers: List[Classifier]) -> None:
    """Raise unless an EBV layer stands at every place of every classifier."""
    for classifier in classifiers:
        heads = [model.get_submodule(place) for place in places(model, classifier.name)]
        # one config for all stages of a cascade
        copies = [each for head in heads for each in (head if isinstance(head, nn.ModuleList) else [head])]
        for path, each in product(classifier.layers, copies):
            wrong = next((layer for _, _, layer in find(each, path) if not isinstance(layer, EBV_LAYERS)), None)
            if wrong is not None:
                raise ConversionError(f'{classifier.name}.{path} is a {type(wrong).__name__} still')


def _sizes(cfg: Config) -> List[int]:
    backbone = cfg.model.get('backbone') or {}
    fixed = backbone.get('img_size') or (backbone.get('input_size') if 'SSD' in str(backbone.get('type')) else None)
    if cfg.get('default_scope') == 'mmpretrain':
        return [fixed if isinstance(fixed, int) else 224, 32, 299, 384]
    return [fixed] if isinstance(fixed, int) and 'SSD' in str(backbone.get('type')) else list(SIZES)


def first_losses(cfg: Config, size: int = 256) -> dict:
    """The losses of a new model, each summed over its levels, on a batch of noise."""
    cfg = deepcopy(cfg)
    _for_a_trial(cfg.model)
    model = build(cfg)
    torch.manual_seed(0)
    model.init_weights()
    return {name: float(sum(value) if isinstance(value, list) else value) for name, value in _losses(model, cfg, size)}


def _losses(model: nn.Module, cfg: Config, size: int) -> Iterable[Tuple[str, Tensor]]:
    torch.manual_seed(0)
    model.train()
    for name in ('iter', 'epoch'):  # by which some heads and some sizes of images change
        MessageHub.get_current_instance().update_info(name, 0)
    batch = getattr(_Batches, cfg.get('default_scope'))(cfg, size)
    _keep_small(model.data_preprocessor, size)
    with in_scope(cfg):
        return model(**model.data_preprocessor(batch, True), mode='loss').items()


def _keep_small(preprocessor: nn.Module, size: int) -> None:
    """Let a host not enlarge the images: mmseg pads them to its crops, some detectors to 1,024 pixels."""
    if hasattr(preprocessor, 'size') and getattr(preprocessor, 'size_divisor', None) is None:
        preprocessor.size = (size, size)
    if isinstance(getattr(preprocessor, 'batch_augments', None), nn.ModuleList):  # of mmdet; mmpretrain's mix labels
        preprocessor.batch_augments = None


def _step(model: nn.Module, cfg: Config, size: int) -> Tensor:
    model.zero_grad()
    loss, _ = model.parse_losses(dict(_losses(model, cfg, size)))
    loss.backward()
    return loss.detach()


class _Batches:
    """Two labelled images of noise, as each host takes them."""

    @staticmethod
    def mmpretrain(cfg: Config, size: int) -> dict:
        sample = import_module('mmpretrain.structures').DataSample
        channels = 1 if cfg.model.get('backbone', {}).get('type') == 'LeNet5' else 3
        tasks = (cfg.model.get('head') or {}).get('task_heads')
        samples = [sample().set_gt_label(label) for label in (0, 1)]
        if tasks:
            samples = [import_module('mmpretrain.structures').MultiTaskDataSample() for _ in (0, 1)]
            for entry in samples:
                for task in tasks:
                    entry.set_field(sample().set_gt_label(1), task)
        return dict(inputs=[_image(size, channels) for _ in samples], data_samples=samples)

    @staticmethod
    def mmdet(cfg: Config, size: int) -> dict:
        inputs = import_module('mmdet.testing').demo_mm_inputs
        masks = any(mark in str(cfg.model) for mark in WITH_MASKS)
        batch = inputs(2, [(3, size, size)] * 2, num_items=[3, 3], num_classes=2, with_mask=masks, with_semantic=True)
        for sample in batch['data_samples']:
            sample.gt_sem_seg.sem_seg = torch.as_tensor(sample.gt_sem_seg.sem_seg)
        return batch

    @staticmethod
    def mmseg(cfg: Config, size: int) -> dict:
        sample = import_module('mmseg.structures').SegDataSample
        pixels = import_module('mmengine.structures').PixelData
        samples = []
        for _ in range(2):
            labels = torch.randint(0, 2, (1, size, size))
            entry = sample(
                gt_sem_seg=pixels(data=labels), metainfo=dict(img_shape=(size, size), pad_shape=(size, size))
            )
            entry.gt_edge_map = pixels(data=torch.zeros_like(labels))
            entry.gt_depth_map = pixels(data=torch.rand(1, size, size))
            samples.append(entry)
        return dict(inputs=[_image(size) for _ in samples], data_samples=samples)


def _image(size: int, channels: int = 3) -> Tensor:
    return torch.randint(0, 256, (channels, size, size), dtype=torch.uint8)
