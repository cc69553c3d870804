import os

from ebv_mm.output import new_figure, save_figure


def test_a_picture_has_the_very_name_that_was_given(tmp_path):
    figure = new_figure(2, 1)
    figure.add_subplot().plot([1, 2])
    for name, start in (('picture', b'\x89PNG'), ('picture.svg', b'<?xml')):
        save_figure(figure, tmp_path / 'new' / name)
        assert (tmp_path / 'new' / name).read_bytes().startswith(start)
    assert sorted(os.listdir(tmp_path / 'new')) == ['picture', 'picture.svg']


def test_dots_per_inch(tmp_path):
    save_figure(new_figure(2, 1), tmp_path / 'picture.png', dpi=50)
    header = (tmp_path / 'picture.png').read_bytes()[16:24]
    assert (int.from_bytes(header[:4], 'big'), int.from_bytes(header[4:], 'big')) == (100, 50)
