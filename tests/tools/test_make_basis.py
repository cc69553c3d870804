"""tools/make_basis.py, as a user calls it."""

import importlib.util
from pathlib import Path

import pytest

from ebv_mm.basis import load_basis, make_basis, make_command, save_basis

TOOL = Path(__file__).parents[2] / 'tools' / 'make_basis.py'


@pytest.fixture(scope='module')
def tool():
    spec = importlib.util.spec_from_file_location('make_basis_tool', TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_command_that_error_messages_show(tool, tmp_path, capsys):
    out = tmp_path / 'new' / 'basis.safetensors'
    assert tool.main(make_command(9, 12, str(out)).split()[2:]) == 0
    assert load_basis(out).vectors.shape == (9, 12)
    assert 'orthonormal' in capsys.readouterr().out


def test_the_default_name_tells_the_size(tool, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert tool.main(['--num-classes', '5', '--dim', '5']) == 0
    assert load_basis('data/ebv/5x5.safetensors').num_classes == 5


def test_an_existing_file_stays(tool, tmp_path, capsys):
    out = tmp_path / '5x5.safetensors'
    command = ['--num-classes', '5', '--dim', '5', '--out', str(out)]
    tool.main(command + ['--seed', '1'])
    before = out.read_bytes()
    assert tool.main(command) == 0
    assert 'is there' in capsys.readouterr().out
    assert out.read_bytes() == before
    assert tool.main(command + ['--force']) == 0
    assert out.read_bytes() != before
    assert tool.main(['--num-classes', '4', '--dim', '5', '--out', str(out)]) == 1


@pytest.mark.parametrize(
    'arguments', [[], ['--num-classes', '5'], ['x.py', '--num-classes', '5', '--dim', '5'], ['x.py', '--out', 'y']]
)
def test_wrong_usage(tool, arguments):
    with pytest.raises(SystemExit):
        tool.main(arguments)


def test_bad_size_is_one_clear_line(tool, capsys):
    assert tool.main(['--num-classes', '0', '--dim', '5']) == 1
    assert 'num_classes = 0' in capsys.readouterr().err


class TestConfig:
    @pytest.fixture(autouse=True)
    def _inside(self, tmp_path, monkeypatch):
        pytest.importorskip('mmengine')
        monkeypatch.chdir(tmp_path)

    @staticmethod
    def write(text):
        Path('config.py').write_text(text)
        return 'config.py'

    def test_every_missing_basis_is_made(self, tool, capsys):
        config = self.write(
            "basis = 'data/81x81.safetensors'\n"
            'model = dict(head=[dict(basis=basis), dict(mask=dict(basis=basis), basis=dict(num_classes=3, dim=3))],\n'
            "             aux=dict(basis='4x6_other.safetensors'))\n"
        )
        assert tool.main([config]) == 0
        assert load_basis('data/81x81.safetensors').vectors.shape == (81, 81)
        assert load_basis('4x6_other.safetensors').vectors.shape == (4, 6)
        assert capsys.readouterr().out.count('wrote') == 2
        assert tool.main([config]) == 0
        assert capsys.readouterr().out.count('is there') == 2

    def test_inherited_names_count(self, tool):
        Path('base.py').write_text("model = dict(basis='3x4.safetensors')\n")
        assert tool.main([self.write("_base_ = './base.py'\n")]) == 0
        assert load_basis('3x4.safetensors').dim == 4

    def test_a_name_without_a_size(self, tool, capsys):
        config = self.write("model = dict(basis='mine.safetensors')\n")
        assert tool.main([config]) == 1
        assert '--out mine.safetensors' in capsys.readouterr().err
        save_basis(make_basis(4, 4), 'mine.safetensors')
        assert tool.main([config]) == 0

    def test_a_broken_file_is_told_not_replaced(self, tool, capsys):
        Path('4x4.safetensors').write_bytes(b'rubbish')
        assert tool.main([self.write("model = dict(basis='4x4.safetensors')\n")]) == 1
        assert '4x4.safetensors' in capsys.readouterr().err
        assert Path('4x4.safetensors').read_bytes() == b'rubbish'

    def test_nothing_to_make(self, tool, capsys):
        assert tool.main([self.write('model = dict(basis=dict(num_classes=3, dim=3))\n')]) == 0
        assert 'names no basis file' in capsys.readouterr().out
