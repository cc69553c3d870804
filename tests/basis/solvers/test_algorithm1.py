import importlib
import time

import pytest
import torch
from torch.nn import functional

from ebv_mm.basis import coherence
from ebv_mm.basis.solvers import algorithm1

module = importlib.import_module('ebv_mm.basis.solvers.algorithm1')


def rows(num_classes, dim):
    return functional.normalize(torch.randn(num_classes, dim, generator=torch.Generator().manual_seed(0)))


def test_a_step_is_one_of_gradient_descent_on_the_papers_sum():
    w = rows(50, 20).double().requires_grad_()
    unit = functional.normalize(w)
    ((unit @ unit.T).abs() - torch.eye(50) - 0.5).relu().sum().backward()
    expected = functional.normalize(w.detach() - 0.001 * w.grad)
    assert torch.allclose(algorithm1(50, 20, 0.5, lr=0.001, max_steps=2).double(), expected, atol=1e-5)
    assert not torch.allclose(expected, w.detach(), atol=1e-4)


def test_it_reaches_its_alpha():
    vectors = algorithm1(60, 30, 0.25, lr=1e-2, max_steps=3000)
    assert coherence(vectors) <= 0.25 + 1e-4


def test_slices_do_not_matter(monkeypatch):
    whole = algorithm1(50, 20, 0.2, max_steps=20)
    monkeypatch.setattr(module, 'SLICE', 7)
    assert torch.allclose(algorithm1(50, 20, 0.2, max_steps=20), whole, atol=1e-5)


def test_it_stops_when_it_diverges():
    """As users reported: alpha below what is possible, a step too large."""
    start = time.monotonic()
    vectors = algorithm1(100, 20, 0.002, lr=0.5, patience=20)
    assert time.monotonic() - start < 60
    assert torch.isfinite(vectors).all()
    assert coherence(vectors) <= coherence(rows(100, 20))


def test_falling_steps_and_a_falling_alpha_reach_what_the_paper_does_not():
    given = dict(lr=0.01, max_steps=600)
    assert coherence(algorithm1(80, 40, 0.135, **given)) > 0.15
    assert coherence(algorithm1(80, 40, 0.135, last_lr=2e-4, tightness=0.9, **given)) <= 0.135 + 1e-4
    # alpha close to the bound, 0.1125: without a falling alpha the hinge pulls vectors together
    assert coherence(algorithm1(80, 40, 0.124, last_lr=2e-4, **given)) > 0.3
    assert coherence(algorithm1(80, 40, 0.124, last_lr=2e-4, tightness=0.9, **given)) < 0.14


@pytest.mark.parametrize(
    'wrong, words',
    [
        (dict(lr=0), 'lr = 0, but a step size must be positive'),
        (dict(last_lr=-1.0), 'last_lr = -1.0, but'),
        (dict(tightness=1), 'tightness = 1, but'),
        (dict(max_steps=0), 'max_steps = 0, but at least 1'),
        (dict(patience=0), 'patience = 0, but at least 1'),
    ],
)
def test_bad_options(wrong, words):
    with pytest.raises(ValueError, match=words):
        algorithm1(5, 3, 0.5, **wrong)
