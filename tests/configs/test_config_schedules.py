"""The learning rate that mmengine's schedulers really give, against formulas written down independently."""

from math import cos, pi

import mmengine.optim  # noqa: F401, registers the schedulers
import pytest
import torch
from experiments import CONFIGS, load, plain
from mmengine.registry import PARAM_SCHEDULERS
from paper_facts import facts


def curve(schedulers: list, lr: float, epochs: int, iterations: int) -> list:
    """The learning rate of every iteration, or of every epoch if one epoch has one iteration."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=lr)
    schedulers = [PARAM_SCHEDULERS.build(dict(s, optimizer=optimizer)) for s in map(plain, schedulers)]
    by_epoch = [s for s in schedulers if s.by_epoch]
    by_iteration = [s for s in schedulers if not s.by_epoch]
    optimizer.step()  # or torch would warn that it never was
    rates = []
    for _ in range(epochs):
        for _ in range(iterations):
            rates.append(optimizer.param_groups[0]['lr'])
            for scheduler in by_iteration:
                scheduler.step()
        for scheduler in by_epoch:
            scheduler.step()
    return rates


def compare(name: str, formula, epochs: int, iterations: int) -> None:
    config = load(name)
    schedulers = config.param_scheduler if isinstance(config.param_scheduler, list) else [config.param_scheduler]
    rates = curve(schedulers, config.optim_wrapper.optimizer.lr, epochs, iterations)
    assert rates == pytest.approx([formula(t) for t in range(epochs * iterations)], rel=1e-6, abs=1e-12)


IMAGENET = [
    n for n in CONFIGS if n.startswith('mmpretrain') and 'resnet32' not in n and not n.endswith(('a0', '_plain'))
]


@pytest.mark.parametrize('name', IMAGENET)
def test_linear_warm_up_then_cosine_by_epoch(name):
    rate, total = facts(name)['rate'], facts(name)['epochs']
    assert load(name).train_cfg == dict(by_epoch=True, max_epochs=total, val_interval=1)

    def formula(epoch):
        if epoch < 5:
            return rate * (0.01 + 0.99 * epoch / 5)
        return rate * 0.5 * (1 + cos(pi * (epoch - 5) / (total - 5)))

    compare(name, formula, total, 1)


@pytest.mark.parametrize('name', [n for n in CONFIGS if n.endswith('inat2018_plain')])
def test_kang_et_al_decay_by_a_cosine_alone(name):
    compare(name, lambda epoch: 0.2 * 0.5 * (1 + cos(pi * epoch / 90)), 90, 1)


@pytest.mark.filterwarnings('ignore:The epoch parameter')  # torch speaks to itself
@pytest.mark.parametrize('name', ['mmpretrain/resnet50_fc_a1', 'mmpretrain/resnet50_fc_a2_305e'])
def test_it_is_the_curve_of_torch_which_the_authors_used(name):
    total = load(name).train_cfg.max_epochs
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.5)
    warm_up = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.01, total_iters=5)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=total - 5)
    both = torch.optim.lr_scheduler.SequentialLR(optimizer, [warm_up, cosine], milestones=[5])
    rates = []
    for _ in range(total):
        rates.append(optimizer.param_groups[0]['lr'])
        optimizer.step()
        both.step()
    compare(name, lambda epoch: rates[epoch], total, 1)


@pytest.mark.parametrize('name', [n for n in CONFIGS if 'resnet32' in n])
def test_long_tailed_cifar_warms_up_and_drops_twice(name):
    assert load(name).train_cfg == dict(by_epoch=True, max_epochs=200, val_interval=1)
    drops = (160, 180)
    compare(name, lambda e: 0.1 * min(1, (e + 1) / 5) * 0.01 ** sum(e >= drop for drop in drops), 200, 1)


@pytest.mark.slow
def test_a0_drops_by_iteration():
    assert load('mmpretrain/resnet50_fc_a0').train_cfg == dict(by_epoch=False, max_iters=600000, val_interval=5000)
    compare('mmpretrain/resnet50_fc_a0', lambda t: 0.1 * 0.1 ** min(t // 150000, 3), 1, 600000)


DETECTION = {
    'mmdet/mask_rcnn_r50_ebv_1x': (0.02, 500, (8, 11)),
    'mmdet/mask_rcnn_r50_ebv_3x': (0.02, 500, (9, 11)),
    'mmdet/mask_rcnn_swin_tiny_ebv_1x': (1e-4, 1000, (8, 11)),
    'mmdet/cascade_mask_rcnn_r50_ebv_1x': (0.02, 500, (8, 11)),
    'mmdet/mask_rcnn_r50_ebv_1x_lvis': (0.02, 500, (8, 11)),
}


@pytest.mark.parametrize('name', [n for n in CONFIGS if n.startswith('mmdet')])
def test_detection_warms_up_by_iteration_and_drops_by_epoch(name):
    lr, warm_up, drops = DETECTION[name.replace('_fc_', '_ebv_')]
    per_epoch = 1200  # stands for the 7,330 of COCO: longer than the warm-up is enough
    assert load(name).train_cfg.max_epochs == 12

    def formula(t):
        passed = sum(t // per_epoch >= drop for drop in drops)
        return lr * (0.001 + 0.999 * min(1, t / (warm_up - 1))) * 0.1**passed

    compare(name, formula, 12, per_epoch)


@pytest.mark.parametrize('name', ['mmseg/upernet_r18_ebv_80k', 'mmseg/upernet_r18_ebv_160k'])
def test_segmentation_decays_by_a_power(name):
    total = 1000 * int(name.rsplit('_', 1)[1][:-1])
    # mmengine reaches the end at the last step, hence total - 1
    compare(name, lambda t: 1e-4 + (0.01 - 1e-4) * (1 - t / (total - 1)) ** 0.9, 1, total)


def test_swin_segmentation_warms_up_and_decays_linearly():
    def formula(t):
        if t < 1500:
            return 6e-5 * (1e-6 + (1 - 1e-6) * t / 1499)
        return 6e-5 * (1 - (t - 1500) / (160000 - 1500 - 1))

    compare('mmseg/upernet_swin_tiny_ebv_160k', formula, 1, 160000)


@pytest.mark.parametrize('name', [n for n in CONFIGS if n.startswith('mmseg')])
def test_segmentation_schedules_are_those_stepped_above(name):
    length = name.replace('_8xb4', '').rsplit('_', 1)[1]
    same_as = f'mmseg/upernet_{"swin_tiny" if "swin" in name else "r18"}_ebv_{length}'
    assert plain(load(name).param_scheduler) == plain(load(same_as).param_scheduler)
    assert load(name).train_cfg.max_iters == 1000 * int(length[:-1])
