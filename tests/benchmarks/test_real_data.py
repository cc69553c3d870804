"""benchmarks/real_data.py: the table of runs, what is read from their logs, and running with a stub for the tools."""

import json
import os
import signal
import time
from itertools import zip_longest
from pathlib import Path
from types import SimpleNamespace

import histories
import numpy as np
import pytest
import real_data
import studies
import study_report
import torch
from histories import History
from mmengine.optim import build_optim_wrapper
from mmengine.registry import MODELS
from studies import STUDIES, THEIRS, Run, resolve, runs_of

from ebv_mm.launch import argument_parser, load_config

REPO = Path(__file__).parents[2]
ALL = runs_of(list(STUDIES))
LONG_TAIL = STUDIES['long-tail'].settings
BEGINNING = [runs[0] for runs in STUDIES['beginning'].settings.values()]
TAU = studies.SWEEPS['tau'][THEIRS]


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
    cifar = (3 + 3 + 3 + 2) + 3 + 1 + 2 * (5 + 3) + 3 * 3 + 2
    assert len({run.name for run in ALL}) == len(ALL) == cifar + 7 + 7
    assert all((REPO / 'configs' / f'{run.config}.py').exists() for run in ALL)


@pytest.mark.parametrize('study', studies.LONG_TAILS)
def test_twins_of_the_long_tail_differ_in_the_head_and_seeds_in_the_seed(study):
    settings = STUDIES[study].settings
    fc, ebv, balanced = (settings[name] for name in ('FC', THEIRS, 'EBV, balanced'))
    for first, *others in zip_longest(fc, ebv, balanced):
        assert all(plain(first, 'model.head') == plain(run, 'model.head') for run in others)
        assert [resolve(run).model.head.type for run in others] == ['EBVClsHead'] * 2
        assert [resolve(run).model.head.get('balanced_init', False) for run in others] == [False, True]
    for runs in (fc, ebv, balanced):
        assert [resolve(run).randomness.seed for run in runs] == list(range(len(runs)))
        assert all(plain(run, 'randomness') == plain(runs[0], 'randomness') for run in runs)


def test_step_decay_changes_the_schedule_alone():
    settings = STUDIES['long-tail'].settings
    for name in ('FC', THEIRS):
        (step,) = settings[f'{name}, step decay']
        assert plain(step, 'param_scheduler', 'default_hooks') == plain(
            settings[name][0], 'param_scheduler', 'default_hooks'
        )
        warm_up, decay = resolve(step).param_scheduler
        assert (warm_up.end, decay.type, decay.milestones) == (5, 'MultiStepLR', [24, 27])


@pytest.mark.parametrize('task, heads', [('det', ['roi_head']), ('seg', ['decode_head', 'auxiliary_head'])])
def test_twins_on_voc_differ_in_the_heads(task, heads):
    settings = STUDIES[f'voc-{task}'].settings
    places = ['custom_imports', 'basis', *(f'model.{head}' for head in heads)]
    rates = {resolve(run).optim_wrapper.optimizer.lr for (run,) in settings.values()}
    assert len(rates) == 3
    for rate in rates:
        fc, *ebv = (run for (run,) in settings.values() if resolve(run).optim_wrapper.optimizer.lr == rate)
        assert ebv and all(plain(fc, *places) == plain(run, *places) for run in ebv)
        assert 'EBV' not in json.dumps(plain(fc)) and all('EBV' in json.dumps(plain(run)) for run in ebv)


@pytest.mark.parametrize('balanced', [False, True])
@pytest.mark.parametrize('sweep, key', [('tau', 'tau'), ('dim', 'basis')])
def test_a_sweep_changes_one_thing(sweep, key, balanced):
    study = STUDIES[f'{sweep}-balanced' if balanced else sweep]
    fc, *ebv = (runs[0] for runs in study.settings.values())
    assert all(resolve(run).model.head.get('balanced_init', False) == balanced for run in ebv)
    assert all(plain(run, 'model.head') == plain(fc, 'model.head') for run in ebv)
    assert len({json.dumps(plain(run, f'model.head.{key}')) for run in ebv}) == 1
    assert len({resolve(run).model.head[key] for run in ebv}) == len(ebv)


