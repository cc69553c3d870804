"""What is looked at before a run: one sentence for each thing that is missing."""

import warnings

import pytest
from mmengine.config import Config
from torch import nn

from ebv_mm import EBVLinear
from ebv_mm.launch import ConfigError, check_run
from ebv_mm.launch.checks import (
    check_arguments,
    check_bases,
    check_classes,
    check_heads,
    check_metrics,
    check_reserve,
    watch_for_lost_bases,
)
from ebv_mm.launch.data_files import check_data


@pytest.mark.parametrize('settings', [dict(resume=True), dict(load_from='x.pth')])
def test_a_missing_basis_stops_training_from_scratch_only(settings):
    head = dict(fc_cls=dict(basis='gone.safetensors'))
    with pytest.raises(ConfigError, match='gone.safetensors, which does not exist; .*ebv_mm.basis mine.py'):
        check_bases(Config(dict(model=dict(heads=[head]))), 'mine.py')
    with pytest.raises(ConfigError, match="ebv_mm.basis 'my folder/mine.py'$"):
        check_bases(Config(dict(model=dict(heads=[head]))), 'my folder/mine.py')
    model = dict(heads=[head])
    check_bases(Config(dict(model=model, launcher='none', **settings)), 'mine.py')
    # DistributedDataParallel wraps the model before the checkpoint could tell its size
    with pytest.raises(ConfigError, match='gone.safetensors does not exist, and its name tells no size'):
        check_bases(Config(dict(model=model, launcher='pytorch', **settings)), 'mine.py')
    head['fc_cls']['basis'] = '5x16_gone.safetensors'
    check_bases(Config(dict(model=model, launcher='pytorch', **settings)), 'mine.py')


def config_of(scope='mmdet', loader='train_dataloader', model=None, evaluator=None, **dataset) -> Config:
    evaluators = {loader.replace('dataloader', 'evaluator'): evaluator} if evaluator else {}
    return Config(dict(default_scope=scope, model=model or {}, **{loader: dict(dataset=dataset)}, **evaluators))


def test_missing_data_is_named_with_the_page_that_tells_how_to_get_it(tmp_path):
    folder = tmp_path / 'coco'
    settings = dict(type='CocoDataset', data_root=str(folder), ann_file='train.json', data_prefix=dict(img='train/'))
    with pytest.raises(ConfigError, match=rf'names {folder}; put the data set there .*mmdetection.*dataset_prepare'):
        check_data(config_of(**settings), ['train_dataloader'])
    (folder / 'train').mkdir(parents=True)
    with pytest.raises(ConfigError, match=rf'names {folder}/train.json;'):
        check_data(config_of(type='RepeatDataset', dataset=settings), ['train_dataloader'])
    (folder / 'train.json').touch()
    check_data(config_of(type='ConcatDataset', datasets=[settings]), ['train_dataloader', 'val_dataloader'])
    metric = dict(type='CocoMetric', ann_file=f'{folder}/val.json')
    with pytest.raises(ConfigError, match=rf'names {folder}/val.json;'):
        check_data(config_of(evaluator=[metric], **settings), ['train_dataloader'])


@pytest.mark.parametrize(
    'settings',
    [
        dict(data_root='s3://bucket/coco'),
        dict(data_root='gone', backend_args=dict(backend='petrel')),
        dict(type='CIFAR10', data_root='gone'),  # downloads itself
        dict(type='LongTailCIFAR10', data_root='gone'),
    ],
)
def test_data_that_is_elsewhere_is_not_looked_for(settings):
    check_data(config_of('mmpretrain', **{'type': 'CustomDataset', **settings}), ['train_dataloader'])
    if 'CIFAR' in settings.get('type', ''):
        with pytest.raises(ConfigError, match='names gone;'):
            check_data(config_of('mmpretrain', download=False, **settings), ['train_dataloader'])


def test_what_a_run_needs_is_asked_for(tmp_path):
    with pytest.raises(ConfigError, match="'mine.py' has no test_dataloader, test_cfg, test_evaluator"):
        check_run(Config(dict(model={}, work_dir=str(tmp_path))), 'mine.py', 'test')
    (tmp_path / 'file').touch()
    settings = dict(model={}, train_dataloader=dict(dataset={}), train_cfg={}, optim_wrapper={})
    for work_dir in (tmp_path / 'file', tmp_path / 'file' / 'below'):
        with pytest.raises(ConfigError, match=f"because '{tmp_path}/file' is a file; name another"):
            check_run(Config(dict(settings, work_dir=str(work_dir))), 'mine.py', 'train')


def test_a_head_without_a_basis():
    with pytest.raises(ConfigError, match=r'EBVClsHead \(model.head\) has no basis; .*num_classes=10, dim=10'):
        check_heads(dict(head=dict(type='mmpretrain.EBVClsHead', num_classes=10)))


