"""Tiny data sets of noise in the layouts of the real ones, to try every row without data."""

import json
import pickle
from pathlib import Path
from typing import Callable, Dict, List

import cv2
import numpy as np

TRAIN, TEST = 4, 4  # images; CKA needs four in a batch


def make_fake_data(roots: List[str]) -> None:
    """Write the data sets of these folders that are not there yet, below the current folder."""
    for root in dict.fromkeys(roots):
        if not Path(root).exists():
            MAKERS[root](Path(root))


def _picture(path: Path, number: int, size=(72, 96)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    image = np.random.RandomState(number).randint(0, 256, (*size, 3), dtype=np.uint8)
    if not cv2.imwrite(str(path), image):
        raise OSError(f'{str(path)!r} cannot be written; choose another --work-dir')


def _splits():
    yield 'train', range(TRAIN)
    yield 'val', range(TRAIN, TRAIN + TEST)


def _imagenet(root: Path) -> None:
    for split, numbers in _splits():
        for number in numbers:
            _picture(root / split / f'{number}.JPEG', number)
        (root / 'meta').mkdir(exist_ok=True)
        (root / 'meta' / f'{split}.txt').write_text(''.join(f'{number}.JPEG {number}\n' for number in numbers))


def _inat100k(root: Path) -> None:
    for split, numbers in _splits():
        for number in numbers:
            _picture(root / split / f'{number}.jpg', number)
        (root / f'{split}.txt').write_text(''.join(f'{split}/{number}.jpg {number}\n' for number in numbers))


def _inat2018(root: Path) -> None:
    categories = [dict(id=number, name=f'species {number}') for number in range(TRAIN + TEST)]
    for split, numbers in _splits():
        images = [dict(id=number, file_name=f'train_val2018/{number}.jpg') for number in numbers]
        for image in images:
            _picture(root / image['file_name'], image['id'])
        annotations = [dict(id=number, image_id=number, category_id=number) for number in numbers]
        content = dict(images=images, annotations=annotations, categories=categories)
        (root / f'{split}2018.json').write_text(json.dumps(content))


def _cifar(root: Path, folder: str, key: str, classes: int, files: Dict[str, int]) -> None:
    (root / folder).mkdir(parents=True)
    for name, images in files.items():
        pixels = np.random.RandomState(images).randint(0, 256, (images, 3072), dtype=np.uint8)
        labels = [number % classes for number in range(images)]
        (root / folder / name).write_bytes(pickle.dumps({'data': pixels, key: labels}))
    names = [f'class {number}' for number in range(classes)]
    meta, key = ('batches.meta', 'label_names') if classes == 10 else ('meta', 'fine_label_names')
    (root / folder / meta).write_bytes(pickle.dumps({key: names}))


def _cifar10(root: Path) -> None:
    files = {f'data_batch_{number}': 10 for number in range(1, 6)}
    _cifar(root, 'cifar-10-batches-py', 'labels', 10, {**files, 'test_batch': TEST})


def _cifar100(root: Path) -> None:
    _cifar(root, 'cifar-100-python', 'fine_labels', 100, {'train': 200, 'test': TEST})


def _coco(root: Path) -> None:
    from mmdet.datasets import CocoDataset

    # any ids serve: the host finds its classes by their names
    categories = [dict(id=number, name=name) for number, name in enumerate(CocoDataset.METAINFO['classes'])]
    (root / 'annotations').mkdir(parents=True)
    for split, numbers in _splits():
        images, annotations = [], []
        for number in numbers:
            _picture(root / f'{split}2017' / f'{number}.jpg', number)
            images.append(dict(id=number, file_name=f'{number}.jpg', height=72, width=96))
            x, y, width, height = 10 + number, 8, 50, 40
            corners = [x, y, x + width, y, x + width, y + height, x, y + height]
            box = dict(id=number + 1, image_id=number, category_id=number, bbox=[x, y, width, height])
            annotations.append(dict(box, area=width * height, iscrowd=0, segmentation=[corners]))
        content = dict(images=images, annotations=annotations, categories=categories)
        (root / 'annotations' / f'instances_{split}2017.json').write_text(json.dumps(content))


def _ade(root: Path) -> None:
    for (_, numbers), split in zip(_splits(), ('training', 'validation')):
        for number in numbers:
            _picture(root / 'images' / split / f'{number}.jpg', number)
            labels = np.random.RandomState(number).randint(0, 151, (9, 12), dtype=np.uint8)
            labels = labels.repeat(8, axis=0).repeat(8, axis=1)
            file = root / 'annotations' / split / f'{number}.png'
            file.parent.mkdir(parents=True, exist_ok=True)
            cv2.imwrite(str(file), labels)


MAKERS: Dict[str, Callable[[Path], None]] = {
    'data/imagenet': _imagenet,
    'data/inat100k': _inat100k,
    'data/inaturalist2018': _inat2018,
    'data/cifar10': _cifar10,
    'data/cifar100': _cifar100,
    'data/coco': _coco,
    'data/ade/ADEChallengeData2016': _ade,
}
