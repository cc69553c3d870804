"""benchmarks/real_data.py: what is kept of a run, the page, and running with a stub for the tools."""

import argparse
import json
import os
import signal
import subprocess
import sys
from io import StringIO
from pathlib import Path

import histories
import pytest
import real_data
import study_report
import torch
from histories import History
from rich.console import Console
from run_records import MEASURED, Classifier, Record, read_records, write_records
from studies import ARMS, BALANCED, DEFAULT, FC, STUDIES, Run, runs_of

from trainings import schedule

REPO = Path(__file__).parents[2]
ALL = runs_of(list(STUDIES))
EIGHT = STUDIES['lt100-8e'].settings


@pytest.fixture(autouse=True)
def _in_the_repo(monkeypatch):
    monkeypatch.chdir(REPO)


# -- what a run has left -----------------------------------------------------------------------------------------------

SHORT = EIGHT[FC][0]
ITERATIONS = STUDIES['voc-seg'].settings[FC][0]  # 400


def write(work_dir: Path, run: Run, part: str, *records: dict, end: str = '') -> None:
    file = work_dir / run.name / part / 'vis_data' / 'scalars.json'
    file.parent.mkdir(parents=True)
    file.write_text(''.join(json.dumps(record) + '\n' for record in records) + end)


def train(step: int, loss: float, epoch: int = 0) -> dict:
    return dict(loss=loss, step=step, **(dict(epoch=epoch) if epoch else {}))


def val(step: int, top1: float) -> dict:
    return {'accuracy/top1': top1, 'time': 0.1, 'step': step}


def test_parts_of_a_resumed_run_are_joined(tmp_path):
    write(tmp_path, SHORT, '20260101_000000', train(20, 3.0, 1), train(40, 2.0, 1), val(1, 30.0), train(117, 9.0, 2))
    # cut off in epoch 2, begun anew from the end of epoch 1; the last line is half written
    write(tmp_path, SHORT, '20260102_000000', train(97, 1.5, 2), train(127, 0.5, 2), end='{"step": 137, "lo')
    history = History(SHORT, tmp_path)
    assert sorted(history.train) == [20, 40, 97, 127]
    assert history.losses('loss') == {1: 2.5, 2: 1.0}
    assert history.val[1]['accuracy/top1'] == 30 and not history.finished


def test_finished_means_validated_at_the_end(tmp_path):
    assert not History(SHORT, tmp_path).finished
    write(tmp_path, SHORT, 'a', *(train(97 * epoch, 1.0, epoch) for epoch in range(1, 9)), val(4, 40.0))
    assert not History(SHORT, tmp_path).finished
    write(tmp_path, SHORT, 'b', val(8, 50.0))
    assert History(SHORT, tmp_path).finished


def test_iterations_have_no_epochs(tmp_path):
    # `step` is an iteration in both kinds of record: a validation at 10 is far from the end
    write(tmp_path, ITERATIONS, 'a', train(10, 4.0), train(20, 2.0), train(30, 1.0), dict(mIoU=1.0, step=10))
    history = History(ITERATIONS, tmp_path)
    assert history.losses('loss') == {20: 3.0, 40: 1.0}
    assert not history.finished and history.total == 400 and history.unit == 'iteration'
    write(tmp_path, ITERATIONS, 'b', dict(mIoU=2.0, step=400))
    assert History(ITERATIONS, tmp_path).finished


def test_cut_off_in_the_last_validation_is_tested(tmp_path):
    write(tmp_path, SHORT, 'a', train(776, 1.0, 8))
    training = real_data.StudyTraining(SHORT, tmp_path)
    assert training.command()[0] == 'tools/train.py'
    checkpoint = tmp_path / SHORT.name / 'epoch_8.pth'
    checkpoint.touch()
    newest = checkpoint.with_name('last_checkpoint')
    newest.write_text(str(checkpoint.with_name('epoch_7.pth')))
    assert training.command()[0] == 'tools/train.py'  # epoch 8 may be half written
    newest.write_text(str(checkpoint))
    tool, config, path, *rest = training.command()
    assert (tool, path) == ('tools/test.py', str(checkpoint))
    folder = Path(rest[rest.index('--work-dir') + 1]) / '20260101_000000'
    folder.mkdir(parents=True)
    (folder / 'now.json').write_text(json.dumps({'accuracy/top1': 61.0}))
    assert training.finished() and training.history().val[8]['accuracy/top1'] == 61


