"""The one mechanism behind every head: build the host's own, and put an EBV layer where its classifier is."""

from functools import lru_cache
from typing import Dict, Iterator, List, Tuple, Union

from mmengine.registry import MODELS
from torch import nn

from .basis_argument import BasisLike
from .catalogue import why_refused
from .layers import EBVConv2d, EBVLinear
from .packed import EBVAnchorConv2d, EBVConv1d

EBV_LAYERS = (EBVLinear, EBVConv1d, EBVConv2d)
# A path, several, or each path with the arguments in which its layer differs from the others.
Layers = Union[str, List[str], Dict[str, dict]]


@MODELS.register_module()
def EBVHead(  # noqa: N802
    head: Union[str, dict, type], *, layer: Layers, basis: BasisLike, tau: float = 0.07, **kwargs
) -> nn.Module:
    """Any module of a host with fixed class vectors: what stands at ``layer`` becomes an EBV layer of as many outputs.

    A function and not a class, because what it returns is the named head itself. The host's rules of initialisation
    stay; only a projection that they would set to zero, which could never learn, is left at torch's.

    Args:
        head: The type of the host's head, or its whole config.
        layer: Path of the classifier in it, such as ``'layers.head'``; ``*`` stands for each part of a list, ``-1``
            for the last. A list for several, or a dict from paths to arguments of that layer alone.
        basis, tau: As in :class:`~ebv_mm.layers.EBVLinear`.
        kwargs: ``balanced_init``, ``prior``, ``reserve``, as in :class:`~ebv_mm.layers.EBVLinear`; and the arguments of
            the head.

    Example:
        >>> EBVHead(
        ...     'VisionTransformerClsHead',
        ...     layer='layers.head',
        ...     basis=dict(num_classes=10, dim=10),
        ...     num_classes=10,
        ...     in_channels=64,
        ... )
    """
    shared = {name: kwargs.pop(name) for name in ('balanced_init', 'prior', 'reserve') if name in kwargs}
    config = dict(head) if isinstance(head, dict) else dict(type=head)
    module = MODELS.build({**config, **kwargs})
    why = why_refused(module)
    if why is not None:
        raise TypeError(f'{type(module).__name__} cannot become an EBV head, because {why}; leave it as it is')
    put_layers(module, layer, dict(basis=basis, tau=tau, **shared))
    return module


def put_layers(module: nn.Module, layers: Layers, arguments: dict) -> None:
    """Replace the classifiers of a host's module, and give the new ones the last word in its ``init_weights``."""
    own = (
        layers if isinstance(layers, dict) else {path: {} for path in ([layers] if isinstance(layers, str) else layers)}
    )
    replaced: Dict[nn.Module, nn.Module] = {}  # one that stands in several places stays one
    for path, different in own.items():
        for parent, name, old in find(module, path):
            if old not in replaced:
                replaced[old] = ebv_layer(old, getattr(module, 'cls_out_channels', None), {**arguments, **different})
            parent._modules[name] = replaced[old]
    module.__class__ = _with_last_word(type(module))


def find(module: nn.Module, path: str) -> Iterator[Tuple[nn.Module, str, nn.Module]]:
    """Each (parent, name, child) at a path; raises where there is none."""
    first, _, rest = path.partition('.')
    names = list(module._modules)
    if first.lstrip('-').isdigit() and names:
        names = [names[int(first)]] if -len(names) <= int(first) < len(names) else []
    elif first != '*':
        names = [first] if first in names else []
    if not names:
        raise TypeError(
            f'{type(module).__name__} has no layer {first!r}, but {", ".join(module._modules) or "none at all"}; '
            'name the one that classifies'
        )
    for name in names:
        child = module._modules[name]
        if rest:
            yield from find(child, rest)
        else:
            yield module, name, child


def ebv_layer(old: nn.Module, num_classes: Union[int, None], arguments: dict) -> nn.Module:
    """The EBV layer that takes the place of a linear one.

    Args:
        old: The host's classifier.
        num_classes: Outputs of one anchor, where the host packs several into one convolution; None where it does not.
        arguments: Those of the layer.
    """
    name = type(old).__name__
    if isinstance(old, EBV_LAYERS):
        raise TypeError(f'{name} is an EBV layer already; leave out EBVHead, or the basis of the head that it builds')
    bias = old.bias is not None if isinstance(old, (nn.Linear, nn.Conv1d, nn.Conv2d)) else None
    if isinstance(old, nn.Linear):
        return EBVLinear(old.in_features, old.out_features, bias, **arguments)
    if bias is None or old.groups > 1 or name == 'MaskedConv2d':
        raise TypeError(f'{name} is no linear layer or convolution of all channels; name the layer that classifies')
    shape = (old.in_channels, old.out_channels, old.kernel_size, old.stride, old.padding, old.dilation)
    kind = EBVConv1d if isinstance(old, nn.Conv1d) else EBVConv2d
    if num_classes and old.out_channels > num_classes and old.out_channels % num_classes == 0:
        kind = EBVAnchorConv2d
        arguments = dict(arguments, anchors=old.out_channels // num_classes)
    return kind(*shape, bias=bias, padding_mode=old.padding_mode, **arguments)


@lru_cache(maxsize=None)
def _with_last_word(kind: type) -> type:
    """A host's head whose EBV layers are initialised after it; hosts set them by name, some to zero or to a prior."""

    class Head(kind):
        def init_weights(self, *args, **kwargs) -> None:
            super().init_weights(*args, **kwargs)
            for layer in filter(lambda part: isinstance(part, EBV_LAYERS), self.modules()):
                if not layer.weight.any():  # the zero vector has no direction, hence no gradient
                    layer.reset_parameters()
                layer.init_weights()

    Head.__name__, Head.__qualname__, Head.__module__ = kind.__name__, kind.__qualname__, kind.__module__
    return Head
