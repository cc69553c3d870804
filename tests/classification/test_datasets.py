import json
import pickle
import time

import numpy as np
import pytest
from mmengine.registry import DATASETS, DefaultScope

import ebv_mm  # noqa: F401, registers the names
from ebv_mm.classification import INaturalist2018, LongTailCIFAR10, LongTailCIFAR100
from ebv_mm.classification.datasets import long_tail_counts


def write_cifar(folder, dataset, per_class: int) -> None:
    """Files of CIFAR's form whose images tell their own number, in an order that mixes the classes."""
    classes = len(dataset.METAINFO['classes'])
    key = 'labels' if classes == 10 else 'fine_labels'
    base = folder / dataset.base_folder
    base.mkdir()
    labels = np.random.RandomState(1).permutation(np.repeat(np.arange(classes), per_class))
    numbers = np.arange(len(labels))
    for files, step in ((dataset.train_list, len(labels) // len(dataset.train_list)), (dataset.test_list, len(labels))):
        for k, (name, _) in enumerate(files):
            part = slice(k * step, (k + 1) * step)
            data = np.zeros((step, 3072), dtype=np.uint8)
            data[:, 0], data[:, 1] = numbers[part] // 256, numbers[part] % 256
            (base / name).write_bytes(pickle.dumps({'data': data, key: labels[part].tolist()}))


def number(image: dict) -> int:
    first, second = image['img'].reshape(-1, 3)[:2, 0].astype(int)
    return 256 * first + second


# Images in the training set, as counted in the literature (Cao et al., 2019, and its successors).
TOTALS = {(10, 100): 12406, (10, 50): 13996, (10, 10): 20431, (100, 100): 10847, (100, 50): 12608, (100, 10): 19573}


@pytest.mark.parametrize(('classes', 'imbalance'), TOTALS)
def test_counts_of_the_literature(classes, imbalance):
    counts = long_tail_counts(50000 // classes, classes, imbalance)
    assert sum(counts) == TOTALS[classes, imbalance]
    assert counts[0] == 50000 // classes and counts[-1] == 50000 // classes // imbalance
    assert counts == sorted(counts, reverse=True)


@pytest.mark.parametrize('dataset', [LongTailCIFAR10, LongTailCIFAR100])
def test_long_tail_keeps_a_fixed_choice_of_each_class(dataset, tmp_path):
    write_cifar(tmp_path, dataset, 50)
    classes = len(dataset.METAINFO['classes'])
    options = dict(data_root=str(tmp_path), check_md5=False, imbalance=10)
    np.random.seed(0)
    tail = dataset(**options)
    counts = np.bincount([tail[k]['gt_label'] for k in range(len(tail))], minlength=classes)
    assert counts.tolist() == long_tail_counts(50, classes, 10)
    np.random.seed(1)  # the global seed changes nothing
    chosen = [number(tail[k]) for k in range(len(tail))]
    again = dataset(**options)
    assert chosen == [number(again[k]) for k in range(len(again))]
    other = dataset(**options, seed=1)
    assert chosen != [number(other[k]) for k in range(len(other))]
    # a longer tail loses images and gains none
    longer = dataset(**{**options, 'imbalance': 50})
    assert {number(longer[k]) for k in range(len(longer))} < set(chosen)
    # images keep their labels
    full = dataset(**{**options, 'imbalance': 1})
    assert len(full) == 50 * classes
    label = {number(full[k]): full[k]['gt_label'] for k in range(len(full))}
    assert all(label[number(tail[k])] == tail[k]['gt_label'] for k in range(len(tail)))
    assert len(dataset(**options, split='test')) == 50 * classes


def test_long_tail_checks_the_files_unless_told_not_to(tmp_path):
    write_cifar(tmp_path, LongTailCIFAR10, 5)
    with pytest.raises(RuntimeError, match='Cannot find LongTailCIFAR10'):
        LongTailCIFAR10(data_root=str(tmp_path), download=False)
    next((tmp_path / LongTailCIFAR10.base_folder).iterdir()).unlink()
    with pytest.raises(RuntimeError, match='Cannot find LongTailCIFAR10'):
        LongTailCIFAR10(data_root=str(tmp_path), download=False, check_md5=False)
    with pytest.raises(ValueError, match='imbalance = 0.1'):
        LongTailCIFAR10(data_root=str(tmp_path), imbalance=0.1)


def write_inat(path, images: int, categories: int) -> None:
    """A file of the official form; ids are no positions."""
    content = dict(
        images=[
            dict(id=3 * k + 7, file_name=f'train_val2018/Aves/{k % categories}/{k:032x}.jpg', height=600, width=800)
            for k in range(images)
        ],
        annotations=[dict(id=k, image_id=3 * k + 7, category_id=k % categories) for k in reversed(range(images))],
        categories=[dict(id=k, name=f'species {k}', supercategory='Aves') for k in range(categories)],
    )
    path.write_text(json.dumps(content))


def test_inaturalist_reads_the_official_json(tmp_path):
    write_inat(tmp_path / 'val2018.json', 20, 6)
    data = INaturalist2018(data_root=str(tmp_path), ann_file='val2018.json')
    assert len(data) == 20 and tuple(f'species {k}' for k in range(6)) == data.CLASSES
    for k in range(20):
        image = data[k]
        number = int(image['img_path'].rsplit('/', 1)[1].split('.')[0], 16)
        assert image['gt_label'] == number % 6
        assert image['img_path'] == str(tmp_path / f'train_val2018/Aves/{number % 6}/{number:032x}.jpg')


def test_inaturalist_takes_seconds(tmp_path):
    write_inat(tmp_path / 'train2018.json', 437513, 8142)
    start = time.process_time()
    data = INaturalist2018(data_root=str(tmp_path), ann_file='train2018.json')
    assert time.process_time() - start < 60
    assert len(data) == 437513 and len(data.CLASSES) == 8142


def test_the_host_carries_100000_classes(tmp_path):
    classes = 100000
    lines = (f'{k // 1000}/{k}_{i}.jpg {k}\n' for k in range(classes) for i in range(2))
    (tmp_path / 'train.txt').write_text(''.join(lines))
    start = time.process_time()
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        data = DATASETS.build(dict(type='CustomDataset', data_root=str(tmp_path), ann_file='train.txt'))
    assert time.process_time() - start < 60
    assert len(data) == 2 * classes
    assert data[199999] == {**data[199999], 'img_path': str(tmp_path / '99/99999_1.jpg'), 'gt_label': 99999}


@pytest.mark.parametrize('name', ['LongTailCIFAR10', 'LongTailCIFAR100', 'INaturalist2018'])
def test_configs_find_them_in_the_scope_of_mmpretrain(name, tmp_path):
    options = dict(ann_file='train2018.json') if name == 'INaturalist2018' else {}
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        data = DATASETS.build(dict(type=name, data_root=str(tmp_path), lazy_init=True, **options))
    assert type(data).__name__ == name
