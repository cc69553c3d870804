"""A user's working directory: images with labels, boxes and masks, for all three hosts at once, and bases for them."""

import json
from pathlib import Path

import cv2
import numpy as np

from ebv_mm import make_basis, save_basis


def write_scenes(folder: Path, count: int = 8, size: int = 64) -> None:
    """Images with one bright rectangle each, whose class is its shade: for all three hosts at once."""
    rng = np.random.default_rng(0)
    for name in ('images', 'label_maps'):
        (folder / name).mkdir()
    images, boxes, labels = [], [], []
    for index in range(count):
        label = index % 3
        x, y = (int(value) for value in rng.integers(4, 24, 2))
        w, h = (int(value) for value in rng.integers(16, 36, 2))
        picture = rng.integers(0, 60, (size, size, 3), dtype=np.uint8)
        picture[y : y + h, x : x + w] += np.uint8(60 * (label + 1))
        label_map = np.zeros((size, size), np.uint8)
        label_map[y : y + h, x : x + w] = label + 1
        name = f'{index}.png'
        cv2.imwrite(str(folder / 'images' / name), picture)
        cv2.imwrite(str(folder / 'label_maps' / name), label_map)
        labels.append(f'{name} {label}')
        images.append(dict(id=index, file_name=name, width=size, height=size))
        polygon = [x, y, x + w, y, x + w, y + h, x, y + h]
        box = dict(id=index, image_id=index, category_id=label, bbox=[x, y, w, h], area=w * h, iscrowd=0)
        boxes.append(dict(box, segmentation=[polygon]))
    categories = [dict(id=number, name=name) for number, name in enumerate('abc')]
    (folder / 'labels.txt').write_text('\n'.join(labels))
    (folder / 'scenes.json').write_text(json.dumps(dict(images=images, annotations=boxes, categories=categories)))


def write_bases(folder: Path) -> None:
    for num_classes, dim in ((3, 5), (4, 4)):
        save_basis(make_basis(num_classes, dim), folder / 'data' / 'ebv' / f'{num_classes}x{dim}.safetensors')
