"""Which layers of a network to compare, and their Gram matrices for a batch, without keeping any features."""

import re
from typing import Callable, Dict, List, Optional

import torch
from torch import Tensor, nn
from torch.nn import functional

from .cka import gram_matrix

# What networks call the 1x1 convolutions beside their blocks; the 49 convolutions of ResNet-50 are without them.
SHORTCUTS = {'downsample', 'shortcut'}


def choose_layers(model: nn.Module, pattern: Optional[str] = None) -> Dict[str, nn.Module]:
    """The layers to compare, by name, in the order of the network.

    Args:
        model: The network.
        pattern: A regular expression that is searched for in the names of the modules. By default all convolutions
            but those of shortcuts, 49 in ResNet-50 as in the paper, or the blocks of a transformer (every module with
            an ``attn`` of its own), of which the paper does not tell; then the classifier, the last ``nn.Linear``.
    """
    modules = {name: module for name, module in model.named_modules() if name}
    if pattern is None:
        names = _default_names(modules)
    else:
        try:
            names = [name for name in modules if re.search(pattern, name)]
        except re.error as error:
            raise ValueError(f'{pattern!r} is no regular expression ({error}); correct it') from error
    if not names:
        wanted = 'the default (blocks with attention, convolutions)' if pattern is None else repr(pattern)
        some = ', '.join(list(modules)[:3] + ['...'] + list(modules)[-3:]) if len(modules) > 6 else ', '.join(modules)
        raise ValueError(
            f'{wanted} matches none of the {len(modules)} layers of {type(model).__name__}, but at least one is '
            f'needed; choose among: {some}'
        )
    return {name: modules[name] for name in names}


def layer_grams(layers: Dict[str, nn.Module], run: Callable[[], object], embedding: bool = False) -> Tensor:
    """The Gram matrices (L, n, n) of the outputs of ``layers`` while ``run()`` passes a batch through the network.

    Each is computed when its layer has run, so that no features outlive their use in the network.

    Args:
        embedding: Take A x + b of linear layers, for their weight A and bias b, instead of what they give. The two
            differ in a classifier with fixed vectors only: its embedding v, and its logits, cosines of v over tau.
    """
    grams: Dict[str, Tensor] = {}

    def watch(name: str):
        def hook(module, args, output) -> None:
            if embedding and isinstance(module, nn.Linear):
                output = functional.linear(*args, module.weight, module.bias)
            grams[name] = _checked_gram(name, output, again=name in grams)

        return hook

    handles = [layer.register_forward_hook(watch(name)) for name, layer in layers.items()]
    try:
        with torch.no_grad():
            run()
    finally:
        for handle in handles:
            handle.remove()
    silent = [name for name in layers if name not in grams]
    if silent:
        raise ValueError(
            f'layer {silent[0]!r} ({len(silent)} in all) did not run in a forward pass, but each must run once; '
            'choose other layers'
        )
    sizes = sorted({len(gram) for gram in grams.values()})
    if len(sizes) > 1:
        name = next(name for name in grams if len(grams[name]) != sizes[0])
        raise ValueError(
            f'layer {name!r} gives {len(grams[name])} rows and others {sizes[0]}, but each must give one for each '
            'image; choose other layers'
        )
    return torch.stack([grams[name] for name in layers])


def _default_names(modules: Dict[str, nn.Module]) -> List[str]:
    names = [name for name, module in modules.items() if isinstance(getattr(module, 'attn', None), nn.Module)]
    if not names:
        names = [
            name
            for name, module in modules.items()
            if isinstance(module, nn.Conv2d) and not SHORTCUTS.intersection(name.split('.'))
        ]
    inside = tuple(f'{name}.' for name in names)
    linear = [name for name, module in modules.items() if isinstance(module, nn.Linear) and not name.startswith(inside)]
    return names + linear[-1:] if names else []


def _checked_gram(name: str, output: object, again: bool) -> Tensor:
    if again:
        raise ValueError(
            f'layer {name!r} runs more than once in a forward pass, but must run once; choose other layers'
        )
    if not isinstance(output, Tensor):
        raise ValueError(
            f'layer {name!r} gives a {type(output).__name__}, but must give one tensor; choose layers inside it'
        )
    gram = gram_matrix(output)
    if not gram.isfinite().all():
        raise ValueError(f'layer {name!r} gives infinite or undefined numbers; has the training of the model diverged?')
    return gram
