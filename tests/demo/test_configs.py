from pathlib import Path

import pytest
from mmengine.config import Config

CONFIGS = Path(__file__).parents[2] / 'demo' / 'configs'
# The heads of each task, and what the EBV config calls them.
HEADS = {
    'classification': {'head': 'EBVClsHead'},
    'detection': {'roi_head.bbox_head': 'EBVBBoxHead', 'roi_head.mask_head': 'EBVMaskHead'},
    'segmentation': {'decode_head': 'EBVDecodeHead', 'auxiliary_head': 'EBVDecodeHead'},
}


@pytest.mark.parametrize('task', HEADS)
def test_ebv_config_differs_from_its_fc_twin_by_the_heads_alone(task):
    ebv, fc = (Config.fromfile(CONFIGS / f'{task}_{kind}.py').to_dict() for kind in ('ebv', 'fc'))
    basis = ebv.pop('basis')
    assert ebv.pop('custom_imports') == dict(imports=['ebv_mm'], allow_failed_imports=False)
    for path, kind in HEADS[task].items():
        head, twin = ebv['model'], fc['model']
        for key in path.split('.'):
            head, twin = head[key], twin[key]
        assert head.pop('type') == kind
        assert head.pop('basis') == basis
        plain = twin.pop('type')
        if kind == 'EBVDecodeHead':
            assert head.pop('head') == plain
    assert ebv == fc


@pytest.mark.parametrize('task', HEADS)
def test_training_and_test_data_are_different_files(task):
    cfg = Config.fromfile(CONFIGS / f'{task}_fc.py')
    train, test = cfg.train_dataloader.dataset, cfg.test_dataloader.dataset
    assert train.data_root == test.data_root
    assert train.data_prefix != test.data_prefix
    assert 'ann_file' not in train or train.ann_file != test.ann_file
