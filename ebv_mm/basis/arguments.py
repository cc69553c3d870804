"""Checks of the numbers that everything about bases takes; each error says value, requirement and remedy."""

import operator
from typing import Tuple

# beyond this a projection of a single feature would not fit into memory
LARGEST_DIM = 1 << 22


def check_size(num_classes: int, dim: int) -> Tuple[int, int]:
    """N and d as plain integers, whatever kind of whole numbers they are."""
    num_classes, dim = whole_number('num_classes', num_classes), whole_number('dim', dim)
    if dim > LARGEST_DIM:
        raise ValueError(f'dim = {dim}, but a basis has at most {LARGEST_DIM} dimensions; give fewer')
    return num_classes, dim


def whole_number(name: str, value: int) -> int:
    """A whole number >= 1, of any type that is one, such as numpy's."""
    try:
        number = 0 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = 0
    if number < 1:
        raise ValueError(f'{name} = {value!r}, but a basis needs a whole number >= 1; give one')
    return number


def check_seed(seed: int) -> int:
    """A seed as a plain integer, whatever kind of whole number it is."""
    try:
        number = operator.index(seed)
    except TypeError:
        number = 2**63
    if not -(2**63) <= number < 2**63:
        raise ValueError(f'seed = {seed!r}, but a seed is a whole number of 64 bits, -2**63 to 2**63 - 1; give one')
    return number
