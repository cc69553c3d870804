import pickle
import zlib

import numpy as np
import pytest
from tiny_fonts import CATALOGUE, HAN, HANGUL, write_fonts

from ebv_mm.characters import Store, split_by_family
from ebv_mm.characters.compare import likeness, nearest_neighbour
from ebv_mm.characters.store import add, is_rendered


@pytest.fixture
def folder(tmp_path):
    write_fonts(tmp_path)
    return tmp_path


@pytest.fixture
def store(folder):
    for font in CATALOGUE:
        add(folder, font)
    return Store(folder, CATALOGUE)


def test_store_holds_every_font(store, folder):
    sizes = [len(np.load(folder / 'rendered' / f'{font.name}.codes.npy')) for font in CATALOGUE]
    assert len(store) == sum(sizes) and np.bincount(store.font).tolist() == sizes
    assert set(store.codes[store.font == 3]) <= set(HAN[16:])  # without its placeholders
    numbers = np.array([5, len(store) - 1, 0, 100])
    assert all(np.array_equal(store.image(number), image) for number, image in zip(numbers, store.images(numbers)))


def test_a_family_may_differ_by_script(store):
    two = store.font == 2
    hangul = np.isin(store.codes, HANGUL)
    assert {store.families[k] for k in store.family[two & hangul]} == {'one'}
    assert {store.families[k] for k in store.family[two & ~hangul]} == {'two'}


def test_store_is_pickled_as_its_folder(store):
    pickled = pickle.dumps(store)
    assert len(pickled) < 2000
    assert np.array_equal(pickle.loads(pickled).codes, store.codes)


def test_a_half_written_font_is_not_there(store, folder):
    (folder / 'rendered' / 'two.json').unlink()
    assert not is_rendered(folder, CATALOGUE[2])
    assert len(Store(folder, CATALOGUE).fonts) == 3


def test_an_empty_folder_says_how_to_make_it(tmp_path):
    with pytest.raises(FileNotFoundError, match=r'python -m ebv_mm\.characters'):
        Store(tmp_path)


def test_no_character_is_tested_in_a_family_that_was_trained(store):
    split = split_by_family(store)
    assert split.test_labels.tolist() == list(range(len(split.codes)))  # one each, in order
    assert set(split.train_labels) == set(range(len(split.codes)))
    for labels, numbers in ((split.train_labels, split.train), (split.test_labels, split.test)):
        assert np.array_equal(store.codes[numbers], split.codes[labels])
    for label, number in zip(split.test_labels, split.test):
        trained = split.train[split.train_labels == label]
        assert store.family[number] not in store.family[trained]
        # all images of the other families are trained
        others = (store.codes == split.codes[label]) & (store.family != store.family[number])
        assert set(trained) == set(np.flatnonzero(others))
        # and the tested one is the first of its family
        same = (store.codes == split.codes[label]) & (store.family == store.family[number])
        assert number == np.flatnonzero(same)[0]


def test_characters_of_one_family_are_no_classes(store):
    assert not set(split_by_family(store).codes) & set(HANGUL)  # 'two' has its Hangul from 'one'


def test_classes_are_in_the_order_of_the_hash(store):
    """Recomputed with Python's integers."""

    def mixed(value, seed):
        z = (value + (seed + 1) * 0x9E3779B97F4A7C15) % 2**64
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        return z ^ z >> 31

    for seed in (0, 7):
        split = split_by_family(store, seed=seed)
        assert split.codes.tolist() == sorted(split.codes.tolist(), key=lambda code: mixed(code, seed))
        for code, number in zip(split.codes.tolist(), split.test):
            families = {store.families[k] for k in store.family[store.codes == code]}
            held = min(families, key=lambda name: mixed(code ^ zlib.crc32(name.encode()) << 24, seed + 1))
            assert store.families[store.family[number]] == held


def test_fewer_classes_are_the_first_of_all(store):
    whole, few = split_by_family(store), split_by_family(store, 10)
    assert few.codes.tolist() == whole.codes[:10].tolist()
    assert few.test.tolist() == whole.test[:10].tolist()
    others = split_by_family(store, 10, skip=10)
    assert others.codes.tolist() == whole.codes[10:20].tolist()
    several = split_by_family(store, min_train=3)
    assert np.bincount(several.train_labels).min() >= 3 and 0 < len(several.codes) < len(whole.codes)


@pytest.mark.parametrize('wrong', [dict(num_classes=1000), dict(num_classes=0), dict(skip=1000), dict(min_train=9)])
def test_too_many_classes_say_how_many_there_are(store, wrong):
    with pytest.raises(ValueError, match='characters are in two families'):
        split_by_family(store, **wrong)


def test_the_nearest_neighbour_is_that_of_all_pairs(store):
    split = split_by_family(store)
    train, test = (store.images(part).reshape(len(part), -1).astype(float) for part in (split.train, split.test))
    mean = train.mean(0)
    cosine = np.array([[a @ b / np.sqrt(a @ a * (b @ b)) for b in train - mean] for a in test - mean])
    expected = 100 * np.mean(split.train_labels[cosine.argmax(1)] == split.test_labels)
    seen, accuracy = list(nearest_neighbour(store, split))[-1]
    assert seen == len(train) and accuracy == pytest.approx(expected, abs=0.1)


def test_likeness_compares_fonts_of_different_families(store):
    found = {tuple(pair[2:]): pair for pair in likeness(store)}
    assert ('Han', 'two', 'one') in found and ('Han', 'one-bold', 'one') not in found
    assert not [pair for pair in found if pair[0] == 'Hangul']
    codes = sorted(set(HAN[:48]))
    pairs = [[np.flatnonzero((store.codes == code) & (store.font == font))[0] for code in codes] for font in (2, 0)]
    x, y = (store.images(np.array(part)).reshape(len(part), -1).astype(float) for part in pairs)
    correlations = np.array([np.corrcoef(a, b)[0, 1] for a, b in zip(x, y)])
    pair = found['Han', 'two', 'one']
    assert pair.median == pytest.approx(np.median(correlations), abs=1e-4)
    assert pair.same == np.mean(correlations > 0.93)
