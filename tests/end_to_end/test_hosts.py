"""Each host: train two iterations through tools/train.py, resume, and test from config and checkpoint alone."""

import re
import shlex
from pathlib import Path

import pytest
import torch
from mmengine.fileio import load

from ebv_mm import load_basis

pytestmark = pytest.mark.both_stacks

CONFIGS = Path(__file__).parent / 'configs'

# host: (config, file of the first checkpoint, how to train on, file of the last, a metric's name, keys of the bases)
HOSTS = {
    'mmpretrain': ('classification', 'epoch_1', 'train_cfg.max_epochs=2', 'epoch_2', 'accuracy/top1', ['head.fc']),
    'mmdet': (
        'detection',
        'epoch_1',
        'train_cfg.max_epochs=2',
        'epoch_2',
        'coco/segm_mAP',
        ['roi_head.bbox_head.fc_cls', 'roi_head.mask_head.conv_logits'],
    ),
    'mmseg': (
        'segmentation',
        'iter_2',
        'train_cfg.max_iters=4',
        'iter_4',
        'mIoU',
        ['decode_head.conv_seg', 'auxiliary_head.conv_seg'],
    ),
}


@pytest.mark.parametrize('host', HOSTS)
def test_train_resume_test(host, project, run):
    name, first, longer, last, metric, classifiers = HOSTS[host]
    config = CONFIGS / f'{name}.py'
    bases = {path.stem: load_basis(path).vectors for path in (project / 'data' / 'ebv').iterdir()}
    before = bases['3x5' if host == 'mmpretrain' else '4x4']

    printed = run('train.py', config, '--work-dir', 'work')
    assert metric in printed
    trained = torch.load(project / 'work' / f'{first}.pth', map_location='cpu')
    printed = run('train.py', config, '--work-dir', 'work', '--resume', '--cfg-options', longer)
    assert 'resumed' in printed and first in printed
    resumed = torch.load(project / 'work' / f'{last}.pth', map_location='cpu')
    for classifier in classifiers:
        basis = before[: resumed['state_dict'][f'{classifier}.basis'].shape[0]]
        for checkpoint in (trained, resumed):
            assert torch.equal(checkpoint['state_dict'][f'{classifier}.basis'], basis)
        for parameter in ('weight', 'bias'):
            key = f'{classifier}.{parameter}'
            assert not torch.equal(trained['state_dict'][key], resumed['state_dict'][key])
    in_training = re.findall(rf'{metric}: *([\d.-]+)', printed)[-1]

    # config + checkpoint alone, and pictures of the predictions
    for path in (project / 'data' / 'ebv').iterdir():
        path.unlink()
    checkpoint = project / 'work' / f'{last}.pth'
    printed = run('test.py', config, checkpoint, '--show-dir', 'pictures', '--work-dir', 'work', '--out', 'p.pkl')
    assert re.findall(rf'{metric}: *([\d.-]+)', printed)[-1] == in_training
    assert len(list((project / 'pictures').rglob('*.png'))) == 8
    predictions = load(project / 'p.pkl')
    assert len(predictions) == 8
    for prediction in predictions:
        assert 'seg_logits' not in prediction  # a number for each class and pixel
        masks = prediction.get('pred_instances', {}).get('masks', [])
        assert all(set(mask) == {'size', 'counts'} for mask in masks)  # RLE

    # training from scratch without the file stops at once, and says what to do
    printed = run('train.py', config, '--work-dir', 'new', expect=1)
    command = shlex.split(printed.strip().rpartition('make it with: ')[2])
    assert command[1:] == ['-m', 'ebv_mm.basis', str(config)]
    assert not (project / 'new').exists()
