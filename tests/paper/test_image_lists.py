"""A downloaded copy of the 100,000-class data, in every layout that it may have, smaller."""

from pathlib import Path

import numpy as np
import pytest
from mmengine.registry import DATASETS, DefaultScope
from PIL import Image

SIZES = ['--classes', '3', '--train', '6', '--val', '3']
CLASSES = ('10', '9', '2')  # numbers are ordered as numbers


def picture(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(path)


def folders(root: Path, train: str = 'train', val: str = 'val') -> None:
    for split, images in ((train, 2), (val, 1)):
        for name in CLASSES:
            for number in range(images):
                picture(root / split / name / f'{number}.jpg')


def listed(root: Path, form: str, header: str = '', suffix: str = 'txt') -> None:
    for split, images in (('train', 2), ('val', 1)):
        lines = [header] if header else []
        for name in CLASSES:
            for number in range(images):
                file = f'images/{split}_{name}_{number}.jpg'
                picture(root / file)
                lines.append(form.format(file=file, name=name))
        (root / f'{split}_list.{suffix}').write_text('\n'.join(lines) + '\n')


LAYOUTS = {
    'folders': folders,
    'other names': lambda root: folders(root, 'training', 'validation'),
    'one level down': lambda root: folders(root / '10w_classes', 'train', 'test'),
    'list': lambda root: listed(root, '{file} {name}'),
    'label first': lambda root: listed(root, '{name} ./{file}'),
    'csv with a header': lambda root: listed(root, '{file},{name}', 'image,label', 'csv'),
    'list one level down': lambda root: listed(root / '10w_classes', '{file}\t{name}'),
}


@pytest.mark.parametrize('layout', LAYOUTS)
def test_every_layout_becomes_lists_that_the_host_reads(layout, list_images, tmp_path, capsys):
    LAYOUTS[layout](tmp_path)
    assert list_images([str(tmp_path), *SIZES]) == 0, capsys.readouterr().err
    for split, images in (('train', 6), ('val', 3)):
        with DefaultScope.overwrite_default_scope('mmpretrain'):
            data = DATASETS.build(dict(type='CustomDataset', data_root=str(tmp_path), ann_file=f'{split}.txt'))
        assert len(data) == images
        for item in (data[number] for number in range(images)):
            assert Path(item['img_path']).is_file()
            # 2, 9, 10 become 0, 1, 2 in both splits
            name = next(n for n in ('10', '9', '2') if f'/{n}/' in item['img_path'] or f'_{n}_' in item['img_path'])
            assert item['gt_label'] == ['2', '9', '10'].index(name)
    before = (tmp_path / 'train.txt').read_text()
    assert list_images([str(tmp_path), *SIZES]) == 0 and (tmp_path / 'train.txt').read_text() == before


@pytest.mark.parametrize(
    ('options', 'told'),
    [
        (['--classes', '4', '--train', '6', '--val', '3'], 'train has 3 classes, but 4'),
        (['--classes', '3', '--train', '7', '--val', '3'], 'train has 6 images, but 7'),
        ([], 'val has 3 images, but 600000'),
    ],
)
def test_wrong_counts_are_told_and_nothing_is_written(options, told, list_images, tmp_path, capsys):
    folders(tmp_path)
    assert list_images([str(tmp_path), *options]) == 1
    assert told in capsys.readouterr().err and not list(tmp_path.glob('*.txt'))


def test_broken_images_and_classes_of_one_split_are_told(list_images, tmp_path, capsys):
    folders(tmp_path)
    (tmp_path / 'train' / '9' / '0.jpg').write_bytes(b'no image')
    (tmp_path / 'val' / '9').rename(tmp_path / 'val' / '11')
    assert list_images([str(tmp_path), *SIZES]) == 1
    error = capsys.readouterr().err
    assert '9/0.jpg is no whole image' in error and '2 classes are in one split only' in error


def test_a_folder_of_another_kind_says_what_is_expected(list_images, tmp_path, capsys):
    picture(tmp_path / 'a.jpg')
    assert list_images([str(tmp_path), *SIZES]) == 1
    assert 'one folder of class folders' in capsys.readouterr().err
