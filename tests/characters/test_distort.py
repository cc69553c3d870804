import time

import numpy as np
import pytest

from ebv_mm.characters.distort import distort

NOTHING = dict(shift=0, scale=0, shear=0, stroke=0, blur=0)


@pytest.fixture
def image():
    image = np.zeros((32, 32), np.uint8)
    image[8:24, 14:18] = 255
    return image


def test_sizes_of_zero_leave_the_image(image):
    assert np.array_equal(distort(image, np.random.RandomState(0), **NOTHING), image)


def centre(image):
    return np.array([(index * image).sum() / image.sum() for index in np.indices(image.shape)])


def test_each_size_does_what_its_name_says(image):
    ink = image.sum() / 255

    def many(**sizes):
        return [distort(image, np.random.RandomState(seed), **{**NOTHING, **sizes}) for seed in range(300)]

    moved = np.array([centre(out) - centre(image) for out in many(shift=0.04)])
    assert moved.std(0) == pytest.approx([0.04 * 32] * 2, rel=0.15)
    areas = np.array([out.sum() / 255 / ink for out in many(scale=0.05)])
    assert np.log(areas).std() == pytest.approx(2 * 0.05, rel=0.2)
    sheared = [centre(out[8:14])[1] - centre(out[18:24])[1] for out in many(shear=0.1)]
    assert np.std(sheared) == pytest.approx(0.1 * 10, rel=0.2) and np.allclose(np.mean(sheared), 0, atol=0.2)
    widths = np.array([out.sum() / 255 / ink for out in many(stroke=0.5)])
    assert widths.min() < 0.8 and widths.max() > 1.2
    blurred = many(blur=1.0)
    assert min(int(out.max()) for out in blurred) <= 255 and all(out.sum() / 255 > 0.9 * ink for out in blurred)
    assert np.mean([(out > 0).sum() for out in blurred]) > 1.2 * (image > 0).sum()


def test_it_repeats_itself_and_is_fast(image):
    one, other = (distort(image, np.random.RandomState(3)) for _ in range(2))
    assert np.array_equal(one, other) and not np.array_equal(one, distort(image, np.random.RandomState(4)))
    random, begin = np.random.RandomState(0), time.process_time()
    for _ in range(2000):
        distort(image, random)
    assert 2000 / (time.process_time() - begin) > 2000  # images a second; some 30,000 where nothing else runs
