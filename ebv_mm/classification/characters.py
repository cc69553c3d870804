"""Written characters of Unicode for mmpretrain: a data set of up to 100,000 classes, and its distortions."""

from collections.abc import Sequence

import numpy as np
from mmcv.transforms import BaseTransform
from mmpretrain.datasets import BaseDataset
from mmpretrain.registry import DATASETS, TRANSFORMS

from ..characters import Store, split_by_family
from ..characters.distort import distort


class _Images(Sequence):
    """The list of images that the host wants, each read when it is asked for."""

    def __init__(self, store: Store, numbers: np.ndarray, labels: np.ndarray) -> None:
        self.store, self.numbers, self.labels = store, numbers, labels

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, place):
        if isinstance(place, slice):
            return _Images(self.store, self.numbers[place], self.labels[place])
        image = np.array(self.store.image(self.numbers[place]))[..., None]
        shape = image.shape[:2]
        return dict(img=image, img_shape=shape, ori_shape=shape, gt_label=int(self.labels[place]))


@DATASETS.register_module()
class WrittenCharacters(BaseDataset):
    """Ideographs and Hangul syllables, each tested in a font family in which it was not trained.

    ``python -m ebv_mm.characters FOLDER`` makes the data. The images are 32 x 32 with one channel, memory-mapped;
    the split is that of :func:`ebv_mm.characters.split_by_family`. Label k is the same character in both subsets.

    Args:
        data_root: The folder of the data.
        split: 'train' or 'test'.
        num_classes, skip, min_train, seed: As in :func:`ebv_mm.characters.split_by_family`.
        every: Take one image of so many, evenly from all classes; a shorter test.
        pipeline: Transforms, which find ``img`` loaded.
        kwargs: The other arguments of ``BaseDataset``.
    """

    def __init__(
        self,
        data_root: str,
        split: str = 'train',
        num_classes: int | None = None,
        *,
        skip: int = 0,
        min_train: int = 1,
        seed: int = 0,
        every: int = 1,
        pipeline: Sequence = (),
        **kwargs,
    ) -> None:
        if split not in ('train', 'test'):
            raise ValueError(f"split = {split!r} is unknown; choose from 'train', 'test'")
        if every < 1:
            raise ValueError(f'every = {every}, but one image of so many is taken; give at least 1')
        self.split, self.every = split, every
        self.choice = dict(num_classes=num_classes, skip=skip, min_train=min_train, seed=seed)
        super().__init__(ann_file='', data_root=data_root, serialize_data=False, pipeline=pipeline, **kwargs)

    def load_data_list(self) -> Sequence[dict]:
        store = Store(self.data_root)
        split = split_by_family(store, **self.choice)
        self._metainfo.setdefault('classes', tuple(map(chr, split.codes)))
        if self.split == 'train':
            return _Images(store, split.train, split.train_labels)[:: self.every]
        return _Images(store, split.test, split.test_labels)[:: self.every]

    def get_gt_labels(self) -> np.ndarray:
        """All labels, without reading the images."""
        return self.data_list.labels if isinstance(self.data_list, _Images) else super().get_gt_labels()

    def extra_repr(self) -> list[str]:
        return [f'Folder: \t{self.data_root}', f'Split: \t{self.split}, {self.choice}, every {self.every}']


@TRANSFORMS.register_module()
class DistortCharacter(BaseTransform):
    """Shift, scale and shear a character of one channel, change its strokes' width, and blur it.

    Args:
        shift, scale, shear, stroke, blur: As in :func:`ebv_mm.characters.distort.distort`.
    """

    def __init__(self, **sizes: float) -> None:
        self.sizes = sizes
        distort(np.zeros((2, 2), np.uint8), np.random.RandomState(0), **sizes)  # an unknown name fails here

    def transform(self, results: dict) -> dict:
        results['img'] = distort(results['img'][..., 0], np.random, **self.sizes)[..., None]
        return results

    def __repr__(self) -> str:
        return f'{type(self).__name__}({", ".join(f"{name}={value}" for name, value in self.sizes.items())})'
