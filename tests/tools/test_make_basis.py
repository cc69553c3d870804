"""python -m ebv_mm.basis, as a user calls it."""

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import save_file

from ebv_mm.basis import DenseBasis, closed_form_basis, closed_forms, load_basis, make_basis, make_command, save_basis
from ebv_mm.basis import __main__ as tool_module
from ebv_mm.basis.__main__ import main
from ebv_mm.basis.jobs import description

TOOL = Path(__file__).parents[2] / 'tools' / 'make_basis.py'


@pytest.fixture(scope='module')
def tool():
    return tool_module


def test_the_command_that_error_messages_show(tool, tmp_path, capsys):
    out = tmp_path / "somebody's new folder" / 'basis.safetensors'
    assert tool.main(shlex.split(make_command(9, 12, out))[3:]) == 0
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


def test_an_existing_file_of_another_origin_is_not_what_was_asked_for(tool, tmp_path, capsys):
    out = tmp_path / '20x10.safetensors'
    command = ['--num-classes', '20', '--dim', '10', '--out', str(out)]
    assert tool.main(command + ['--method', 'packing']) == 0
    for same in ([], ['--method', 'packing'], ['--seed', '0'], ['--method', 'packing', '--seed', '0']):
        assert tool.main(command + same) == 0
    capsys.readouterr()
    algorithm1 = ['--method', 'algorithm1', '--alpha', '.3', '--seed', '42']
    for other in (algorithm1, ['--method', 'solver'], ['--seed', '42'], ['--sparse']):
        assert tool.main(command + other) == 1
        assert "exists, made by 'packing' with seed 0; choose another --out, or --force" in capsys.readouterr().err
    assert tool.main(command + ['--sparse', '--force', '--method', 'packing']) == 0
    assert tool.main(command + ['--sparse']) == 0
    assert tool.main(command + ['--seed', '0']) == 1
    assert "made by 'packing' without a seed" in capsys.readouterr().err


def test_an_existing_file_is_not_believed(tmp_path, capsys):
    """Its header says 'packing' with seed 0, its vectors are those of seed 1."""
    out = tmp_path / '20x10.safetensors'
    command = ['--num-classes', '20', '--dim', '10', '--out', str(out)]
    save_basis(DenseBasis(make_basis(20, 10, method='packing', seed=1).vectors, 'packing', 0), out)
    assert main(command) == 0
    for asked in (['--seed', '0'], ['--method', 'packing']):
        assert main(command + asked) == 1
        assert "says that 'packing' made it with seed 0, but that makes other vectors" in capsys.readouterr().err
    save_basis(DenseBasis(make_basis(20, 10).vectors, 'solver', 0), out)
    capsys.readouterr()
    assert main(command + ['--method', 'solver']) == 0
    assert "says itself that 'solver' made it with seed 0" in capsys.readouterr().out


def test_nearly_parallel_vectors_with_a_lying_header_do_not_pass(tmp_path, capsys):
    out = tmp_path / '14x7.safetensors'
    vectors = torch.nn.functional.normalize(torch.ones(14, 7) + 1e-3 * torch.randn(14, 7))
    save_basis(DenseBasis(vectors, 'packing', 0, known_coherence=0.29), out)
    assert main(['--num-classes', '14', '--dim', '7', '--alpha', '.3', '--out', str(out)]) == 1
    assert 'says that its largest |cosine| is 0.290000, but two of its vectors have 1.00' in capsys.readouterr().err


@pytest.mark.parametrize('name', ['20x10', '20x10' + 'a' * 230])
def test_work_that_cannot_be_saved_is_kept_elsewhere(name, tmp_path, monkeypatch, capsys):
    """The disk has filled meanwhile; or the name that says what was missed is too long."""
    elsewhere, out = tmp_path / 'elsewhere', tmp_path / f'{name}.safetensors'
    elsewhere.mkdir()
    monkeypatch.setattr('tempfile.tempdir', str(elsewhere))
    command = ['--num-classes', '20', '--dim', '10', '--out', str(out)]
    if len(name) > 10:
        command += ['--alpha', '.1']
    else:
        monkeypatch.setattr('ebv_mm.basis.files.save_file', full_disk_but(elsewhere))
    assert main(command) == 1
    (kept,) = elsewhere.iterdir()
    assert load_basis(kept).num_classes == 20 and not out.exists()
    assert f'the basis is kept as {str(kept)!r}, move it from there' in capsys.readouterr().err


def full_disk_but(folder):
    def save(tensors, path, metadata):
        if folder not in Path(path).parents:
            raise SafetensorError('No space left on device')
        return save_file(tensors, path, metadata)

    return save


