"""The parts of a host's model that are networks of tensors, and a model that runs on exported ones.

What lies between them stays with the host: reading and normalising images before, proposals, RoIAlign and
non-maximum suppression between the networks of a detector, drawing and rescaling after.
"""

from copy import deepcopy
from dataclasses import dataclass
from typing import Callable, Dict, List, Sequence, Tuple

import torch
from torch import Tensor, nn

from ..folding import fold
from ..head import EBV_LAYERS
from .pooling import with_fixed_pools

Run = Callable[..., Tuple[Tensor, ...]]


@dataclass
class Network:
    """One file to be.

    Args:
        name: '' where the model is one network.
        module: Takes and gives tensors only.
        inputs: Of one image.
        outputs: Their names.
        plug: Called with (model, run), puts ``run`` in the place of the module.
    """

    name: str
    module: nn.Module
    inputs: Tuple[Tensor, ...]
    outputs: List[str]
    plug: Callable[[nn.Module, Run], None]


@torch.no_grad()
def networks_of(model: nn.Module, images: Tensor) -> List[Network]:
    """The networks of a classifier, segmentor or detector, its classifiers folded.

    Args:
        model: Built by its host.
        images: (1, 3, H, W), as the host's data preprocessor gives them: of the size that the files will take, unless
            windows of it are what a segmentor's network sees.
    """
    if (getattr(model, 'test_cfg', None) or {}).get('mode') == 'slide':
        # mmseg calls its network with windows of the image
        images = nn.functional.interpolate(images, tuple(model.test_cfg.crop_size))
    model = with_fixed_pools(_folded(model).eval(), images)
    if hasattr(model, 'roi_head'):
        return _two_stage_networks(model, images)
    for attribute, network in (('decode_head', _segmentor), ('bbox_head', _one_stage), ('head', _classifier)):
        if getattr(model, attribute, None) is not None:
            return [network(model, images)]
    raise TypeError(
        f'{type(model).__name__} has no head, decode_head, bbox_head or roi_head; give a classifier, a segmentor or a '
        'detector'
    )


def plugged(model: nn.Module, networks: Sequence[Network], runs: Dict[str, Run]) -> nn.Module:
    """A copy of a model in which ``runs`` take the places of the networks of these names."""
    model = deepcopy(model).eval()
    for network in networks:
        network.plug(model, runs[network.name])
    return model


def _folded(model: nn.Module) -> nn.Module:
    """A copy without EBV layers; with them where one has a prior or anchors, which exporters know as well."""
    layers = [module for module in model.modules() if isinstance(module, EBV_LAYERS)]
    plain = all(layer.prior is None and layer.weight.shape[0] == layer.dim for layer in layers)
    return fold(model, keep_norm=True) if plain else deepcopy(model)


class _Whole(nn.Module):
    """A module whose forward pass is a function of the model it belongs to."""

    def __init__(self, model: nn.Module, function: Callable[[nn.Module, Tensor], object]) -> None:
        super().__init__()
        self.model = model
        self.function = function

    def forward(self, x: Tensor) -> Tuple[Tensor, ...]:
        return tuple(_flat(self.function(self.model, x)))


def _classifier(model: nn.Module, images: Tensor) -> Network:
    def plug(model: nn.Module, run: Run) -> None:
        model.extract_feat = lambda inputs, *args, **kwargs: inputs
        model.head.predict_topk = None
        model.head.forward = lambda inputs: run(inputs)[0]

    module = _Whole(model, lambda model, x: model.head(model.extract_feat(x)))
    return Network('', module, (images,), ['logits'], plug)


def _segmentor(model: nn.Module, images: Tensor) -> Network:
    size = tuple(images.shape[-2:])

    def plug(model: nn.Module, run: Run) -> None:
        model.encode_decode = lambda inputs, metas: run(inputs)[0]

    module = _Whole(model, lambda model, x: model.encode_decode(x, [dict(img_shape=size, pad_shape=size)]))
    return Network('', module, (images,), ['logits'], plug)


