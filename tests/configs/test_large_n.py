"""The configs of very many classes: they build without a matrix, and a million classes train."""

import math
import resource

import pytest
import torch
from experiments import REPO
from mmengine.config import Config
from mmengine.registry import MODELS, DefaultScope
from mmengine.runner import Runner
from mmpretrain.structures import DataSample

from ebv_mm import advise

FOLDER = REPO / 'configs' / 'mmpretrain' / 'large_n'
NAMES = sorted(path.stem for path in FOLDER.glob('*.py') if 'characters' not in path.stem)


@pytest.mark.parametrize('name', NAMES)
def test_the_head_is_structured_and_small(name):
    config = Config.fromfile(FOLDER / f'{name}.py')
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        head = MODELS.build(config.model.head)
    num_classes = config.model.head.num_classes
    assert head.streaming and head.predict_topk >= 5 and config.val_evaluator.type == 'StreamingAccuracy'
    assert head.fc.num_vectors == num_classes == config.data_preprocessor.num_classes
    assert sum(buffer.numel() for buffer in head.buffers()) < 1000
    tables = head.fc.products.tables.values()
    assert sum(table.numel() * table.element_size() for table in tables) < 1.1e6
    some = head.fc.products.to('cpu', torch.float32).rows(torch.randint(num_classes, (200,)).unique())
    assert (some @ some.T).fill_diagonal_(0).abs().max() <= 1 / 32 + 1e-6


def test_a_million_classes_train_and_are_tested(tmp_path):
    config = Config.fromfile(FOLDER / 'resnet20_ebv_1m.py')
    config.work_dir = str(tmp_path)
    for loader in (config.train_dataloader, config.val_dataloader):
        loader.batch_size, loader.dataset.num_images = 2, 4
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    runner = Runner.from_cfg(config)
    weight = runner.model.head.fc.weight.detach().clone()
    runner.train()
    assert not torch.equal(runner.model.head.fc.weight, weight)
    # the log of a million, and what logits of a standard deviation of 1.6 add; of two images
    first = runner.message_hub.get_scalar('train/loss').data[0][0]
    assert first == pytest.approx(math.log(1e6) + 1.6**2 / 2, abs=5)
    assert 'val/accuracy/top5' in runner.message_hub.log_scalars
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown < 700  # MB; the matrix would be 16 GB
    (checkpoint,) = tmp_path.glob('epoch_1.pth')
    assert checkpoint.stat().st_size < 20e6


CHARACTERS = sorted(path.stem for path in FOLDER.glob('*_ebv_characters_*.py'))


@pytest.mark.parametrize('name', CHARACTERS)
def test_configs_of_characters_take_the_advice(name):
    config = Config.fromfile(FOLDER / f'{name}.py')
    head = config.model.head
    advice = advise(num_classes=head.num_classes)
    assert head.basis == dict(num_classes=head.num_classes, dim=advice.dim, method='kerdock', structured=True)
    assert head.tau == pytest.approx(advice.tau_start) and head.in_channels == advice.hidden
    hooks = {hook.type: hook for hook in config.custom_hooks}
    schedule = hooks['TauHook']
    assert (schedule.start, schedule.stop) == pytest.approx((advice.tau_start, advice.tau_stop))
    assert schedule.end == 0.75 * config.train_cfg.max_iters
    if 'WaveHook' in hooks:
        sampler = config.train_dataloader.sampler
        assert sampler.waves == hooks['WaveHook'].waves and sampler.batch_size == config.train_dataloader.batch_size
        assert sampler.waves[0][1] == advice.first_wave
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        model = MODELS.build(config.model)
    samples = [DataSample().set_gt_label(label) for label in (0, head.num_classes - 1)]
    model.loss(torch.randn(2, 1, 32, 32), samples)['loss'].backward()
    assert model.head.fc.weight.grad.abs().sum() > 0


@pytest.mark.parametrize('name', [name for name in CHARACTERS if not name.endswith('waves')])
def test_characters_have_a_twin_that_differs_in_the_head(name):
    ebv, fc = (Config.fromfile(FOLDER / f'{one}.py').to_dict() for one in (name, name.replace('_ebv_', '_fc_')))
    for config in (ebv, fc):
        config['model'].pop('head')
        for key in ('basis', 'norm_cfg', 'custom_hooks', 'filename'):
            config.pop(key, None)
    assert ebv == fc
    for loader in ('train_dataloader', 'val_dataloader'):
        assert fc[loader]['dataset']['num_classes'] == fc['num_classes'] == fc['data_preprocessor']['num_classes']
    assert all(
        fc['train_dataloader']['dataset'].get(key) == fc['val_dataloader']['dataset'].get(key)
        for key in ('min_train', 'skip')
    )
