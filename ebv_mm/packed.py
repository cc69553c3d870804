"""Layers for other shapes: points in a row, and the anchors of one position packed into one convolution."""

import torch
from mmengine.registry import MODELS
from torch import Tensor, nn

from .layers import EBVConv2d, _BasisConvolution


@MODELS.register_module()
class EBVConv1d(_BasisConvolution, nn.Conv1d):
    r"""A classifier of points; takes the place of ``nn.Conv1d(C, num_classes, 1)``, as in PointRend.

    Args:
        args, kwargs: As in :class:`~ebv_mm.layers.EBVConv2d`; a norm is ``BN1d`` or ``SyncBN``.

    Shape:
        - Input: (B, C, P). Output: (B, N, P), in training (B, N + K, P), float32 at least.
    """

    _channel_dim = -2
    _norm_type = nn.BatchNorm1d


@MODELS.register_module()
class EBVAnchorConv2d(EBVConv2d):
    r"""``anchors`` classifiers of each position, as RetinaNet and SSD pack them into one convolution.

    Each anchor has a projection of its own, normalised by itself; the class vectors are the same for all.

    Args:
        in_channels: Number C of input channels.
        out_channels: ``anchors`` times the number N of classes, anchor by anchor.
        anchors: Number A of anchors.
        args, kwargs: As in :class:`~ebv_mm.layers.EBVConv2d`.

    Shape:
        - Input: (B, C, H, W). Output: (B, A N, H', W'), float32 at least.
    """

    anchors = 1  # while the parent is made

    def __init__(self, in_channels: int, out_channels: int, *args, anchors: int, **kwargs) -> None:
        if out_channels % anchors:
            raise ValueError(f'out_channels = {out_channels} is no multiple of anchors = {anchors}; give A times N')
        if kwargs.get('norm_cfg') is not None:
            raise ValueError(f'norm_cfg = {kwargs["norm_cfg"]}, but anchors are normalised one by one; leave it out')
        if kwargs.get('reserve'):
            raise ValueError(
                f'reserve = {kwargs["reserve"]}, but the hosts count the outputs of anchors by their classes; leave it '
                'out, and train anew when classes come'
            )
        super().__init__(in_channels, out_channels // anchors, *args, **kwargs)
        self._enlarge(anchors)

    def _enlarge(self, anchors: int) -> None:
        dim, self.anchors = self.dim, anchors
        for tensor in filter(torch.is_tensor, (self.weight, self.bias)):
            tensor.data = tensor.new_empty(anchors * dim, *tensor.shape[1:])
        self.out_channels = anchors * dim
        self.reset_parameters()
        self.init_weights()

    @property
    def dim(self) -> int:
        return self.weight.shape[0] // self.anchors

    def resize_projection(self, dim: int) -> None:
        if dim != self.dim:
            anchors, self.anchors = self.anchors, 1
            super().resize_projection(dim)
            self._enlarge(anchors)

    def project(self, x: Tensor) -> Tensor:
        """The embeddings (B A, d, H', W'), an anchor like an image of its own."""
        v = super().project(x)
        return v.reshape(-1, self.dim, *v.shape[-2:])

    def forward(self, x: Tensor) -> Tensor:
        logits = super().forward(x)
        return logits.reshape(len(x), self.anchors * self.num_vectors, *logits.shape[-2:])