@pytest.mark.parametrize('basis', [dict(num_classes=20, dim=20), 'data/20x20.safetensors'])
@pytest.mark.parametrize('by_slot', [False, True])
def test_a_forgotten_background_is_named_with_the_right_size(basis, by_slot):
    layer = dict(type='EBVLinear', basis=basis)
    head = dict(type='ConvFCBBoxHead', cls_predictor_cfg=layer) if by_slot else dict(type='EBVBBoxHead', basis=basis)
    model = dict(roi_head=dict(bbox_head=[dict(head, num_classes=20)]))
    with pytest.raises(ConfigError, match='20 classes and the background, 21 in all.* take one of 21 x 21'):
        check_heads(model)
    model['roi_head']['bbox_head'][0]['num_classes'] = 19
    check_heads(model)


def test_fewer_classes_than_the_data():
    model = dict(head=dict(type='EBVClsHead', num_classes=8, basis='10x10.safetensors'))
    for settings in (dict(type='CIFAR10'), dict(type='CustomDataset', classes=list('abcdefghij'))):
        with pytest.raises(ConfigError, match='num_classes=8, but train_dataloader has 10 classes; set num_classes=10'):
            check_classes(config_of('mmpretrain', model=model, **settings), ['train_dataloader'])
    model['head']['num_classes'] = 10
    check_classes(config_of('mmpretrain', model=model, type='CIFAR10'), ['train_dataloader'])
    check_classes(config_of('mmpretrain', model=model, type='CustomDataset'), ['train_dataloader'])  # files tell


def test_a_metric_that_counts_more_classes_than_the_head_predicts():
    model = dict(head=dict(type='EBVClsHead', predict_topk=3))
    loader = 'val_dataloader'

    def check(kind, topk):
        metric = dict(type=kind, topk=topk)
        check_metrics(config_of('mmpretrain', loader, model, [metric], type='CIFAR10'), [loader])

    for kind in ('Accuracy', 'StreamingAccuracy'):
        with pytest.raises(ConfigError, match=f'predict_topk=3, but its {kind} is asked for top-5; set predict_topk=5'):
            check(kind, (1, 5))
        check(kind, 1)
        check(kind, (1, 3))


def test_a_reserve_is_counted_wherever_classes_are():
    head = dict(type='EBVDecodeHead', num_classes=4, reserve=2, loss_decode=dict(class_weight=[1.0] * 6))
    check_reserve(Config(dict(model=dict(decode_head=head))))
    head['loss_decode'] = dict(class_weight=[1.0] * 4)
    with pytest.raises(ConfigError, match='4 classes and 2 reserved are 6 outputs.* loss_decode.class_weight has 4'):
        check_reserve(Config(dict(model=dict(decode_head=head))))
    model = dict(head=dict(type='EBVClsHead', num_classes=4, reserve=2), train_cfg=dict(augments=dict(type='Mixup')))
    with pytest.raises(ConfigError, match='mixed labels have 4; set data_preprocessor.num_classes=6'):
        check_reserve(Config(dict(model=model, data_preprocessor=dict(num_classes=4))))
    check_reserve(Config(dict(model=model, data_preprocessor=dict(num_classes=6))))


def test_a_box_head_has_no_reserve():
    by_slot = dict(type='ConvFCBBoxHead', cls_predictor_cfg=dict(type='EBVLinear', reserve=2))
    for head in (by_slot, dict(type='EBVBBoxHead', reserve=2)):
        with pytest.raises(ConfigError, match='takes no reserve: its last vector is the background'):
            check_reserve(Config(dict(model=dict(roi_head=dict(bbox_head=head)))))


@pytest.mark.parametrize(
    'basis, told',
    [
        (dict(num_class=10, dim=10), "model.head: basis .* has the unknown key 'num_class' and no 'num_classes'"),
        (dict(num_classes=10, dim=1e8), 'model.head: dim = 100000000.0, but a basis needs a whole number'),
        (dict(num_classes=10, dim=10**8), 'dim = 100000000, but a basis has at most 4194304 dimensions; give fewer'),
        (dict(num_classes=10, dim=10), 'has 10 vectors, but the layer needs 12, 10 classes and 2 reserved; make one'),
        ('11x11.safetensors', 'by its name would have 11 vectors, but the layer needs 12'),
        (['10x10.safetensors'], 'basis is a list, but a layer takes the path of a basis file or a dict such as'),
    ],
)
def test_a_basis_that_is_none_is_told_before_the_model_is_built(basis, told):
    with pytest.raises(ConfigError, match=told):
        check_arguments(dict(head=dict(type='EBVClsHead', num_classes=10, reserve=2, basis=basis)))


def test_an_ebv_checkpoint_in_an_fc_model_is_named():
    ebv = nn.ModuleDict(dict(fc=EBVLinear(4, 5, basis=dict(num_classes=5, dim=5))))
    same = nn.ModuleDict(dict(fc=EBVLinear(4, 5, basis=dict(num_classes=5, dim=5))))
    fc = nn.ModuleDict(dict(fc=nn.Linear(4, 5)))
    for model in (fc, same):
        watch_for_lost_bases(model)
    with pytest.warns(UserWarning, match=r'of an EBV model \(fc.basis\), but the config has an FC classifier'):
        fc.load_state_dict(ebv.state_dict(), strict=False)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        same.load_state_dict(ebv.state_dict())
