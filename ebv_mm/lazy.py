"""Names that need a host library: registered at once, imported when they are asked for."""

from importlib import import_module
from typing import Any, NamedTuple

from mmengine.registry import DATASETS, METRICS, MODELS, TRANSFORMS

from .compat import why_not_imported


class _Lazy(NamedTuple):
    module: str
    host: str


_CLASSIFICATION = _Lazy('ebv_mm.classification', 'mmpretrain')
_DETECTION = _Lazy('ebv_mm.detection', 'mmdet')
_SEGMENTATION = _Lazy('ebv_mm.segmentation', 'mmseg')

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
    'WrittenCharacters': _CLASSIFICATION,
}
LAZY_TRANSFORMS = {
    'DistortCharacter': _CLASSIFICATION,
    'PositionCrop': _CLASSIFICATION,
    'ResizeCenterCrop': _CLASSIFICATION,
}
LAZY_METRICS = {'StreamingAccuracy': _CLASSIFICATION}

_REGISTRIES = ((MODELS, LAZY), (DATASETS, LAZY_DATASETS), (TRANSFORMS, LAZY_TRANSFORMS), (METRICS, LAZY_METRICS))


def load(name: str) -> Any:
    """Import the host of ``name`` and return what the name stands for."""
    module, host = next(names[name] for _, names in _REGISTRIES if name in names)
    try:
        return getattr(import_module(module), name)
    except ImportError as error:
        raise ImportError(f'{name} needs {host}: {why_not_imported(host, error)}') from error


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