@pytest.mark.parametrize('most, mark', [(1e9, ''), (100, '~')])
def test_a_mean_over_too_many_pairs_is_an_estimate(most, mark, monkeypatch):
    """So that what is told at the end takes no longer than the basis."""
    monkeypatch.setattr('ebv_mm.basis.jobs.EXACT_WORK', most)
    basis = make_basis(20, 10)
    angles = torch.acos((basis.vectors @ basis.vectors.T).clamp(-1, 1)).rad2deg()
    mean = (angles - 90).abs()[~torch.eye(20, dtype=torch.bool)].mean()
    told = description(basis, None)['mean dev.']
    assert told.startswith(mark) and float(told.lstrip('~')) == pytest.approx(float(mean), abs=1e-3)


def test_a_device_is_not_replaced(capsys):
    for command in (['--num-classes', '5', '--dim', '5', '--force'], ['--num-classes', '5', '--dim', '5']):
        assert main([*command, '--out', '/dev/null']) == 1
        assert 'is a device' in capsys.readouterr().err
    assert Path('/dev/null').is_char_device()


def test_an_interruption_anywhere_is_one_word(tmp_path, monkeypatch, capsys):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr('ebv_mm.basis.jobs.description', interrupt)
    out = tmp_path / '5x5.safetensors'
    assert main(['--num-classes', '5', '--dim', '5', '--out', str(out)]) == 130
    assert capsys.readouterr().err.endswith('\ninterrupted\n')
    assert load_basis(out).dim == 5  # it was written by then


def test_polish_is_satisfied_by_what_it_makes(tool, tmp_path):
    best = closed_forms(20, 10)[0].method
    command = ['--num-classes', '20', '--dim', '10', '--out', str(tmp_path / 'x.safetensors'), '--method', 'polish']
    for method, code in ((best, 0), (f'{best}+solver', 0), ('solver', 1), ('imported', 1)):
        save_basis(DenseBasis(make_basis(20, 10, method=best).vectors, method, 0), tmp_path / 'x.safetensors')
        assert tool.main(command) == code