@pytest.mark.parametrize(
    'study, recipe', [('rate', 'lr 0.03'), ('rate', 'lr 0.1'), ('rate', 'lr 0.3'), ('warm-up', '3 epochs')]
)
def test_a_recipe_is_the_same_for_all_classifiers(study, recipe):
    runs = {name: run for name, (run,) in STUDIES[study].settings.items() if name.endswith(recipe)}
    assert len(runs) == 3
    fc, authors, balanced = runs.values()
    assert plain(fc, 'model.head') == plain(authors, 'model.head') == plain(balanced, 'model.head')
    assert plain(authors, 'model.head.balanced_init') == plain(balanced, 'model.head.balanced_init')
    assert [resolve(run).model.head.get('balanced_init', False) for run in runs.values()] == [False, False, True]


def test_no_two_runs_are_the_same():
    configs = [json.dumps(plain(run), sort_keys=True) for run in ALL]
    assert len(set(configs)) == len(configs)


def test_the_learning_rate_falls_to_the_end():
    for run in (run for run in ALL if run.config.endswith('_30e')):
        cfg = resolve(run)
        warm_up, decay = cfg.param_scheduler
        assert warm_up.end == decay.begin == (3 if run.name.startswith('warm-up_3') else 1)
        assert decay.end == cfg.train_cfg.max_epochs
        assert cfg.train_cfg.max_epochs % cfg.train_cfg.val_interval == 0


def test_a_wide_classifier_and_a_fixed_projection():
    weights = histories.first_weights(studies.STUDIES['beginning'].settings['FC, from a norm of 14'][0])
    assert weights['head.fc.weight'].norm() == pytest.approx(1 / 0.07, rel=0.1)
    cfg = resolve(STUDIES['beginning'].settings['EBV, balanced, projection fixed'][0])
    model = MODELS.build(cfg.model)
    wrapper = build_optim_wrapper(model, cfg.optim_wrapper)
    rates = {id(parameter): group['lr'] for group in wrapper.param_groups for parameter in group['params']}
    trained = [name for name, parameter in model.named_parameters() if rates[id(parameter)] == 0.1]
    fixed = [name for name, parameter in model.named_parameters() if rates[id(parameter)] == 0]
    assert fixed == ['head.fc.weight', 'head.fc.bias'] and len(trained) + 2 == len(list(model.parameters()))


def test_the_first_weights_are_those_of_the_seed():
    first, again, other = (
        histories.first_weights(run)['head.fc.weight'] for run in (*[LONG_TAIL['FC'][0]] * 2, LONG_TAIL['FC'][1])
    )
    assert torch.equal(first, again) and not torch.equal(first, other)


def test_the_command_line_says_the_same():
    for run in (ALL[0], TAU[0.02], studies.SWEEPS['dim']['EBV, balanced'][3], *BEGINNING):
        tool, config, resume, *rest = run.train(Path('work'))
        assert (tool, resume) == ('tools/train.py', '--resume')
        cfg = load_config(argument_parser('').parse_args([config, *rest]))
        assert cfg.work_dir == os.path.join('work', run.name)
        expected = resolve(run)
        for place in ('model', 'param_scheduler', 'train_cfg', 'randomness', 'default_hooks', 'optim_wrapper'):
            assert cfg[place] == expected[place]
        assert cfg.train_dataloader == {**cfg.train_dataloader, **expected.train_dataloader}


# -- what a run has left -----------------------------------------------------------------------------------------------

SHORT = studies.SWEEP_FC  # eight epochs
ITERATIONS = STUDIES['voc-seg'].settings['FC, lr 0.01'][0]  # 400


