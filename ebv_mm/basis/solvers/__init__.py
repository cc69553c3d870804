"""Iterative bases, for every (N, d) that has no closed form at the bound."""

from .algorithm1 import TOLERANCE as ALGORITHM1_TOLERANCE
from .algorithm1 import algorithm1
from .soft_maximum import default_steps, soft_maximum
from .squared_hinge import squared_hinge
from .starts import shaken, tight_frame

__all__ = [
    'ALGORITHM1_TOLERANCE',
    'algorithm1',
    'default_steps',
    'shaken',
    'soft_maximum',
    'squared_hinge',
    'tight_frame',
]
