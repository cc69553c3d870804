"""The mathematics of a basis: what it is, how good it can be, how to make, check, save and load one. Torch only."""

from .basis import Basis, BasisError, StructuredBasis
from .bounds import best_bound, capacity, levenshtein_bound, orthoplex_bound, smallest_dim, welch_bound
from .constructions import closed_forms
from .extend import Extension, extend_basis
from .files import load_basis, save_basis, size_in_name
from .foreign import import_basis
from .make import closed_form_basis, from_recipe, make_basis, make_command
from .measure import coherence, mean_deviation, min_angle
from .products import DenseProducts, Products

__all__ = [
    'Basis',
    'BasisError',
    'DenseProducts',
    'Extension',
    'Products',
    'StructuredBasis',
    'best_bound',
    'capacity',
    'closed_form_basis',
    'closed_forms',
    'coherence',
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