def write(work_dir: Path, run: Run, part: str, *records: dict, end: str = '') -> None:
    file = work_dir / run.name / part / 'vis_data' / 'scalars.json'
    file.parent.mkdir(parents=True)
    file.write_text(''.join(json.dumps(record) + '\n' for record in records) + end)


def train(step: int, loss: float, epoch: int = 0, **more) -> dict:
    return dict(loss=loss, time=2.0, data_time=0.5, step=step, **(dict(epoch=epoch) if epoch else {}), **more)


def val(step: int, top1: float) -> dict:
    return {'accuracy/top1': top1, 'time': 0.1, 'data_time': 0.01, 'step': step}


def test_nothing_is_no_run(tmp_path):
    history = History(SHORT, tmp_path)
    assert not history.finished and history.done == 0 and history.total == 8 and history.unit == 'epoch'


def test_parts_of_a_resumed_run_are_joined(tmp_path):
    write(tmp_path, SHORT, '20260101_000000', train(20, 3.0, 1), train(40, 2.0, 1), val(1, 30.0), train(117, 9.0, 2))
    # cut off in epoch 2, begun anew from the end of epoch 1; the last line is half written
    write(tmp_path, SHORT, '20260102_000000', train(97, 1.5, 2), train(127, 0.5, 2), end='{"step": 137, "lo')
    history = History(SHORT, tmp_path)
    assert sorted(history.train) == [20, 40, 97, 127]
    assert history.losses() == ([1, 2], [2.5, 1.0])
    assert history.val[1]['accuracy/top1'] == 30 and history.done == 2
    assert history.speed() == (128 / 2.0, 0.25)


def test_finished_means_validated_at_the_end(tmp_path):
    epochs = [train(97 * epoch, 1.0, epoch) for epoch in range(1, 9)]
    write(tmp_path, SHORT, 'a', *epochs, val(4, 40.0))
    assert not History(SHORT, tmp_path).finished
    write(tmp_path, SHORT, 'b', val(8, 50.0))
    assert History(SHORT, tmp_path).finished


def test_iterations_have_no_epochs(tmp_path):
    # `step` is an iteration in both kinds of record: a validation at 10 is far from the end
    write(tmp_path, ITERATIONS, 'a', train(10, 4.0), train(20, 2.0), train(30, 1.0), dict(mIoU=1.0, step=10))
    history = History(ITERATIONS, tmp_path)
    assert history.losses() == ([20, 40], [3.0, 1.0])
    assert not history.finished and history.done == 30 and history.total == 400
    write(tmp_path, ITERATIONS, 'b', dict(mIoU=2.0, step=400))
    assert History(ITERATIONS, tmp_path).finished


def test_cut_off_in_the_last_validation_is_tested(tmp_path):
    write(tmp_path, SHORT, 'a', train(776, 1.0, 8))
    assert real_data.next_step(SHORT, tmp_path)[0] == 'tools/train.py'
    checkpoint = tmp_path / SHORT.name / 'epoch_8.pth'
    checkpoint.touch()
    newest = checkpoint.with_name('last_checkpoint')
    newest.write_text(str(checkpoint.with_name('epoch_7.pth')))
    assert real_data.next_step(SHORT, tmp_path)[0] == 'tools/train.py'  # epoch 8 may be half written
    newest.write_text(str(checkpoint))
    tool, config, path, *rest = real_data.next_step(SHORT, tmp_path)
    assert (tool, path) == ('tools/test.py', str(checkpoint))
    folder = Path(rest[rest.index('--work-dir') + 1]) / '20260101_000000'
    folder.mkdir(parents=True)
    (folder / 'now.json').write_text(json.dumps({'accuracy/top1': 61.0}))
    history = History(SHORT, tmp_path)
    assert history.finished and history.val[8]['accuracy/top1'] == 61


# -- the report --------------------------------------------------------------------------------------------------------


def cells(line: str) -> list:
    return [cell.strip() for cell in line.strip('|').split('|')]


