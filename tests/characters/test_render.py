import numpy as np
from tiny_fonts import HAN, write_font

from ebv_mm.characters.render import FAINT, INK, SIZE, covered, is_character, render


def test_which_code_points_are_characters():
    assert is_character(0x4E00) and is_character(0xAC00) and is_character(0x20000) and is_character(0x3134A)
    assert not is_character(ord('A')) and not is_character(0x3042)  # no letters, no kana
    assert not is_character(0xF900)  # Unicode: the same as U+8C48
    assert is_character(0xFA0E)  # in the same block, but a character of its own


def test_a_font_is_rendered_in_the_order_of_its_characters(tmp_path):
    write_font(tmp_path / 'a.ttf', [*reversed(HAN), ord('A')])
    codes, images = render(tmp_path / 'a.ttf')
    assert codes.tolist() == covered(tmp_path / 'a.ttf') == list(HAN)
    assert images.shape == (len(HAN), SIZE, SIZE) and images.dtype == np.uint8
    assert len({image.tobytes() for image in images}) == len(HAN)


def test_empty_pictures_and_shared_ones_are_left_out(tmp_path):
    write_font(tmp_path / 'a.ttf', HAN[:20], empty=HAN[20:25], placeholder=HAN[25:40])
    codes, images = render(tmp_path / 'a.ttf')
    assert codes.tolist() == list(HAN[:20])
    assert images.max((1, 2)).min() >= FAINT


def test_a_font_of_nothing_has_no_images(tmp_path):
    write_font(tmp_path / 'a.ttf', [ord('A')])
    assert [len(part) for part in render(tmp_path / 'a.ttf')] == [0, 0]
    write_font(tmp_path / 'b.ttf', [], empty=HAN)
    assert [len(part) for part in render(tmp_path / 'b.ttf')] == [0, 0]


def test_the_median_character_fills_the_picture(tmp_path):
    write_font(tmp_path / 'a.ttf', HAN)
    ink = render(tmp_path / 'a.ttf')[1].max(0) >= FAINT
    for filled in (np.flatnonzero(ink.any(0)), np.flatnonzero(ink.any(1))):
        assert abs(filled[-1] + 1 - filled[0] - INK) <= 2
    across = np.flatnonzero(ink.any(0))
    assert abs((across[0] + across[-1] + 1) / 2 - SIZE / 2) <= 1


def test_rendering_is_deterministic(tmp_path):
    write_font(tmp_path / 'a.ttf', HAN)
    first, second = render(tmp_path / 'a.ttf'), render(tmp_path / 'a.ttf')
    assert all(np.array_equal(one, other) for one, other in zip(first, second))
