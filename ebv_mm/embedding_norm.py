"""A batch norm between the projection and the unit sphere; with the projection it is one linear map once trained."""

from typing import Optional, Tuple

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm


class NormsEmbedding:
    """A module whose embedding passes through ``self.norm``: a mixin for :class:`torch.nn.Module`.

    Without a ``norm_cfg`` it is ``nn.Identity``, which has no state; either way a forward hook on it sees v.
    """

    # a batch norm that fits the embedding's shape
    _norm_type: type

    def hold_norm(self, norm_cfg: Optional[dict], dim: int) -> None:
        self.norm_cfg = norm_cfg
        self.norm = nn.Identity() if norm_cfg is None else self._build_norm(dim)

    def _build_norm(self, dim: int) -> nn.Module:
        from mmcv.cnn import build_norm_layer  # the hosts' own, which knows SyncBN

        norm = build_norm_layer(self.norm_cfg, dim)[1]
        if not isinstance(norm, (self._norm_type, nn.SyncBatchNorm)):
            name = {nn.BatchNorm1d: 'BN1d', nn.BatchNorm2d: 'BN2d'}[self._norm_type]
            raise ValueError(
                f'norm_cfg = {self.norm_cfg} is a {type(norm).__name__}, but {type(self).__name__} needs a batch norm, '
                f"which folds into the projection after training; take dict(type='{name}', affine=False), or 'SyncBN'"
            )
        return norm.to(self.weight.device)

    def folded_projection(self) -> Tuple[Tensor, Optional[Tensor]]:
        """Weight and bias, in float64, of projection and norm as one; as the norm is in evaluation."""
        weight, bias = self.weight.double(), None if self.bias is None else self.bias.double()
        if not isinstance(self.norm, _BatchNorm):
            return weight, bias
        if self.norm.running_var is None:
            raise TypeError(f'{self.norm} keeps no statistics, which folding needs; train with track_running_stats')
        scale = (self.norm.running_var.double() + self.norm.eps).rsqrt()
        if self.norm.affine:
            scale = scale * self.norm.weight.double()
        shift = -self.norm.running_mean.double() * scale
        if self.norm.affine:
            shift = shift + self.norm.bias.double()
        weight = weight * scale.view(-1, *[1] * (weight.ndim - 1))
        return weight, shift if bias is None else bias * scale + shift

    def _apply(self, fn, *args, **kwargs):
        """Move the norm with the module, but keep its precision: statistics in half would move the embedding."""

        def exact(tensor: Tensor) -> Tensor:
            moved = fn(tensor)
            return tensor.to(moved.device) if moved.dtype in (torch.float16, torch.bfloat16) else moved

        norm = self._modules.pop('norm')
        try:
            super()._apply(fn, *args, **kwargs)
        finally:
            self._modules['norm'] = norm
        norm._apply(exact)
        return self
