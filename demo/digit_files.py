"""The digits as files, in the formats that the hosts' own data set classes read.

digits/<split>/*.png, digits/<split>.txt        mmpretrain's CustomDataset: file name and label
scenes/<split>/*.png, scenes/<split>.json       mmdet's CocoDataset: boxes and masks of the strokes
scenes/<split>_labels/*.png                     mmseg's BaseSegDataset: 0 is background, 1 + digit a stroke
"""

import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path

import cv2
import numpy as np
from digits import CLASSES, Digits, make_scene, semantic_labels, split_digits, tight_box
from pycocotools import mask as coco_mask

from ebv_mm.output.files import umask

NUM_SCENES = {'train': 600, 'test': 100}
# Scene i of a split is drawn by its own generator, seeded with (SEEDS[split], i).
SEEDS = {'train': 0, 'test': 1}
STAMP = 'stamp.txt'


def ensure_datasets(folder: Path) -> bool:
    """Write the data sets into ``folder``, unless this very code has already done so; tells whether it wrote.

    Under ``folder`` there are either whole data sets or none: they grow in a folder beside it.
    """
    stamp = _stamp()
    if (folder / STAMP).is_file() and (folder / STAMP).read_text() == stamp:
        return False
    folder.parent.mkdir(parents=True, exist_ok=True)
    growing = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f'.{folder.name}.'))
    try:
        for split, digits in split_digits().items():
            write_digits(digits, growing / 'digits', split)
            scenes = [make_scene(digits, np.random.default_rng((SEEDS[split], i))) for i in range(NUM_SCENES[split])]
            write_scenes(scenes, growing / 'scenes', split)
        (growing / STAMP).write_text(stamp)
        growing.chmod(0o777 & ~umask())
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(growing, folder)
    finally:
        shutil.rmtree(growing, ignore_errors=True)
    return True


def write_digits(digits: Digits, folder: Path, split: str) -> None:
    """Write each digit as it is, 8 x 8 pixels, and the list of names and labels."""
    (folder / split).mkdir(parents=True)
    lines = []
    for image, label, index in zip(*digits):
        name = f'{index:04d}.png'
        _write_png(folder / split / name, np.rint(image * 255).astype(np.uint8))
        lines.append(f'{name} {label}\n')
    (folder / f'{split}.txt').write_text(''.join(lines))


def write_scenes(scenes: list, folder: Path, split: str) -> None:
    """Write scenes, their semantic labels, and their instances as COCO annotations."""
    (folder / split).mkdir(parents=True)
    (folder / f'{split}_labels').mkdir()
    for i, scene in enumerate(scenes):
        _write_png(folder / split / f'{i:04d}.png', scene.image)
        _write_png(folder / f'{split}_labels' / f'{i:04d}.png', semantic_labels(scene))
    (folder / f'{split}.json').write_text(json.dumps(coco_annotations(scenes)))


def coco_annotations(scenes: list) -> dict:
    """The instances of all scenes in COCO's format, each with the number of its digit in the whole set."""
    images, annotations = [], []
    for image_id, scene in enumerate(scenes):
        height, width = scene.image.shape[:2]
        images.append(dict(id=image_id, file_name=f'{image_id:04d}.png', height=height, width=width))
        for label, mask, index in scene.instances:
            rle = coco_mask.encode(np.asfortranarray(mask, np.uint8))
            annotations.append(
                dict(
                    # COCO's evaluation takes an id of 0 for "unmatched".
                    id=1 + len(annotations),
                    image_id=image_id,
                    category_id=1 + label,
                    bbox=tight_box(mask),
                    area=int(mask.sum()),
                    segmentation=dict(size=rle['size'], counts=rle['counts'].decode()),
                    iscrowd=0,
                    digit=index,
                )
            )
    categories = [dict(id=1 + label, name=name) for label, name in enumerate(CLASSES)]
    return dict(images=images, annotations=annotations, categories=categories)


def _write_png(path: Path, image: np.ndarray) -> None:
    if not cv2.imwrite(str(path), image):
        raise OSError(f'could not write {path}; is the disk full?')


def _stamp() -> str:
    """The code that makes the data sets, as a checksum."""
    sources = [Path(__file__), Path(__file__).with_name('digits.py')]
    return hashlib.sha256(b''.join(source.read_bytes() for source in sources)).hexdigest()
