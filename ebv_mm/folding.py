"""Deployment: projection and basis as one plain layer."""

from copy import deepcopy
from typing import Dict

import torch
from torch import Tensor, nn

from .head import EBV_LAYERS
from .precision import autocast_off, working_dtype


def fold(model: nn.Module, *, keep_norm: bool = False) -> nn.Module:
    r"""A copy of a model in which every EBV layer is one ordinary layer.

    Without the norm the layer is an ``nn.Linear`` or a convolution of :math:`W A x + W b`: every exporter and runtime
    knows it, and the largest output and all signs are those of the logits, hence the predicted class. Their size is
    not. So ``keep_norm`` is needed for softmax scores, by which boxes are filtered and ranked, and wherever outputs of
    several pixels are interpolated before they are compared, as mmseg and mmdet do with segmentations and masks. The
    layer then has d more outputs, :math:`v = A x + b`, whose norm turns the others into the logits.

    A batch norm of the embedding (``norm_cfg``) becomes part of A and b, with its statistics of evaluation.

    A structured basis becomes the matrix of its vectors: larger and slower than it was, but known to every runtime.

    Args:
        model: Any module, such as a whole detector, or a layer by itself.
        keep_norm: Whether the logits must be the same, and not only their order. They are computed in float32 at least,
            as before; fold a model after ``.half()``, not before, or its weights are rounded.
    """
    model = deepcopy(model)
    if isinstance(model, EBV_LAYERS):
        return _folded(model, keep_norm)
    folded: Dict[nn.Module, nn.Module] = {}  # one that stands in several places stays one
    for parent in list(model.modules()):
        for name, child in parent._modules.items():  # named_children() leaves out the second of two
            if isinstance(child, EBV_LAYERS):
                if child not in folded:
                    folded[child] = _folded(child, keep_norm)
                parent._modules[name] = folded[child]
    return model


class FoldedClassifier(nn.Module):
    """A plain layer of N + d outputs, the first N of which become logits by the norm of the others.

    The layer stands by itself in here, so that whatever replaces plain layers, as dynamic quantisation does, finds it.

    Args:
        layer: Gives the products with the class vectors, then the embedding v.
        num_vectors: N.
        tau: Temperature.
        channel_dim: Which dimension holds the outputs.
    """

    def __init__(self, layer: nn.Module, num_vectors: int, tau: float, channel_dim: int) -> None:
        super().__init__()
        self.layer = layer
        self.num_vectors = num_vectors
        self.tau = tau
        self.channel_dim = channel_dim
        self.register_buffer(
            'precision', layer.weight.new_zeros(()), persistent=False
        )  # a quantised layer has no dtype

    def forward(self, x: Tensor) -> Tensor:
        if torch.jit.is_scripting():  # in which there is no autocast to switch off
            return self.logits(x)
        with autocast_off(x.device.type):
            return self.logits(x)

    def logits(self, x: Tensor) -> Tensor:
        out = self.layer(x.to(self.precision.dtype))
        if out.dtype in (torch.float16, torch.bfloat16):
            out = out.float()
        products = out.narrow(self.channel_dim, 0, self.num_vectors)
        v = out.narrow(self.channel_dim, self.num_vectors, out.shape[self.channel_dim] - self.num_vectors)
        # the largest entry is taken out first: the square of a large one would overflow; a zero v has zero products
        largest = v.abs().amax(self.channel_dim, keepdim=True).clamp_min(1e-12)
        norm = torch.linalg.vector_norm(v / largest, dim=self.channel_dim, keepdim=True).clamp_min(1.0)
        return products / largest / (norm * self.tau)


@torch.no_grad()
def _folded(layer: nn.Module, keep_norm: bool) -> nn.Module:
    layer.check_basis()
    name = type(layer).__name__
    if layer.prior is not None or layer.weight.shape[0] != layer.dim:
        raise TypeError(f'{name} has a prior or anchors, which one plain layer cannot have; use it as it is')
    weight, bias = layer.folded_projection()
    num_classes = layer.num_vectors - layer.reserve
    matrix = layer.vectors[:num_classes].double()
    if keep_norm:
        matrix = torch.cat([matrix, torch.eye(layer.dim, dtype=torch.float64, device=matrix.device)])
    if isinstance(layer, nn.Linear):
        out = nn.Linear(layer.in_features, len(matrix), bias is not None)
    else:
        sizes = (layer.in_channels, len(matrix), layer.kernel_size, layer.stride, layer.padding, layer.dilation)
        convolution = nn.Conv1d if isinstance(layer, nn.Conv1d) else nn.Conv2d
        out = convolution(*sizes, bias=bias is not None, padding_mode=layer.padding_mode)
    if layer.weight.shape[1:] != out.weight.shape[1:]:
        raise TypeError(f'{name} has groups, but each class needs all channels; folding it would not make it smaller')
    out = out.to(layer.weight.device, working_dtype(layer.weight) if keep_norm else layer.weight.dtype)
    out.weight.copy_(torch.tensordot(matrix, weight, 1))
    if bias is not None:
        out.bias.copy_(matrix @ bias)
    if keep_norm:
        out = FoldedClassifier(out, num_classes, layer.tau, layer._channel_dim)
    return out.train(layer.training)
