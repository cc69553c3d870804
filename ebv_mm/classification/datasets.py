"""Data sets with a long tail, and one of noise."""

import json
from typing import List, Optional

import numpy as np
from mmengine.fileio import exists, get_file_backend, get_text, join_path
from mmpretrain.datasets import CIFAR10, CIFAR100, BaseDataset
from mmpretrain.registry import DATASETS


def long_tail_counts(most: int, num_classes: int, imbalance: float) -> List[int]:
    """Images of each class: ``most * imbalance ** (-k / (num_classes - 1))``, rounded down (Cao et al., 2019)."""
    return [int(most * (1 / imbalance) ** (k / (num_classes - 1))) for k in range(num_classes)]


class LongTail:
    """What long-tailed CIFAR-10 and CIFAR-100 share: few of the training images, all of the test images.

    Args:
        imbalance: Size of the largest class over that of the smallest.
        seed: Of the choice of images. It depends on nothing else, so that every rank and every run has the same.
        check_md5: Whether the files must be the official ones; otherwise they must only be there.
        kwargs: The arguments of the host's data set.
    """

    def __init__(self, *args, imbalance: float = 100, seed: int = 0, check_md5: bool = True, **kwargs) -> None:
        if not imbalance >= 1:
            raise ValueError(f'imbalance = {imbalance!r}, but it is largest over smallest class; give a number >= 1')
        self.imbalance = imbalance
        self.seed = seed
        self.check_md5 = check_md5
        super().__init__(*args, **kwargs)

    def load_data_list(self) -> List[dict]:
        images = super().load_data_list()
        if self.split != 'train':
            return images
        labels = np.array([image['gt_label'] for image in images])
        # RandomState's stream is fixed for all versions of numpy
        random = np.random.RandomState(self.seed)
        classes = len(self.CLASSES)
        counts = long_tail_counts(len(images) // classes, classes, self.imbalance)
        chosen = [random.permutation(np.flatnonzero(labels == k))[:count] for k, count in enumerate(counts)]
        return [images[index] for index in np.sort(np.concatenate(chosen))]

    def _check_integrity(self) -> bool:
        if self.check_md5:
            return super()._check_integrity()
        folder = join_path(self.data_prefix['root'], self.base_folder)
        return all(exists(join_path(folder, name)) for name, _ in self.train_list + self.test_list)


@DATASETS.register_module()
class LongTailCIFAR10(LongTail, CIFAR10):
    """CIFAR-10 with exponentially decaying classes, 12,406 images at imbalance 100; arguments as in LongTail."""


@DATASETS.register_module()
class LongTailCIFAR100(LongTail, CIFAR100):
    """CIFAR-100 with exponentially decaying classes, 10,847 images at imbalance 100; arguments as in LongTail."""


@DATASETS.register_module()
class INaturalist2018(BaseDataset):
    """iNaturalist 2018: 437,513 training and 24,426 validation images of 8,142 species, from the official json files.

    ``data_root`` holds the unpacked ``train_val2018/``, ``train2018.json`` and ``val2018.json``; the file names within
    begin with ``train_val2018/``. The json tells all: no file of an image is touched before it is read.

    Args:
        data_root: The folder of all that.
        ann_file: ``'train2018.json'`` or ``'val2018.json'``.
        kwargs: The other arguments of ``BaseDataset``.
    """

    def __init__(self, data_root: str, ann_file: str, metainfo: Optional[dict] = None, **kwargs) -> None:
        super().__init__(ann_file=ann_file, metainfo=metainfo, data_root=data_root, **kwargs)

    def load_data_list(self) -> List[dict]:
        content = json.loads(get_text(self.ann_file))
        # The ids are 0 ... 8141 in the official files, but nothing promises it.
        label = {category['id']: k for k, category in enumerate(sorted(content['categories'], key=lambda c: c['id']))}
        if 'classes' not in self._metainfo:
            names = {category['id']: category['name'] for category in content['categories']}
            self._metainfo['classes'] = tuple(names[key] for key in label)
        name = {image['id']: image['file_name'] for image in content['images']}
        root = self.data_prefix['img_path']
        join = get_file_backend(root, enable_singleton=True).join_path
        return [
            dict(img_path=join(root, name[item['image_id']]), gt_label=label[item['category_id']])
            for item in content['annotations']
        ]


@DATASETS.register_module()
class RandomImages(BaseDataset):
    """Images of noise with random labels, made when they are asked for: to try a model of any size without data.

    Args:
        num_images: How many.
        num_classes: Labels are below this.
        size: Edge of an image.
        pipeline: Transforms, which find ``img`` loaded.
        seed: Of all of it.
    """

    def __init__(self, num_images: int, num_classes: int, size: int = 32, *, pipeline=(), seed: int = 0) -> None:
        self.num_images, self.num_classes, self.size, self.seed = num_images, num_classes, size, seed
        super().__init__(ann_file='', metainfo=dict(classes=()), pipeline=pipeline)

    def load_data_list(self) -> List[dict]:
        labels = np.random.RandomState(self.seed).randint(self.num_classes, size=self.num_images)
        return [dict(gt_label=int(label), img_path=f'noise {number}') for number, label in enumerate(labels)]

    def get_data_info(self, idx: int) -> dict:
        info = super().get_data_info(idx)
        random = np.random.RandomState([self.seed, info['sample_idx']])
        img = random.randint(256, size=(self.size, self.size, 3), dtype=np.uint8)
        return dict(info, img=img, img_shape=img.shape[:2], ori_shape=img.shape[:2])
