from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from ebv_mm import EBVLinear, basis_cross_entropy, make_basis
from ebv_mm.many_classes import WaveSampler, waves
from ebv_mm.many_classes.classifiers import classifiers_of, restrict

WAVES = [(0, 3), (5, 6), (12, None)]


class Labels:
    """A data set of so many classes with 7 images each."""

    def __init__(self, classes=10):
        self.labels = np.repeat(np.arange(classes), 7)

    def __len__(self):
        return len(self.labels)

    def get_gt_labels(self):
        return self.labels


def sampler(monkeypatch, rank=0, world=1, **kwargs):
    monkeypatch.setattr(waves, 'get_dist_info', lambda: (rank, world))
    return WaveSampler(Labels(), WAVES, seed=3, **{'batch_size': 4, **kwargs})


def batches(one, epochs):
    """The batches of some epochs, as a loader cuts them."""
    out = []
    for epoch in range(epochs):
        one.set_epoch(epoch)
        indices = list(one)
        assert len(indices) == len(one)
        out += [indices[start : start + one.batch_size] for start in range(0, len(indices), one.batch_size)]
    return out


@pytest.mark.parametrize('batch_size', [1, 4, 16, 100])
def test_a_batch_has_only_the_classes_of_its_iteration(monkeypatch, batch_size):
    one = sampler(monkeypatch, batch_size=batch_size)
    seen = set()
    for iteration, batch in enumerate(batches(one, 4)):
        present = 3 if iteration < 5 else 6 if iteration < 12 else 10
        labels = one.labels[batch]
        assert labels.max() < present
        seen |= set(labels) if iteration >= 12 else set()
    assert batch_size == 1 or not seen or len(seen) > 6


def test_images_repeat_only_when_all_were_seen(monkeypatch):
    indices = [index for batch in batches(sampler(monkeypatch), 1)[:5] for index in batch]
    assert sorted(indices) == sorted(set(indices)) and len(indices) == 20  # of the 21 images of 3 classes


def test_ranks_share_one_stream(monkeypatch):
    parts = [batches(sampler(monkeypatch, rank, 2), 2) for rank in (0, 1)]
    assert [len(part) for part in parts[0]] == [len(part) for part in parts[1]]
    for iteration, pair in enumerate(zip(*parts)):
        present = 3 if iteration < 5 else 6 if iteration < 12 else 10
        assert all(Labels().labels[batch].max() < present for batch in pair)
        if iteration < 2:  # within the first round of the first wave
            assert not set(pair[0]) & set(pair[1])


def test_an_epoch_depends_on_its_number_alone(monkeypatch):
    whole = batches(sampler(monkeypatch), 3)
    again = sampler(monkeypatch)
    again.set_epoch(2)
    assert list(again) == [index for batch in whole[2 * len(whole) // 3 :] for index in batch]


@pytest.mark.parametrize('wrong', [[], [(1, None)], [(0, 5), (3, 2)], [(0, 2), (0, None)], [(0, 0), (1, None)]])
def test_waves_grow(wrong):
    with pytest.raises(ValueError, match='pairs'):
        waves.check_waves(wrong)


def test_the_last_wave_is_everybody():
    with pytest.raises(ValueError, match='let the last one be None'):
        waves.check_waves([(0, 5), (9, 10)])


@pytest.mark.parametrize('structured', [True, False])
def test_a_restricted_layer_has_the_loss_of_the_first_classes(structured):
    basis = make_basis(50, 16, method='kerdock', structured=structured)
    layer = EBVLinear(8, 50, basis=basis, tau=0.1)
    x, labels = torch.randn(6, 8), torch.randint(20, (6,))
    restrict(layer, 20)
    expected = functional.normalize(layer.project(x), dim=1) @ basis.vectors[:20].T / 0.1
    torch.testing.assert_close(layer(x), expected, rtol=1e-4, atol=1e-4)
    streamed = basis_cross_entropy(layer.project(x), labels, layer.products, layer.tau)
    torch.testing.assert_close(streamed, functional.cross_entropy(expected, labels), rtol=1e-4, atol=1e-4)
    assert layer.eval()(x).shape == (6, 50)  # a prediction is among all
    restrict(layer.train(), None)
    assert layer(x).shape == (6, 50)


def test_a_linear_layer_is_restricted_alike():
    model = nn.Module()
    model.head = nn.Module()
    model.head.fc = nn.Linear(8, 50)
    ((layer, count),) = classifiers_of(model)
    assert count == 50
    x = torch.randn(6, 8)
    whole = layer(x)
    restrict(layer, 20)
    restrict(layer, 30)
    assert torch.equal(layer(x), whole[:, :30]) and torch.equal(layer.eval()(x), whole)
    restrict(layer.train(), None)
    assert torch.equal(layer(x), whole)
    with pytest.raises(TypeError, match=r'neither an EBV layer nor a head\.fc'):
        classifiers_of(nn.Linear(2, 3))


def runner(loader, **preprocessor):
    model = SimpleNamespace(data_preprocessor=SimpleNamespace(**preprocessor))
    return SimpleNamespace(train_loop=SimpleNamespace(dataloader=loader), model=model)


def test_hook_and_sampler_must_agree(monkeypatch):
    hook = waves.WaveHook(WAVES)
    good = sampler(monkeypatch)
    hook.before_train(runner(SimpleNamespace(sampler=good, batch_size=4)))
    with pytest.raises(ValueError, match='give both the same'):
        hook.before_train(runner(SimpleNamespace(sampler=good, batch_size=8)))
    with pytest.raises(ValueError, match='drop_last=True leaves out'):
        hook.before_train(runner(SimpleNamespace(sampler=good, batch_size=4, drop_last=True)))
    with pytest.raises(ValueError, match="type='WaveSampler'"):
        hook.before_train(runner(SimpleNamespace(sampler=None, batch_size=4)))
    with pytest.raises(ValueError, match='leave out mixup'):
        hook.before_train(runner(SimpleNamespace(sampler=good, batch_size=4), batch_augments=object()))
