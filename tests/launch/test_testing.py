"""What only testing does to a config, host by host."""

from types import SimpleNamespace

import pytest
from mmengine.config import Config

from ebv_mm.launch import ConfigError, dump_of, load_config, save_pictures, use_tta


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


def test_tta_without_any_default_is_an_error():
    with pytest.raises(ConfigError, match="no tta_model, and there is no default for 'mmseg'"):
        use_tta(config_of('mmseg'))


def test_pictures_without_a_hook_are_an_error():
    cfg = config_of('mmdet')
    cfg.default_hooks = {}
    with pytest.raises(ConfigError, match='no default_hooks.visualization'):
        save_pictures(cfg, 'pictures')


def test_a_pure_python_config_is_treated_as_any_other(tmp_path):
    """Its types are classes, and it has no default scope."""
    file = tmp_path / 'mine.py'
    file.write_text("""
from mmdet.datasets import CocoDataset
from mmdet.datasets.transforms import PackDetInputs
from mmdet.engine.hooks import DetVisualizationHook
from mmdet.models import MaskRCNN

model = dict(type=MaskRCNN)
test_dataloader = dict(dataset=dict(type=CocoDataset, pipeline=[dict(type=PackDetInputs)]))
default_hooks = dict(visualization=dict(type=DetVisualizationHook))
""")
    arguments = dict(work_dir=None, cfg_options=None, launcher='none', local_rank=0)
    cfg = load_config(SimpleNamespace(config=str(file), **arguments))
    save_pictures(cfg, str(tmp_path / 'pictures'))
    assert cfg.default_hooks.visualization.test_out_dir == str(tmp_path / 'pictures')
    assert type(dump_of(cfg, 'predictions.pkl')).__name__ == 'DumpDetResults'
    use_tta(cfg)
    assert cfg.model.type == 'DetTTAModel'
    (pack,) = cfg.test_dataloader.dataset.pipeline[-1].transforms[-1]
    assert 'flip_direction' in pack.meta_keys
    # one that names its own is still one that can be written down, as the runner does
    file.write_text(
        file.read_text() + 'from mmdet.models.test_time_augs import DetTTAModel\ntta_model = dict(type=DetTTAModel)\n'
    )
    cfg = load_config(SimpleNamespace(config=str(file), **arguments))
    use_tta(cfg)
    assert "type='mmdet.models.test_time_augs.DetTTAModel'" in cfg.pretty_text
