"""The pipelines of the resolved configs, run on pictures; and a training of one config by the tools."""

import subprocess
import sys
from pathlib import Path

import mmcv
import numpy as np
import pytest
import torch
from experiments import CONFIGS, REPO, load, plain
from mmengine.dataset import Compose
from mmengine.registry import TRANSFORMS, DefaultScope

sys.path.append(str(Path(__file__).parents[1] / 'classification'))


@pytest.fixture(scope='module')
def picture(tmp_path_factory):
    path = tmp_path_factory.mktemp('pictures') / 'picture.png'
    mmcv.imwrite(np.random.RandomState(0).randint(0, 256, (300, 400, 3), dtype=np.uint8), str(path))
    return str(path)


def run(pipeline: list, path: str) -> torch.Tensor:
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        steps = Compose([TRANSFORMS.build(step) for step in pipeline])
        return steps(dict(img_path=path, gt_label=3))['inputs']


@pytest.mark.parametrize('name', ['resnet50_fc_a0', 'resnet50_fc_a1', 'ablation/resnet50_fc_lr'])
def test_training_pipelines_run(name, picture):
    pipeline = load(f'mmpretrain/{name}').train_dataloader.dataset.pipeline
    first, second = (run(pipeline, picture) for _ in range(2))
    assert first.shape == second.shape == (3, 224, 224)
    assert not torch.equal(first, second)  # random


@pytest.mark.parametrize('size', [224, 256, 320])
def test_testing_pipelines_run_at_any_size(size, picture):
    config = load('mmpretrain/resnet50_ebv_a2')
    config.merge_from_dict({'test_dataloader.dataset.pipeline.1.size': size})
    assert run(config.test_dataloader.dataset.pipeline, picture).shape == (3, size, size)


def test_the_colours_of_a0_move_a_little_and_never_wrap(tmp_path):
    for value in (0, 255):
        path = str(tmp_path / f'{value}.png')
        mmcv.imwrite(np.full((300, 400, 3), value, dtype=np.uint8), path)
        pipeline = load('mmpretrain/resnet50_fc_a0').train_dataloader.dataset.pipeline
        images = torch.stack([run(pipeline, path) for _ in range(20)])
        moved = images - value
        assert 0.5 < moved.abs().mean() < 10 and moved.abs().max() < 30
        # the first component of ImageNet's colours is brightness: the three channels move together
        blue, green, red = moved.mean(dim=(2, 3)).T
        assert torch.corrcoef(torch.stack([blue, green, red])).min() > 0.8


def test_erased_pixels_are_zero_after_normalising(picture):
    config = load('mmpretrain/resnet50_fc_a1')
    (erase,) = (step for step in config.train_dataloader.dataset.pipeline if step.type == 'RandomErasing')
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        image = TRANSFORMS.build(dict(erase, erase_prob=1.0))(dict(img=mmcv.imread(picture)))['img']
    mean, std = (np.array(config.data_preprocessor[key]) for key in ('mean', 'std'))
    normalised = (image[..., ::-1] - mean) / std  # BGR to RGB
    erased = np.abs(normalised).max(axis=-1) < 0.02
    assert 0.015 < erased.mean() < 0.34


@pytest.mark.parametrize(
    ('height', 'width', 'short_edges'),
    [
        (256, 341, [256, 384, 512, 640, 768, 896]),  # not 128 to 448, which scaling the image itself would give
        (512, 683, [256, 384, 512, 640, 768, 896]),
        (300, 2400, [128, 192, 256, 320, 384, 448]),  # so wide that the long edge, 2048, decides
    ],
)
def test_multi_scale_testing_has_the_sizes_of_mmseg_0(height, width, short_edges):
    resizes, flips, *_ = load('mmseg/upernet_r50_ebv_80k').tta_pipeline[1].transforms
    image = dict(img=np.zeros((height, width, 3), np.uint8))
    with DefaultScope.overwrite_default_scope('mmseg'):
        shapes = [TRANSFORMS.build(resize)(dict(image))['img'].shape for resize in resizes]
    assert [min(shape[:2]) for shape in shapes] == pytest.approx(short_edges, abs=1)
    for shape in shapes:
        assert max(shape[:2]) / min(shape[:2]) == pytest.approx(max(height, width) / min(height, width), rel=0.02)
    assert [flip['prob'] for flip in flips] == [0.0, 1.0]


def test_all_segmentation_configs_share_these_scales():
    pipelines = [plain(load(name).tta_pipeline) for name in CONFIGS if name.startswith('mmseg')]
    assert pipelines and all(pipeline == pipelines[0] for pipeline in pipelines)


def test_long_tailed_cifar_trains_by_the_tools(tmp_path):
    from test_datasets import write_cifar

    from ebv_mm import make_basis, save_basis
    from ebv_mm.classification import LongTailCIFAR10

    name = 'resnet32_ebv_cifar10-lt-100'
    (tmp_path / 'data' / 'cifar10').mkdir(parents=True)
    write_cifar(tmp_path / 'data' / 'cifar10', LongTailCIFAR10, 20)
    config = str(REPO / 'configs' / 'mmpretrain' / f'{name}.py')
    options = ['train_cfg.max_epochs=1', 'train_dataloader.dataset.check_md5=False']
    for loader in ('train', 'val', 'test'):
        loader = f'{loader}_dataloader'
        options += [f'{loader}.num_workers=0', f'{loader}.persistent_workers=False', f'{loader}.batch_size=8']
    for loader in ('val', 'test'):  # the host's own would ask for the official files
        options += [f'{loader}_dataloader.dataset.type=LongTailCIFAR10', f'{loader}_dataloader.dataset.check_md5=False']

    def tool(script: str, *args: str) -> None:
        command = [sys.executable, '-W', 'ignore', str(REPO / 'tools' / script), *args]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    save_basis(make_basis(10, 10), tmp_path / 'data' / 'ebv' / '10x10.safetensors')
    tool('train.py', config, '--cfg-options', *options)
    (best,) = (tmp_path / 'work_dirs' / name).glob('best_accuracy_top1_epoch_*.pth')
    tool('test.py', config, str(best), '--cfg-options', *options)
