from mmengine.model import BaseModule
from mmseg.models.decode_heads.decode_head import BaseDecodeHead
from mmseg.registry import MODELS
from torch import nn

from ..basis_argument import BasisLike
from ..layers import EBVConv2d

# Heads that have a `conv_seg`, but do not classify pixels by calling it, and why.
UNSUITED = {
    'IterativeDecodeHead': 'K-Net reads the weight of conv_seg as its class kernels',
    'VPDDepthHead': 'it regresses depth and never calls conv_seg',
}


@MODELS.register_module()
def EBVDecodeHead(  # noqa: N802
    head: str, *, basis: BasisLike, tau: float = 0.07, balanced_init: bool = False, **kwargs
) -> BaseDecodeHead:
    """Any mmseg decode head, with fixed class vectors: its ``conv_seg`` becomes an :class:`~ebv_mm.layers.EBVConv2d`.

    A function and not a class, because what it returns is the named head itself. Classifiers that a head has beside its
    ``conv_seg`` (DAHead, DDRHead and PIDHead, for auxiliary losses) stay as they are.

    Args:
        head: The type of the decode head, such as ``'UPerHead'``.
        basis, tau, balanced_init: As in :class:`~ebv_mm.layers.EBVConv2d`.
        kwargs: The arguments of that head.
    """
    decode_head = MODELS.build(dict(type=head, **kwargs))
    why = next((UNSUITED[base.__name__] for base in type(decode_head).__mro__ if base.__name__ in UNSUITED), None)
    conv_seg = getattr(decode_head, 'conv_seg', None)
    if why is None and not isinstance(conv_seg, nn.Conv2d):
        why = 'it has no conv_seg'
    if why is not None:
        raise TypeError(
            f'EBVDecodeHead cannot use head={head!r}, because {why}; name a head that classifies pixels by its '
            "conv_seg, such as 'UPerHead' or 'FCNHead'"
        )
    if balanced_init and type(decode_head).init_weights is not BaseModule.init_weights:
        raise TypeError(
            f'balanced_init=True would be undone by head={head!r}, which initialises all its convolutions itself; '
            'leave it out'
        )
    layer = dict(basis=basis, tau=tau, balanced_init=balanced_init)
    decode_head.conv_seg = EBVConv2d(conv_seg.in_channels, conv_seg.out_channels, 1, **layer)
    return decode_head
