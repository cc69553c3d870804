"""Names that need a host library: registered at once, imported when they are asked for."""

from importlib import import_module
from typing import Any, NamedTuple

from mmengine.registry import DATASETS, METRICS, MODELS, TRANSFORMS


class _Lazy(NamedTuple):
    module: str
    host: str
    extra: str


_CLASSIFICATION = _Lazy('ebv_mm.classification', 'mmpretrain', 'cls')
_DETECTION = _Lazy('ebv_mm.detection', 'mmdet', 'det')
_SEGMENTATION = _Lazy('ebv_mm.segmentation', 'mmseg', 'seg')

# Models, which are attributes of ebv_mm too.
LAZY = {
    'EBVClsHead': _CLASSIFICATION,
    'CIFARResNet': _CLASSIFICATION,
    'EBVBBoxHead': _DETECTION,
    'EBVMaskHead': _DETECTION,
    'EBVDecodeHead': _SEGMENTATION,
}
# What else configs name.
LAZY_DATASETS = {
    'LongTailCIFAR10': _CLASSIFICATION,
    'LongTailCIFAR100': _CLASSIFICATION,
    'INaturalist2018': _CLASSIFICATION,
    'RandomImages': _CLASSIFICATION,
}
LAZY_TRANSFORMS = {'PositionCrop': _CLASSIFICATION, 'ResizeCenterCrop': _CLASSIFICATION}
LAZY_METRICS = {'StreamingAccuracy': _CLASSIFICATION}

_REGISTRIES = ((MODELS, LAZY), (DATASETS, LAZY_DATASETS), (TRANSFORMS, LAZY_TRANSFORMS), (METRICS, LAZY_METRICS))


def load(name: str) -> Any:
    """Import the host of ``name`` and return what the name stands for."""
    module, host, extra = next(names[name] for _, names in _REGISTRIES if name in names)
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

    for registry, names in _REGISTRIES:
        for name in names:
            registry.register_module(name=name, module=stand_in(name))
