"""benchmarks/comparison.py: its smallest form on tiny fonts, a training that was cut off, what is kept, the page."""

import importlib.util
import json
import math
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace

import comparison
import comparison_hook
import comparison_report
import comparison_trials
import pytest
import torch
from comparison import ComparisonTraining
from comparison_arms import ARMS, EBV, FC
from comparison_hook import MeasureHook
from comparison_outcome import auroc
from comparison_trials import (
    LARGE,
    MEDIUM,
    PACE,
    RATES,
    SMALL,
    SOURCE,
    STUDIES,
    Plan,
    Trial,
    options,
    trials_of,
)
from mmengine.config import Config
from mmengine.logging import MessageHub, MMLogger
from pages import END
from tiny_fonts import CATALOGUE, write_fonts

from ebv_mm.characters import store

REPO = Path(__file__).parents[2]
N, OTHERS, BATCH = 40, 12, 16


@pytest.fixture(scope='module')
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp('characters')
    write_fonts(folder)
    for font in CATALOGUE:
        store.add(folder, font)
    return folder


@pytest.fixture
def run(data, tmp_path, monkeypatch):
    """Runs trials through tools/train.py, in this process; returns the records and what failed."""
    spec = importlib.util.spec_from_file_location('train', REPO / 'tools' / 'train.py')
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    monkeypatch.chdir(REPO)
    monkeypatch.setattr(store.Store.__init__, '__defaults__', (CATALOGUE,))
    for module in (comparison, comparison_trials):
        monkeypatch.setattr(module, 'BATCH', BATCH)
        monkeypatch.setattr(module, 'PRETRAINING', OTHERS)
        monkeypatch.setattr(module, 'EPOCHS', {N: 1})
    monkeypatch.setattr(comparison, 'PACE_STEPS', 4)
    monkeypatch.setattr(comparison_trials, 'MANY_IMAGES', 1)
    monkeypatch.setattr(comparison_trials, 'UNKNOWN', OTHERS)
    monkeypatch.setattr(comparison_trials, 'POINTS', 3)
    monkeypatch.setattr(comparison_trials, 'MEDIUM', N)
    monkeypatch.setattr('trainings.schedule.POLL_SECONDS', 0)
    monkeypatch.setattr('mmengine.runner.loops.time.sleep', lambda seconds: None)  # 2 s at the end of each epoch
    # the host formats the config for each checkpoint, which is most of the time of a tiny training
    monkeypatch.setattr(Config, 'pretty_text', 'gpu_ids = None\n')

    def start(training):
        training.folder.mkdir(parents=True, exist_ok=True)
        training._file.write_text(json.dumps(training.plan()._asdict()))
        training.started = 0
        for kind in (MessageHub, MMLogger):
            kind._instance_dict.clear()
        tool.main(training.command()[1:])
        training.process = SimpleNamespace(poll=lambda: 0, returncode=0)

    monkeypatch.setattr(ComparisonTraining, 'start', start)
    arguments = dict(data=data, work_dir=tmp_path / 'work', results=tmp_path / 'results', threads=1)
    args = SimpleNamespace(**arguments, alone=False, dry_run=False)

    def run_trials(*trials):
        failed = comparison.run_all(trials, args, comparison.Console(quiet=True))
        return [comparison.read(args.results, trial) for trial in trials], failed

    run_trials.args = args
    return run_trials


