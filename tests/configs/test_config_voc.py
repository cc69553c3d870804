"""The twins of the VOC slice: twenty classes throughout, short, and of the same names on disk."""

import re

import pytest
from experiments import REPO, SMALL, VOC, load, nodes_with, plain

from ebv_mm.basis import size_in_name

CLASSES = {'mmdet': 20, 'mmseg': 21}  # mmseg's background is a class like the others


def test_there_is_a_twin_for_each_host():
    assert VOC == [
        'mmdet/mask_rcnn_r50_ebv_voc',
        'mmdet/mask_rcnn_r50_fc_voc',
        'mmseg/upernet_r50_ebv_voc',
        'mmseg/upernet_r50_fc_voc',
    ]


@pytest.mark.parametrize('name', VOC)
def test_the_heads_have_the_classes_of_the_data(name):
    model = plain(load(name).model)
    assert {node['num_classes'] for node in nodes_with('num_classes', model)} == {CLASSES[name.split('/')[0]]}
    assert all(size_in_name(node['basis']) == (21, 21) for node in nodes_with('basis', model))


def test_boxes_have_the_class_names_of_mmseg():
    from mmseg.datasets import PascalVOCDataset

    config = load('mmdet/mask_rcnn_r50_fc_voc')
    for loader in (config.train_dataloader, config.val_dataloader, config.test_dataloader):
        assert loader.dataset.metainfo.classes == PascalVOCDataset.METAINFO['classes'][1:]


@pytest.mark.parametrize('name', VOC)
def test_data_and_weights_are_where_the_page_says(name):
    config = load(name)
    assert config.model.backbone.init_cfg.checkpoint == 'data/resnet50_caffe.pth'
    assert config.model.backbone.style == 'caffe' and not config.model.data_preprocessor.bgr_to_rgb
    for split, loader in (('train', config.train_dataloader), ('val', config.val_dataloader)):
        assert loader.dataset.data_root.rstrip('/') == 'data/voc_mini' and split in loader.dataset.ann_file
    assert plain(config.test_dataloader) == plain(config.val_dataloader)


@pytest.mark.parametrize('name', VOC)
def test_a_run_ends_with_a_validation_and_can_be_cut_off(name):
    config = load(name)
    train, hooks = config.train_cfg, config.default_hooks
    assert train.type == 'IterBasedTrainLoop' and train.max_iters % train.val_interval == 0
    assert not hooks.checkpoint.by_epoch and hooks.checkpoint.interval <= 50 and hooks.logger.interval == 10
    schedulers = config.param_scheduler
    ends = [end for s in schedulers for end in (s.get('end', 0), *s.get('milestones', ()))]
    assert max(ends) <= train.max_iters


def test_the_page_links_every_config_and_nothing_that_is_missing():
    page = (REPO / 'docs' / 'results.md').read_text()
    targets = re.findall(r'(?<!!)\[[^\]]*\]\(([^)#]+)\)', page)
    assert all((REPO / 'docs' / target).exists() for target in targets)
    assert {f'../configs/{name}.py' for name in SMALL} <= set(targets)
