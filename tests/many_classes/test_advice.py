import math
import warnings

import pytest
from mmengine.config import Config

from ebv_mm import advise, make_basis
from ebv_mm.basis.__main__ import main
from ebv_mm.many_classes import tau_for, warn_if_far


@pytest.mark.parametrize('num_classes', [2, 1000, 1025, 5000, 40_000, 100_000])
def test_advice_can_be_made(num_classes):
    advice = advise(num_classes=num_classes)
    config = Config.fromstring(advice.config.replace('end=...', 'end=100'), '.py')
    basis = config.basis
    assert basis.num_classes == num_classes and basis.dim == advice.dim
    made = make_basis(num_classes, advice.dim, method=basis.get('method', 'auto'), structured=True)
    assert made.dim == advice.dim
    head = config.model.head
    assert head.get('norm_cfg') == (dict(type='BN1d', affine=False) if num_classes > 79 else None)
    assert advice.norm == ('norm_cfg' in head)
    assert head.tau == (advice.tau if num_classes <= advice.dim else advice.tau_start)
    if num_classes > advice.dim:
        assert [hook.type for hook in config.custom_hooks] == ['TauHook', 'EBVMonitorHook']
        assert config.model.neck.out_channels == head.in_channels == advice.hidden
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        if num_classes <= 25 * advice.dim:
            warn_if_far(num_classes, advice.dim, advice.tau)
    assert all(reason in str(advice) for reason in advice.reasons)


def test_tau_is_the_spread_of_the_first_logits():
    """Logits of random embeddings against a real basis."""
    import torch

    vectors = make_basis(2000, 256, method='kerdock').vectors
    v = torch.nn.functional.normalize(torch.randn(200, 256), dim=1)
    for spread in (0.8, 1.6, 3.2):
        assert (v @ vectors.T / tau_for(256, spread)).std() == pytest.approx(spread, rel=0.05)


def test_up_to_eighty_classes_tau_is_the_papers():
    assert [advise(num_classes=n).tau for n in (2, 10, 79)] == [0.07] * 3
    assert advise(num_classes=1000).tau == pytest.approx(1 / (1.6 * 1000**0.5), rel=0.02)


def test_more_classes_need_no_smaller_dim():
    dims = [advise(num_classes=2**k).dim for k in range(1, 21)]
    assert dims == sorted(dims)
    assert all(math.log(dim, 4) % 1 == 0 for dim in dims if dim > 1024)


def test_a_warning_names_the_number():
    with pytest.warns(UserWarning, match='take tau=0.02'):
        warn_if_far(5000, 1024, 0.07)
    with pytest.warns(UserWarning, match='take dim=16384'):
        warn_if_far(100_000, 1024, 0.02)


@pytest.mark.parametrize(
    ('num_classes', 'dim', 'tau'),
    [
        (1000, 1000, 0.07),
        (1000, 100, 0.07),
        (1000, 500, 0.07),
        (100_000, 5000, 0.007),
        (8142, 8142, 0.02),
        (81, 81, 0.07),
    ],
)
def test_what_the_paper_trained_is_not_warned_of(num_classes, dim, tau):
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        warn_if_far(num_classes, dim, tau)


def test_nonsense_is_refused():
    with pytest.raises(ValueError, match='at least 2 classes'):
        advise(num_classes=1)


def test_the_command_prints_the_advice(capsys):
    assert main(['--num-classes', '5000', '--advise', '--features', '512']) == 0
    assert capsys.readouterr().out.strip() == str(advise(num_classes=5000, features=512))
    for wrong in (['--advise'], ['--num-classes', '5', '--advise', '--dim', '3'], ['x.py', '--advise']):
        with pytest.raises(SystemExit):
            main(wrong)
