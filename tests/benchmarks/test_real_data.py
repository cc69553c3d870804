"""benchmarks/real_data.py: the table of runs, what is kept of them, the page, and running with a stub for the tools."""

import argparse
import json
import os
import signal
import subprocess
import sys
from io import StringIO
from pathlib import Path

import histories
import numpy as np
import pytest
import real_data
import study_report
import torch
from histories import History
from mmengine.optim import build_optim_wrapper
from mmengine.registry import MODELS
from rich.console import Console
from run_records import MEASURED, Classifier, Record, read_records, write_records
from studies import ARMS, BALANCED, DEFAULT, FC, HOST, KAIMING, STUDIES, Run, resolve, runs_of

from ebv_mm.launch import argument_parser, load_config
from trainings import schedule

REPO = Path(__file__).parents[2]
ALL = runs_of(list(STUDIES))
EIGHT = STUDIES['lt100-8e'].settings


@pytest.fixture(autouse=True)
def _in_the_repo(monkeypatch):
    monkeypatch.chdir(REPO)


# -- the table of runs -------------------------------------------------------------------------------------------------


def plain(run: Run, *without: str) -> dict:
    config = resolve(run).to_dict()
    for place in without:
        *path, key = place.split('.')
        node = config
        for step in path:
            node = node[step]
        node.pop(key, None)
    return config


def test_names_are_unique_and_configs_exist():
    assert len({run.name for run in ALL}) == len(ALL)
    assert all((REPO / f'{run.config}.py').exists() for run in ALL)


@pytest.mark.parametrize('study', ['lt100', 'lt100-8e', 'lt100-r8', 'lt10'])
def test_arms_of_the_long_tail_differ_in_the_head_and_seeds_in_the_seed(study):
    settings = STUDIES[study].settings
    for runs in zip(*settings.values(), strict=True):
        first, *others = (plain(run, 'model.head', 'custom_imports') for run in runs)
        assert all(first == other for other in others)
    for runs in settings.values():
        assert [resolve(run).randomness.seed for run in runs] == [0, 1, 2]
        assert all(plain(run, 'randomness') == plain(runs[0], 'randomness') for run in runs)


def test_vectors_are_trained_from_the_same_start():
    """Same tau, same projection, same backbone, and vectors that begin as the basis; but these have a gradient."""
    ebv, trained = (EIGHT[name][0] for name in (BALANCED, 'vectors trained, balanced'))
    first, other = (histories.first_weights(run) for run in (ebv, trained))
    assert set(other) == {*first, 'head.vectors'}
    assert all(torch.equal(first[key], other[key]) for key in first)
    assert torch.equal(other['head.vectors'], first['head.fc.basis'])
    models = [MODELS.build(resolve(run).model) for run in (ebv, trained)]
    for model in models:
        model.load_state_dict(other, strict=False)
    features = (torch.randn(5, 64),)
    logits = [model.head(features) for model in models]
    assert torch.allclose(*logits, atol=1e-4)
    v = features[0].double() @ other['head.fc.weight'].double().T + other['head.fc.bias'].double()
    cosines = v @ other['head.vectors'].double().T / v.norm(dim=1, keepdim=True)
    np.testing.assert_allclose(logits[1].detach(), cosines / 0.07, atol=1e-4)
    logits[1].square().sum().backward()
    assert models[1].head.vectors.grad.norm() > 0


@pytest.mark.parametrize('arm, norm', [(DEFAULT, (10 / 3) ** 0.5), (KAIMING, 20**0.5), (BALANCED, 1 / 0.07)])
def test_beginnings_have_their_norms(arm, norm):
    assert histories.first_weights(EIGHT[arm][0])['head.fc.weight'].norm() == pytest.approx(norm, rel=0.1)


def test_step_decay_changes_the_schedule_alone():
    for arm in (FC, DEFAULT):
        (step,), (cosine, *_) = (STUDIES[name].settings[arm] for name in ('lt100-step', 'lt100'))
        places = ('param_scheduler', 'default_hooks')
        assert plain(step, *places) == plain(cosine, *places)
        warm_up, decay = resolve(step).param_scheduler
        assert (warm_up.end, decay.type, decay.milestones) == (5, 'MultiStepLR', [24, 27])


