"""The one scheduler, with a stub for what trains."""

import json
import os

import pytest
from rich.console import Console

from trainings import Training, schedule, train_all

STUB = """
import json, pathlib, sys, time
folder = pathlib.Path(sys.argv[1])
print('the stub says hello')
if 'fails' in folder.name:
    sys.exit('the stub fails')
if 'sleeps' in folder.name:
    time.sleep(600)
scalars = folder / 'now' / 'vis_data' / 'scalars.json'
scalars.parent.mkdir(parents=True)
scalars.write_text(json.dumps(dict(step=2, loss=1.5)))
"""


@pytest.fixture
def make(tmp_path, monkeypatch):
    (tmp_path / 'stub.py').write_text(STUB)
    monkeypatch.setattr(schedule, 'POLL_SECONDS', 0.02)

    class Stub(Training):
        def command(self):
            return [str(tmp_path / 'stub.py'), str(self.folder)]

        def finished(self):
            return bool(self.records())

    return lambda name: Stub(name, tmp_path / name, total=2)


@pytest.fixture
def console():
    with open(os.devnull, 'w') as nowhere:
        yield Console(file=nowhere)


def test_all_are_trained_and_told_of_once(make, console):
    trainings, ended = [make('a'), make('b'), make('c')], []
    train_all(trainings, 2, console, ended.append)
    assert {training.name for training in ended} == {'a', 'b', 'c'} and len(ended) == 3
    assert all(training.failure() is None for training in ended)
    assert trainings[0].progress() == (2, 'loss 1.500')


def test_no_more_run_at_once_than_jobs(make, console, monkeypatch):
    trainings = [make(name) for name in 'abc']
    most = []
    start = Training.start

    def counted(self):
        start(self)
        most.append(sum(training.process is not None and not training.ended() for training in trainings))

    monkeypatch.setattr(Training, 'start', counted)
    train_all(trainings, 1, console, lambda training: None)
    assert most == [1, 1, 1]


def test_a_failure_shows_the_end_of_its_log(make, console):
    failures = []
    train_all([make('fails'), make('a')], 1, console, lambda training: failures.append(training.failure()))
    assert failures[1] is None
    for part in ('fails failed (exit code 1)', 'train.log', 'the stub fails'):
        assert part in failures[0]


@pytest.mark.parametrize('error', [KeyboardInterrupt, RuntimeError])
def test_an_error_stops_those_that_run(make, console, error):
    def raise_it(training):
        raise error

    sleeping = make('sleeps')
    with pytest.raises(error):
        train_all([sleeping, make('a')], 2, console, raise_it)
    assert sleeping.process.returncode is not None


def test_a_folder_in_use_is_left_alone(make, console):
    other, failures = make('sleeps'), []
    other.start()
    try:
        train_all([make('sleeps')], 1, console, lambda training: failures.append(training.failure()))
        assert len(failures) == 1 and 'another process' in failures[0]
    finally:
        other.stop()


def test_one_that_does_not_listen_is_ended_by_force(make, tmp_path, monkeypatch):
    stubborn = make('a')
    ready = tmp_path / 'ready'
    (tmp_path / 'stub.py').write_text(
        'import pathlib, signal, sys, time\n'
        'signal.signal(signal.SIGTERM, signal.SIG_IGN)\n'
        f'pathlib.Path({str(ready)!r}).touch()\n'
        'time.sleep(600)'
    )
    monkeypatch.setattr(schedule, 'PATIENCE_SECONDS', 0.1)
    stubborn.start()
    while not ready.exists():
        schedule.time.sleep(0.02)
    stubborn.stop()
    assert stubborn.process.returncode == -9


def test_a_half_written_record_is_skipped(make):
    one = make('a')
    assert one.progress() == (0, 'starting')
    scalars = one.folder / 'now' / 'vis_data' / 'scalars.json'
    scalars.parent.mkdir(parents=True)
    scalars.write_text(json.dumps(dict(step=97, epoch=1, loss=2.5)) + '\n{"step": 2, "lo')
    assert one.records() == [dict(step=97, epoch=1, loss=2.5)]
    assert one.progress() == (1, 'loss 2.500')
