r"""The idea, written once: trainable projection -> l2-normalise -> fixed basis -> / tau.

Shapes: N classes, d dimensions, C input channels. The inherited ``weight`` and ``bias`` are the projection into R^d;
the fixed vectors are a buffer called ``basis``, a name that no host initialises, decays or trains.
"""

import math
from typing import Optional

import torch
from mmengine.registry import MODELS
from torch import Tensor, nn
from torch.nn import functional

from .basis_argument import BasisLike, FixedBasis, resolve
from .basis_state import HoldsBasis
from .embedding_norm import NormsEmbedding
from .precision import autocast_off, working_dtype
from .tau_state import HoldsTau

# A v that is shorter than this counts as zero: its gradient would be of the order of the inverse.
NORM_EPS = 1e-12


def check_prior(prior: Optional[float]) -> None:
    if prior is not None and not (isinstance(prior, float) and 0 < prior < 1):
        raise ValueError(f'prior = {prior!r}, but a probability lies between 0 and 1; the hosts use 0.01')


def scaled_direction(v: Tensor, tau: float, dim: int = -1) -> Tensor:
    r""":math:`v / (\lVert v \rVert \tau)`, whose products with the class vectors are the logits.

    Zero where :math:`\lVert v \rVert` is below 1e-12, which has no direction that floating point could tell, and no
    gradient either.
    """
    # Divided by its largest entry first, so that no square overflows; the direction has the same gradient.
    u = v / v.detach().abs().amax(dim, keepdim=True).clamp_min(NORM_EPS)
    norm = torch.linalg.vector_norm(u, dim=dim, keepdim=True)
    # below 1 only where v is below NORM_EPS
    return u * torch.where(norm >= 1, 1 / (norm.clamp_min(1) * tau), torch.zeros_like(norm))


class _BasisClassifier(HoldsTau, NormsEmbedding, HoldsBasis):
    r"""What :class:`EBVLinear` and :class:`EBVConv2d` share, beside their projection.

    .. math:: v = A x + b, \qquad \mathrm{logits}_k = \frac{\langle v / \lVert v \rVert, w_k \rangle}{\tau} + p

    Everything here runs in float32 at least, also under autocast and in a half-precision model: a cosine is divided by
    a tau as small as 0.007, which would multiply float16's rounding to several tenths of a logit. A zero ``v`` has no
    direction: its logits are p and it passes no gradient.

    p is 0, or the logit of a ``prior``, which sigmoids need: no unit vector is far from N orthogonal ones, so that
    without it no class could be improbable. A projection with a prior begins with a bias that is equally far from all
    classes, of norm 1 / tau, so that the layer begins and learns as FC with the same prior.
    """

    _channel_dim: int

    def _fix(
        self,
        fixed: FixedBasis,
        num_vectors: int,
        tau: float,
        balanced_init: bool,
        norm_cfg: Optional[dict],
        prior: Optional[float],
        reserve: int,
    ) -> None:
        check_prior(prior)
        self.hold_tau(tau)
        self.hold_norm(norm_cfg, self.dim)
        self.hold(fixed, num_vectors, reserve, self.weight.device)
        self.balanced_init = balanced_init
        self.prior = prior
        self.init_weights()

    def init_weights(self) -> None:
        r"""Balance the projection, if that was asked for; hosts call this after their own initialisation.

        The logits :math:`\langle v, w_k \rangle / (\tau \lVert v \rVert)` change as those of a linear layer do where
        :math:`\lVert v \rVert = 1 / \tau`, which for features of root mean square 1 is a projection of that Frobenius
        norm. The smaller it is, the larger are its gradients, and the farther each of them turns it.
        """
        if self.balanced_init:
            nn.init.normal_(self.weight, std=1 / (self.tau * math.sqrt(self.weight.numel())))
            if self.bias is not None:
                nn.init.zeros_(self.bias)
        if self.prior is not None and self.bias is not None:
            with torch.no_grad():
                self.bias.view(-1, self.dim).copy_(self._far_from_all())

    def _far_from_all(self) -> Tensor:
        r"""A vector as long as 1 / tau, equally far from all classes; zero where none is known.

        Orthogonal to all where d > N, as the next vector of the basis is; otherwise :math:`-\sum_k w_k`.
        """
        if self.why_no_basis is not None:
            return self.weight.new_zeros(self.dim)
        vectors = self.vectors
        if self.dim > len(vectors):
            axis = int(vectors.square().sum(0).argmin())
            away = -vectors.T @ vectors[:, axis]
            away[axis] += 1
        else:
            away = -vectors.sum(0)
            away = away * (away.norm() > 0.1 * math.sqrt(len(vectors)))  # not what rounding leaves of a balanced set
        return scaled_direction(away, self.tau)

    @property
    def prior_logit(self) -> float:
        """What is added to every logit: that of the prior, 0 without one."""
        return 0.0 if self.prior is None else math.log(self.prior / (1 - self.prior))

    @property
    def dim(self) -> int:
        return self.weight.shape[0]

    def project(self, x: Tensor) -> Tensor:
        """The embedding v = A x + b, in float32 at least; through the batch norm, if there is one."""
        self.check_basis()
        dtype = working_dtype(x, self.weight)
        with autocast_off(x.device.type):
            bias = None if self.bias is None else self.bias.to(dtype)
            return self._normed(self._project(x.to(dtype), self.weight.to(dtype), bias))

    def _normed(self, v: Tensor) -> Tensor:
        return self.norm(v)

    def forward(self, x: Tensor) -> Tensor:
        v = self.project(x)
        with autocast_off(x.device.type):
            logits = self.products.with_all(scaled_direction(v, self.tau, self._channel_dim), self._channel_dim)
            return logits if self.prior is None else logits + self.prior_logit

    def resize_projection(self, dim: int) -> None:
        """Make room for a checkpoint's basis; the projection begins anew, in case the checkpoint has none that fits."""
        if dim != self.dim:
            for tensor in filter(torch.is_tensor, (self.weight, self.bias)):
                tensor.data = tensor.new_empty(dim, *tensor.shape[1:])
            self.hold_norm(self.norm_cfg, dim)
            self.reset_parameters()
            self.init_weights()

    def __prepare_scriptable__(self) -> None:
        raise TypeError(
            f'{type(self).__name__} cannot be scripted, because what prepares its vectors is Python; script the model '
            'that ebv_mm.fold(model, keep_norm=True) returns, whose logits are the same, or use torch.jit.trace'
        )

    def extra_repr(self) -> str:
        reserve = f', reserve={self.reserve}' if self.reserve else ''
        return f'{super().extra_repr()}, num_classes={self.num_vectors - self.reserve}{reserve}, tau={self.tau}'


