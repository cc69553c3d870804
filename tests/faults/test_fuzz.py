"""Whatever is in a file or a checkpoint becomes a basis or is refused in a sentence, at once and in little memory."""

from pathlib import Path

import fuzz
import pytest
import trials
from hostile import hostile_files

SCRIPT = Path(fuzz.__file__)


def test_damage():
    counts = trials.counted(SCRIPT, 'any', 1, 1200)
    assert trials.faults(counts) == []
    assert counts['refused'] > 600 and counts['read'] > 20  # else the damage is none, or total


def test_every_hostile_file_is_refused():
    ends = trials.outcomes(SCRIPT, 'hostile', 0, len(hostile_files()))
    assert {name: end for name, end in zip(hostile_files(), ends) if end != 'refused'} == {}


def nothing(index, rng, folder):
    pass


def harm(index, rng, folder):
    (folder / 'executed').mkdir()


def fail(index, rng, folder):
    raise KeyError(index)


@pytest.mark.parametrize('trial, outcome', [(nothing, 'read'), (harm, 'code was run'), (fail, 'KeyError')])
def test_a_fault_is_seen(trial, outcome, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert trials.judged(trial, 0, None) == outcome


@pytest.mark.slow
def test_the_long_run(capsys):
    assert fuzz.main([]) == 0, capsys.readouterr().out
