"""Names that need a host library: registered at once, imported when they are asked for."""

from importlib import import_module
from typing import Any, NamedTuple

from mmengine.registry import MODELS


class _Lazy(NamedTuple):
    module: str
    host: str
    extra: str


LAZY = {
    'EBVClsHead': _Lazy('ebv_mm.classification', 'mmpretrain', 'cls'),
    'EBVBBoxHead': _Lazy('ebv_mm.detection', 'mmdet', 'det'),
    'EBVMaskHead': _Lazy('ebv_mm.detection', 'mmdet', 'det'),
    'EBVDecodeHead': _Lazy('ebv_mm.segmentation', 'mmseg', 'seg'),
}


def load(name: str) -> Any:
    """Import the host of ``name`` and return what the name stands for."""
    module, host, extra = LAZY[name]
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        raise ImportError(
            f'{name} needs {host}, which cannot be imported here ({error}); '
            f"install it with: pip install 'ebv_mm[{extra}]'"
        ) from error


def register() -> None:
    """Register a stand-in for every name in the root registry, where all hosts look.

    Building from it imports the real module, which registers the real class in its host's registry; from then on the
    host finds that one first.
    """

    def stand_in(name: str):
        def build(*args, **kwargs):
            return load(name)(*args, **kwargs)

        build.__name__ = build.__qualname__ = name
        return build

    for name in LAZY:
        MODELS.register_module(name=name, module=stand_in(name))
