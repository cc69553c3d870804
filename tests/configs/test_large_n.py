"""The configs of very many classes: they build without a matrix, and a million classes train."""

import resource

import pytest
import torch
from experiments import REPO
from mmengine.config import Config
from mmengine.registry import MODELS, DefaultScope
from mmengine.runner import Runner

FOLDER = REPO / 'configs' / 'mmpretrain' / 'large_n'
NAMES = sorted(path.stem for path in FOLDER.glob('*.py'))


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
    assert runner.message_hub.get_scalar('train/loss').current() == pytest.approx(13.8, abs=2)  # log of a million
    assert 'val/accuracy/top5' in runner.message_hub.log_scalars
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown < 700  # MB; the matrix would be 16 GB
    (checkpoint,) = tmp_path.glob('epoch_1.pth')
    assert checkpoint.stat().st_size < 20e6
