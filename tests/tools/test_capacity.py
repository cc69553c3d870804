"""tools/analysis/capacity.py and benchmarks/basis.py: they run, resume and agree with what is known."""

import csv
import importlib.util
import re
from pathlib import Path

import pytest

from ebv_mm.basis import capacity

ROOT = Path(__file__).parents[2]


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem + '_tool', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope='module')
def tool():
    return load(ROOT / 'tools' / 'analysis' / 'capacity.py')


def test_table_figure_and_resumption(tool, tmp_path, monkeypatch, capsys):
    command = [
        '--dims',
        '3',
        '7',
        '--alphas',
        '0.34',
        '0.45',
        '--steps',
        '400',
        '--max-classes',
        '12',
        '--out',
        str(tmp_path),
    ]
    assert tool.main(command) == 0
    with open(tmp_path / 'capacity.csv', newline='') as file:
        file.readline()
        rows = {(float(row['alpha']), int(row['dim'])): row for row in csv.DictReader(file)}
    assert len(rows) == 4
    for (alpha, dim), row in rows.items():
        assert int(row['bound']) == capacity(dim, alpha)
        assert dim <= int(row['solver']) <= int(row['bound'])
        assert dim <= int(row['closed']) <= int(row['bound'])
    assert int(rows[0.34, 7]['closed']) == 28  # the 28 equiangular lines in R^7
    assert int(rows[0.45, 3]['solver']) == 6  # the diagonals of the icosahedron
    assert (tmp_path / 'capacity.png').stat().st_size > 1000

    def never(*_):
        raise AssertionError('computed again')

    monkeypatch.setattr(tool, 'measure', never)
    assert tool.main(command) == 0
    capsys.readouterr()
    assert tool.main(command + ['--steps', '61']) == 1
    assert 'other options' in capsys.readouterr().err


def test_an_interrupt_keeps_what_is_finished(tool, tmp_path, monkeypatch):
    measure = tool.measure

    def once(alpha, dim, args):
        if dim == 4:
            raise KeyboardInterrupt
        return measure(alpha, dim, args)

    monkeypatch.setattr(tool, 'measure', once)
    command = ['--dims', '3', '4', '--alphas', '0.5', '--steps', '20', '--max-classes', '8', '--out', str(tmp_path)]
    assert tool.main(command) == 130
    table = tmp_path / 'capacity.csv'
    before = table.read_text()
    assert len(before.splitlines()) == 3

    def full(*_):
        raise OSError('no space left')

    # so does a disk that is full while the next row is written
    monkeypatch.setattr(tool, 'measure', measure)
    monkeypatch.setattr(tool.csv.DictWriter, 'writerows', full)
    assert tool.main(command) == 1
    assert table.read_text() == before


def test_bad_values(tool):
    for wrong in ('--dims 0', '--alphas 1', '--steps 0', '--steps -1', '--max-classes 0'):
        with pytest.raises(SystemExit):
            tool.main(wrong.split())


def test_benchmark_needs_time():
    with pytest.raises(SystemExit):
        load(ROOT / 'benchmarks' / 'basis.py').main(['--seconds', '0'])


def test_benchmark_runs(capsys):
    assert load(ROOT / 'benchmarks' / 'basis.py').main(['--num-classes', '60', '--dims', '24', '--seconds', '0.5']) == 0
    _, header, row = capsys.readouterr().out.splitlines()
    cells = dict(zip(re.split(r'  +', header.strip()), row.split()))
    assert 45 < float(cells['algorithm 1']) <= float(cells['bound']) + 0.01
    assert 45 < float(cells['our solver']) <= float(cells['bound']) + 0.01
