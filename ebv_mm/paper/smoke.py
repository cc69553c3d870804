"""Tries every row: the same commands, on configs that are shrunk to a few iterations and data that are noise."""

import shutil
from importlib import import_module
from pathlib import Path
from typing import Dict, Iterable, Iterator

from mmengine.config import Config

from ..basis import size_in_name
from .fake_data import make_fake_data
from .needs import data_roots
from .processes import run_fork
from .report import write_report
from .reproduction import Reproduction
from .rows import Table

BATCH = 2
SMALL = 64  # pixels of a training image of classification; the tests have their true size
CLASSES = 1000  # at most
ROOMS = {'mmpretrain': 'ebv_mm.classification', 'mmdet': 'ebv_mm.detection', 'mmseg': 'ebv_mm.segmentation'}
DENSE = 8  # images of detection and segmentation are smaller by this factor


def shrink_configs(names: Iterable[str], source: Path, target: Path) -> None:
    """Write shrunk copies of some configs, and the data that they need, below the current folder."""
    for name in names:
        cfg = Config.fromfile(source / f'{name}.py', import_custom_modules=False)
        make_fake_data(list(data_roots(cfg)))
        shrink(cfg)
        file = target / f'{name}.py'
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(''.join(f'{key} = {value!r}\n' for key, value in cfg.to_dict().items()))


def try_table(table: Table, root: Path) -> Dict[str, bool]:
    """Carry out a table anew, below the current folder; returns whether each of its rows has run.

    The logs and the report stay, checkpoints and data would fill a disk.

    Args:
        table: The table.
        root: Where tools/ and configs/ are.
    """
    folder = Path(table.name)
    shutil.rmtree(folder, ignore_errors=True)
    shrink_configs({config for row in table.rows for config in row.configs}, root / 'configs', folder / 'configs')
    trial = Reproduction(table, folder, root, folder / 'configs', gpus=0, run=run_fork, smoke=True)
    for scope in {experiment.cfg.default_scope for experiment in trial.experiments.values()}:
        for module in (f'{scope}.datasets', f'{scope}.evaluation', f'{scope}.models', ROOMS[scope]):
            import_module(module)  # so that no fork has to
    try:
        failed = trial.carry_out()
        write_report(trial, folder)
    finally:
        for file in folder.rglob('*.pth'):
            file.unlink()
        shutil.rmtree('data', ignore_errors=True)
    return {row.name: row.name not in failed for row in table.rows}


def shrink(cfg: Config) -> None:
    """Two images at a time, a few iterations, no GPU, no weights from the network, no worker processes."""
    for name in ('train_dataloader', 'val_dataloader', 'test_dataloader'):
        cfg[name].update(num_workers=0, persistent_workers=False)
        _dataset(cfg[name]).update(_unchecked(_dataset(cfg[name])))
    cfg.train_dataloader.batch_size = BATCH
    cfg.auto_scale_lr.base_batch_size = BATCH
    if 'max_epochs' in cfg.train_cfg:
        cfg.train_cfg.max_epochs = 1
    else:
        cfg.train_cfg.update(max_iters=2, val_interval=2)
        cfg.default_hooks.checkpoint.interval = 2
    cfg.default_hooks.logger.interval = 1
    if cfg.optim_wrapper.get('type') == 'AmpOptimWrapper':
        cfg.optim_wrapper.type = 'OptimWrapper'
    cfg.pop('basis_options', None)  # any basis of the size will do
    cfg.model.pop('pretrained', None)
    cfg.model.backbone.pop('init_cfg', None)
    HOSTS[cfg.default_scope](cfg)


def _shrink_mmpretrain(cfg: Config) -> None:
    _shrink_classes(cfg)
    if 'Swin' in cfg.model.backbone.type:
        return  # its windows need 224
    for step in _dataset(cfg.train_dataloader).pipeline:
        for key in ('scale', 'crop_size'):
            if key in step and _largest(step[key]) > SMALL:
                step[key] = _divide(step[key], 224 / SMALL)


def _shrink_classes(cfg: Config) -> None:
    """Heads of very many classes would take gigabytes; N and d shrink together."""
    head = cfg.model.head
    factor = head.num_classes // CLASSES
    if factor < 2:
        return
    head.num_classes = cfg.data_preprocessor.num_classes = CLASSES
    if 'basis' in head:
        _, dim = size_in_name(head.basis)
        head.basis = f'data/ebv/{CLASSES}x{dim // factor}.safetensors'


def _shrink_mmdet(cfg: Config) -> None:
    for name in ('train_dataloader', 'test_dataloader', 'val_dataloader'):
        _shrink_steps(_dataset(cfg[name]).pipeline)
    cfg.model.test_cfg.rcnn.score_thr = 0.0  # or nothing is found, and nothing measured


def _shrink_mmseg(cfg: Config) -> None:
    for name in ('train_dataloader', 'test_dataloader', 'val_dataloader'):
        _shrink_steps(_dataset(cfg[name]).pipeline)
    for steps in cfg.tta_pipeline[-1].transforms:
        _shrink_steps(steps)
    cfg.model.data_preprocessor.size = _divide(cfg.model.data_preprocessor.size, DENSE)


HOSTS = {'mmpretrain': _shrink_mmpretrain, 'mmdet': _shrink_mmdet, 'mmseg': _shrink_mmseg}


def _shrink_steps(pipeline: list) -> None:
    for step in pipeline:
        for key in ('scale', 'crop_size'):
            if key in step:
                step[key] = _divide(step[key], DENSE)


def _dataset(loader: dict) -> dict:
    dataset = loader['dataset']
    while 'dataset' in dataset:
        dataset = dataset['dataset']
    return dataset


def _unchecked(dataset: dict) -> dict:
    """CIFAR whose files are not the official ones."""
    if 'CIFAR' not in dataset['type']:
        return {}
    return dict(type='LongTail' + dataset['type'].replace('LongTail', ''), check_md5=False)


def _divide(value: object, factor: float) -> object:
    if isinstance(value, (list, tuple)):
        return type(value)(_divide(item, factor) for item in value)
    return max(1, round(value / factor))


def _largest(value: object) -> int:
    return max(_numbers(value))


def _numbers(value: object) -> Iterator[int]:
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _numbers(item)
    else:
        yield value