def test_the_smallest_form(run, tmp_path, monkeypatch):
    names = ('ebv', 'sampled-256', 'means-256', 'fc-pretrained')
    trials = [Trial(N, name) for name in names]
    records, failed = run(*trials)
    assert not failed
    work = run.args.work_dir
    assert not list(work.glob('n40_*_s0/*.pth')) and list((work / 'n40_fc_source').glob('iter_*.pth'))
    images = records[0]['train_images']
    for record in records:
        assert record['seconds'] > 0 and record['memory'] > 50 and record['checkpoint'] > 1
        assert record['rate'] == 0.003 and set(record['parts']) == {'data', 'backbone', 'head', 'optimizer'}
        assert 0 <= record['unknown']['logit'] <= 1
        last = record['curve'][-1]
        assert last['iteration'] == record['iterations'] == math.ceil(images / BATCH) and 0 <= last['top1'] <= 100
        assert sum(record['parts'].values()) * record['iterations'] == pytest.approx(record['seconds'], rel=1.5)
    ebv, sampled, means, pretrained = records
    assert ebv['parameters'] == dict(backbone=pretrained['parameters']['backbone'], head=(2048 + 1) * N)
    assert sampled['parameters']['head'] == 2048 * 256 + 3 * 256 + (256 + 1) * N
    assert means['train_images'] < images / 5 and len(means['curve']) == 1
    assert pretrained['parameters']['head'] == (2048 + 1) * N
    # nothing is trained again
    monkeypatch.setattr(ComparisonTraining, 'start', None)
    assert run(*trials) == (records, [])
    page = tmp_path / 'page.md'
    names_of_tables = ('comparison', 'hour', 'equal steps', 'learning rates', 'beginnings')
    blocks = [comparison_report.MARKER.format(name) for name in names_of_tables]
    page.write_text(''.join(f'{block}\nold\n{END}\nafter\n' for block in blocks))
    monkeypatch.setattr(comparison_report, 'STUDIES', {'rates': trials, 'beginning': []})
    monkeypatch.setattr(comparison_report, 'trials_of', lambda studies: trials)
    assert comparison_report.report(run.args.results, page, comparison.Console(quiet=True)) == 0
    text = page.read_text()
    assert 'old' not in text and text.endswith('after\n') and text.count('\n| 40 |') == 4
    assert all(ARMS[name].title in text for name in names) and 'beside other jobs' in text
    assert (tmp_path / comparison_report.PICTURE).stat().st_size > 1000


def test_means_beside_the_classifier(run, monkeypatch):
    """They are asked of the same network, and do not count into the classifier's time or outcome."""
    asked = []
    found = comparison_hook.nearest_means

    def nearest_means(runner, now):
        asked.append(found(runner, now))
        return asked[-1]

    monkeypatch.setattr(comparison_hook, 'nearest_means', nearest_means)
    short, both = Trial(N, 'sampled-256', steps=2), Trial(N, 'sampled-256', steps=2, minutes=60)
    (alone, record), failed = run(short, both)
    assert not failed and alone['by_means'] is None
    ((seconds, top1, top5, _),) = asked
    assert record['by_means'] == dict(seconds=round(seconds, 1), top1=round(top1, 2), top5=round(top5, 2))
    assert record['curve'][-1]['seconds'] == pytest.approx(record['seconds'], abs=0.1)
    assert [p['top1'] for p in record['curve']] == [p['top1'] for p in alone['curve']]
    assert record['unknown'] == alone['unknown']


def test_a_training_that_was_cut_off_makes_up_for_its_validation(run, monkeypatch):
    trial = Trial(N, 'ebv', seed=1)
    plain = MeasureHook.after_val_epoch

    def cut(hook, runner, metrics=None):
        if runner.iter == 2:
            raise KeyboardInterrupt
        plain(hook, runner, metrics)

    monkeypatch.setattr(MeasureHook, 'after_val_epoch', cut)
    with pytest.raises(KeyboardInterrupt):
        run(trial)
    monkeypatch.setattr(MeasureHook, 'after_val_epoch', plain)
    (record,), failed = run(trial)
    assert not failed
    assert [point['iteration'] for point in record['curve']] == [2, 4, 6]
    seconds = [point['seconds'] for point in record['curve']]
    assert seconds == sorted(seconds) and seconds[0] > 0