def finish(work_dir: Path, run: Run, top1: float, loss: float = 1.0) -> None:
    total = resolve(run).train_cfg.max_epochs
    # a better epoch before the last: it must not count
    write(work_dir, run, 'a', train(97 * total, loss, total), val(total - 5, 99.0), val(total, top1))
    weight = torch.zeros(10, 64)
    weight[0, 0], weight[1, 1] = 4, 3
    torch.save({'state_dict': {'head.fc.weight': weight}}, History(run, work_dir).last_checkpoint)


def test_tables_have_mean_and_spread_of_the_last_epoch(tmp_path):
    figures = {'FC': [60.0, 61.5, 64.0], THEIRS: [66.25]}
    for head, values in figures.items():
        for run, value in zip(LONG_TAIL[head], values):
            finish(tmp_path, run, value)
    study = STUDIES['long-tail']
    _, _, _, fc, ebv, missing = study_report.table(study, {run.name: History(run, tmp_path) for run in ALL})
    mean, std = np.mean(figures['FC']), np.std(figures['FC'], ddof=1)
    assert cells(fc)[:6] == ['FC', '3', f'{mean:.2f} ± {std:.2f}', '1.00 ± 0.00', '5.00 ± 0.00', '1.56 ± 0.00']
    assert cells(fc)[7:] == ['64', '25%']
    begin = histories.first_weights(LONG_TAIL[THEIRS][0])['head.fc.weight'].double()
    cosine = (4 * begin[0, 0] + 3 * begin[1, 1]) / (5 * (begin**2).sum().sqrt())
    assert cells(ebv) == [THEIRS, '1', '66.25', '1.00', '5.00', '1.56', f'{cosine:.2f}', '64', '25%']
    assert 'lt100_ebv_s1 (0/30)' in missing and 'lt100_fc' not in missing


def test_detection_is_in_percent(tmp_path):
    run = STUDIES['voc-det'].settings['EBV, lr 0.01'][0]
    metrics = {key: 0.125 for key in STUDIES['voc-det'].metrics}
    write(tmp_path, run, 'a', train(500, 1.0, loss_cls=0.5, loss_mask=0.75), dict(metrics, step=500))
    histories = {r.name: History(r, tmp_path) for r in ALL}
    *_, line, _ = study_report.table(STUDIES['voc-det'], histories)
    assert cells(line)[:8] == ['EBV, lr 0.01', '1', '12.50', '12.50', '12.50', '12.50', '0.50', '0.75']


def test_classes_are_grouped_by_their_images(tmp_path):
    run = LONG_TAIL['FC'][0]
    folder = tmp_path / run.name / studies.CLASSES / 'a'
    folder.mkdir(parents=True)
    (folder / 'now.json').write_text(json.dumps({histories.RECALLS: [90, 80, 70, 60, 50, 40, 30, 20, 10, 0]}))
    *_, line = study_report.class_table(STUDIES['long-tail'], {r.name: History(r, tmp_path) for r in ALL})
    assert cells(line) == ['FC', '1', '80.00', '45.00', '10.00']


def test_report_paints_what_there_is(tmp_path, capsys):
    for run in (studies.SWEEP_FC, TAU[0.07], TAU[0.2]):
        finish(tmp_path / 'runs', run, 50.0)
    assert real_data.main(['report', '--work-dir', str(tmp_path / 'runs'), '--pictures', str(tmp_path / 'p')]) == 0
    # tau = 0.07 and FC are points of both sweeps
    assert {path.name for path in (tmp_path / 'p').iterdir()} == {
        'tau.png',
        'dim.png',
        'tau-balanced.png',
        'dim-balanced.png',
        'rate.png',
        'warm-up.png',
        'beginning.png',
        'tau_sweep.png',
        'dim_sweep.png',
    }
    assert '| tau = 0.2 | 1 | 50.00 | 1.00 | 5.00 | 1.56 |' in capsys.readouterr().out


# -- running -----------------------------------------------------------------------------------------------------------

