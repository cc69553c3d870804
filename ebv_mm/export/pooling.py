"""Adaptive average pooling as two matrix products, for exporters that know it only where the sizes divide."""

from typing import Optional

import torch
from torch import Tensor, nn


class FixedPool(nn.Module):
    r"""``nn.AdaptiveAvgPool2d`` for inputs of one size: :math:`P_h x P_w^T`, each row of P an average.

    Args:
        height, width: Of the input.
        output_size: As of ``nn.AdaptiveAvgPool2d``.
    """

    def __init__(self, height: int, width: int, output_size) -> None:
        super().__init__()
        rows, columns = output_size if isinstance(output_size, tuple) else (output_size, output_size)
        self.register_buffer('rows', averages(height, rows), persistent=False)
        self.register_buffer('columns', averages(width, columns).T.contiguous(), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return torch.matmul(torch.matmul(self.rows.to(x.dtype), x), self.columns.to(x.dtype))


def averages(size: int, bins: Optional[int]) -> Tensor:
    """(bins, size): row i averages from floor(i size / bins) to ceil((i + 1) size / bins), as torch does."""
    if bins is None:
        return torch.eye(size)
    matrix = torch.zeros(bins, size)
    for i in range(bins):
        start, stop = i * size // bins, -(-(i + 1) * size // bins)
        matrix[i, start:stop] = 1 / (stop - start)
    return matrix


@torch.no_grad()
def with_fixed_pools(model: nn.Module, images: Tensor) -> nn.Module:
    """Replace, in place, each adaptive average pool of more than one bin by the one for the size that it sees."""
    sizes = {}
    pools = [module for module in model.modules() if type(module) is nn.AdaptiveAvgPool2d]
    pools = [module for module in pools if module.output_size not in (1, (1, 1))]
    if not pools:
        return model
    hooks = [
        pool.register_forward_hook(lambda pool, inputs, output: sizes.update({pool: inputs[0].shape[-2:]}))
        for pool in pools
    ]
    model(images, mode='tensor')
    for hook in hooks:
        hook.remove()
    for parent in list(model.modules()):
        for name, child in list(parent._modules.items()):
            if child in sizes:
                parent._modules[name] = FixedPool(*sizes[child], child.output_size).to(images.device)
    return model
