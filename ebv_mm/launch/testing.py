"""What only testing does: augmentation, pictures, a file of predictions."""

from copy import deepcopy
from pathlib import Path
from typing import Sequence

from mmengine.config import Config, ConfigDict
from mmengine.evaluator import DumpResults

from ..config_nodes import type_name
from .configs import ConfigError

# What --tta does for a config that does not say it; both flip, as the hosts' own tools do.
DEFAULT_TTA = {
    'mmpretrain': dict(type='AverageClsScoreTTA'),
    'mmdet': dict(type='DetTTAModel', tta_cfg=dict(nms=dict(type='nms', iou_threshold=0.5), max_per_img=100)),
}


def use_tta(cfg: Config) -> None:
    """Test with the config's test-time augmentation, or with flips where the host has a default for it."""
    scope = cfg.get('default_scope')
    if 'tta_model' not in cfg:
        if scope not in DEFAULT_TTA:
            raise ConfigError(
                f'--tta: the config has no tta_model, and there is no default for {scope!r}; add one to it'
            )
        cfg.tta_model = deepcopy(DEFAULT_TTA[scope])
    if 'tta_pipeline' not in cfg:
        cfg.tta_pipeline = _flipped(_test_dataset(cfg).pipeline)
    # the scores of all classes are averaged, hence asked for
    (cfg.model.get('head') or {}).pop('predict_topk', None)
    wrapper = deepcopy(cfg.tta_model)  # no ** of it, which would make classes of the names of a pure Python config
    wrapper['module'] = cfg.model
    cfg.model = wrapper
    _test_dataset(cfg).pipeline = cfg.tta_pipeline


def save_pictures(cfg: Config, folder: str) -> None:
    """Have the host's visualisation hook paint the predictions into ``folder``."""
    hook = cfg.get('default_hooks', {}).get('visualization')
    if hook is None:
        raise ConfigError("--show-dir: the config has no default_hooks.visualization; add its host's VisualizationHook")
    folder = str(Path(folder).resolve())  # or some hosts would put it below the work dir
    hook.interval = 1  # every image
    scope = cfg.get('default_scope')
    if scope == 'mmpretrain':
        hook.update(enable=True, out_dir=folder)
    elif scope == 'mmdet':
        hook.update(draw=True, test_out_dir=folder)
    else:
        hook.draw = True
        cfg.visualizer.save_dir = folder


def dump_of(cfg: Config, file: str) -> DumpResults:
    """What writes the predictions to a pickle, without what would not fit into memory."""
    scope = cfg.get('default_scope')
    if scope == 'mmdet':
        from mmdet.evaluation import DumpDetResults  # masks as RLE

        return DumpDetResults(file)
    return _DumpMaps(file) if scope == 'mmseg' else DumpResults(file)


class _DumpMaps(DumpResults):
    """The label maps of mmseg; the logits, a number for each class and pixel, are left out."""

    def process(self, data_batch: object, predictions: Sequence[dict]) -> None:
        left_out = ('seg_logits', 'gt_sem_seg')
        kept = [{key: value for key, value in item.items() if key not in left_out} for item in predictions]
        super().process(data_batch, kept)


def _test_dataset(cfg: Config) -> ConfigDict:
    dataset = cfg.test_dataloader.dataset
    while 'dataset' in dataset:
        dataset = dataset.dataset
    return dataset


def _flipped(pipeline: list) -> list:
    pack = deepcopy(pipeline[-1])
    if type_name(pack) == 'PackDetInputs':
        pack['meta_keys'] = (
            'img_id', 'img_path', 'ori_shape', 'img_shape', 'scale_factor', 'flip', 'flip_direction',
        )  # fmt: skip
    flips = [dict(type='RandomFlip', prob=prob) for prob in (1.0, 0.0)]
    return [*deepcopy(pipeline[:-1]), dict(type='TestTimeAug', transforms=[flips, [pack]])]
