import json
import math

import many_classes
import many_classes_noise
import many_classes_report
import numpy as np
import pytest
import torch
from many_classes import Training
from many_classes_report import steps_to
from many_classes_trials import SMALL as SMALL_BEGINNING
from many_classes_trials import STUDIES, Trial, helped, plain
from tiny_fonts import CATALOGUE, write_fonts

from ebv_mm.characters import Store
from ebv_mm.characters.store import add


@pytest.fixture(scope='module')
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp('characters')
    write_fonts(folder)
    for font in CATALOGUE:
        add(folder, font)
    return Store(folder, CATALOGUE)


@pytest.fixture(autouse=True)
def _small(monkeypatch, tmp_path):
    monkeypatch.setattr('many_classes_trials.MANY_IMAGES', 1)
    monkeypatch.setattr(many_classes, 'RESULTS', tmp_path / 'results')


SMALL = dict(num_classes=40, steps=4, batch=8)
TRIALS = {
    'fc': Trial('fc', **SMALL, hidden=32),
    'waves': Trial('fc', **SMALL, waves=((0, 10), (2, 40))),
    'pixels': Trial('ebv', **SMALL, dim=16, tau=0.1, pixels=True),
    'positive': Trial('ebv', **SMALL, dim=16, tau=0.1, negatives=False),
    'cosine': Trial('cosine', **SMALL, dim=16, tau=0.1),
    'blocks': Trial('ebv', **SMALL, dim=16, tau=0.1, groups=4),
    'ebv': Trial('ebv', **SMALL, dim=16, tau=0.2, tau_end=0.1, hidden=32, norm=True, waves=((0, 10), (2, 40))),
}


@pytest.mark.parametrize('trial', TRIALS.values(), ids=TRIALS)
def test_a_training_that_was_cut_off_ends_as_another(trial, store, tmp_path):
    def nothing():
        return None

    whole = Training(trial, store, tmp_path / 'a.pth', nothing)
    result = whole.run()
    cut = Training(trial, store, tmp_path / 'b.pth', nothing)
    cut._advance(), cut._advance()
    cut._save()
    again = Training(trial, store, tmp_path / 'b.pth', nothing)
    assert again.step == 2
    again.run()
    for one, other in zip(whole.model.parameters(), again.model.parameters()):
        assert torch.equal(one, other)
    assert [point['step'] for point in result['curve']] == [1, 2, 3, 4] and not (tmp_path / 'b.pth').exists()
    assert result['parameters'] == sum(parameter.numel() for parameter in whole.model.parameters())


def test_only_classes_present_are_seen(store, tmp_path):
    training = Training(TRIALS['waves'], store, tmp_path / 'a.pth', lambda: None)
    numbers = training._numbers(10, np.random.RandomState(0))
    assert training.data.labels[numbers].max() < 10 and len(numbers) == 8


def test_finished_trials_are_not_trained_again(store, tmp_path, monkeypatch, capsys):
    trial = TRIALS['fc']
    monkeypatch.setitem(STUDIES, 'tiny', (trial,))
    many_classes.main(['run', 'tiny', '--dry-run'])
    assert capsys.readouterr().out.splitlines() == ['1 trainings to do', trial.name]
    many_classes.train(trial, store, tmp_path)
    capsys.readouterr()
    many_classes.main(['run', 'tiny', '--dry-run'])
    assert capsys.readouterr().out.splitlines() == ['0 trainings to do']
    result = json.loads(many_classes.result_file(trial).read_text())
    assert Trial(**result['trial']) == trial


def test_named_trials_are_trained_in_that_order(capsys):
    names = [trial.name for trial in STUDIES['size'][2:0:-1]]
    assert many_classes.main(['run', 'size', '--dry-run', '--names', *names]) == 0
    assert capsys.readouterr().out.splitlines() == ['2 trainings to do', *names]
    with pytest.raises(SystemExit):
        many_classes.main(['run', 'size', '--names', 'n7_fc'])
    assert '--names n7_fc: no training' in capsys.readouterr().err


def test_a_projection_of_blocks_is_one_with_zeros():
    layer, x = many_classes.GroupedLinear(12, 6, 3), torch.randn(5, 12)
    whole = torch.block_diag(*layer.weight.view(3, 2, 4))
    assert torch.allclose(layer(x), x @ whole.T + layer.bias, atol=1e-6)


def test_trials_have_names_of_their_own_and_come_by_seed():
    trials = {trial for study in STUDIES.values() for trial in study}
    assert len({trial.name for trial in trials}) == len(trials)
    seeds = [trial.seed for trial in many_classes.trials_of(list(STUDIES))]
    assert seeds == sorted(seeds)
    for trial in trials:
        assert not trial.waves or trial.waves[0][0] == 0 and trial.waves[-1][1] == trial.num_classes