def _one_stage(model: nn.Module, images: Tensor) -> Network:
    if hasattr(model, 'decoder'):
        raise TypeError(
            f'{type(model).__name__} has a transformer between its features and its head, which is no network of '
            'tensors in its host; export --to fc, and go on with what its host offers'
        )
    lengths = _lengths(model.bbox_head(model.extract_feat(images)))

    def plug(model: nn.Module, run: Run) -> None:
        model.extract_feat = lambda inputs: inputs
        model.bbox_head.forward = lambda inputs: _grouped(run(inputs), lengths)

    module = _Whole(model, lambda model, x: model.bbox_head(model.extract_feat(x)))
    names = [f'output{group}_level{level}' for group, length in enumerate(lengths) for level in range(length)]
    return Network('', module, (images,), names, plug)


def _two_stage_networks(model: nn.Module, images: Tensor) -> List[Network]:
    """Backbone, neck and RPN as one network; each box and mask head, which takes features of regions, as another."""
    if getattr(model.roi_head, 'with_shared_head', False):
        raise TypeError(f'{type(model).__name__} has a shared head for its regions, which cannot be exported; use FPN')
    features = model.extract_feat(images)
    lengths = [len(features), *_lengths(model.rpn_head(features))]

    def plug_trunk(model: nn.Module, run: Run) -> None:
        seen = {}

        def extract_feat(inputs: Tensor) -> tuple:
            features, *seen['rpn'] = _grouped(run(inputs), lengths)
            return tuple(features)

        model.extract_feat = extract_feat
        model.rpn_head.forward = lambda features: seen['rpn']

    def trunk(model: nn.Module, x: Tensor) -> tuple:
        features = model.extract_feat(x)
        return (features, *model.rpn_head(features))

    names = [
        f'{group}{level}'
        for group, length in zip(('feature', 'rpn_score', 'rpn_box'), lengths)
        for level in range(length)
    ]
    networks = [Network('trunk', _Whole(model, trunk), (images,), names, plug_trunk)]
    outputs = dict(bbox_head=['logits', 'boxes'], mask_head=['logits'])
    for kind, extractor in (('bbox_head', 'bbox_roi_extractor'), ('mask_head', 'mask_roi_extractor')):
        if getattr(model.roi_head, kind, None) is None:
            continue
        for path, head, roi in _stages(model.roi_head, kind, extractor):
            size = _pair(roi.roi_layers[0].output_size)
            regions = torch.randn(2, roi.out_channels, *size, device=images.device)
            module = _Whole(head, lambda head, x: head(x))
            networks.append(Network(path, module, (regions,), outputs[kind], _plug_head(path)))
    return networks


def _stages(roi_head: nn.Module, kind: str, extractor: str) -> List[tuple]:
    """(path, head, region extractor) of a head, or of each stage of a cascade."""
    head, roi = getattr(roi_head, kind), getattr(roi_head, extractor, None) or roi_head.bbox_roi_extractor
    if not isinstance(head, nn.ModuleList):
        return [(kind, head, roi)]
    return [(f'{kind}.{i}', stage, roi[i]) for i, stage in enumerate(head)]


def _plug_head(path: str) -> Callable[[nn.Module, Run], None]:
    def plug(model: nn.Module, run: Run) -> None:
        head = model.roi_head.get_submodule(path)

        def forward(regions: Tensor):
            outputs = run(regions)
            return outputs if len(outputs) > 1 else outputs[0]

        head.forward = forward

    return plug


def _flat(outputs: object) -> List[Tensor]:
    if isinstance(outputs, Tensor):
        return [outputs]
    return [tensor for part in outputs for tensor in _flat(part)]


def _lengths(outputs: Sequence[Sequence[Tensor]]) -> List[int]:
    return [len(group) for group in outputs]


def _grouped(tensors: Sequence[Tensor], lengths: Sequence[int]) -> List[List[Tensor]]:
    left = iter(tensors)
    return [[next(left) for _ in range(length)] for length in lengths]


def _pair(size: object) -> Tuple[int, int]:
    return (size, size) if isinstance(size, int) else tuple(size)
