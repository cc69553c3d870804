"""The classifying layers of a model, and the restriction of their training to the first classes."""

from mmengine.model import is_model_wrapper
from torch import Tensor, nn

from ..head import EBV_LAYERS

_HANDLE = '_restriction'


def ebv_layers(model: nn.Module) -> list[nn.Module]:
    """The EBV layers of a model, each once."""
    found = _ebv_layers(model)
    if not found:
        raise TypeError(f'{type(model).__name__} has no EBV layer, which this hook is for; take the hook out')
    return found


def _ebv_layers(model: nn.Module) -> list[nn.Module]:
    return [module for module in model.modules() if isinstance(module, EBV_LAYERS)]


def classifiers_of(model: nn.Module) -> list[tuple[nn.Module, int]]:
    """(layer, number of classes) of the EBV layers; of a classifier without any, of its head's ``fc``."""
    model = model.module if is_model_wrapper(model) else model
    found = [(layer, layer.num_vectors) for layer in _ebv_layers(model)]
    if found:
        return found
    layer = getattr(getattr(model, 'head', None), 'fc', None)
    if not isinstance(layer, nn.Linear):
        raise TypeError(
            f'{type(model).__name__} has neither an EBV layer nor a head.fc, whose classes could come in waves'
        )
    return [(layer, layer.out_features)]


def restrict(layer: nn.Module, num_classes: int | None) -> None:
    """Let a layer have only its first outputs in training; None: all of them again."""
    if isinstance(layer, EBV_LAYERS):
        layer.present = num_classes
        return
    handle = layer.__dict__.pop(_HANDLE, None)
    if handle is not None:
        handle.remove()
    if num_classes is not None:

        def first(module: nn.Module, inputs: tuple, output: Tensor) -> Tensor | None:
            return output[..., :num_classes] if module.training else None

        layer.__dict__[_HANDLE] = layer.register_forward_hook(first)