def test_a_budget_becomes_iterations(run, monkeypatch):
    monkeypatch.setattr(comparison_trials, 'EPOCHS', {})
    monkeypatch.setattr(comparison, 'EPOCHS', {})
    trial = Trial(N, 'fc-256')
    assert trial.pace() == Trial(N, 'fc-256-pretrained').pace() and trial.pace().name == 'n40_fc-256_pace'
    assert run.args.results.exists() is False
    (record,), failed = run(trial.pace())
    assert not failed and record['curve'] == [] and record['iterations'] == 4 and record['checkpoint'] is None
    pace = sum(record['parts'].values())
    monkeypatch.setattr(comparison, 'BUDGET', 7.5 * pace / 60)
    plan = ComparisonTraining(trial, run.args).plan()
    assert plan == Plan(0.003, 7, round(pace, 4))
    longer = Trial(N, 'fc-256', minutes=60)
    assert longer.pace() == trial.pace() and longer.name == 'n40_fc-256_60minutes_s0'
    assert ComparisonTraining(longer, run.args).plan().iterations == int(3600 / pace)
    means = ComparisonTraining(Trial(N, 'means-256'), run.args)
    assert means.plan().iterations == 0  # its own pace is not measured yet
    equal = Trial(N, 'fc-256', steps=5)
    assert equal.pace() is None and ComparisonTraining(equal, run.args).plan() == Plan(0.003, 5)
    assert equal.name == 'n40_fc-256_5steps_s0'


def test_equal_steps_have_a_table_of_their_own():
    def record(arm, iterations, top1, **kwargs):
        curve = [dict(top1=0.0, top5=0.0), dict(top1=top1, top5=2 * top1)]
        told = dict(num_classes=LARGE, arm=arm, kind='trained', epochs=None, rate=0.003, seconds=1022.0)
        return dict(told, iterations=iterations, curve=curve, **kwargs)

    records = [
        record('fc-256', 511, 10.0, steps=511),
        record('fc-256', 511, 14.0, steps=511),
        record('ebv-4096', 511, 12.5),
        record('fc', 150, 30.0),
    ]
    table = comparison_report.step_rows(records)
    assert [(row['classifier'], row['top-1'], row['seconds']) for row in table] == [
        ('EBV d = 4096', '12.5', '1,022'),
        ('FC on 256', '10.0, 14.0', '1,022, 1,022'),
    ]
    assert [comparison_report.in_full(each) for each in records] == [False, False, True, True]


def test_the_hour_has_a_table_of_its_own():
    def record(arm, top1, by_means, minutes=60):
        last = dict(epoch=3.2, seconds=3540.0, top1=top1, top5=2 * top1)
        told = dict(arm=arm, kind='trained', epochs=None, rate=0.01, iterations=12_000, minutes=minutes)
        return dict(told, curve=[last], unknown=dict(logit=0.6), by_means=by_means and dict(seconds=120, top1=by_means))

    records = [record('fc-256', 30.0, 35.0), record('means-256', 40.0, None), record('sampled-256', 20.0, 45.0)]
    records.append(record('fc-256', 30.0, 36.0))
    other = record('ebv', 50.0, None, minutes=None)
    table = comparison_report.hour_rows([*records, other])
    assert [(row['classifier'], row['top-1'], row['their top-1'], row['minutes']) for row in table] == [
        ('a tenth of FC on 256', '20.0', '45.0', '59.0'),
        ('means of 256, trained by FC', '40.0', '', '59.0'),
        ('FC on 256', '30.0, 30.0', '35.0, 36.0', '59.0, 59.0'),
    ]
    assert [comparison_report.in_full(each) for each in (records[0], other)] == [False, True]


def test_warm_ups_have_a_table_of_their_own():
    def record(arm, top1, **kwargs):
        told = dict(num_classes=SMALL, arm=arm, kind='trained', epochs=2, rate=0.003, curve=[dict(top1=top1)])
        return dict(told, **kwargs)

    # the oldest records do not tell their warm-up
    records = [record('fc', 90.0), record('fc', 91.0, warm_up=100), record('ebv-small', 5.0, warm_up=None)]
    fc, small = comparison_report.beginning_rows(records)
    assert list(fc.values()) == ['FC', '90.0', '91.0'] and list(small.values()) == [ARMS['ebv-small'].title, '5.0', '']
    (rates,) = comparison_report.rate_rows(records)
    assert rates['classifier'] == 'FC' and rates['top-1'] == ' / 90.0 /  / '


