"""What the tools do to a config, host by host."""

from argparse import ArgumentTypeError
from types import SimpleNamespace

import pytest
from mmengine.config import Config
from torch import nn

from ebv_mm import EBVConv2d, EBVLinear
from ebv_mm.launch import _check_classifiers, check_bases, existing_checkpoint, load_config, save_pictures, use_tta


def config_of(scope: str, **settings) -> Config:
    pack = dict(mmpretrain='PackInputs', mmdet='PackDetInputs', mmseg='PackSegInputs')[scope]
    pipeline = [dict(type='LoadImageFromFile'), dict(type=pack)]
    loader = dict(num_workers=2, dataset=dict(type='RepeatDataset', times=2, dataset=dict(pipeline=pipeline)))
    hooks = dict(visualization=dict(type='VisualizationHook'))
    return Config(
        dict(
            default_scope=scope,
            model=dict(type='Model'),
            test_dataloader=loader,
            default_hooks=hooks,
            visualizer=dict(type='Visualizer'),
            **settings,
        )
    )


@pytest.mark.parametrize('scope, wrapper', [('mmpretrain', 'AverageClsScoreTTA'), ('mmdet', 'DetTTAModel')])
def test_tta_flips_where_the_config_says_nothing(scope, wrapper):
    cfg = config_of(scope)
    use_tta(cfg)
    assert cfg.model.type.endswith(wrapper) and cfg.model.module == dict(type='Model')
    load, augment = cfg.test_dataloader.dataset.dataset.pipeline
    assert load.type == 'LoadImageFromFile' and augment.type == 'TestTimeAug'
    flips, (pack,) = augment.transforms
    assert [flip.prob for flip in flips] == [1.0, 0.0]
    assert scope != 'mmdet' or {'flip', 'flip_direction'} <= set(pack.meta_keys)


def test_tta_of_the_config_is_used():
    cfg = config_of('mmseg', tta_model=dict(type='SegTTAModel'), tta_pipeline=[dict(type='Mine')])
    use_tta(cfg)
    assert cfg.model == dict(type='SegTTAModel', module=dict(type='Model'))
    assert cfg.test_dataloader.dataset.dataset.pipeline == [dict(type='Mine')]


def test_tta_asks_for_the_scores_of_all_classes():
    cfg = config_of('mmpretrain')
    cfg.model.head = dict(type='EBVClsHead', predict_topk=5)
    use_tta(cfg)
    assert cfg.model.module.head == dict(type='EBVClsHead')


def test_a_classifier_that_its_host_has_replaced_is_an_error():
    """As DoubleConvFCBBoxHead does, which takes a cls_predictor_cfg and then makes its own layer."""
    basis = dict(num_classes=5, dim=5)
    model = dict(box=[dict(basis=basis), dict(basis=basis)], mask=dict(layer=dict(basis='5x5.safetensors')))
    layers = [EBVLinear(4, 5, basis=basis), EBVLinear(4, 5, basis=basis), EBVConv2d(4, 5, 1, basis=basis)]
    _check_classifiers(Config(dict(model=model)), nn.ModuleList(layers))
    layers[1] = nn.Linear(4, 5)
    with pytest.raises(SystemExit, match='names a basis 3 times, but the model has 2 EBV layers'):
        _check_classifiers(Config(dict(model=model)), nn.ModuleList(layers))


def test_tta_without_any_default_is_an_error():
    with pytest.raises(SystemExit, match="no tta_model, and there is no default for 'mmseg'"):
        use_tta(config_of('mmseg'))


def test_pictures_without_a_hook_are_an_error():
    cfg = config_of('mmdet')
    cfg.default_hooks = {}
    with pytest.raises(SystemExit, match='no default_hooks.visualization'):
        save_pictures(cfg, 'pictures')


def arguments(config, **settings) -> SimpleNamespace:
    defaults = dict(work_dir=None, cfg_options=None, launcher='none', local_rank=0)
    return SimpleNamespace(config=str(config), **{**defaults, **settings})


def test_load_config(tmp_path):
    file = tmp_path / 'mine.py'
    file.write_text("default_scope = 'mmpretrain'\ntrain_dataloader = dict(num_workers=2, pin_memory=False)\n")
    cfg = load_config(arguments(file, cfg_options={'train_dataloader.num_workers': 4}))
    assert cfg.work_dir == 'work_dirs/mine' and cfg.launcher == 'none'
    # mmpretrain's loaders get the defaults of its own tools, and keep what they say themselves
    assert cfg.train_dataloader == dict(
        num_workers=4, pin_memory=False, persistent_workers=True, collate_fn=dict(type='default_collate')
    )
    loader = load_config(arguments(file, cfg_options={'train_dataloader.num_workers': 0})).train_dataloader
    assert not loader.persistent_workers  # which torch refuses without workers
    file.write_text("default_scope = 'mmdet'\ntrain_dataloader = dict(num_workers=0)\nwork_dir = 'there'\n")
    cfg = load_config(arguments(file))
    assert cfg.work_dir == 'there' and cfg.train_dataloader == dict(num_workers=0)
    assert load_config(arguments(file, work_dir='here')).work_dir == 'here'


def test_a_checkpoint_may_be_an_address(tmp_path):
    for address in ('https://download.openmmlab.com/x.pth', 'torchvision://resnet50'):
        assert existing_checkpoint(address) == address
    with pytest.raises(ArgumentTypeError, match='x.pth.* does not exist'):
        existing_checkpoint(str(tmp_path / 'x.pth'))


@pytest.mark.parametrize('settings', [dict(resume=True), dict(load_from='x.pth')])
def test_a_missing_basis_stops_training_from_scratch_only(settings):
    head = dict(fc_cls=dict(basis='gone.safetensors'))
    with pytest.raises(SystemExit, match='gone.safetensors, which does not exist; .*ebv_mm.basis mine.py'):
        check_bases(Config(dict(model=dict(heads=[head]))), 'mine.py')
    with pytest.raises(SystemExit, match="ebv_mm.basis 'my folder/mine.py'$"):
        check_bases(Config(dict(model=dict(heads=[head]))), 'my folder/mine.py')
    model = dict(heads=[head])
    check_bases(Config(dict(model=model, launcher='none', **settings)), 'mine.py')
    # DistributedDataParallel wraps the model before the checkpoint could tell its size
    with pytest.raises(SystemExit, match='gone.safetensors does not exist, and its name tells no size'):
        check_bases(Config(dict(model=model, launcher='pytorch', **settings)), 'mine.py')
    head['fc_cls']['basis'] = '5x16_gone.safetensors'
    check_bases(Config(dict(model=model, launcher='pytorch', **settings)), 'mine.py')