@MODELS.register_module()
class EBVLinear(_BasisClassifier, nn.Linear):
    r"""A linear classifier with fixed class vectors; takes the place of ``nn.Linear(in_features, num_classes)``.

    Args:
        in_features: Size C of each input.
        out_features: Number N of classes, hence of outputs. (The attribute of this name becomes d, the projection's.)
        bias: Whether the projection has a bias.
        basis: Path of a basis file; or a dict of arguments of :func:`~ebv_mm.basis.closed_form_basis`, such as
            ``dict(num_classes=81, dim=81)``; or a :class:`~ebv_mm.basis.Basis`. Its first N vectors are used. With
            ``structured=True`` in the dict the matrix is never made, and a checkpoint holds its recipe only.
        tau: Temperature.
        balanced_init: Begin with a projection of Frobenius norm 1 / tau. False: leave it to the host, as in the
            authors' runs; docs/results.md says when that is too small. A host that initialises the layers of its heads
            itself overrides it, such as ``FCNMaskHead``; ``EBVMaskHead`` does not.
        norm_cfg: A batch norm of the embedding before it is normalised, such as ``dict(type='BN1d', affine=False)``;
            folded into the projection by :func:`~ebv_mm.fold`. For many classes; None, as in the paper: no norm.
        prior: Probability that a class has before anything is seen, for scores that are sigmoids; None for a softmax.
        reserve: Number K of vectors for classes that come later. In training they are outputs too, behind the N, that
            no target names: what is learned keeps away from them. The basis needs N + K vectors. docs/production.md.

    Shape:
        - Input: (\*, C). Output: (\*, N), in training (\*, N + K), float32 at least.

    Example:
        >>> layer = EBVLinear(256, 81, basis=dict(num_classes=81, dim=81))
        >>> layer(torch.randn(4, 256)).shape
        torch.Size([4, 81])
    """

    _channel_dim = -1
    _norm_type = nn.BatchNorm1d

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        *,
        basis: BasisLike,
        tau: float = 0.07,
        balanced_init: bool = False,
        norm_cfg: Optional[dict] = None,
        prior: Optional[float] = None,
        reserve: int = 0,
        **factory_kwargs,
    ) -> None:
        fixed = resolve(basis, out_features, reserve)
        super().__init__(in_features, fixed.dim, bias, **factory_kwargs)
        self._fix(fixed, out_features + reserve, tau, balanced_init, norm_cfg, prior, reserve)

    def _project(self, x: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
        return functional.linear(x, weight, bias)

    def _normed(self, v: Tensor) -> Tensor:
        # a batch norm of one dimension takes (B, d) only
        return self.norm(v) if v.ndim <= 2 else self.norm(v.flatten(0, -2)).view_as(v)

    def resize_projection(self, dim: int) -> None:
        super().resize_projection(dim)
        self.out_features = dim


class _BasisConvolution(_BasisClassifier):
    """What convolutional classifiers share: the projection is a convolution with d output channels."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size,
        *args,
        basis: BasisLike,
        tau: float = 0.07,
        balanced_init: bool = False,
        norm_cfg: Optional[dict] = None,
        prior: Optional[float] = None,
        reserve: int = 0,
        **kwargs,
    ) -> None:
        fixed = resolve(basis, out_channels, reserve)
        super().__init__(in_channels, fixed.dim, kernel_size, *args, **kwargs)
        self._fix(fixed, out_channels + reserve, tau, balanced_init, norm_cfg, prior, reserve)

    def _project(self, x: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
        return self._conv_forward(x, weight, bias)

    def resize_projection(self, dim: int) -> None:
        super().resize_projection(dim)
        self.out_channels = dim


@MODELS.register_module()
class EBVConv2d(_BasisConvolution, nn.Conv2d):
    r"""A convolutional classifier with fixed class vectors; takes the place of ``nn.Conv2d(C, num_classes, 1)``.

    Args:
        in_channels: Number C of input channels.
        out_channels: Number N of classes, hence of outputs. (The attribute of this name becomes d, the projection's.)
        kernel_size: Size of the projection's kernel.
        basis, tau, balanced_init, norm_cfg, prior, reserve: As in :class:`EBVLinear`; a norm is ``BN2d`` or ``SyncBN``.
        args, kwargs: The other arguments of ``nn.Conv2d``, for the projection.

    Shape:
        - Input: (B, C, H, W). Output: (B, N, H', W'), in training (B, N + K, H', W'), float32 at least.

    Example:
        >>> layer = EBVConv2d(256, 80, 1, basis=dict(num_classes=81, dim=81))
        >>> layer(torch.randn(2, 256, 28, 28)).shape
        torch.Size([2, 80, 28, 28])
    """

    _channel_dim = -3
    _norm_type = nn.BatchNorm2d