def test_tau_falls_over_three_quarters():
    trial = helped(5000, 400, 1024)
    assert trial.tau_at(0) == trial.tau and trial.tau_at(150) == pytest.approx((trial.tau * trial.tau_end) ** 0.5)
    assert trial.tau_at(300) == trial.tau_at(400) == pytest.approx(trial.tau_end)
    assert plain(5000, 400, 1024).tau_at(399) == 0.02


def test_steps_to_an_accuracy():
    curve = [dict(step=10, top1=10.0), dict(step=20, top1=30.0), dict(step=30, top1=20.0), dict(step=40, top1=60.0)]
    assert steps_to(curve, 20) == 15 and steps_to(curve, 5) == 5 and steps_to(curve, 70) is None
    assert steps_to(curve, 45) == pytest.approx(36.25)


def test_the_report_says_what_is_there(tmp_path, capsys):
    folder = tmp_path / 'results'
    assert many_classes_report.report(folder, tmp_path / 'x.png', None) == 1
    assert '0 of' in capsys.readouterr().out
    folder.mkdir()
    trial = STUDIES['size'][1]
    curve = [dict(step=120, seconds=60.0, loss=2.0, top1=40.0), dict(step=240, seconds=120.0, loss=1.0, top1=60.0)]
    result = dict(trial=trial.as_dict(), parameters=2_500_000, curve=curve)
    (folder / f'{trial.name}.json').write_text(json.dumps(result))
    assert many_classes_report.report(folder, tmp_path / 'x.png', None) == 0
    out = capsys.readouterr().out
    assert '1 of' in out and '| 75 | 180 |  | 90 | 60.0 | 0.50 | 2.5 M |' in out
    assert (tmp_path / 'x.png').stat().st_size > 1000

    page = tmp_path / 'page.md'
    page.write_text(f'above\n{many_classes_report.MARKER}\nold\n<!-- end -->\nbelow\n')
    assert many_classes_report.report(folder, None, page) == 0
    assert f'{many_classes_report.MARKER}\n{out.strip()}\n<!-- end -->\nbelow' in page.read_text()
    (tmp_path / 'other.md').write_text('no line for a table')
    with pytest.raises(ValueError, match='has no line'):
        many_classes_report.report(folder, None, tmp_path / 'other.md')
    assert (tmp_path / 'other.md').read_text() == 'no line for a table'


def test_steps_are_counted_against_fc_with_the_same_hidden_layer_and_seed():
    def reaches_half_at(step):
        return dict(curve=[dict(step=step, top1=50.0)])

    found = {
        Trial('fc', 1000, 240, seed=1): reaches_half_at(100),
        Trial('fc', 1000, 240, seed=1, rate=0.01): reaches_half_at(190),  # the better of its rates counts
        Trial('fc', 1000, 240, hidden=4096, seed=1): reaches_half_at(40),
        Trial('fc', 1000, 240, seed=1, begin=0.1): reaches_half_at(80),  # where EBV's beginning is varied
        plain(1000, 240, 256, seed=1): reaches_half_at(150),
        plain(1000, 240, 256, seed=1, begin=SMALL_BEGINNING): reaches_half_at(120),
        plain(1000, 240, 64, seed=1): dict(curve=[dict(step=240, top1=20.0)]),
        plain(1000, 240, 256, seed=0): reaches_half_at(77),  # no FC of this seed
        plain(1000, 240, 256, seed=1, norm=True): reaches_half_at(10),  # something else is varied
        helped(1000, 240, 256, seed=1): reaches_half_at(60),
    }
    plain_points, small_points, helped_points = many_classes_report.cost_in_steps(found).values()
    assert plain_points == [(1000 / 256, 1.5), (1000 / 64, math.inf)]
    assert small_points == helped_points == [(1000 / 256, 1.5)]


def test_seconds_are_compared_with_the_fastest_fc_of_the_same_beginning():
    def half_after(seconds):
        return dict(curve=[dict(step=1, seconds=seconds, top1=50.0)])

    found = {
        Trial('fc', 5000, 400): half_after(90.0),
        Trial('fc', 5000, 400, hidden=4096): half_after(60.0),
        Trial('fc', 5000, 400, pretrained=True): half_after(1.0),
        plain(5000, 400, 1024): half_after(30.0),
        helped(5000, 400, 1024): half_after(120.0),
        helped(5000, 400, 1024, seed=1): half_after(1.0),  # no FC of this seed
    }
    expected = {('EBV', 1024, False): [(5000, 0.5)], ('EBV, helpers', 1024, False): [(5000, 2.0)]}
    assert many_classes_report.by_the_clock(found) == expected


@pytest.mark.parametrize(('num_classes', 'dim'), [(128, 16), (256, 64), (64, 64)])
def test_the_noise_of_plain_descent_is_that_of_the_gram_matrix(num_classes, dim):
    measured = many_classes_noise.measure(num_classes, dim, seed=0)
    assert measured['theory'] == pytest.approx((num_classes / dim - 1) ** 0.5)
    assert measured['plain'] == pytest.approx(measured['theory'], rel=0.15, abs=0.05)