def test_a_record_keeps_metrics_losses_and_the_classifier(tmp_path):
    write(tmp_path, SHORT, 'a', train(388, 2.0, 4), val(4, 99.0), train(776, 0.5, 8), val(8, 40.0))
    end = torch.zeros(10, 64)
    end[0, 0], end[1, 1] = 4, 3
    history = History(SHORT, tmp_path)
    torch.save({'state_dict': {'head.fc.weight': end}}, history.last_checkpoint)
    record = history.record(['accuracy/top1'], ['loss'])
    assert record.metrics == {4: {'accuracy/top1': 99}, 8: {'accuracy/top1': 40}} and record.losses['loss'][8] == 0.5
    begin = histories.first_weights(SHORT)['head.fc.weight'].double()
    cosine = (4 * begin[0, 0] + 3 * begin[1, 1]) / (5 * begin.norm())
    assert record.classifier == pytest.approx((begin.norm().item(), 5, cosine.item()), abs=1e-3)
    assert record.versions['torch'] == torch.__version__
    write_records({'a': record}, tmp_path / 'runs.json')
    assert read_records(tmp_path / 'runs.json') == {'a': record}


# -- the page ----------------------------------------------------------------------------------------------------------


def record(run: Run, metric: str, value: float, norm: float = 2.0, source: str = MEASURED) -> Record:
    return Record(source, run.seed, 'epoch', 8, {8: {metric: value}}, {'loss': {8: 1.0}}, Classifier(norm), {})


def test_differences_are_taken_seed_by_seed():
    top1 = 'accuracy/top1'
    figures = {FC: {0: 60.0, 2: 66.0}, BALANCED: {0: 61.0, 1: 99.0, 2: 69.0}}
    records = {
        run.name: record(run, top1, figures[arm][run.seed], source='the page' if run.seed == 2 else MEASURED)
        for arm in figures
        for run in EIGHT[arm]
        if run.seed in figures[arm]
    }
    fc, ebv = study_report.comparison(records)
    assert (fc['mean ± deviation'], fc['seeds'], fc['minus FC, by seed']) == ('63.0 ± 4.2', 2, '')
    assert (ebv['mean ± deviation'], ebv['seeds'], ebv['minus FC, by seed']) == ('76.3 ± 20.0', 3, '+2.0 ± 1.4')
    assert fc['of 0.1.0'] == ebv['of 0.1.0'] == 1


def test_detection_is_in_percent():
    run = STUDIES['voc-det'].settings[FC][0]
    metrics = {8: {'coco/bbox_mAP': 0.125, 'coco/segm_mAP': 0.25}}
    rows = study_report.comparison({run.name: record(run, '', 0)._replace(metrics=metrics)})
    assert [(row['figure'], row['mean ± deviation']) for row in rows] == [('box AP', '12.5'), ('mask AP', '25.0')]


def test_what_is_not_on_record_is_told():
    by_study = {row['study']: row['runs on record'] for row in study_report.missing({SHORT.name: None})}
    assert by_study['`lt100-8e`'] == f'1 of {3 * len(ARMS)}' and by_study['`lt10`'] == '0 of 9'


def test_the_page_is_what_the_records_say():
    page = study_report.PAGE.read_text()
    assert study_report.ASKED.search(page)
    assert study_report.fill(page, read_records()) == page, 'run: python benchmarks/real_data.py report'


def test_every_record_is_of_a_run():
    assert set(read_records()) <= {run.name for run in ALL}


def test_report_replaces_the_tables_and_paints_the_picture(tmp_path):
    page = tmp_path / 'page.md'
    page.write_text('before\n<!-- table: tau -->\nold\n<!-- end -->\nafter\n')
    records = {
        run.name: record(run, 'accuracy/top1', 50.0) for arm in (FC, DEFAULT) for run in EIGHT[arm]
    }  # fmt: skip
    write_records(records, tmp_path / 'runs.json')
    assert real_data.main(['report', '--page', str(page), '--records', str(tmp_path / 'runs.json')]) == 0
    before, *table, after = page.read_text().splitlines()
    assert (before, after) == ('before', 'after') and 'old' not in table
    assert "| tau = 0.07, torch's default | 1 | 50.0 | 1.00 | 2.0 |  |" in table
    assert (tmp_path / 'results' / 'rule.png').stat().st_size > 1000


# -- running -----------------------------------------------------------------------------------------------------------

STUB = """
import json, pathlib, sys
folder = pathlib.Path(sys.argv[sys.argv.index('--work-dir') + 1])
if 'fc' in folder.name:
    sys.exit('the stub fails')
scalars = folder / 'now' / 'vis_data' / 'scalars.json'
scalars.parent.mkdir(parents=True)
records = [dict(step=97, epoch=8, loss=1.5, time=0.1, data_time=0.1), {'step': 8, 'accuracy/top1': 60}]
scalars.write_text(''.join(json.dumps(record) + chr(10) for record in records))
"""


