"""Real handwriting: scikit-learn's 1,797 embedded digits, alone and pasted into random scenes.

Images of scenes are uint8 (H, W, 3) in BGR, as OpenCV writes them; masks are boolean (H, W).
"""

from typing import Dict, List, NamedTuple, Optional, Tuple

import cv2
import numpy as np
from sklearn.datasets import load_digits

CLASSES = tuple(str(digit) for digit in range(10))
SCENE_SIZE = 96
DIGITS_PER_SCENE = (3, 4)
# Height of a pasted digit's 8 x 8 grid, in pixels.
DIGIT_SIZE = (34, 46)
CLUTTER_PER_SCENE = (2, 5)
MIN_CONTRAST = 100
# Every digit keeps this many free pixels around its strokes, so that no two masks touch.
MARGIN = 2


class Digits(NamedTuple):
    """Digits as grey images in [0, 1] of shape (n, 8, 8), with their labels and their numbers in the whole set."""

    images: np.ndarray
    labels: np.ndarray
    indices: np.ndarray


class Instance(NamedTuple):
    """One digit in a scene: its label, its strokes as a mask of the scene's size, its number in the whole set."""

    label: int
    mask: np.ndarray
    index: int


class Scene(NamedTuple):
    image: np.ndarray
    instances: List[Instance]


def split_digits() -> Dict[str, Digits]:
    """Split the digits for good: every third one is for testing, and appears in no training image or scene.

    The set goes through the ten classes in turn. Since 3 does not divide 10, both parts hold all classes evenly.
    """
    bunch = load_digits()
    indices = np.arange(len(bunch.target))
    is_test = indices % 3 == 2
    return {
        name: Digits((bunch.images[part] / 16).astype(np.float32), bunch.target[part], indices[part])
        for name, part in (('train', ~is_test), ('test', is_test))
    }


def make_scene(digits: Digits, rng: np.random.Generator) -> Scene:
    """Paste a few of the digits, each varied a little, on a cluttered background."""
    image = _background(rng)
    taken = np.zeros(image.shape[:2], np.uint8)
    instances = []
    for pick in rng.choice(len(digits.labels), rng.integers(*DIGITS_PER_SCENE, endpoint=True), replace=False):
        alpha = _place(_enlarge(digits.images[pick], rng), taken, rng)
        if alpha is None:
            continue
        mask = alpha > 0.5
        image = _paint(image, alpha, rng)
        taken |= cv2.dilate(mask.astype(np.uint8), np.ones((2 * MARGIN + 1,) * 2, np.uint8))
        instances.append(Instance(int(digits.labels[pick]), mask, int(digits.indices[pick])))
    noise = rng.normal(0, rng.uniform(3, 8), image.shape)
    return Scene(np.clip(image + noise, 0, 255).astype(np.uint8), instances)


def tight_box(mask: np.ndarray) -> Tuple[int, int, int, int]:
    """The smallest box (x, y, width, height) around a mask."""
    ys, xs = np.nonzero(mask)
    return int(xs.min()), int(ys.min()), int(np.ptp(xs)) + 1, int(np.ptp(ys)) + 1


def semantic_labels(scene: Scene) -> np.ndarray:
    """The class of every pixel: 0 for the background, 1 + digit for a stroke."""
    labels = np.zeros(scene.image.shape[:2], np.uint8)
    for instance in scene.instances:
        labels[instance.mask] = 1 + instance.label
    return labels


def _background(rng: np.random.Generator) -> np.ndarray:
    """Smooth colours with lines and shapes in front of them, which are no digits."""
    coarse = rng.uniform(20, 100) + rng.normal(0, 15, (5, 5, 3))
    image = cv2.resize(coarse.astype(np.float32), (SCENE_SIZE, SCENE_SIZE), interpolation=cv2.INTER_CUBIC)
    for _ in range(rng.integers(*CLUTTER_PER_SCENE, endpoint=True)):
        start, end = rng.integers(0, SCENE_SIZE, (2, 2)).tolist()
        colour, thickness = rng.uniform(0, 180, 3).tolist(), int(rng.integers(1, 4))
        shape = rng.integers(3)
        if shape == 0:
            cv2.line(image, start, end, colour, thickness, cv2.LINE_AA)
        elif shape == 1:
            cv2.rectangle(image, start, end, colour, thickness)
        else:
            axes = rng.integers(6, 30, 2).tolist()
            cv2.ellipse(image, start, axes, rng.uniform(0, 180), 0, rng.uniform(90, 270), colour, thickness)
    return image


def _enlarge(digit: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Enlarge an 8 x 8 digit, slightly rotated, slanted and stretched; returns its opacity, cropped to its strokes."""
    scale = rng.uniform(*DIGIT_SIZE) / 8
    angle, slant = np.deg2rad(rng.uniform(-8, 8)), rng.uniform(-0.1, 0.1)
    stretch = np.diag([rng.uniform(0.9, 1.1), 1])
    rotate = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    linear = scale * rotate @ np.array([[1, slant], [0, 1]]) @ stretch
    size = int(14 * scale)
    shift = size / 2 - linear @ np.array([3.5, 3.5])
    value = cv2.warpAffine(digit, np.column_stack([linear, shift]), (size, size), flags=cv2.INTER_CUBIC)
    # The edge of a stroke is where it is 40 % black; the steep ramp around that keeps it smooth but narrow.
    alpha = np.clip((value - 0.4) * 2.5 + 0.5, 0, 1)
    x, y, width, height = tight_box(alpha > 0.5)
    return alpha[y : y + height, x : x + width]


def _place(patch: np.ndarray, taken: np.ndarray, rng: np.random.Generator, tries: int = 50) -> Optional[np.ndarray]:
    """Put a patch where its strokes are free of others, on an empty canvas; None if no such place was found."""
    height, width = patch.shape
    for _ in range(tries):
        y, x = (int(rng.integers(0, whole - part + 1)) for whole, part in zip(taken.shape, patch.shape))
        window = slice(y, y + height), slice(x, x + width)
        if not (taken[window].astype(bool) & (patch > 0.5)).any():
            canvas = np.zeros(taken.shape, np.float32)
            canvas[window] = patch
            return canvas
    return None


def _paint(image: np.ndarray, alpha: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Blend a colour in, like chalk: brighter than what lies under it by ``MIN_CONTRAST``, as far as white allows."""
    behind = image[alpha > 0.5].mean()
    colour = np.clip(rng.uniform(min(behind + MIN_CONTRAST, 255), 255) + rng.normal(0, 20, 3), 0, 255)
    return image * (1 - alpha[..., None]) + colour * alpha[..., None]
