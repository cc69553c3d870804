import torch
from mmpretrain.models.backbones import ResNet_CIFAR
from mmpretrain.models.backbones.resnet import BasicBlock
from mmpretrain.registry import MODELS
from torch import Tensor, nn
from torch.nn import functional


@MODELS.register_module()
class CIFARResNet(ResNet_CIFAR):
    """The ResNet of 6n + 2 layers for CIFAR (He et al., 2016, section 4.2).

    Three stages of n basic blocks with 16, 32, 64 channels, and shortcuts without parameters (option A). The host's
    ``ResNet_CIFAR`` is the ImageNet ResNet with another stem: four stages, 64 to 512 channels, 25 times the size.

    Args:
        depth: 20, 32, 44, 56 or 110, as in the paper; 8 for what has to be small.
        channels_last: Keep weights and activations in this memory format: the same numbers, faster on CPUs.
        bfloat16: Compute in this precision under autocast, and give the features in float32. On CPUs with instructions
            for it nearly twice as fast; on GPUs take the host's ``AmpOptimWrapper``, which needs one.
        flat: Give the features of all places as one vector (B, C H W), as a classifier without pooling takes them.
        kwargs: The other arguments of ``ResNet_CIFAR``.
    """

    arch_settings = {6 * n + 2: (BasicBlock, (n, n, n)) for n in (1, 3, 5, 7, 9, 18)}

    def __init__(
        self, depth: int, channels_last: bool = False, bfloat16: bool = False, flat: bool = False, **kwargs
    ) -> None:
        if depth not in self.arch_settings:
            raise ValueError(f'depth = {depth!r}, but there are {", ".join(map(str, self.arch_settings))}; choose one')
        shape = dict(stem_channels=16, base_channels=16, num_stages=3, strides=(1, 2, 2), dilations=(1, 1, 1))
        super().__init__(depth, **{**shape, 'out_indices': (2,), 'zero_init_residual': False, **kwargs})
        self.bfloat16, self.flat = bfloat16, flat
        if channels_last:
            self.to(memory_format=torch.channels_last)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        if self.bfloat16:
            with torch.autocast(x.device.type, torch.bfloat16):
                stages = tuple(stage.float() for stage in super().forward(x))
        else:
            stages = super().forward(x)
        return tuple(stage.flatten(1) for stage in stages) if self.flat else stages

    def make_res_layer(self, **kwargs) -> nn.Sequential:
        layer = super().make_res_layer(**kwargs)
        first = layer[0]
        if first.downsample is not None:
            first.downsample = PaddedShortcut(first.stride, first.out_channels - first.in_channels)
        return layer


class PaddedShortcut(nn.Module):
    """The identity, with a stride, and with channels of zeros before and behind."""

    def __init__(self, stride: int, new_channels: int) -> None:
        super().__init__()
        self.stride = stride
        self.padding = (0, 0, 0, 0, new_channels // 2, new_channels - new_channels // 2)

    def forward(self, x: Tensor) -> Tensor:
        return functional.pad(x[..., :: self.stride, :: self.stride], self.padding)
