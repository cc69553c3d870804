import os
from pathlib import Path

import pytest
import training
from rich.console import Console

from trainings import schedule

STUB = """
import json, pathlib, sys
config, folder, seed = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[3]), sys.argv[5]
if 'fails' in config.stem:
    sys.exit('the stub fails')
scalars = folder / 'now' / 'vis_data' / 'scalars.json'
scalars.parent.mkdir(parents=True)
records = [dict(step=2, loss=1.5, time=0.1), dict(step=2, top1=90 + int(seed.removeprefix('randomness.seed=')))]
if 'untested' in config.stem:
    records.pop()
scalars.write_text(''.join(json.dumps(record) + chr(10) for record in records))
(folder / 'iter_2.pth').touch()
(folder / 'last_checkpoint').write_text(str(folder / 'iter_2.pth'))
"""


@pytest.fixture
def make(tmp_path, monkeypatch):
    (tmp_path / 'stub.py').write_text(STUB)
    monkeypatch.setattr(training, 'TRAIN', str(tmp_path / 'stub.py'))
    monkeypatch.setattr(schedule, 'POLL_SECONDS', 0.02)

    def make(name, seed=0, stamp='s'):
        config = tmp_path / f'{name}.py'
        config.write_text('train_cfg = dict(max_iters=2)')
        return training.DemoTraining(config, seed, tmp_path / 'work', stamp)

    return make


def train(*trainings):
    with open(os.devnull, 'w') as nowhere:
        return training.train_demo(list(trainings), jobs=2, console=Console(file=nowhere))


def test_every_seed_has_a_result(make):
    results = train(make('a'), make('a', seed=1), make('b'))
    assert {name: result.metrics['top1'] for name, result in results.items()} == {'a_s0': 90, 'a_s1': 91, 'b_s0': 90}
    for result in results.values():
        assert Path(result.checkpoint).name == 'iter_2.pth' and result.seconds > 0


def test_a_finished_model_is_reused_until_its_stamp_changes(make, monkeypatch):
    first = train(make('a'))['a_s0']
    monkeypatch.setattr(training, 'TRAIN', 'nowhere.py')
    assert train(make('a'))['a_s0'] == first
    with pytest.raises(training.DemoError):
        train(make('a', stamp='another'))


@pytest.mark.parametrize(
    'content', ['', '{"stamp": "s"}', '[]', '{"stamp": "s", "metrics": {}, "seconds": 1, "checkpoint": "gone"}']
)
def test_a_broken_result_is_not_reused(make, content):
    one = make('a')
    one.folder.mkdir(parents=True)
    (one.folder / training.RESULT).write_text(content)
    assert one.result() is None


@pytest.mark.parametrize('name', ['fails', 'untested'])
def test_a_failure_is_an_error_that_names_the_log(make, name):
    with pytest.raises(training.DemoError, match=rf'{name}_s0 failed \(exit code .\).*train\.log'):
        train(make(name))
    assert make(name).result() is None
