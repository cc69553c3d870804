import cv2
import digit_files
import numpy as np
import pytest
from digits import split_digits, tight_box
from pycocotools.coco import COCO


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp('data') / 'demo'
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(digit_files, 'NUM_SCENES', {'train': 6, 'test': 4})
        assert digit_files.ensure_datasets(folder)
    return folder


def test_nothing_is_left_beside_the_data(folder):
    assert [path.name for path in folder.parent.iterdir()] == ['demo']


def test_data_is_reused(folder):
    before = (folder / 'scenes' / 'train.json').stat().st_mtime_ns
    assert not digit_files.ensure_datasets(folder)
    assert (folder / 'scenes' / 'train.json').stat().st_mtime_ns == before


def test_an_interruption_leaves_no_half_data(tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(digit_files, 'NUM_SCENES', {'train': 1, 'test': 1})
    monkeypatch.setattr(digit_files, 'write_scenes', interrupt)
    with pytest.raises(KeyboardInterrupt):
        digit_files.ensure_datasets(tmp_path / 'demo')
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize('split', ['train', 'test'])
def test_digit_list_names_every_digit_of_the_split(folder, split):
    digits = split_digits()[split]
    lines = (folder / 'digits' / f'{split}.txt').read_text().split('\n')[:-1]
    assert lines == [f'{index:04d}.png {label}' for index, label in zip(digits.indices, digits.labels)]
    image = cv2.imread(str(folder / 'digits' / split / lines[0].split()[0]), cv2.IMREAD_GRAYSCALE)
    np.testing.assert_allclose(image / 255, digits.images[0], atol=1 / 255)


@pytest.mark.parametrize('split', ['train', 'test'])
def test_coco_annotations_agree_with_images_and_labels(folder, split):
    coco = COCO(folder / 'scenes' / f'{split}.json')
    assert [category['name'] for category in coco.loadCats(coco.getCatIds())] == [str(digit) for digit in range(10)]
    assert len(coco.getImgIds()) == {'train': 6, 'test': 4}[split]
    for image in coco.loadImgs(coco.getImgIds()):
        pixels = cv2.imread(str(folder / 'scenes' / split / image['file_name']))
        labels = cv2.imread(str(folder / 'scenes' / f'{split}_labels' / image['file_name']), cv2.IMREAD_UNCHANGED)
        assert pixels.shape[:2] == labels.shape == (image['height'], image['width'])
        expected = np.zeros_like(labels)
        for annotation in coco.loadAnns(coco.getAnnIds(image['id'])):
            mask = coco.annToMask(annotation).astype(bool)
            assert tuple(annotation['bbox']) == tight_box(mask)
            assert annotation['area'] == mask.sum()
            expected[mask] = annotation['category_id']
        np.testing.assert_array_equal(labels, expected)


def test_no_test_digit_is_in_a_training_scene(folder):
    used = {
        split: {annotation['digit'] for annotation in COCO(folder / 'scenes' / f'{split}.json').anns.values()}
        for split in ('train', 'test')
    }
    digits = split_digits()
    for split in used:
        assert used[split] <= set(digits[split].indices.tolist())
    assert not used['train'] & used['test']
