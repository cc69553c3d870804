"""Rows of the tables, from the basis to the report, on noise; and what an interruption leaves of one."""

import json

import pytest
from conftest import REPO

from ebv_mm.paper import TABLES
from ebv_mm.paper.processes import run_fork
from ebv_mm.paper.reproduction import Reproduction
from ebv_mm.paper.rows import Study
from ebv_mm.paper.smoke import shrink_configs

# One row of each table that trains in seconds; the heads of 100,000 classes do not.
FEW = {
    'imagenet': 'resnet50_fc_a0',
    'swin': 'swin_tiny_ebv_a1',
    'dimension': 'resnet50_ebv_a2_d100',
    'ablation': 'resnet50_ebv_lr_ta',
    'coco': 'mask_rcnn_r50_ebv_1x',
    'ade20k': 'upernet_r18_ebv_80k',
    'inat2018': 'resnet50_fc_inat2018_plain',
    'cifar-lt': 'resnet32_ebv_cifar10-lt-100',
    'capacity': 'capacity',
}
ALL = list(dict.fromkeys((table.name, row.name) for table in TABLES.values() for row in table.rows))


def smoke(reproduce, folder, table: str, row: str, capsys) -> dict:
    code = reproduce([table, '--smoke', '--only', row, '--work-dir', str(folder)])
    assert code == 0, capsys.readouterr().out
    return json.loads((folder / 'smoke' / table / f'{table}.json').read_text())


def check(table: str, row: str, content: dict) -> None:
    rows = [r for r in TABLES[table].rows if r.name == row]
    if isinstance(rows[0], Study):
        assert content['findings'][rows[0].label]
        return
    measured = [line for line in content['figures'] if line['config'] == rows[0].config]
    assert len(measured) == sum(len(test.figures) for r in rows for test in r.tests)
    assert all(isinstance(line['measured'], float) and 0 <= line['measured'] <= 100 for line in measured)
    (run,) = (run for run in content['runs'] if run['run'] == row)
    assert run['state'] == 'trained' and run['commit'] and run['checkpoint']


@pytest.mark.parametrize(('table', 'row'), FEW.items())
def test_one_row_of_each_table(table, row, reproduce, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check(table, row, smoke(reproduce, tmp_path, table, row, capsys))
    assert not list(tmp_path.rglob('*.pth')) and not (tmp_path / 'smoke' / 'data').exists()


@pytest.mark.slow
@pytest.mark.parametrize(('table', 'row'), [pair for pair in ALL if pair not in FEW.items()])
def test_every_other_row(table, row, reproduce, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check(table, row, smoke(reproduce, tmp_path, table, row, capsys))


def test_it_goes_on_after_an_interruption_and_repeats_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    name, table = 'resnet32_fc_cifar10-lt-100', TABLES['cifar-lt']
    shrink_configs([config for row in table.rows for config in row.configs], REPO / 'configs', tmp_path / 'configs')
    config = tmp_path / 'configs' / 'mmpretrain' / f'{name}.py'
    config.write_text(config.read_text() + '\ntrain_cfg.update(max_epochs=2)\n')
    commands = []

    def run(command, output):
        commands.append(command)
        return run_fork(command, output)

    def carry_out() -> list:
        commands.clear()
        work = Reproduction(table, tmp_path / 'work', REPO, tmp_path / 'configs', gpus=0, run=run)
        assert work.carry_out(work.select([name])) == [], capsys.readouterr().out
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


def test_a_command_that_fails_is_told_and_the_next_row_begins(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table = TABLES['cifar-lt']
    shrink_configs([config for row in table.rows for config in row.configs], REPO / 'configs', tmp_path / 'configs')

    def fail(command, output):
        output.write('what went wrong\n')
        output.flush()
        return 3

    work = Reproduction(table, tmp_path / 'work', REPO, tmp_path / 'configs', gpus=0, run=fail)
    names = ['resnet32_fc_cifar10-lt-100', 'resnet32_fc_cifar10-lt-50']
    assert work.carry_out(work.select(names)) == names
    printed = capsys.readouterr().out
    assert printed.count('exit code 3') == 2 and printed.count('what went wrong') == 2
