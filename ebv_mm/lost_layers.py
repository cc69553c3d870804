"""No EBV layer gets lost: where a config names one, the module that is built of it has one, whoever builds it.

Some heads of the hosts take a layer and put one of their own in its place (``DoubleConvFCBBoxHead``, ``DIIHead``), or
drop it (``CoarseMaskHead``). They would train FC without a word. All registries of models build by a function that is
theirs to choose, ``build_func``; the one that is put here looks at what it has built.
"""

from functools import wraps
from typing import Callable, Iterator

from mmengine.registry import MODELS, Registry
from torch import nn

from .config_nodes import count_nodes, type_name
from .head import EBV_LAYERS


def watch_builds() -> None:
    """Let mmengine's registry of models, and those of the hosts, raise where a layer gets lost.

    A host that is imported later inherits the function from mmengine's registry.
    """
    for registry in _with_children(MODELS):
        if not hasattr(registry.build_func, 'looks_for_lost_layers'):
            registry.build_func = _looking(registry.build_func)


def _with_children(registry: Registry) -> Iterator[Registry]:
    yield registry
    for child in registry.children.values():
        yield from _with_children(child)


def _looking(build: Callable) -> Callable:
    @wraps(build)
    def build_and_look(cfg, *args, **kwargs):
        asked = count_nodes(cfg, lambda node: 'basis' in node and type_name(node).startswith('EBV'))
        module = build(cfg, *args, **kwargs)
        if asked and isinstance(module, nn.Module):
            check_built(module, asked)
        return module

    build_and_look.looks_for_lost_layers = True
    return build_and_look


def check_built(module: nn.Module, asked: int) -> None:
    """Raise where a module has fewer EBV layers than its config names."""
    built = sum(isinstance(part, EBV_LAYERS) for part in module.modules())
    if built < asked:
        name = type(module).__name__
        raise ValueError(
            f'the config of {name} names {asked} EBV layers, but {name} has {built}: it takes such a layer and uses '
            f"one of its own; write dict(type='EBVHead', head={name!r}, layer=..., basis=...) with the name of its "
            'classifier, or let python -m ebv_mm.conversion write it'
        )
