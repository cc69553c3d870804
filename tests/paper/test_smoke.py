"""Rows of the tables, from the basis to the report, on noise; and what an interruption leaves of one."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ebv_mm.paper import TABLES
from ebv_mm.paper.processes import CommandError, locked_log, run_process
from ebv_mm.paper.reproduction import Reproduction
from ebv_mm.paper.rows import Study
from ebv_mm.paper.smoke import shrink_configs

REPO = Path(__file__).parents[2]
FEW = {
    'imagenet': 'resnet50_fc_a0',
    'swin': 'swin_tiny_ebv_a1',
    'dimension': 'resnet50_ebv_a2_d100',
    'ablation': 'resnet50_fc_a0',
    'coco': 'mask_rcnn_r50_ebv_1x',
    'ade20k': 'upernet_r18_ebv_80k',
    'inat2018': 'resnet50_fc_inat2018_plain',
    '100k': 'resnet50_ebv_100k',
    'cifar-lt': 'resnet32_ebv_cifar10-lt-100',
    'cka': 'cka_resnet50',
    'capacity': 'capacity',
}


def run_rows(folder: Path, *arguments: str) -> str:
    """In a process of its own, which forks: this one may have threads. Returns what it printed."""
    command = [sys.executable, str(REPO / 'tools' / 'reproduce.py'), *arguments, '--smoke', '--work-dir', str(folder)]
    environment = dict(os.environ, OMP_NUM_THREADS='1')
    done = subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert (done.returncode == 0) == ('FAILED' not in done.stdout), done.stdout
    return done.stdout


def check(folder: Path, printed: str, table: str, row: str) -> None:
    """Whether a row has run, and the report has all that it measures."""
    (part,) = printed.split(f' ({row})\n')[1:2] or [printed]
    assert re.search(rf'^{table} +{row} +ran$', printed, re.MULTILINE), part.split('\n\n')[0]
    content = json.loads((folder / 'smoke' / table / f'{table}.json').read_text())
    rows = [r for r in TABLES[table].rows if r.name == row]
    if isinstance(rows[0], Study):
        assert content['findings'][rows[0].label]
        return
    measured = [line for line in content['figures'] if line['config'] == rows[0].config]
    assert len(measured) == sum(len(test.figures) for r in rows for test in r.tests)
    assert all(isinstance(line['measured'], float) and 0 <= line['measured'] <= 100 for line in measured)
    (run,) = (run for run in content['runs'] if run['run'] == row)
    assert run['state'] == 'trained' and run['commit'] and run['checkpoint']


@pytest.fixture(scope='module')
def few(tmp_path_factory) -> tuple:
    folder = tmp_path_factory.mktemp('smoke')
    return folder, run_rows(folder, 'all', '--only', *FEW.values())


def test_every_table_has_one():
    assert list(FEW) == list(TABLES)


@pytest.mark.parametrize(('table', 'row'), FEW.items())
def test_one_row_of_each_table(table, row, few):
    check(*few, table, row)


def test_nothing_large_stays(few):
    folder, _ = few
    assert not list(folder.rglob('*.pth')) and not (folder / 'smoke' / 'data').exists()


@pytest.mark.slow
@pytest.mark.parametrize('table', TABLES)
def test_every_row(table, tmp_path):
    printed = run_rows(tmp_path, table)
    for row in TABLES[table].rows:
        check(tmp_path, printed, table, row.name)


def test_it_goes_on_after_an_interruption_and_repeats_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    name = 'resnet32_fc_cifar10-lt-100'
    table = TABLES['cifar-lt'].only([name])
    shrink_configs([config for row in table.rows for config in row.configs], REPO / 'configs', tmp_path / 'configs')
    config = tmp_path / 'configs' / 'mmpretrain' / f'{name}.py'
    config.write_text(config.read_text() + '\ntrain_cfg.update(max_epochs=2)\n')
    commands = []

    def run(command, output):
        commands.append(command)
        return run_process(command, output)

    def carry_out() -> list:
        commands.clear()
        work = Reproduction(table, tmp_path / 'work', REPO, tmp_path / 'configs', gpus=0, run=run)
        assert work.carry_out() == [], capsys.readouterr().out
        return [' '.join(command) for command in commands]

    train, test = carry_out()
    assert 'train.py' in train and '--resume' not in train and 'test.py' in test
    assert carry_out() == []
    folder = tmp_path / 'work' / name
    # killed while the last checkpoint was written
    last = folder / 'epoch_2.pth'
    last.write_bytes(last.read_bytes()[:1000])
    train, *_ = carry_out()
    assert train.endswith(f'--resume {folder / "epoch_1.pth"}')
    assert len(json.loads((folder / 'sessions.json').read_text())) == 2
    # killed before the result was kept
    (folder / 'tests' / 'as-trained.json').unlink()
    (test,) = carry_out()
    assert 'test.py' in test


@pytest.mark.slow
def test_several_processes_train_and_test_a_row(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table = TABLES['cifar-lt'].only(['resnet32_fc_cifar10-lt-100'])
    shrink_configs([config for row in table.rows for config in row.configs], REPO / 'configs', tmp_path / 'configs')
    (config,) = (tmp_path / 'configs' / 'mmpretrain').iterdir()
    config.write_text(config.read_text() + '\nauto_scale_lr.update(base_batch_size=4)\n')
    work = Reproduction(table, tmp_path / 'work', REPO, tmp_path / 'configs', gpus=2)
    assert work.carry_out() == [], capsys.readouterr().out
    printed = capsys.readouterr().out
    assert 'dist_train.sh' in printed and 'dist_test.sh' in printed
    (experiment,) = work.experiments.values()
    assert experiment.result(table.rows[0].tests[0])['metrics'] and experiment.sessions[0]['gpus'] == 2


def test_a_command_that_fails_is_told_and_the_next_row_begins(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = ['resnet32_fc_cifar10-lt-100', 'resnet32_fc_cifar10-lt-50']
    table = TABLES['cifar-lt'].only(names)
    shrink_configs([config for row in table.rows for config in row.configs], REPO / 'configs', tmp_path / 'configs')

    def fail(command, output):
        output.write('what went wrong\n')
        output.flush()
        return 3

    work = Reproduction(table, tmp_path / 'work', REPO, tmp_path / 'configs', gpus=0, run=fail)
    assert work.carry_out() == names
    printed = capsys.readouterr().out
    assert printed.count('exit code 3') == 2 and printed.count('what went wrong') == 2


INTERRUPTIBLE = """
import signal, sys
from pathlib import Path
from ebv_mm.paper.processes import locked_log, run_process
signal.signal(signal.SIGTERM, signal.default_int_handler)
with locked_log(Path('log')) as output:
    run_process(['sh', '-c', 'sleep 600 & echo begun; wait'], output)
"""


def test_an_interruption_ends_what_a_command_has_started(tmp_path, monkeypatch):
    """Also the children of a script, which the signal does not reach by itself: they would keep the log locked."""
    monkeypatch.chdir(tmp_path)
    process = subprocess.Popen([sys.executable, '-c', INTERRUPTIBLE], stderr=subprocess.DEVNULL)
    log = Path('log')
    while not log.exists() or 'begun' not in log.read_text():
        assert process.poll() is None
        time.sleep(0.05)
    with pytest.raises(CommandError, match='another process writes log'), locked_log(log):
        pass
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=120)
    with locked_log(log):
        pass
