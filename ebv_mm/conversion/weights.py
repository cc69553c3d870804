r"""An FC classifier's weights as a projection against fixed vectors.

With class vectors U (N x d), an FC layer W x + b (N outputs) becomes the projection A = U^+ W, b' = U^+ b, where U^+ is
the pseudo-inverse. For d >= N, U U^+ = 1, hence <A x + b', u_k> = (W x + b)_k for every x: the same class, exactly. For
an orthonormal basis U^+ = U^T, and |A x + b'| = |W x + b|. For d < N, U A is the best approximation of W in the least
squares, and the classes of some inputs change.

The logits of EBV are those of FC divided by |A x + b'|, which differs from input to input. A constant c s in b'
steadies it, where s is a unit vector that no score notices: orthogonal to all class vectors, or for a softmax equally
near to all. |A x + b'|^2 = |W x + b|^2 + c^2 then varies as little as one likes. With tau = 1 / c the logits of EBV
tend to FC's as c grows.
"""

import math
from typing import NamedTuple, Optional, Sequence

import torch
from torch import Tensor, nn

ORTHONORMAL_TOLERANCE = 1e-5


class Plain(NamedTuple):
    """What an FC layer computes: weight (A, N, K) and bias (A, N), A anchors of N classes each; None for no bias."""

    weight: Tensor
    bias: Optional[Tensor]


def plain_weights(layer: nn.Module, anchors: int = 1) -> Plain:
    """The weights of an FC layer in float64, rows normalised where the layer does so itself."""
    weight = layer.weight.detach().double().flatten(1)
    if hasattr(layer, 'tempearture') or getattr(layer, 'weight_norm', False):  # mmdet's Normed*, ArcFace's NormProduct
        weight = nn.functional.normalize(weight, dim=1)
    bias = None if layer.bias is None else layer.bias.detach().double().view(anchors, -1)
    return Plain(weight.view(anchors, -1, weight.shape[1]), bias)


def projection(
    plain: Plain,
    vectors: Tensor,
    *,
    groups: Sequence[int] = (),
    prior: Optional[float] = None,
    steady: float = 0.0,
) -> Plain:
    """The projection (A, d, K) and its bias (A, d) that are to FC's logits what the vectors allow.

    Args:
        plain: FC's weights.
        vectors: U, (N, d).
        groups: Sizes of the groups of classes over which a softmax runs. Their mean is subtracted, which changes no
            score and makes |v| smaller. None for scores whose signs count.
        prior: Probability that the EBV layer adds to its logits as a fixed bias.
        steady: c, the length of the constant that no score notices.
    """
    weight, bias = plain
    if bias is not None and prior is not None:
        bias = bias - math.log(prior / (1 - prior))
    start = 0
    for size in groups:
        rows = slice(start, start + size)
        weight = _centred(weight, rows)
        bias = None if bias is None else _centred(bias, rows)
        start += size
    inverse = pseudo_inverse(vectors)
    return Plain(
        inverse @ weight, None if bias is None else bias @ inverse.T + steady * unnoticed(vectors, bool(groups))
    )


def unnoticed(vectors: Tensor, softmax: bool) -> Tensor:
    """A unit vector that changes no score: orthogonal to all, for a softmax equally near to all; zero if none does."""
    u = vectors.double()
    if len(u) > u.shape[1] or (len(u) == u.shape[1] and not softmax):
        return u.new_zeros(u.shape[1])
    inverse = pseudo_inverse(vectors)
    if len(u) < u.shape[1]:
        axis = torch.eye(u.shape[1], dtype=u.dtype)[int(u.square().sum(0).argmin())]
        away = axis - inverse @ (u @ axis)
    else:
        away = inverse.sum(1)
    return away / away.norm()


def _centred(tensor: Tensor, rows: slice) -> Tensor:
    out = tensor.clone()
    out[:, rows] -= tensor[:, rows].mean(1, keepdim=True)
    return out


def pseudo_inverse(vectors: Tensor) -> Tensor:
    """U^+, (d, N), in float64."""
    u = vectors.double()
    if len(u) > u.shape[1]:
        return torch.linalg.solve(u.T @ u, u.T)
    gram = u @ u.T
    gram.diagonal().sub_(1)
    if gram.abs().max() < ORTHONORMAL_TOLERANCE:
        return u.T
    gram.diagonal().add_(1)
    return torch.linalg.solve(gram, u).T


@torch.no_grad()
def put_projection(layer: nn.Module, made: Plain) -> None:
    """Write a projection into an EBV layer."""
    layer.weight.copy_(made.weight.reshape(layer.weight.shape))
    if layer.bias is not None:
        layer.bias.copy_(torch.zeros_like(layer.bias) if made.bias is None else made.bias.reshape(-1))