@pytest.fixture
def run_all(tmp_path, monkeypatch):
    """Run with a stub for tools/train.py; returns what has failed and what was printed."""
    (tmp_path / 'tools').mkdir()
    (tmp_path / 'tools' / 'train.py').write_text(STUB)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(schedule, 'POLL_SECONDS', 0.02)
    monkeypatch.setattr(real_data, 'make_bases', lambda *args: None)
    monkeypatch.setattr(History, 'classifier', lambda self: Classifier(1.0))
    monkeypatch.setenv('PYTHONPATH', os.environ.get('PYTHONPATH', ''))
    args = dict(work_dir=tmp_path / 'runs', records=tmp_path / 'runs.json', jobs=2, dry_run=False, again=False)

    def run_all(*runs, **changes):
        console = Console(file=StringIO(), soft_wrap=True)
        failed = real_data.run_all(runs, argparse.Namespace(**{**args, **changes}), console)
        return failed, console.file.getvalue()

    return run_all


def test_runs_are_trained_once_and_kept(run_all, tmp_path):
    runs = EIGHT[DEFAULT]
    failed, out = run_all(*runs)
    assert failed == [] and all(f'{run.name}: finished\n' in out for run in runs)
    assert 'python tools/train.py configs/mmpretrain/resnet32_ebv_cifar10-lt-100_30e.py --resume' in out
    assert {name: r.last('accuracy/top1') for name, r in read_records(tmp_path / 'runs.json').items()} == {
        run.name: 60 for run in runs
    }
    (tmp_path / 'tools' / 'train.py').unlink()
    assert f'{runs[0].name}: finished before' in run_all(*runs)[1]
    failed, out = run_all(runs[0], work_dir=tmp_path / 'elsewhere')
    assert failed == [] and 'on record' in out
    assert run_all(runs[0], work_dir=tmp_path / 'elsewhere', again=True)[0] == [runs[0].name]


def test_a_failure_shows_the_log_and_spares_the_others(run_all, tmp_path):
    failed, out = run_all(EIGHT[FC][0], EIGHT[DEFAULT][0], jobs=1)
    assert failed == [EIGHT[FC][0].name]
    assert 'failed (exit code 1)' in out and 'the stub fails' in out
    assert list(read_records(tmp_path / 'runs.json')) == [EIGHT[DEFAULT][0].name]


def test_what_was_measured_replaces_what_was_carried_over(run_all, tmp_path):
    run = EIGHT[DEFAULT][0]
    write_records({run.name: record(run, 'accuracy/top1', 1.0, source='a page')}, tmp_path / 'runs.json')
    assert run_all(run, again=True)[0] == []
    assert read_records(tmp_path / 'runs.json')[run.name].last('accuracy/top1') == 60


def test_what_was_trained_elsewhere_is_collected(run_all, tmp_path, capsys):
    runs, elsewhere = EIGHT[DEFAULT], tmp_path / 'elsewhere'
    run_all(*runs[:2], work_dir=elsewhere, records=tmp_path / 'other.json')
    (elsewhere / runs[2].name).mkdir()  # not finished
    records = tmp_path / 'runs.json'
    assert real_data.main(['collect', '--work-dir', str(elsewhere), '--records', str(records)]) == 0
    assert set(read_records(records)) == {run.name for run in runs[:2]}
    (records).unlink()
    run_all(*runs[:2], work_dir=elsewhere, records=records, dry_run=True)
    assert not records.exists()


def test_a_dry_run_prints_every_command_and_the_missing_bases(tmp_path, monkeypatch, capsys):
    """From any folder: what it names is in the clone."""
    clone, elsewhere = tmp_path / 'clone', tmp_path / 'elsewhere'
    clone.mkdir(), elsewhere.mkdir()
    monkeypatch.setattr(real_data, 'REPO', clone)
    monkeypatch.chdir(elsewhere)
    assert real_data.main(['run', 'd', '--dry-run', '--work-dir', 'runs', '--records', 'none.json']) == 0
    out = capsys.readouterr().out
    assert out.count('tools/train.py') == out.count('--work-dir ../elsewhere/runs/') == 9
    assert 'make_basis.py --num-classes 10 --dim 3 --out data/ebv/10x3.safetensors' in out
    names = ['lt100-8e-d20_ebv-balanced_s0', 'lt100-8e_fc_s0']
    assert real_data.main(['run', 'd', '--dry-run', '--records', 'none.json', '--names', *names]) == 0
    out = capsys.readouterr().out
    assert out.count('tools/train.py') == 2 and out.index(names[0]) < out.index(f'results/{names[1]}')
    with pytest.raises(SystemExit):
        real_data.main(['run', 'tau', '--dry-run', '--names', names[0]])
    assert f'--names {names[0]}: no training' in capsys.readouterr().err
    assert not any(clone.iterdir()) and not any(elsewhere.iterdir())


def test_an_interruption_says_how_to_go_on(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(real_data, 'run_all', lambda *args: os.kill(os.getpid(), signal.SIGTERM))
    assert real_data.main(['run', 'd', '--work-dir', str(tmp_path)]) == 130
    assert 'the same command goes on' in capsys.readouterr().out


def test_it_starts_from_anywhere(tmp_path):
    command = [sys.executable, str(REPO / 'benchmarks' / 'real_data.py'), '--help']
    assert 'runs.json' in subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
