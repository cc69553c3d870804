import pickle

import numpy as np
import pytest
from mmengine.registry import DATASETS, DefaultScope
from tiny_fonts import CATALOGUE, write_fonts

import ebv_mm  # noqa: F401, registers the names
from ebv_mm.characters import split_by_family, store


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write_fonts(tmp_path)
    for font in CATALOGUE:
        store.add(tmp_path, font)
    monkeypatch.setattr(store.Store.__init__, '__defaults__', (CATALOGUE,))
    return tmp_path


def build(folder, **kwargs):
    config = dict(type='WrittenCharacters', data_root=str(folder), **kwargs)
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        return DATASETS.build(config)


def test_both_subsets_are_those_of_the_split(folder):
    rendered = store.Store(folder, CATALOGUE)
    split = split_by_family(rendered, 20)
    for name, numbers, labels in (('train', split.train, split.train_labels), ('test', split.test, split.test_labels)):
        dataset = build(folder, split=name, num_classes=20)
        assert len(dataset) == len(numbers)
        assert dataset.get_gt_labels().tolist() == labels.tolist()
        assert dataset.metainfo['classes'] == tuple(chr(code) for code in split.codes)
        for place in (0, len(dataset) - 1):
            item = dataset[place]
            assert np.array_equal(item['img'][..., 0], rendered.image(numbers[place]))
            assert item['gt_label'] == labels[place] and item['sample_idx'] == place


def test_what_a_worker_receives_is_small(folder):
    dataset = build(folder)
    size = len(pickle.dumps(dataset))
    images = sum(path.stat().st_size for path in folder.glob('rendered/*.images.npy'))
    assert size < images / 10
    assert np.array_equal(pickle.loads(pickle.dumps(dataset))[3]['img'], dataset[3]['img'])


def test_a_pipeline_ends_in_the_hosts_form(folder):
    pipeline = [dict(type='DistortCharacter', blur=0.2), dict(type='PackInputs')]
    dataset = build(folder, pipeline=pipeline)
    item = dataset[0]
    assert item['inputs'].shape == (1, 32, 32) and item['data_samples'].gt_label.tolist() == [
        dataset.get_gt_labels()[0]
    ]
    assert not np.array_equal(dataset[0]['inputs'], item['inputs'])  # distorted anew


def test_a_subset_has_its_own_labels(folder):
    assert build(folder, indices=5).get_gt_labels().tolist() == build(folder).get_gt_labels()[:5].tolist()


def test_one_image_of_some_is_evenly_from_all_classes(folder):
    whole, some = build(folder, split='test'), build(folder, split='test', every=5)
    assert some.get_gt_labels().tolist() == whole.get_gt_labels()[::5].tolist()
    assert np.array_equal(some[2]['img'], whole[10]['img'])


def test_errors_name_the_remedy(folder, tmp_path):
    with pytest.raises(ValueError, match='every = 0.*at least 1'):
        build(folder, every=0)
    with pytest.raises(ValueError, match="choose from 'train', 'test'"):
        build(folder, split='val')
    with pytest.raises(TypeError, match='tilt'):
        build(folder, pipeline=[dict(type='DistortCharacter', tilt=1)])
    with pytest.raises(FileNotFoundError, match=r'python -m ebv_mm\.characters'):
        build(tmp_path / 'nothing')
