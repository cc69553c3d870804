"""The mathematics of a basis: what it is, how good it can be, how to make, check, save and load one. Torch only."""

from .basis import Basis, BasisError
from .bounds import best_bound, welch_bound
from .files import load_basis, save_basis, size_in_name
from .make import closed_form_basis, make_basis, make_command
from .measure import coherence, mean_deviation, min_angle

__all__ = [
    'Basis',
    'BasisError',
    'best_bound',
    'closed_form_basis',
    'coherence',
    'load_basis',
    'make_basis',
    'make_command',
    'mean_deviation',
    'min_angle',
    'save_basis',
    'size_in_name',
    'welch_bound',
]
