"""Whatever is in a file, it becomes a basis or is refused in a sentence, at once and in little memory."""

from pathlib import Path

import fuzz
import pytest
import trials
from hostile import hostile_files

SCRIPT = Path(fuzz.__file__)


@pytest.mark.parametrize('name, count', [('files', 400), ('pickles', 400)])
def test_damage(name, count):
    counts = trials.counted(SCRIPT, name, 1, count)
    assert trials.faults(counts) == []
    assert counts['refused'] > count / 2 and counts['read']  # else the damage is none, or total


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