STUB = """
import json, pathlib, sys, time
folder = pathlib.Path(sys.argv[sys.argv.index('--work-dir') + 1])
print('the stub says hello')
if 'fails' in folder.name:
    sys.exit('the stub fails')
if 'sleeps' in folder.name:
    time.sleep(600)
scalars = folder / 'now' / 'vis_data' / 'scalars.json'
scalars.parent.mkdir(parents=True)
records = [dict(step=97, epoch=8, loss=1.5, time=0.1, data_time=0.1), {'step': 8, 'accuracy/top1': 60}]
scalars.write_text(''.join(json.dumps(record) + chr(10) for record in records))
"""


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Runs whose tools/train.py is a stub."""
    (tmp_path / 'tools').mkdir()
    (tmp_path / 'tools' / 'train.py').write_text(STUB)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(real_data, 'POLL_SECONDS', 0.02)
    return lambda name: Run(name, SHORT.config, SHORT.options)


def test_runs_are_trained_once(make, tmp_path, capsys):
    runs = [make('a'), make('b'), make('c')]
    assert real_data.run_all(runs, tmp_path / 'runs', jobs=2) == []
    out = capsys.readouterr().out
    assert 'python tools/train.py configs/mmpretrain/resnet32_fc_cifar10-lt-100_30e.py --resume' in out
    assert all(f'{run.name}: finished\n' in out for run in runs)
    (tmp_path / 'tools' / 'train.py').unlink()
    assert real_data.run_all(runs, tmp_path / 'runs', jobs=2) == []
    assert 'c: finished before' in capsys.readouterr().out


def test_a_failure_shows_the_log_and_spares_the_others(make, tmp_path, capsys):
    assert real_data.run_all([make('fails'), make('a')], tmp_path / 'runs', jobs=1) == ['fails']
    out = capsys.readouterr().out
    assert 'fails: failed (exit code 1)' in out and 'the stub fails' in out and 'a: finished' in out


def test_an_interruption_stops_the_trainings(make, tmp_path, monkeypatch):
    started = []

    class Spied(real_data.Training):
        def __init__(self, *args):
            super().__init__(*args)
            started.append(self)

    def interrupt(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(real_data, 'Training', Spied)
    # subprocess sleeps too, hence not time.sleep itself
    monkeypatch.setattr(real_data, 'time', SimpleNamespace(sleep=interrupt, monotonic=time.monotonic))
    with pytest.raises(KeyboardInterrupt):
        real_data.run_all([make('sleeps')], tmp_path / 'runs', jobs=1)
    assert started[0].process.returncode is not None


def test_a_folder_in_use_is_left_alone(make, tmp_path, capsys):
    other = real_data.Training(make('sleeps'), tmp_path / 'runs')
    try:
        assert real_data.run_all([make('sleeps')], tmp_path / 'runs', jobs=1) == ['sleeps']
        assert 'another process' in capsys.readouterr().out
    finally:
        real_data.stop(other.process)


def test_a_dry_run_prints_every_command_and_the_missing_bases(tmp_path, monkeypatch, capsys):
    """From any folder: what it names is in the clone."""
    clone, elsewhere = tmp_path / 'clone', tmp_path / 'elsewhere'
    clone.mkdir(), elsewhere.mkdir()
    monkeypatch.setattr(real_data, 'REPO', clone)
    monkeypatch.chdir(elsewhere)
    assert real_data.main(['run', 'dim', '--dry-run', '--work-dir', 'runs']) == 0
    out = capsys.readouterr().out
    assert out.count('tools/train.py') == out.count('--work-dir ../elsewhere/runs/') == 5
    assert 'make_basis.py --num-classes 10 --dim 3 --out data/ebv/10x3.safetensors' in out
    assert not any(clone.iterdir()) and not any(elsewhere.iterdir())


def test_an_interruption_says_how_to_go_on(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(real_data, 'run_all', lambda *args: os.kill(os.getpid(), signal.SIGTERM))
    assert real_data.main(['run', 'dim', '--work-dir', str(tmp_path)]) == 130
    assert 'the same command goes on' in capsys.readouterr().out
