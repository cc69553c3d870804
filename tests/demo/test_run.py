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
            kind: [Result('', metrics_at(level, task), 1, f'{task.name}_s{seed}/y') for seed in task.seeds]
            for kind in ('EBV', 'FC')
        }
        for task in TASKS
    }


def metrics_at(level, task):
    return {metric.key: (metric.floor + level) / metric.factor for metric in task.metrics}


def test_models_that_have_learned_pass():
    assert too_low(results_at(1)) == []


@pytest.mark.parametrize('level', [-1, float('nan')])
def test_every_model_that_has_not_learned_is_named(level):
    sentences = too_low(results_at(level))
    assert len(sentences) == 2 * sum(len(task.metrics) * len(task.seeds) for task in TASKS)
    for task in TASKS:
        assert any(sentence.startswith(f'{task.name}_s0: {task.metrics[0].title}') for sentence in sentences)


def test_the_table_has_a_row_for_each_metric_and_the_spread_of_several_seeds():
    results = results_at(1)
    classification = results[TASKS[0]]
    for kind, tops in {'EBV': (96.0, 97.0, 98.0), 'FC': (97.0, 96.0, 98.0)}.items():
        classification[kind] = [Result('', {'accuracy/top1': top}, 10, 'x') for top in tops]
    first, *others = comparison(results)
    assert 1 + len(others) == sum(len(task.metrics) for task in TASKS)
    assert (first['EBV'], first['FC'], first['EBV - FC']) == ('97.0 ± 1.0', '97.0 ± 1.0', '+0.0 ± 1.0')
    assert first['seeds'] == 3 and first['seconds'] == '30 / 30'
    assert others[0]['EBV - FC'] == '+0.0' and others[0]['seeds'] == 1


def test_results_are_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / 'results.json'
    write_results(results_at(1), path)
    content = json.loads(path.read_text())
    assert (
        set(content) == {task.name for task in TASKS}
        and content['detection']['EBV'][0]['checkpoint'] == 'detection_s0/y'
    )

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
