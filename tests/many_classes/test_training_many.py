"""Waves, a falling tau, the monitor, a norm of the embedding and EMA in one training of mmpretrain."""

import logging
import math
from types import SimpleNamespace

import pytest
import torch
from mmengine.config import Config
from mmengine.runner import Runner
from small_models import lenet
from tiny_fonts import CATALOGUE, write_fonts

import ebv_mm
from ebv_mm.characters import store
from ebv_mm.many_classes.classifiers import ebv_layers, restrict
from ebv_mm.many_classes.monitor import EBVMonitorHook, look
from ebv_mm.packed import EBVConv1d

CLASSES, DIM, ITERATIONS = 40, 16, 12
WAVES = [(0, 8), (4, 16), (8, None)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write_fonts(tmp_path)
    for font in CATALOGUE:
        store.add(tmp_path, font)
    monkeypatch.setattr(store.Store.__init__, '__defaults__', (CATALOGUE,))
    return tmp_path


def config(folder, work_dir, **head):
    data = dict(
        type='WrittenCharacters', data_root=str(folder), num_classes=CLASSES, pipeline=[dict(type='PackInputs')]
    )
    basis = dict(num_classes=CLASSES, dim=DIM, method='kerdock', structured=True)
    norm = dict(type='BN1d', affine=False)
    model = lenet(dict(num_classes=CLASSES, basis=basis, tau=0.3, norm_cfg=norm, **head))
    test = dict(batch_size=16, num_workers=0, sampler=dict(type='DefaultSampler', shuffle=False))
    return Config(
        dict(
            default_scope='mmpretrain',
            work_dir=str(work_dir),
            model=model,
            data_preprocessor=dict(num_classes=CLASSES, mean=[64.0], std=[64.0]),
            train_dataloader=dict(
                batch_size=8, num_workers=0, dataset=data, sampler=dict(type='WaveSampler', waves=WAVES, batch_size=8)
            ),
            val_dataloader=dict(test, dataset=dict(data, split='test')),
            val_evaluator=dict(type='StreamingAccuracy', topk=(1,)),
            train_cfg=dict(by_epoch=False, max_iters=ITERATIONS, val_interval=6),
            val_cfg=dict(),
            optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.1)),
            custom_hooks=[
                dict(type='WaveHook', waves=WAVES),
                dict(type='TauHook', start=0.3, stop=0.1, end=9),
                dict(type='EBVMonitorHook', interval=3),
                dict(type='EMAHook'),
            ],
            default_hooks=dict(checkpoint=dict(type='CheckpointHook', interval=6, by_epoch=False)),
            randomness=dict(seed=0),
            experiment_name=work_dir.name,
            log_level='WARNING',
        )
    )


@pytest.mark.parametrize('streaming', [True, False])
def test_a_resumed_training_ends_as_one_that_was_not_cut_off(folder, tmp_path, streaming):
    head = dict(streaming=streaming, predict_topk=3)
    straight = Runner.from_cfg(config(folder, tmp_path / f'straight{streaming}', **head))
    straight.train()
    cut = config(folder, tmp_path / f'cut{streaming}', **head)
    cut.load_from = str(tmp_path / f'straight{streaming}' / 'iter_6.pth')
    cut.resume, cut.experiment_name = True, f'cut{streaming}'
    resumed = Runner.from_cfg(cut)
    resumed.train()
    for name, value in straight.model.state_dict().items():
        torch.testing.assert_close(resumed.model.state_dict()[name], value, msg=name)
    # tau: in the model, in the checkpoint, and back in a model that knows nothing of a schedule
    assert straight.model.head.fc.tau == pytest.approx(0.1)
    halfway = torch.load(cut.load_from)['state_dict']['head.fc.tau']
    assert float(halfway) == pytest.approx(0.3 * (0.1 / 0.3) ** (5 / 9))
    plain = Runner.from_cfg(config(folder, tmp_path / f'plain{streaming}', **head)).model
    plain.load_state_dict(torch.load(tmp_path / f'straight{streaming}' / 'iter_12.pth')['state_dict'])
    assert plain.head.fc.tau == pytest.approx(0.1)
    scalars = straight.message_hub.log_scalars
    assert {f'train/ebv/{name}' for name in ('true_cosine', 'other_cosine', 'spread', 'norm', 'common')} <= set(scalars)
    assert scalars['train/tau'].data[0][0] == pytest.approx(0.3) and straight.model.head.fc.present is None


