from mmseg.models.decode_heads.decode_head import BaseDecodeHead
from mmseg.registry import MODELS

from ..basis_argument import BasisLike
from ..catalogue import why_refused
from ..head import put_layers


@MODELS.register_module()
def EBVDecodeHead(  # noqa: N802
    head: str, *, basis: BasisLike, tau: float = 0.07, balanced_init: bool = False, reserve: int = 0, **kwargs
) -> BaseDecodeHead:
    """Any mmseg decode head, with fixed class vectors: its ``conv_seg`` becomes an :class:`~ebv_mm.layers.EBVConv2d`.

    A function and not a class, because what it returns is the named head itself. Classifiers that a head has beside its
    ``conv_seg`` (DAHead, DDRHead and PIDHead, for auxiliary losses) stay as they are; name them in the ``layer`` of
    :func:`~ebv_mm.head.EBVHead` to replace them too.

    Args:
        head: The type of the decode head, such as ``'UPerHead'``.
        basis, tau, balanced_init, reserve: As in :class:`~ebv_mm.layers.EBVConv2d`.
        kwargs: The arguments of that head.
    """
    decode_head = MODELS.build(dict(type=head, **kwargs))
    why = why_refused(decode_head)
    if why is None and 'conv_seg' not in decode_head._modules:
        why = 'it has no conv_seg'
    if why is not None:
        raise TypeError(
            f'EBVDecodeHead cannot use head={head!r}, because {why}; name a head that classifies pixels by its '
            "conv_seg, such as 'UPerHead' or 'FCNHead'"
        )
    put_layers(decode_head, 'conv_seg', dict(basis=basis, tau=tau, balanced_init=balanced_init, reserve=reserve))
    return decode_head
