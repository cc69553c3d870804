from mmdet.models.roi_heads.bbox_heads import Shared2FCBBoxHead
from mmdet.models.roi_heads.mask_heads import FCNMaskHead
from mmdet.registry import MODELS

from ..basis_argument import BasisLike


@MODELS.register_module()
class EBVBBoxHead(Shared2FCBBoxHead):
    """``Shared2FCBBoxHead`` with fixed class vectors, the last one for the background.

    Any other ConvFC head becomes the same by ``cls_predictor_cfg=dict(type='EBVLinear', basis=..., tau=...)``.

    Args:
        basis, tau, balanced_init: As in :class:`~ebv_mm.layers.EBVLinear`; the basis needs ``num_classes + 1`` vectors.
        args, kwargs: The arguments of ``Shared2FCBBoxHead``.
    """

    def __init__(self, *args, basis: BasisLike, tau: float = 0.07, balanced_init: bool = False, **kwargs) -> None:
        if 'reserve' in kwargs:
            raise TypeError(
                'EBVBBoxHead takes no reserve: its last vector is the background, whose number a class behind it would '
                'take; leave it out, and train anew when classes come'
            )
        layer = dict(type='EBVLinear', basis=basis, tau=tau, balanced_init=balanced_init)
        super().__init__(*args, cls_predictor_cfg=layer, **kwargs)


@MODELS.register_module()
class EBVMaskHead(FCNMaskHead):
    """``FCNMaskHead`` with fixed class vectors, shared with the box head: the first ``num_classes`` of its basis.

    Args:
        basis, tau, balanced_init: As in :class:`~ebv_mm.layers.EBVConv2d`.
        args, kwargs: The arguments of ``FCNMaskHead``.
    """

    def __init__(self, *args, basis: BasisLike, tau: float = 0.07, balanced_init: bool = False, **kwargs) -> None:
        layer = dict(type='EBVConv2d', basis=basis, tau=tau, balanced_init=balanced_init)
        super().__init__(*args, predictor_cfg=layer, **kwargs)

    def init_weights(self) -> None:
        """Leave the projection at torch's own initialisation, as in the authors' runs, or balance it.

        The host's (Kaiming, fan-out) has a norm four times as large; since the projection is normalised, that would
        change its effective learning rate.
        """
        super().init_weights()
        self.conv_logits.reset_parameters()
        self.conv_logits.init_weights()
