"""How many classes fit: against what is known, with resumption, as a user calls it."""

import csv

import pytest
from scripts import load_script

from ebv_mm.analysis import capacity as module
from ebv_mm.analysis.capacity import Search
from ebv_mm.basis import capacity


@pytest.fixture(scope='module')
def tool():
    return load_script('tools/analysis/capacity.py')


@pytest.mark.parametrize('solver', ['solver', 'algorithm1'])
def test_known_sets_of_lines(solver):
    search = Search(solver, steps=600, max_classes=12)
    assert search.measure(0.45, 3) == (0.45, 3, 6, 6, 6)  # the diagonals of the icosahedron
    assert search.measure(0.34, 7)[3:] == (28, 28)


def test_more_than_600_classes():
    """Random vectors alone would do: the search goes as far as it is told to."""
    assert Search(steps=1, max_classes=700).measure(0.95, 16).solver == 700


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
    assert (tmp_path / 'capacity.png').stat().st_size > 1000

    def never(*_):
        raise AssertionError('computed again')

    monkeypatch.setattr(Search, 'measure', never)
    assert tool.main(command) == 0
    capsys.readouterr()
    for other in (['--steps', '61'], ['--solver', 'algorithm1']):
        assert tool.main(command + other) == 1
        assert 'other options' in capsys.readouterr().err


def test_an_interrupt_keeps_what_is_finished(tool, tmp_path, monkeypatch):
    measure = Search.measure

    def once(search, alpha, dim):
        if dim == 4:
            raise KeyboardInterrupt
        return measure(search, alpha, dim)

    monkeypatch.setattr(Search, 'measure', once)
    command = ['--dims', '3', '4', '--alphas', '0.5', '--steps', '20', '--max-classes', '8', '--out', str(tmp_path)]
    assert tool.main(command) == 130
    table = tmp_path / 'capacity.csv'
    before = table.read_text()
    assert len(before.splitlines()) == 3

    class Full:
        def writerows(self, rows):
            raise OSError('no space left')

    # so does a disk that is full while the next row is written
    monkeypatch.setattr(Search, 'measure', measure)
    monkeypatch.setattr(module.csv, 'writer', lambda file: Full())
    assert tool.main(command) == 1
    assert table.read_text() == before


def test_bad_values(tool):
    for wrong in ('--dims 0', '--alphas 1', '--steps 0', '--steps -1', '--max-classes 0'):
        with pytest.raises(SystemExit):
            tool.main(wrong.split())
