"""Several processes, by gloo: the same as one with the larger batch, and a basis that no rank moves."""

import socket
from pathlib import Path

import numpy as np
import pytest
import torch

from ebv_mm import load_basis

CONFIG = Path(__file__).parent / 'configs' / 'lenet.py'
SEGMENTATION = CONFIG.with_name('segmentation.py')  # with SyncBN


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def result(project, work_dir):
    checkpoint = torch.load(project / work_dir / 'epoch_4.pth', map_location='cpu')['state_dict']
    return np.loadtxt(project / work_dir / 'losses.txt'), checkpoint


def test_two_and_three_processes(project, run):
    basis = load_basis(project / 'data' / 'ebv' / '3x5.safetensors').vectors
    size = 'train_dataloader.batch_size'
    run('train.py', CONFIG, '--work-dir', 'one', '--cfg-options', f'{size}=4')
    run('dist_train.sh', CONFIG, 2, '--work-dir', 'two', '--cfg-options', f'{size}=2', port=free_port())
    run('dist_train.sh', CONFIG, 3, '--work-dir', 'three', '--cfg-options', f'{size}=2', port=free_port())

    losses, weights = result(project, 'one')
    losses2, weights2 = result(project, 'two')
    assert len(losses) == 8 and losses[-1] < losses[0]
    np.testing.assert_allclose(losses2, losses, rtol=1e-4)
    for name in weights:
        torch.testing.assert_close(weights2[name], weights[name], rtol=1e-3, atol=1e-5)
    # SyncBuffersHook has averaged the buffers after each epoch; three ranks would round an unprotected basis
    for work_dir in ('one', 'two', 'three'):
        assert torch.equal(result(project, work_dir)[1]['head.fc.basis'], basis)


def test_the_streamed_loss_on_two_processes(project, run):
    """With a structured basis, as one process with the doubled batch."""
    settings = dict(_delete_=True, num_classes=3, dim=5, structured=True)
    head = [f'model.head.basis.{key}={value}' for key, value in settings.items()]
    stream, size = 'model.head.streaming', 'train_dataloader.batch_size'
    run('train.py', CONFIG, '--work-dir', 'one', '--cfg-options', *head, f'{size}=4', f'{stream}=True')
    options = [*head, f'{size}=2', f'{stream}=True']
    run('dist_train.sh', CONFIG, 2, '--work-dir', 'two', '--cfg-options', *options, port=free_port())
    losses, weights = result(project, 'one')
    losses2, weights2 = result(project, 'two')
    np.testing.assert_allclose(losses2, losses, rtol=1e-4)
    for name in weights:
        torch.testing.assert_close(weights2[name], weights[name], rtol=1e-3, atol=1e-5)
    assert weights['head.fc.basis_recipe'].dtype == torch.uint8


def test_sync_bn_on_two_processes_without_a_gpu(project, run):
    """Which torch refuses: the host's UperNet becomes one with BN, and says so."""
    printed = run('dist_train.sh', SEGMENTATION, 2, '--work-dir', 'two', port=free_port())
    assert printed.count('SyncBN needs GPUs') == 1 and 'mIoU' in printed
    assert (project / 'two' / 'iter_2.pth').exists()


def test_wrong_usage_is_told(run):
    assert 'CONFIG GPUS' in run('dist_train.sh', CONFIG, expect=2)
    assert 'CONFIG CHECKPOINT GPUS' in run('dist_test.sh', CONFIG, 'x.pth', expect=2)
    assert 'PARTITION JOB_NAME CONFIG WORK_DIR' in run('slurm_train.sh', 'partition', 'job', CONFIG, expect=2)
    assert 'PARTITION JOB_NAME CONFIG CHECKPOINT' in run('slurm_test.sh', 'partition', expect=2)


def test_a_number_of_gpus_is_a_number(run):
    for arguments in (('dist_train.sh', CONFIG, '--amp'), ('dist_test.sh', CONFIG, 'x.pth', '0')):
        told = run(*arguments, expect=2)
        assert f"'{arguments[-1]}' stands where the number of GPUs belongs" in told


def test_missing_files_are_told(run):
    for arguments in (('train.py', 'gone.py'), ('train.py', CONFIG, '--resume', 'gone.pth')):
        told = run(*arguments, expect=2)
        assert f'{arguments[-1]!r} does not exist' in told and 'Traceback' not in told
    assert "'gone.pth' does not exist" in run('test.py', CONFIG, 'gone.pth', expect=2)


@pytest.mark.parametrize('argument', ['--auto-scale-lr'])
def test_auto_scale_lr_needs_its_setting(run, argument):
    assert 'no auto_scale_lr.base_batch_size; add it' in run('train.py', CONFIG, argument, expect=2)


@pytest.mark.slow
@pytest.mark.skipif(torch.__version__ < '2.6', reason='torch shards on CPUs from 2.6 on')
def test_two_sharded_processes(project, run):
    """FSDP by the host's FlexibleRunner: the losses of one process with the doubled batch."""
    options = ['train_dataloader.batch_size=2', 'runner_type=FlexibleRunner', 'strategy.type=FSDPStrategy']
    options += ['env_cfg.cudnn_benchmark=False', 'optim_wrapper.type=OptimWrapper']  # the runner reads both
    wrapper = dict(type='MMFullyShardedDataParallel', use_orig_params=True, device_id='cpu')
    options += [f'strategy.model_wrapper.{key}={value}' for key, value in wrapper.items()]
    run('train.py', CONFIG, '--work-dir', 'one', '--cfg-options', 'train_dataloader.batch_size=4')
    run('dist_train.sh', CONFIG, 2, '--work-dir', 'two', '--cfg-options', *options, port=free_port())
    losses, sharded = (np.loadtxt(project / name / 'losses.txt') for name in ('one', 'two'))
    assert len(losses) == 8
    np.testing.assert_allclose(sharded, losses, rtol=1e-4)
    assert any((project / 'two' / 'epoch_4.pth').iterdir())  # a folder with the part of each process


def test_missing_data_is_told_once_before_any_process_starts(project, run):
    (project / 'labels.txt').unlink()
    (project / 'images').rename(project / 'elsewhere')
    told = run('dist_train.sh', CONFIG, 8, expect=1).splitlines()
    (sentence,) = [line for line in told if 'Warning' not in line]
    assert 'the data is not there: the config names labels.txt, images;' in sentence
    assert 'mmpretrain.readthedocs.io' in sentence and not (project / 'work_dirs').exists()
