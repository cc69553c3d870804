"""The mathematics of a basis: what it is, how good it can be, how to make, check, save and load one. Torch only."""

from .basis import Basis, BasisError, DenseBasis
from .bounds import best_bound, capacity, levenshtein_bound, orthoplex_bound, smallest_dim, welch_bound
from .closed_form import closed_form_basis
from .commands import config_command, make_command
from .constructions import closed_forms
from .extend import Extension, extend_basis
from .files import load_basis, save_basis, size_in_name
from .foreign import import_basis
from .make import make_basis
from .measure import coherence, mean_deviation, min_angle
from .products import DenseProducts, Products
from .structured import Recipe, StructuredBasis, from_recipe

__all__ = [
    'Basis',
    'BasisError',
    'DenseBasis',
    'DenseProducts',
    'Extension',
    'Products',
    'Recipe',
    'StructuredBasis',
    'best_bound',
    'capacity',
    'closed_form_basis',
    'closed_forms',
    'coherence',
    'config_command',
    'extend_basis',
    'from_recipe',
    'import_basis',
    'levenshtein_bound',
    'load_basis',
    'make_basis',
    'make_command',
    'mean_deviation',
    'min_angle',
    'orthoplex_bound',
    'save_basis',
    'size_in_name',
    'smallest_dim',
    'welch_bound',
]
