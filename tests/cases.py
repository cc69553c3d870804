"""Every place where a fixed basis can stand: the two layers, and each head beside its plain twin."""

from dataclasses import dataclass
from typing import Callable, Optional

import torch
from mmengine.registry import MODELS, DefaultScope
from torch import nn

import ebv_mm  # noqa: F401, registers the names

CLASSES = 7
TORCH_DEFAULT = 'torch default'
NORMAL = 'normal, std 0.01, bias 0'
BALANCED = 'norm 1 / tau, bias 0'


@dataclass
class Case:
    """A module with a classifier in it.

    Args:
        name: What pytest calls it.
        plain: Config of the plain twin; its ``num_classes`` is ``CLASSES``.
        type: The EBV type that replaces the plain one.
        classifier: Attribute of the classifier, '' if the module is the classifier itself.
        inputs: Make a batch of b features.
        init: How ``init_weights`` leaves the projection.
        rows: How many vectors the classifier needs.
        scope: Whose registry.
    """

    name: str
    plain: dict
    type: str
    classifier: str
    inputs: Callable[[int], object]
    init: str
    rows: int = CLASSES
    scope: Optional[str] = None

    def build(self, basis, tau: float = 0.07, **kwargs) -> nn.Module:
        config = dict(self.plain, type=self.type, basis=basis, tau=tau, **kwargs)
        if self.type == 'EBVDecodeHead':
            config['head'] = self.plain['type']
        return _build(config, self.scope)

    def build_plain(self) -> nn.Module:
        return _build(self.plain, self.scope)

    def layer(self, module: nn.Module) -> nn.Module:
        return getattr(module, self.classifier) if self.classifier else module

    def run(self, module: nn.Module, batch: int = 2):
        """Return (input of the classifier, logits, all outputs)."""
        seen = []
        handle = self.layer(module).register_forward_hook(lambda _, inputs, output: seen.append((inputs[0], output)))
        outputs = module(self.inputs(batch))
        handle.remove()
        ((features, logits),) = seen
        return features, logits, outputs if isinstance(outputs, tuple) else (outputs,)


def _build(config: dict, scope: Optional[str]) -> nn.Module:
    with DefaultScope.overwrite_default_scope(scope):
        return MODELS.build(dict(config))


def pyramid(batch: int, size: int = 16):
    return [torch.randn(batch, 8 * 2**level, size // 2**level, size // 2**level) for level in range(4)]


def decode_head(name: str, **kwargs) -> Case:
    several = name in ('UPerHead', 'FPNHead', 'SegformerHead')
    where = dict(in_channels=[8, 16, 32, 64], in_index=[0, 1, 2, 3]) if several else dict(in_channels=64, in_index=3)
    return Case(
        name,
        dict(type=name, num_classes=CLASSES, channels=16, norm_cfg=dict(type='BN'), **where, **kwargs),
        'EBVDecodeHead',
        'conv_seg',
        pyramid,
        NORMAL,
        scope='mmseg',
    )


LAYERS = [
    Case(
        'EBVLinear',
        dict(type=nn.Linear, in_features=12, out_features=CLASSES),
        'EBVLinear',
        '',
        lambda b: torch.randn(b, 12),
        TORCH_DEFAULT,
    ),
    Case(
        'EBVConv2d',
        dict(type=nn.Conv2d, in_channels=12, out_channels=CLASSES, kernel_size=1),
        'EBVConv2d',
        '',
        lambda b: torch.randn(b, 12, 5, 4),
        TORCH_DEFAULT,
    ),
]
MASK_AND_BOX = dict(in_channels=8, num_classes=CLASSES)
HEADS = [
    Case(
        'EBVClsHead',
        dict(type='LinearClsHead', num_classes=CLASSES, in_channels=12),
        'EBVClsHead',
        'fc',
        lambda b: (torch.randn(b, 12),),
        BALANCED,
        scope='mmpretrain',
    ),
    Case(
        'EBVBBoxHead',
        dict(type='Shared2FCBBoxHead', fc_out_channels=16, roi_feat_size=3, **MASK_AND_BOX),
        'EBVBBoxHead',
        'fc_cls',
        lambda b: torch.randn(b, 8, 3, 3),
        NORMAL,
        rows=CLASSES + 1,
        scope='mmdet',
    ),
    Case(
        'EBVMaskHead',
        dict(type='FCNMaskHead', num_convs=1, conv_out_channels=8, **MASK_AND_BOX),
        'EBVMaskHead',
        'conv_logits',
        lambda b: torch.randn(b, 8, 6, 6),
        TORCH_DEFAULT,
        scope='mmdet',
    ),
    decode_head('UPerHead', pool_scales=(1, 2)),
    decode_head('FPNHead', feature_strides=[4, 8, 16, 32]),
    decode_head('FCNHead', num_convs=1),
    decode_head('PSPHead', pool_scales=(1, 2)),
    decode_head('SegformerHead'),
    decode_head('ASPPHead', dilations=(1, 2)),
]
CASES = LAYERS + HEADS