def test_what_the_monitor_sees():
    layer = ebv_mm.EBVLinear(5, 50, basis=dict(num_classes=50, dim=16, method='kerdock', structured=True), tau=0.1)
    v, labels = torch.randn(30, 16), torch.randint(50, (30,))
    cosines = torch.nn.functional.normalize(v, dim=1) @ layer.vectors.T
    seen = look(layer, v, labels)
    true = cosines.gather(1, labels[:, None])[:, 0]
    others = cosines.scatter(1, labels[:, None], -2).amax(1)
    assert seen['true_cosine'] == pytest.approx(true.mean().item(), abs=1e-5)
    assert seen['other_cosine'] == pytest.approx(others.mean().item(), abs=1e-5)
    assert seen['norm'] == pytest.approx(v.norm(dim=1).mean().item(), rel=1e-5)
    assert seen['spread'] == pytest.approx((cosines / 0.1).std().item(), rel=0.05)
    # of two images at an angle a: |(z + z') / 2|^2 = (1 + cos a) / 2
    cosine = torch.nn.functional.cosine_similarity(v[:1], v[1:2]).item()
    assert look(layer, v[:2], labels[:2])['common'] == pytest.approx((1 + cosine) / 2, abs=1e-5)


@pytest.mark.parametrize(('loss', 'stands'), [(math.log(50), True), (math.log(50) - 1, False)])
def test_a_loss_that_stands_is_told_once(loss, stands, caplog, monkeypatch):
    layer = ebv_mm.EBVLinear(5, 50, basis=dict(num_classes=50, dim=16, method='kerdock', structured=True), tau=2.0)
    said = []
    monkeypatch.setattr('ebv_mm.many_classes.monitor.print_log', lambda text, **kwargs: said.append((text, kwargs)))
    hook = EBVMonitorHook(interval=100, patience=5)
    hook.layer = layer

    class Running:
        iter = 0

    for Running.iter in range(12):
        hook.after_train_iter(Running, Running.iter, None, dict(loss=torch.tensor(loss)))
    assert len(said) == stands
    if stands:
        text, options = said[0]
        assert options['level'] == logging.WARNING and '3.91' in text
        assert 'set tau to 0.16' in text and 'WaveHook' in text and 'learning rate' in text
        assert "norm_cfg=dict(type='BN1d', affine=False)" in text


def test_the_monitor_is_for_classifiers_of_images():
    basis = dict(num_classes=5, dim=4)
    model = torch.nn.Sequential(ebv_mm.EBVConv2d(3, 5, 1, basis=basis))
    with pytest.raises(TypeError, match='an EBVLinear, but the model has an EBVConv2d'):
        EBVMonitorHook().before_train(SimpleNamespace(model=model, iter=0))


def test_layers_of_points_follow_tau_and_waves():
    layer = EBVConv1d(3, 5, 1, basis=dict(num_classes=5, dim=4))
    assert ebv_layers(torch.nn.Sequential(layer)) == [layer]
    restrict(layer, 2)
    assert layer(torch.randn(2, 3, 4)).shape == (2, 2, 4)


def test_a_new_wave_is_judged_anew(monkeypatch):
    layer = ebv_mm.EBVLinear(5, 50, basis=dict(num_classes=50, dim=16, method='kerdock', structured=True), tau=0.16)
    said = []
    monkeypatch.setattr('ebv_mm.many_classes.monitor.print_log', lambda text, **kwargs: said.append(text))
    hook = EBVMonitorHook(interval=100, patience=5)
    hook.layer, layer.present = layer, 16

    class Running:
        iter = 0

    for Running.iter in range(30):
        if Running.iter == 10:
            layer.present = None
        hook.after_train_iter(Running, Running.iter, None, dict(loss=torch.tensor(1.0 if Running.iter < 10 else 4.0)))
    assert len(said) == 1 and 'among 50 classes' in said[0]
