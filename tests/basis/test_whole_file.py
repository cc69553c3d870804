"""Files that are there whole or not at all."""

import os
import stat

import pytest

from ebv_mm.basis import make_basis
from ebv_mm.basis.plot import plot_angles
from ebv_mm.basis.whole_file import whole_file


@pytest.mark.parametrize('mask, mode', [(0o022, 0o644), (0o077, 0o600)])
def test_it_appears_at_the_end_with_the_rights_of_any_new_file(tmp_path, mask, mode):
    path = tmp_path / 'new' / 'table.csv'
    before = os.umask(mask)
    try:
        with whole_file(path) as part:
            part.write_text('half')
            assert not path.exists() and part.name.endswith('table.csv')
            part.write_text('whole')
    finally:
        os.umask(before)
    assert path.read_text() == 'whole' and os.listdir(path.parent) == ['table.csv']
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.parametrize('end', [OSError, KeyboardInterrupt])
def test_an_error_or_an_interruption_leaves_what_was_there(tmp_path, end):
    path = tmp_path / 'table.csv'
    path.write_text('before')
    with pytest.raises(end), whole_file(path) as part:
        part.write_text('half')
        raise end
    assert path.read_text() == 'before' and os.listdir(tmp_path) == ['table.csv']


def test_a_picture_has_the_very_name_that_was_given(tmp_path):
    basis = make_basis(5, 5)
    for name, start in (('angles', b'\x89PNG'), ('angles.svg', b'<?xml')):
        plot_angles(basis, tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(start)
    assert sorted(os.listdir(tmp_path)) == ['angles', 'angles.svg']
