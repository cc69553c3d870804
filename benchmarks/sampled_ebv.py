"""EBV with d = N of which a step computes a part: unit vectors make a class one dimension, so that both are sampled."""

import torch
from mmpretrain.registry import MODELS
from rival_heads import SampledClsHead
from torch import Tensor
from torch.nn.functional import batch_norm, linear


@MODELS.register_module()
class SampledEBVClsHead(SampledClsHead):
    r"""EBV on unit vectors, with a batch norm of the embedding, that is trained on a sample of its dimensions.

    With :math:`w_k = e_k` the logit of class k is :math:`u_k / (\tau |u|)`, where :math:`u_k` is row k of the
    projection times x, less its mean and over its deviation. Only :math:`|u|` needs all rows. It is estimated from the
    rows of the step: a class of the batch stands for itself, any other one also for those that were not taken.

    Means and deviations of all rows follow from the mean and the covariance of x, which are kept as the batch norm
    keeps its statistics; so a prediction needs none of the rows' own.

    Args:
        tau: Temperature.
        momentum: Of the mean and the covariance of x.
        args, kwargs: Those of ``SampledClsHead``.
    """

    def __init__(self, *args, tau: float, momentum: float = 0.1, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.tau, self.momentum = tau, momentum
        self.register_buffer('mean', torch.zeros(self.in_channels))
        self.register_buffer('covariance', torch.eye(self.in_channels))

    def _sampled_logits(self, x: Tensor, present: int) -> Tensor:
        self._keep_statistics(x.detach())
        u = batch_norm(linear(x, self.sampled.weight), None, None, training=True)
        squares = u.square()
        others = self.num_sampled - present
        weight = (self.num_classes - present) / others if others else 0.0
        norm = (squares[:, :present].sum(1) + weight * squares[:, present:].sum(1)).sqrt()
        return u / (self.tau * norm[:, None])

    @torch.no_grad()
    def _keep_statistics(self, x: Tensor) -> None:
        self.mean.lerp_(x.mean(0), self.momentum)
        self.covariance.lerp_(torch.cov(x.T), self.momentum)

    def forward(self, feats: tuple[Tensor]) -> Tensor:
        weight = self.fc.weight
        deviation = ((weight @ self.covariance) * weight).sum(1).clamp(min=1e-5).sqrt()
        u = linear(self.pre_logits(feats) - self.mean, weight) / deviation
        return u / (self.tau * u.norm(dim=1, keepdim=True))
