import json
import os
from pathlib import Path

import pytest
import training
from rich.console import Console

STUB = """
import json, pathlib, sys, time
config, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[3])
print('the stub says hello')
if 'fails' in config.stem:
    sys.exit('the stub fails')
if 'sleeps' in config.stem:
    time.sleep(600)
scalars = folder / 'now' / 'vis_data' / 'scalars.json'
scalars.parent.mkdir(parents=True)
records = [dict(step=1, loss=2.5, time=0.1), dict(step=2, loss=1.5, time=0.1), dict(step=2, top1=99.0)]
scalars.write_text(''.join(json.dumps(record) + chr(10) for record in records))
(folder / 'iter_2.pth').touch()
(folder / 'last_checkpoint').write_text(str(folder / 'iter_2.pth'))
"""


@pytest.fixture
def make(tmp_path, monkeypatch):
    (tmp_path / 'stub.py').write_text(STUB)
    monkeypatch.setattr(training, 'TRAIN', str(tmp_path / 'stub.py'))
    monkeypatch.setattr(training, 'POLL_SECONDS', 0.02)

    def make(name, stamp='s'):
        config = tmp_path / f'{name}.py'
        config.write_text('train_cfg = dict(max_iters=2)')
        return training.Training(config, tmp_path / 'work' / name, stamp)

    return make


def train(*trainings):
    return training.train_all(list(trainings), jobs=2, console=Console(file=open(os.devnull, 'w')))


def test_results_come_back_by_name(make):
    results = train(make('a'), make('b'), make('c'))
    assert set(results) == {'a', 'b', 'c'}
    for result in results.values():
        assert result.metrics['top1'] == 99
        assert Path(result.checkpoint).name == 'iter_2.pth'
        assert result.seconds > 0


def test_a_finished_model_is_reused_until_its_stamp_changes(make, monkeypatch):
    first = train(make('a'))['a']
    monkeypatch.setattr(training, 'TRAIN', 'nowhere.py')
    assert train(make('a'))['a'] == first
    with pytest.raises(training.DemoError):
        train(make('a', stamp='another'))


@pytest.mark.parametrize(
    'content', ['', '{"stamp": "s"}', '[]', '{"stamp": "s", "metrics": {}, "seconds": 1, "checkpoint": "gone"}']
)
def test_a_broken_result_is_not_reused(make, content):
    one = make('a')
    one.folder.mkdir(parents=True)
    (one.folder / training.RESULT).write_text(content)
    assert one.finished() is None


def test_a_failure_names_the_log_shows_its_end_and_stops_the_others(make):
    sleeping, failing = make('sleeps'), make('fails')
    with pytest.raises(training.DemoError, match=r'(?s)fails failed \(exit code 1\).*train\.log.*the stub fails'):
        train(sleeping, failing)
    assert sleeping.process.poll() is not None
    assert failing.finished() is None


def test_an_interruption_stops_the_models_and_keeps_the_finished_ones(make, monkeypatch):
    done, sleeping = make('a'), make('sleeps')
    update = training._Display.update

    def interrupt(display, one, result):
        update(display, one, result)
        if result is not None:
            raise KeyboardInterrupt

    monkeypatch.setattr(training._Display, 'update', interrupt)
    with pytest.raises(KeyboardInterrupt):
        train(sleeping, done)
    assert sleeping.process.poll() is not None
    assert done.finished() is not None


def test_a_half_written_record_is_skipped(make):
    one = make('a')
    scalars = one.folder / 'now' / 'vis_data' / 'scalars.json'
    scalars.parent.mkdir(parents=True)
    scalars.write_text(json.dumps(dict(step=1, loss=2.5)) + '\n{"step": 2, "lo')
    assert one.records() == [dict(step=1, loss=2.5)]
