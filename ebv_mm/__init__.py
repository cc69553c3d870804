"""Equiangular Basis Vectors for OpenMMLab: importing this registers every name, and imports no host library."""

from . import compat, lazy, lost_layers
from .basis import Basis, DenseBasis, load_basis, make_basis, save_basis
from .conversion import to_ebv
from .folding import fold
from .head import EBVHead
from .layers import EBVConv2d, EBVLinear
from .losses import basis_cross_entropy, basis_topk
from .many_classes import advise

__version__ = '0.2.0'

# Without the lazy names: `from ebv_mm import *` must not import the hosts either.
__all__ = [
    'Basis',
    'DenseBasis',
    'EBVConv2d',
    'EBVHead',
    'EBVLinear',
    'advise',
    'basis_cross_entropy',
    'basis_topk',
    'fold',
    'load_basis',
    'make_basis',
    'save_basis',
    'to_ebv',
]

compat.mend()
lazy.register()
lost_layers.watch_builds()


def __getattr__(name: str):
    if name in lazy.LAZY:
        return lazy.load(name)
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')


def __dir__():
    return sorted([*globals(), *lazy.LAZY])
