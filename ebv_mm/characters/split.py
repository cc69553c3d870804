"""Which images are trained and which are tested: a character is tested in a family in which it was not trained.

Everything follows from a hash of code points and names of families, so a font more or less moves no other character.
"""

import zlib
from typing import NamedTuple

import numpy as np

from .store import Store


class Split(NamedTuple):
    """Numbers of images in the store and their labels; label k is the character ``codes[k]``."""

    codes: np.ndarray  # (N,)
    train: np.ndarray
    train_labels: np.ndarray
    test: np.ndarray
    test_labels: np.ndarray


def split_by_family(
    store: Store, num_classes: int | None = None, *, skip: int = 0, min_train: int = 1, seed: int = 0
) -> Split:
    """Hold out one family of each character that has two or more.

    Tested is one image: that of the first font of the held-out family. Its other fonts are neither trained nor tested.
    The characters come in an order that the hash decides, so the first n classes are a random choice of the N.

    Args:
        store: The rendered fonts.
        num_classes: N; None takes all characters that remain.
        skip: Leave out so many characters first: others than those of a split without it.
        min_train: Take only characters with at least so many training images.
        seed: Of the order of the characters and of the choice of the families.
    """
    codes, label = np.unique(store.codes, return_inverse=True)
    held_out, families = _held_out(store, len(codes), label, seed)
    trained = (store.family != held_out[label]) & (families[label] >= 2)
    enough = np.bincount(label[trained], minlength=len(codes)) >= max(min_train, 1)
    eligible = np.flatnonzero(enough & (families >= 2))
    order = eligible[np.argsort(_hash(codes[eligible], seed), kind='stable')]
    wanted = len(order) - skip if num_classes is None else num_classes
    if not 0 < wanted <= len(order) - skip:
        raise ValueError(
            f'num_classes = {num_classes} after skip = {skip}, but {len(order)} characters are in two families and '
            f'have {min_train} training images; take fewer, a smaller min_train, or render more fonts'
        )
    order = order[skip : skip + wanted]
    place = np.full(len(codes), -1)
    place[order] = np.arange(wanted)
    new = place[label]
    train = np.flatnonzero(trained & (new >= 0))
    test = np.flatnonzero((store.family == held_out[label]) & (new >= 0))
    # the store is in the catalogue's order: the first of each character is its family's first font
    test = test[np.unique(new[test], return_index=True)[1]]
    return Split(codes[order], train, new[train], test, new[test])


def _held_out(store: Store, num_codes: int, label: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The family (index) that each character is tested in, and how many families it has."""
    pairs = np.unique(label.astype(np.int64) * len(store.families) + store.family)
    character, family = np.divmod(pairs, len(store.families))
    codes = np.unique(store.codes)
    names = np.array([zlib.crc32(name.encode()) for name in store.families], np.uint64)
    key = _hash(codes[character].astype(np.uint64) ^ (names[family] << np.uint64(24)), seed + 1)
    order = np.lexsort((key, character))
    first = np.unique(character[order], return_index=True)[1]
    return family[order][first], np.bincount(character, minlength=num_codes)


def _hash(values: np.ndarray, seed: int) -> np.ndarray:
    """The finaliser of SplitMix64 (Steele, Lea and Flood, 2014): 64 well-mixed bits."""
    with np.errstate(over='ignore'):
        z = values.astype(np.uint64) + np.uint64(seed + 1) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))
