import re

import pytest
from scripts import load_script


@pytest.fixture(scope='module')
def benchmark():
    return load_script('benchmarks/basis.py')


def test_it_needs_time(benchmark):
    with pytest.raises(SystemExit):
        benchmark.main(['--seconds', '0'])


def test_it_runs(benchmark, capsys):
    assert benchmark.main(['--num-classes', '60', '--dims', '24', '--seconds', '0.5']) == 0
    _, header, _, row = capsys.readouterr().out.splitlines()
    cells = dict(zip(*(re.split(r'  +', line.strip()) for line in (header, row))))
    assert 45 < float(cells['algorithm 1']) <= float(cells['bound']) + 0.01
    assert 45 < float(cells['our solver']) <= float(cells['bound']) + 0.01
