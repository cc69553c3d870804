from typing import Optional

from mmpretrain.models.heads import LinearClsHead
from mmpretrain.registry import MODELS

from ..layers import BasisLike, EBVLinear


@MODELS.register_module()
class EBVClsHead(LinearClsHead):
    """``LinearClsHead`` with fixed class vectors: its ``fc`` is an :class:`~ebv_mm.layers.EBVLinear`.

    Args:
        num_classes: Number of classes.
        in_channels: Number of channels of the feature.
        basis, tau: As in :class:`~ebv_mm.layers.EBVLinear`.
        init_cfg: Defaults to None, which leaves ``fc`` at torch's own initialisation, as in the authors' runs.
        kwargs: The other arguments of ``LinearClsHead``.
    """

    def __init__(
        self,
        num_classes: int,
        in_channels: int,
        *,
        basis: BasisLike,
        tau: float = 0.07,
        init_cfg: Optional[dict] = None,
        **kwargs,
    ) -> None:
        # The parent's own fc is thrown away: let it have one output, and not 100,000 that take 800 MB.
        super().__init__(min(num_classes, 1), in_channels, init_cfg=init_cfg, **kwargs)
        self.num_classes = num_classes
        self.fc = EBVLinear(in_channels, num_classes, basis=basis, tau=tau)
