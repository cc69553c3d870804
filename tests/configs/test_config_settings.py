"""Every config against what the paper, its authors' logs and those whom it quotes say."""

import inspect

import pytest
import torchvision
from experiments import CONFIGS, load, plain
from paper_facts import facts
from readings import imbalance_of, reading


@pytest.mark.parametrize('name', CONFIGS)
def test_settings(name):
    assert reading(name) == facts(name)


@pytest.mark.parametrize('name', CONFIGS)
def test_names_tell_the_batch_of_each_gpu(name):
    """Eight GPUs, but for the paper's 16 on ADE20K, which are four, and CIFAR, which is one."""
    config = load(name)
    gpus = facts(name)['batch'] / config.train_dataloader.batch_size
    four = name.startswith('mmseg') and 'swin' not in name and '8xb4' not in name
    assert gpus == (1 if 'cifar' in name else 4 if four else 8)
    assert not config.auto_scale_lr.get('enable')


@pytest.mark.parametrize('name', [n for n in CONFIGS if 'cifar' in n])
def test_long_tails(name):
    config = load(name)
    assert config.train_dataloader.dataset.imbalance == imbalance_of(name)
    assert config.train_dataloader.dataset.split == 'train'
    assert config.val_dataloader.dataset.type == config.train_dataloader.dataset.type[len('LongTail') :]
    assert config.val_dataloader.dataset.split == 'test'
    padding = next(step for step in config.train_dataloader.dataset.pipeline if step.type == 'RandomCrop').padding
    assert padding == 4


@pytest.mark.parametrize('name', CONFIGS)
def test_a_best_epoch_is_chosen_by_the_test_that_is_reported(name):
    config = plain(load(name).to_dict())
    if 'save_best' in config['default_hooks']['checkpoint']:
        assert config['test_dataloader']['dataset'] == config['val_dataloader']['dataset']


@pytest.mark.parametrize('name', [n for n in CONFIGS if n.startswith('mmpretrain')])
def test_the_models_see_as_many_classes_as_the_data(name):
    config = load(name)
    assert config.data_preprocessor.num_classes == config.model.head.num_classes


def test_random_erasing_is_that_of_torchvision():
    config = load('mmpretrain/resnet50_fc_a1')
    (erase,) = (step for step in config.train_dataloader.dataset.pipeline if step.type == 'RandomErasing')
    default = {
        key: parameter.default
        for key, parameter in inspect.signature(torchvision.transforms.RandomErasing).parameters.items()
    }
    assert (erase.min_area_ratio, erase.max_area_ratio) == default['scale']
    assert tuple(erase.aspect_range) == default['ratio'] and default['value'] == 0
    # 0 after normalising is the mean before it, and images are BGR until then
    assert erase.mode == 'const' and erase.fill_color == config.data_preprocessor.mean[::-1]


@pytest.mark.parametrize('size', [224, 320])
def test_one_option_tests_at_another_resolution(size):
    config = load('mmpretrain/resnet50_ebv_a2_605e')
    config.merge_from_dict({'test_dataloader.dataset.pipeline.1.size': size})
    assert plain(config.test_dataloader.dataset.pipeline)[1] == dict(type='ResizeCenterCrop', size=size)
    assert plain(config.val_dataloader.dataset.pipeline)[1] == dict(type='ResizeCenterCrop', size=256)


def test_ten_crops_are_two_flips_of_five_positions():
    config = load('mmpretrain/resnet50_fc_a0')
    flips, crops, _ = plain(config.tta_pipeline)[2]['transforms']
    assert [flip['prob'] for flip in flips] == [0.0, 1.0]
    positions = ('top_left', 'top_right', 'bottom_left', 'bottom_right', 'center')
    assert crops == [dict(type='PositionCrop', crop_size=224, position=position) for position in positions]
    short_edge = dict(type='ResizeEdge', scale=256, edge='short', backend='pillow', interpolation='bilinear')
    assert plain(config.tta_pipeline)[1] == plain(config.test_dataloader.dataset.pipeline)[1] == short_edge
    assert plain(config.test_dataloader.dataset.pipeline)[2] == dict(type='CenterCrop', crop_size=224)


def test_a0_resizes_between_256_and_480_and_changes_colours():
    _, resize, crop, flip, lighting, _ = plain(load('mmpretrain/resnet50_fc_a0').train_dataloader.dataset.pipeline)
    assert [scale[1] for scale in resize['scale']] == [256, 480] and resize['keep_ratio']
    assert crop['crop_size'] == 224 and flip['prob'] == 0.5
    # eigenvectors have length 1 and are orthogonal; alpha is N(0, 0.1)
    rows = lighting['eigvec']
    for i in range(3):
        for j in range(3):
            assert sum(row[i] * row[j] for row in rows) == pytest.approx(float(i == j), abs=2e-3)
    assert lighting['alphastd'] == 0.1
