import json
from pathlib import Path

import pytest
import torch
from pictures import angles
from run import TASKS, comparison, too_low, write_results
from training import Result


def results_at(level):
    """Results of all models, each metric ``level`` per cent above its floor."""
    return {
        task: {
            kind: Result('', {metric.key: (metric.floor + level) / metric.factor for metric in task.metrics}, 1, 'x/y')
            for kind in ('EBV', 'FC')
        }
        for task in TASKS
    }


def test_models_that_have_learned_pass():
    assert too_low(results_at(1)) == []


@pytest.mark.parametrize('level', [-1, float('nan')])
def test_every_model_that_has_not_learned_is_named(level):
    sentences = too_low(results_at(level))
    assert len(sentences) == 2 * sum(len(task.metrics) for task in TASKS)
    for task in TASKS:
        assert any(sentence.startswith(f'{task.name}_ebv: {task.metrics[0].title}') for sentence in sentences)


def test_the_table_has_a_row_for_each_metric():
    assert comparison(results_at(1)).row_count == sum(len(task.metrics) for task in TASKS)


def test_results_are_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / 'results.json'
    write_results(results_at(1), path)
    content = json.loads(path.read_text())
    assert set(content) == {task.name for task in TASKS} and content['detection']['EBV']['checkpoint'] == 'x/y'

    def half(part, text):
        part.write_bytes(text[:10].encode())
        raise OSError(28, 'No space left on device')

    monkeypatch.setattr(Path, 'write_text', half)
    with pytest.raises(OSError, match='No space'):
        write_results(results_at(2), path)
    assert json.loads(path.read_text()) == content and list(tmp_path.iterdir()) == [path]


def test_angles():
    assert angles(torch.eye(4)) == pytest.approx([90] * 6)
    assert angles(torch.tensor([[1.0, 0], [-3, 0], [2, 2]])) == pytest.approx([180, 45, 135])