def test_options_fit_their_configs():
    """Every training's options merge into its config, and say the same in all places."""
    configs = {name: Config.fromfile(REPO / f'{name}.py') for name in (FC, EBV)}
    for trial in trials_of(list(STUDIES)):
        config = deepcopy(configs[trial.of.config])
        config.merge_from_dict(options(trial, Plan(0.01, 800), 'cpu', 'data/characters', 'backbone.pth'))
        head, n = config.model.head, trial.num_classes
        trained = n // 10 if trial.of.means else n
        assert head.num_classes == config.train_dataloader.dataset.num_classes == trained
        assert config.test_dataloader.dataset.num_classes == n and config.optim_wrapper.optimizer.lr == 0.01
        width = 2048 if config.model.neck is None else config.model.neck.out_channels
        assert head.in_channels == width
        if 'basis' in head:
            assert head.basis.num_classes == trained and config.default_hooks.tau.end == 600
            assert (trained <= head.basis.dim) == (head.tau == config.default_hooks.tau.stop)
            plain = trial.arm.startswith(('ebv-plain', 'ebv-torch', 'ebv-small'))
            assert (head.norm_cfg is None) == plain
        if trial.of.waves:
            assert config.default_hooks.waves.waves == config.train_dataloader.sampler.waves
            assert [begin for begin, _ in config.default_hooks.waves.waves] == [0, 100, 200, 300]
        if trial.kind != PACE:
            assert config.default_hooks.checkpoint.interval == 80


def test_no_character_is_both_trained_and_unknown():
    for n in (SMALL, MEDIUM, LARGE):
        trial = Trial(n, 'fc-pretrained')
        chosen = options(trial, Plan(0.01, 800), 'cpu', 'data')
        source = options(trial.source(), Plan(0.01, 800), 'cpu', 'data')
        trained = set(range(chosen['train_dataloader.dataset.num_classes']))
        begin = source['train_dataloader.dataset.skip']
        others = set(range(begin, begin + source['train_dataloader.dataset.num_classes']))
        begin = chosen['default_hooks.measure.skip']
        unknown = set(range(begin, begin + chosen['default_hooks.measure.unknown']))
        assert not trained & others and not trained & unknown and not others & unknown
        assert trial.source().min_train == trial.min_train and max(unknown) < 94_606
        assert trial.source().kind == SOURCE


def test_names_are_unique_and_the_rate_is_the_best_of_the_study(tmp_path):
    trials = trials_of(list(STUDIES))
    assert len({trial.name for trial in trials}) == len(trials)
    assert {ARMS[trial.arm].rate_of for trial in trials} == {trial.arm for trial in STUDIES['rates']}
    tried = [trial for trial in STUDIES['rates'] if trial.arm == 'fc']
    for trial, top1 in zip(tried, (10.0, 20.0, 15.0, 12.0)):
        assert comparison.best_rate('fc', tmp_path) == 0.003
        (tmp_path / f'{trial.name}.json').write_text(json.dumps(dict(curve=[dict(top1=top1)])))
    assert comparison.best_rate('fc', tmp_path) == RATES['adamw'][1]
    assert comparison.best_rate('fc-sgd', tmp_path) == 0.1


def test_auroc_counts_pairs():
    known, unknown = torch.tensor([3.0, 1.0, 2.0]), torch.tensor([2.0, 0.0, 2.0, 5.0])
    wins = [(k > u).item() + 0.5 * (k == u).item() for k in known for u in unknown]
    assert auroc(known, unknown) == pytest.approx(sum(wins) / len(wins))


def test_the_command_line_says_what_is_wrong(capsys):
    for arguments, said in (
        (['run', 'nothing'], "unknown study 'nothing'; choose from rates"),
        (['run', 'first', '--names', 'x'], '--names x: no training'),
        (['run', '--threads', '0'], 'at least one'),
        (['run', '--threads', '2'], 'add --alone'),
    ):
        with pytest.raises(SystemExit):
            comparison.main(arguments)
        assert said in capsys.readouterr().err
