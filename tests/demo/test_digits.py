import numpy as np
import pytest
from digits import MARGIN, make_scene, semantic_labels, split_digits, tight_box
from scipy import ndimage

SEEDS = range(8)


@pytest.fixture(scope='module')
def split():
    return split_digits()


def scene_of(split, seed):
    return make_scene(split['train'], np.random.default_rng(seed))


def test_train_and_test_digits_are_disjoint_and_complete(split):
    train, test = (set(split[name].indices.tolist()) for name in ('train', 'test'))
    assert not train & test
    assert train | test == set(range(1797))


def test_every_class_is_well_represented(split):
    for name in ('train', 'test'):
        share = np.bincount(split[name].labels, minlength=10) / len(split[name].labels)
        assert share.min() > 0.08


@pytest.mark.parametrize('seed', SEEDS)
def test_a_seed_gives_the_same_scene_again(split, seed):
    first, second = scene_of(split, seed), scene_of(split, seed)
    np.testing.assert_array_equal(first.image, second.image)
    assert len(first.instances) == len(second.instances) > 0
    for one, other in zip(first.instances, second.instances):
        assert (one.label, one.index) == (other.label, other.index)
        np.testing.assert_array_equal(one.mask, other.mask)


def test_seeds_give_different_scenes(split):
    assert (scene_of(split, 0).image != scene_of(split, 1).image).any()


def test_making_scenes_leaves_the_global_generator_alone(split):
    before = np.random.get_state()[1].copy()
    scene_of(split, 0)
    np.testing.assert_array_equal(before, np.random.get_state()[1])


@pytest.mark.parametrize('seed', SEEDS)
def test_masks_hold_strokes_and_do_not_touch(split, seed):
    seen = np.zeros(scene_of(split, seed).image.shape[:2], bool)
    for instance in scene_of(split, seed).instances:
        assert instance.mask.sum() > 30
        assert not (seen & instance.mask).any()
        seen |= ndimage.binary_dilation(instance.mask, np.ones((2 * MARGIN + 1,) * 2))


@pytest.mark.parametrize('seed', SEEDS)
def test_strokes_are_brighter_than_what_surrounds_them(split, seed):
    scene = scene_of(split, seed)
    free = ~np.any([instance.mask for instance in scene.instances], axis=0)
    for instance in scene.instances:
        ring = ndimage.binary_dilation(instance.mask, iterations=5) & ~ndimage.binary_dilation(
            instance.mask, iterations=2
        )
        assert scene.image[instance.mask].mean() > scene.image[ring & free].mean() + 30


@pytest.mark.parametrize('seed', SEEDS)
def test_boxes_are_tight(split, seed):
    for instance in scene_of(split, seed).instances:
        x, y, width, height = tight_box(instance.mask)
        inside = instance.mask[y : y + height, x : x + width]
        assert inside.sum() == instance.mask.sum()
        assert inside[0].any() and inside[-1].any() and inside[:, 0].any() and inside[:, -1].any()


@pytest.mark.parametrize('seed', SEEDS)
def test_semantic_labels_agree_with_the_masks(split, seed):
    scene = scene_of(split, seed)
    labels = semantic_labels(scene)
    for instance in scene.instances:
        assert (labels[instance.mask] == 1 + instance.label).all()
        assert split['train'].labels[split['train'].indices == instance.index] == instance.label
    assert (labels > 0).sum() == sum(instance.mask.sum() for instance in scene.instances)
