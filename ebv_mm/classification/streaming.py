"""The host's classification losses as they are, computed without the B x N logits."""

from typing import Optional

from mmpretrain.models.losses import AsymmetricLoss, CrossEntropyLoss, FocalLoss, LabelSmoothLoss
from torch import Tensor, nn

from ..layers import EBVLinear
from ..losses import basis_cross_entropy


def smoothing_of(loss: nn.Module) -> Optional[float]:
    """The label smoothing of a host's loss that :func:`basis_cross_entropy` can compute; None if it cannot."""
    if isinstance(loss, LabelSmoothLoss):
        value = loss.label_smooth_val
        smoothing = {'original': value, 'classy_vision': value / (1 + value)}.get(loss.mode)
        loss = loss.ce
    else:
        smoothing = 0.0
    plain = type(loss) is CrossEntropyLoss and not loss.use_sigmoid and loss.reduction == 'mean'
    return smoothing if plain else None


def is_sigmoid(loss: nn.Module) -> bool:
    """Whether a host's loss is one of sigmoids."""
    return isinstance(loss, (AsymmetricLoss, FocalLoss)) or bool(
        getattr(getattr(loss, 'ce', loss), 'use_sigmoid', False)
    )


class StreamedLoss(nn.Module):
    """A host's cross-entropy or label smoothing, of embeddings in place of logits; the same values.

    Args:
        loss: The host's loss.
    """

    def __init__(self, loss: nn.Module) -> None:
        super().__init__()
        self.loss = loss

    def forward(self, embedding: Tensor, target: Tensor, *, classifier: EBVLinear, avg_factor: int) -> Tensor:
        class_weight = getattr(self.loss, 'ce', self.loss).class_weight
        total = basis_cross_entropy(
            embedding,
            target,
            classifier.products,
            classifier.tau,
            label_smoothing=smoothing_of(self.loss),
            weight=None if class_weight is None else embedding.new_tensor(class_weight),
            reduction='sum',
        )
        return self.loss.loss_weight * total / avg_factor