@pytest.mark.parametrize('study', ['voc-det', 'voc-seg', 'voc-seg-long'])
def test_twins_on_voc_differ_in_the_heads(study):
    heads = ['roi_head'] if study == 'voc-det' else ['decode_head', 'auxiliary_head']
    places = ['custom_imports', 'basis', *(f'model.{head}' for head in heads)]
    for fc, *ebv in zip(*STUDIES[study].settings.values(), strict=True):
        assert ebv and all(plain(fc, *places) == plain(run, *places) for run in ebv)
        assert 'EBV' not in json.dumps(plain(fc)) and all('EBV' in json.dumps(plain(run)) for run in ebv)


def test_the_long_segmentation_is_three_times_as_long():
    short, long = (resolve(STUDIES[name].settings[HOST][0]) for name in ('voc-seg', 'voc-seg-long'))
    assert long.train_cfg.max_iters == long.param_scheduler[-1].end == 3 * short.train_cfg.max_iters
    assert short.param_scheduler[-1].end == short.train_cfg.max_iters


@pytest.mark.parametrize('study, key', [('tau', 'tau'), ('d', 'basis')])
def test_a_sweep_changes_one_thing(study, key):
    fc, *ebv = (runs[0] for runs in STUDIES[study].settings.values())
    assert all(plain(run, 'model.head') == plain(fc, 'model.head') for run in ebv)
    for balanced in (False, True):
        runs = [run for run in ebv if resolve(run).model.head.balanced_init == balanced]
        assert len({json.dumps(plain(run, f'model.head.{key}')) for run in runs}) == 1
        assert len({resolve(run).model.head.get(key) for run in runs}) == len(runs) == len(ebv) // 2


def test_eight_epochs_end_their_schedule():
    for run in ALL:
        cfg = resolve(run)
        if run.name.startswith('lt') and 'step' not in run.name:
            assert cfg.param_scheduler[-1].end == cfg.train_cfg.max_epochs
            assert cfg.train_cfg.max_epochs == (8 if run.name.startswith(('lt100-8e', 'lt100-r8')) else 30)
            assert cfg.train_cfg.max_epochs % cfg.train_cfg.val_interval == 0


def test_a_wide_classifier_and_a_fixed_projection():
    wide, fixed = (
        STUDIES['fixed'].settings[name][0]
        for name in ('FC, from a norm of 14', 'EBV, balanced, projection not trained')
    )
    assert histories.first_weights(wide)['head.fc.weight'].norm() == pytest.approx(1 / 0.07, rel=0.1)
    cfg = resolve(fixed)
    model = MODELS.build(cfg.model)
    wrapper = build_optim_wrapper(model, cfg.optim_wrapper)
    rates = {id(parameter): group['lr'] for group in wrapper.param_groups for parameter in group['params']}
    by_name = {name: rates[id(parameter)] for name, parameter in model.named_parameters()}
    assert [name for name, rate in by_name.items() if rate == 0] == ['head.fc.weight', 'head.fc.bias']
    assert set(by_name.values()) == {0, 0.1}


def test_the_command_line_says_the_same():
    for run in (ALL[0], EIGHT[KAIMING][1], *(runs[0] for runs in STUDIES['fixed'].settings.values())):
        tool, config, resume, *rest = run.train(Path('work'))
        assert (tool, resume) == ('tools/train.py', '--resume')
        cfg = load_config(argument_parser('').parse_args([config, *rest]))
        assert cfg.work_dir == os.path.join('work', run.name)
        expected = resolve(run)
        for place in ('model', 'param_scheduler', 'train_cfg', 'randomness', 'default_hooks', 'optim_wrapper'):
            assert cfg[place] == expected[place]
        assert cfg.train_dataloader == {**cfg.train_dataloader, **expected.train_dataloader}


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
    assert study_report.BLOCK.search(page)
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
    assert not any(clone.iterdir()) and not any(elsewhere.iterdir())


def test_an_interruption_says_how_to_go_on(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(real_data, 'run_all', lambda *args: os.kill(os.getpid(), signal.SIGTERM))
    assert real_data.main(['run', 'd', '--work-dir', str(tmp_path)]) == 130
    assert 'the same command goes on' in capsys.readouterr().out


def test_it_starts_from_anywhere(tmp_path):
    command = [sys.executable, str(REPO / 'benchmarks' / 'real_data.py'), '--help']
    assert 'runs.json' in subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
