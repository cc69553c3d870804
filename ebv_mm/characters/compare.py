"""What pixels alone tell: the nearest-neighbour floor, and which families look alike."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from .render import is_hangul
from .split import Split
from .store import Store

# of pictures held at once as float32: 64 MB
BLOCK = 16_384
# correlation of two pictures above which they differ by their rounding only; weights of one typeface have less
NEARLY_THE_SAME = 0.93


def nearest_neighbour(
    store: Store, split: Split, max_test: int | None = None, seed: int = 0
) -> Iterator[tuple[int, float]]:
    """Accuracy in percent of the nearest training image by cosine of pixels; yields (training images seen, accuracy).

    The mean training image is subtracted first. The last accuracy is the floor; those before are progress.
    """
    chosen = np.arange(len(split.test))
    if max_test is not None and max_test < len(chosen):
        chosen = np.sort(np.random.RandomState(seed).permutation(len(chosen))[:max_test])
    sample = split.train[:: max(1, len(split.train) // BLOCK)]
    mean = store.images(sample).reshape(len(sample), -1).mean(0, dtype=np.float64).astype(np.float32)
    tested = _directions(store, split.test[chosen], mean)
    best, label = np.full(len(tested), -2, np.float32), np.full(len(tested), -1)
    for start in range(0, len(split.train), BLOCK):
        numbers = split.train[start : start + BLOCK]
        cosines = tested @ _directions(store, numbers, mean).T
        place = cosines.argmax(1)
        value = cosines[np.arange(len(tested)), place]
        better = value > best
        best[better] = value[better]
        label[better] = split.train_labels[start + place[better]]
        yield start + len(numbers), 100 * float(np.mean(label == split.test_labels[chosen]))


class Pair(NamedTuple):
    """How alike two fonts are: share of characters that are nearly the same picture, median correlation of pixels."""

    same: float
    median: float
    script: str
    font: str
    other: str


def likeness(store: Store, shared: int = 300) -> list[Pair]:
    """Every two fonts of different families, most alike first.

    Over at most ``shared`` characters that both have; pairs with fewer than 20 in common are left out.
    """
    out = []
    hangul = is_hangul(store.codes)
    for script, chosen in (('Han', ~hangul), ('Hangul', hangul)):
        numbers = [np.flatnonzero(chosen & (store.font == font)) for font in range(len(store.fonts))]
        for one in range(len(store.fonts)):
            for other in range(one):
                a, b = numbers[one], numbers[other]
                if not len(a) or not len(b) or store.family[a[0]] == store.family[b[0]]:
                    continue
                common, at_a, at_b = np.intersect1d(store.codes[a], store.codes[b], return_indices=True)
                if len(common) < 20:
                    continue
                some = np.linspace(0, len(common) - 1, min(shared, len(common))).astype(int)
                x, y = (_directions(store, part, None) for part in (a[at_a[some]], b[at_b[some]]))
                names = store.fonts[one].name, store.fonts[other].name
                correlations = (x * y).sum(1)
                same, median = float(np.mean(correlations > NEARLY_THE_SAME)), float(np.median(correlations))
                out.append(Pair(same, median, script, *names))
    return sorted(out, reverse=True)


def _directions(store: Store, numbers: np.ndarray, mean: np.ndarray | None) -> np.ndarray:
    """Images as unit vectors, less the mean image, or each less its own mean."""
    flat = store.images(numbers).reshape(len(numbers), -1).astype(np.float32)
    flat -= flat.mean(1, keepdims=True) if mean is None else mean
    return flat / np.linalg.norm(flat, axis=1, keepdims=True).clip(1e-6)
