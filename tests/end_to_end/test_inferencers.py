"""The hosts' own inferencers read a checkpoint that mmengine wrote, with torch's protection on."""

from importlib import import_module
from pathlib import Path

import pytest
from mmengine.config import Config
from mmengine.logging import HistoryBuffer
from mmengine.registry import MODELS, DefaultScope
from mmengine.runner.checkpoint import save_checkpoint

pytestmark = pytest.mark.both_stacks
CONFIGS = Path(__file__).parent / 'configs'

# host: (its small config, module and class of its inferencer, the argument for weights, a prediction for one image)
INFERENCERS = {
    'mmpretrain': (
        'classification',
        'mmpretrain',
        'ImageClassificationInferencer',
        'pretrained',
        lambda found: len(found[0]['pred_scores']) == 3,
    ),
    'mmdet': (
        'detection',
        'mmdet.apis',
        'DetInferencer',
        'weights',
        lambda found: set(found['predictions'][0]['labels']) <= {0, 1, 2},
    ),
    'mmseg': (
        'segmentation',
        'mmseg.apis',
        'MMSegInferencer',
        'weights',
        lambda found: found['predictions'].ndim == 2,
    ),
}


@pytest.mark.parametrize('host', INFERENCERS)
def test_an_inferencer_predicts_from_config_and_checkpoint(host, project, monkeypatch):
    name, module, inferencer, weights, is_prediction = INFERENCERS[host]
    monkeypatch.chdir(project)
    monkeypatch.syspath_prepend(str(CONFIGS))
    cfg = Config.fromfile(CONFIGS / f'{name}.py')
    with DefaultScope.overwrite_default_scope(host):
        model = MODELS.build(cfg.model)
    history = HistoryBuffer()
    history.update(1.0)
    meta = dict(cfg=cfg.pretty_text, dataset_meta=dict(classes=('a', 'b', 'c'), palette=[(0, 0, 0)] * 3))
    hub = dict(log_scalars={'train/loss': history})
    save_checkpoint(dict(meta=meta, state_dict=model.state_dict(), message_hub=hub), 'trained.pth')
    for path in (project / 'data' / 'ebv').iterdir():
        path.unlink()
    image = str(next((project / 'images').iterdir()))
    tool = getattr(import_module(module), inferencer)
    found = tool(str(CONFIGS / f'{name}.py'), device='cpu', **{weights: 'trained.pth'})(image)
    assert is_prediction(found)