@pytest.mark.parametrize(
    'more, words',
    [
        (['--device', 'cuda:99'], "device = 'cuda:99' cannot be used"),
        (['--device', 'foo'], "device = 'foo' cannot be used"),
        (['--seed', str(2**64)], f'seed = {2**64}, but'),
    ],
)
def test_impossible_settings_are_one_clear_line(tool, tmp_path, capsys, more, words):
    assert tool.main(['--num-classes', '5', '--dim', '5', '--out', str(tmp_path / 'x.safetensors'), *more]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith('error: ') and words in line


def test_a_name_that_tells_another_size_is_told_before_the_work(tool, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr('ebv_mm.basis.jobs.make_basis', None)
    torch.save(torch.ones(20, 11), tmp_path / 'theirs.pth')
    out = ['--out', str(tmp_path / '20x10.safetensors')]
    for command in (['--num-classes', '20', '--dim', '11'], ['--import', str(tmp_path / 'theirs.pth')]):
        assert tool.main(command + out) == 1
        assert 'is named 20x10, but its matrix has the shape (20, 11)' in capsys.readouterr().err
    assert os.listdir(tmp_path) == ['theirs.pth']


@pytest.mark.parametrize(
    'arguments', [[], ['--num-classes', '5'], ['x.py', '--num-classes', '5', '--dim', '5'], ['x.py', '--out', 'y']]
)
def test_wrong_usage(tool, arguments):
    with pytest.raises(SystemExit):
        tool.main(arguments)


@pytest.mark.parametrize(
    'arguments, words',
    [
        (
            '--import x --alpha 0.1 --method solver --sparse',
            '--method, --alpha, --sparse would be ignored with --import',
        ),
        ('--import x --seed 0', '--seed would be ignored with --import'),
        ('--import x --list', '--list would be ignored with --import'),
        ('x.py --num-classes 5', '--num-classes would be ignored with CONFIG'),
        ('x.py --list', '--list would be ignored with CONFIG'),
        ('--num-classes 5 --dim 5 --list --method solver', '--method would be ignored with --list'),
        ('--num-classes 5 --dim 5 --sparse --seed 0', '--seed would be ignored with --sparse'),
        ('--num-classes 9 --dim 4 --method gold --time-limit 3', '--time-limit would be ignored with --method gold'),
        ('--num-classes 5 --dim 5 --alpha -1', '--alpha -1, but a largest |cosine| to reach lies in [0, 1)'),
        ('--num-classes 5 --dim 5 --alpha nan', '--alpha nan, but'),
    ],
)
def test_what_would_be_ignored_is_refused(tool, capsys, arguments, words):
    with pytest.raises(SystemExit):
        tool.main(arguments.split())
    assert words in capsys.readouterr().err


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

    @pytest.mark.parametrize('text, words', [('model = dict(', 'SyntaxError'), ('model = nothing\n', 'NameError')])
    def test_a_broken_config_is_one_clear_line(self, tool, capsys, text, words):
        assert tool.main([self.write(text)]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"error: config 'config.py' cannot be read ({words}: ")

    def test_nothing_to_make(self, tool, capsys):
        assert tool.main([self.write('model = dict(basis=dict(num_classes=3, dim=3))\n')]) == 0
        assert 'names no basis file' in capsys.readouterr().out


def test_list_makes_nothing(tool, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert tool.main(['--num-classes', '1000', '--dim', '500', '--list']) == 0
    out = capsys.readouterr().out
    assert 'bent' in out and '88.151' in out and '88.187' in out
    assert not list(tmp_path.iterdir())


def test_alpha_reached(tool, tmp_path):
    out = tmp_path / '64x8.safetensors'
    assert tool.main(['--num-classes', '64', '--dim', '8', '--out', str(out), '--alpha', '0.5']) == 0
    assert load_basis(out).coherence <= 0.5


def test_algorithm1_succeeds_by_the_authors_own_test(tool, tmp_path, capsys):
    out = tmp_path / '20x10.safetensors'
    asked = ['--num-classes', '20', '--dim', '10', '--method', 'algorithm1', '--alpha', '0.3', '--out', str(out)]
    assert tool.main(asked) == 0
    assert 0.3 + 1e-6 < load_basis(out).coherence <= 0.3 + 1e-4
    assert tool.main(asked) == 0  # it is there, and good enough still
    assert list(tmp_path.iterdir()) == [out]


def test_algorithm1_needs_an_alpha_where_it_could_not_end(tool, tmp_path, capsys):
    asked = ['--num-classes', '10', '--dim', '10', '--method', 'algorithm1', '--out', str(tmp_path / 'b.safetensors')]
    assert tool.main(asked) == 1
    assert 'needs an alpha' in capsys.readouterr().err


@pytest.mark.parametrize('alpha, words', [('0.002', 'impossible'), ('0.13', 'was reached')])
def test_alpha_missed_keeps_the_best_under_a_name_that_says_so(tool, tmp_path, capsys, alpha, words):
    out = tmp_path / '300x50.safetensors'
    command = ['--num-classes', '300', '--dim', '50', '--out', str(out)]
    assert tool.main(command + ['--alpha', alpha, '--time-limit', '1', '--method', 'solver']) == 1
    assert words in capsys.readouterr().err
    assert not out.exists()
    (kept,) = tmp_path.iterdir()
    assert kept.name.startswith(f'300x50.missed-{float(alpha):g}-reached-0.')
    assert load_basis(kept).num_classes == 300


def test_existing_file_above_alpha(tool, tmp_path, capsys):
    command = ['--num-classes', '64', '--dim', '8', '--out', str(tmp_path / '64x8.safetensors')]
    assert tool.main(command) == 0
    assert tool.main(command + ['--alpha', '0.35']) == 1
    assert '--force' in capsys.readouterr().err


def test_plot(tool, tmp_path):
    for size, name in ((['9', '9'], 'a.png'), (['14', '7'], 'b.svg')):
        command = ['--num-classes', size[0], '--dim', size[1], '--out', str(tmp_path / f'{name}.safetensors')]
        assert tool.main(command + ['--plot', str(tmp_path / 'plots' / name)]) == 0
        assert (tmp_path / 'plots' / name).stat().st_size > 1000


def test_sparse(tool, tmp_path):
    out = tmp_path / 'x.safetensors'
    assert tool.main(['--num-classes', '60', '--dim', '64', '--out', str(out), '--sparse']) == 0
    assert (load_basis(out).vectors == 0).float().mean() > 0.9


def test_import(tool, tmp_path, capsys):
    basis = make_basis(14, 7)
    torch.save(basis.vectors, tmp_path / 'theirs.pth')
    command = ['--import', str(tmp_path / 'theirs.pth'), '--out', str(tmp_path / 'ours.safetensors')]
    assert tool.main(command) == 0
    assert torch.equal(load_basis(tmp_path / 'ours.safetensors').vectors, basis.vectors)
    assert tool.main(command) == 1
    assert '--force' in capsys.readouterr().err


def test_unwritable_output_is_told_before_the_work(tool, tmp_path, capsys):
    (tmp_path / 'file').write_text('')
    command = ['--num-classes', '3000', '--dim', '10', '--out', str(tmp_path / 'file' / 'x.safetensors')]
    assert tool.main(command) == 1
    assert 'cannot be written' in capsys.readouterr().err


def test_a_folder_is_told_as_such(tool, tmp_path, capsys):
    torch.save(torch.eye(5), tmp_path / 'theirs.pth')
    (tmp_path / 'folder').mkdir()
    for command in (['--num-classes', '5', '--dim', '5'], ['--import', str(tmp_path / 'theirs.pth')]):
        assert tool.main(command + ['--out', str(tmp_path / 'folder')]) == 1
        assert "folder' is a folder; give the name of a file" in capsys.readouterr().err


def test_an_unknown_method_tells_all_that_there_are(tool, tmp_path, capsys):
    command = ['--num-classes', '20', '--dim', '10', '--method', 'kerdok', '--out', str(tmp_path / 'x.safetensors')]
    forms = [repr(offer.method) for offer in closed_forms(20, 10)]
    assert tool.main(command) == 1
    names = ', '.join(["'auto'", "'solver'", "'polish'", "'algorithm1'", *forms])
    assert capsys.readouterr().err.endswith(f'can be made by {names}; choose one of these\n')
    assert tool.main(command + ['--sparse']) == 1
    assert capsys.readouterr().err.endswith(f'choose one of: {", ".join(forms)}\n')


@pytest.mark.parametrize('better', [False, True])
def test_interrupt_keeps_the_best_so_far_and_a_better_one(better, tmp_path):
    out = tmp_path / '500x40.safetensors'
    if better:
        save_basis(closed_form_basis(500, 40), out)
    before = out.read_bytes() if better else None
    command = [sys.executable, str(TOOL), '--num-classes', '500', '--dim', '40', '--method', 'solver', '--force']
    command += ['--out', str(out), '--time-limit', '300']
    environment = dict(os.environ, PYTHONPATH=str(TOOL.parents[1]), OMP_NUM_THREADS='1')
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)
    assert b'min angle' in process.stderr.readline()  # it is at work
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    message = process.stderr.read().decode()
    process.stderr.close()
    kept = out
    if better:
        assert out.read_bytes() == before
        (kept,) = tmp_path.glob('500x40.interrupted-reached-0.*.safetensors')
    assert load_basis(kept).method == 'solver' and len(list(tmp_path.iterdir())) == 1 + better
    assert f'the best so far is {kept};' in message


def test_a_config_may_say_how_its_basis_is_made(tool, tmp_path, capsys):
    config, out = tmp_path / 'config.py', tmp_path / '20x10_alg1.safetensors'

    def make(options, *more):
        config.write_text(f'model = dict(basis={str(out)!r})\nbasis_options = {options}\n')
        return tool.main([str(config), *more])

    paper = dict(method='algorithm1', seed=42, alpha=0.4, lr=0.01, max_steps=500)
    assert make(paper) == 0
    assert (load_basis(out).method, load_basis(out).seed) == ('algorithm1', 42)
    assert make(paper, '--seed', '42') == 0
    assert make(paper, '--seed', '1') == 1
    assert '--seed 1, but the basis_options of' in capsys.readouterr().err
    assert make(dict(size=3)) == 1
    assert "has 'size' among its basis_options" in capsys.readouterr().err
    assert make(dict(method='packing')) == 1
    assert "exists, made by 'algorithm1' with seed 42" in capsys.readouterr().err


def test_the_options_of_algorithm_1(tool, tmp_path, capsys):
    """A falling step and alpha reach what the paper's do not; the file without them is kept under another name."""
    command = (
        '--num-classes 80 --dim 40 --method algorithm1 --alpha .135 --lr .01 --max-steps 600 --patience 600'.split()
    )
    command += ['--out', str(tmp_path / '80x40.safetensors')]
    assert tool.main(command) == 1
    assert 'alpha = 0.135 was asked for' in capsys.readouterr().err
    assert tool.main(command + ['--last-lr', '2e-4', '--tightness', '.9']) == 0
    assert load_basis(tmp_path / '80x40.safetensors').coherence <= 0.1351
    assert tool.main(command + ['--force', '--tightness', '2']) == 1
    assert 'tightness = 2.0, but' in capsys.readouterr().err
    with pytest.raises(SystemExit):
        tool.main(command[:4] + ['--lr', '.1', '--patience', '3'])
    assert '--lr, --patience would be ignored with --method auto' in capsys.readouterr().err
