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
            assert not path.exists() and part.suffix == '.csv'
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


def test_a_name_as_long_as_the_file_system_takes(tmp_path):
    path = tmp_path / ('a' * 240 + '.safetensors')
    check_writable(path)
    with whole_file(path) as part:
        part.write_text('whole')
    assert path.read_text() == 'whole'
    with pytest.raises(OSError, match='cannot be written .File name too long.; give another name'):
        check_writable(tmp_path / ('a' * 256))


@pytest.mark.parametrize('kind', ['a device', 'a pipe', 'a folder'])
def test_what_is_no_file_is_never_replaced(tmp_path, kind):
    path = {'a device': '/dev/null', 'a pipe': tmp_path / 'pipe', 'a folder': tmp_path / 'folder'}[kind]
    os.mkfifo(tmp_path / 'pipe')
    (tmp_path / 'folder').mkdir()
    for write in (check_writable, lambda path: whole_file(path).__enter__()):
        with pytest.raises(OSError, match=f'is {kind}; give the name of a file'):
            write(path)


def test_what_killed_processes_left_is_removed(tmp_path):
    for name in ('.part-old.csv', '.part-new.csv', 'old.csv'):
        (tmp_path / name).write_text('half')
    for name in ('.part-old.csv', 'old.csv'):
        os.utime(tmp_path / name, (0, 0))
    with whole_file(tmp_path / 'table.csv') as part:
        part.write_text('whole')
    assert sorted(os.listdir(tmp_path)) == ['.part-new.csv', 'old.csv', 'table.csv']


def test_check_writable(tmp_path):
    check_writable(tmp_path / 'new' / 'file', 100)
    with pytest.raises(OSError, match='left'):
        check_writable(tmp_path / 'file', 1 << 60)
    with pytest.raises(OSError, match='folder'):
        check_writable(tmp_path / 'new')
    (tmp_path / 'plain').write_text('')
    with pytest.raises(OSError, match='cannot be written'):
        check_writable(tmp_path / 'plain' / 'file')
