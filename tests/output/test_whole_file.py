"""Files that are there whole or not at all."""

import os
import stat

import pytest

from ebv_mm.output import check_writable, whole_file


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


def test_check_writable(tmp_path):
    check_writable(tmp_path / 'new' / 'file', 100)
    with pytest.raises(OSError, match='left'):
        check_writable(tmp_path / 'file', 1 << 60)
    with pytest.raises(OSError, match='folder'):
        check_writable(tmp_path / 'new')
    (tmp_path / 'plain').write_text('')
    with pytest.raises(OSError, match='cannot be written'):
        check_writable(tmp_path / 'plain' / 'file')
