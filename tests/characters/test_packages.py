import pytest

from ebv_mm.characters import Font
from ebv_mm.characters.__main__ import main
from ebv_mm.characters.packages import MissingFontsError, fetch, font_path


@pytest.fixture
def _debian(tmp_path, monkeypatch):
    """An apt-get that writes a file, and a dpkg that unpacks it."""
    commands = tmp_path / 'bin'
    commands.mkdir()
    (commands / 'apt-get').write_text(
        '#!/bin/sh\n[ "$2" = fonts-unknown ] && { echo "E: Unable to locate package $2" >&2; exit 100; }\n'
        'echo font > "$2_1.0_all.deb"\n'
    )
    # as dpkg does, it makes the last folder only
    (commands / 'dpkg').write_text(
        '#!/bin/sh\ncase "$2" in *damaged*) echo "dpkg-deb: error: not a Debian archive" >&2; exit 2;; esac\n'
        '{ [ -d "$3" ] || mkdir "$3"; } && mkdir -p "$3/usr/share" && cp "$2" "$3/usr/share/a.ttf"\n'
    )
    for command in commands.iterdir():
        command.chmod(0o755)
    monkeypatch.setenv('PATH', f'{commands}:/usr/bin:/bin')


@pytest.mark.usefixtures('_debian')
def test_a_package_is_fetched_once(tmp_path):
    assert fetch(tmp_path, 'fonts-a')
    assert font_path(tmp_path, Font('fonts-a', 'a.ttf', 'a')).read_text() == 'font\n'
    assert not fetch(tmp_path, 'fonts-a')
    with pytest.raises(MissingFontsError, match=r'has no b\.ttf'):
        font_path(tmp_path, Font('fonts-a', 'b.ttf', 'b'))


@pytest.mark.usefixtures('_debian')
def test_an_unknown_package_says_what_apt_said(tmp_path):
    with pytest.raises(MissingFontsError, match='Unable to locate package fonts-unknown; run `apt-get update`'):
        fetch(tmp_path, 'fonts-unknown')
    assert not (tmp_path / 'fonts' / 'fonts-unknown').exists()


@pytest.mark.usefixtures('_debian')
def test_a_damaged_package_says_what_dpkg_said(tmp_path):
    with pytest.raises(MissingFontsError, match=r'cannot unpack .*damaged.*not a Debian archive; delete it'):
        fetch(tmp_path, 'fonts-damaged')
    assert not (tmp_path / 'fonts' / 'fonts-damaged').exists()


def test_without_debian_the_error_names_the_remedy(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv('PATH', str(tmp_path))
    with pytest.raises(MissingFontsError, match=r'packages\.debian\.org'):
        fetch(tmp_path, 'fonts-a')
    assert main([str(tmp_path), '--packages', 'fonts-hanazono']) == 1
    assert 'fonts-hanazono is not in' in capsys.readouterr().err


def test_the_command_lists_and_refuses(tmp_path, capsys):
    assert main([str(tmp_path), '--list']) == 0
    assert 'fonts-hanazono' in capsys.readouterr().out
    assert main([str(tmp_path), '--packages', 'fonts-nonsense']) == 2
    assert 'fonts-nonsense' in capsys.readouterr().err
