"""The files of data that a config names, looked for before anything starts."""

import inspect
import os.path
from pathlib import Path
from typing import Iterator, List, Optional, Sequence

from mmengine.config import Config
from mmengine.registry import DATASETS

from .. import lazy
from ..config_nodes import nodes, type_name
from .configs import ConfigError

# Where the hosts tell how to get and to lay out their data sets.
PAGES = {
    'mmpretrain': 'https://mmpretrain.readthedocs.io/en/latest/user_guides/dataset_prepare.html',
    'mmdet': 'https://mmdetection.readthedocs.io/en/latest/user_guides/dataset_prepare.html',
    'mmseg': 'https://mmsegmentation.readthedocs.io/en/latest/user_guides/2_dataset_prepare.html',
}
MOST_NAMES = 3


def check_data(cfg: Config, loaders: Sequence[str]) -> None:
    """Raise unless the annotation files and folders that these loaders and their metrics name are there."""
    scope = cfg.get('default_scope')
    files: List[str] = []
    for name in loaders:
        for dataset in datasets_of(cfg, name):
            files += named_files(dataset, scope)
        metrics = cfg.get(name.replace('dataloader', 'evaluator'))
        files += [metric['ann_file'] for _, metric in nodes(metrics) if isinstance(metric.get('ann_file'), str)]
    missing = list(dict.fromkeys(path for path in files if '://' not in path and not Path(path).exists()))
    missing = [path for path in missing if not any(_below(path, other) for other in missing)]
    if missing:
        names = ', '.join(missing[:MOST_NAMES])
        rest = f' and {len(missing) - MOST_NAMES} more' if len(missing) > MOST_NAMES else ''
        how = f' ({PAGES[scope]} tells how)' if scope in PAGES else ''
        raise ConfigError(
            f'the data is not there: the config names {names}{rest}; put the data set there{how}, or change its '
            'data_root in the config'
        )


def datasets_of(cfg: Config, loader: str) -> List[dict]:
    """The data sets of a loader, also those within others, as in ``RepeatDataset`` and ``ConcatDataset``."""
    dataset = (cfg.get(loader) or {}).get('dataset')
    wrapped = ('dataset', 'datasets')
    return [
        node for path, node in nodes(dataset)
        if 'type' in node and all(part in wrapped or part.isdigit() for part in path.split('.') if part)
    ]  # fmt: skip


def named_files(dataset: dict, scope: Optional[str]) -> Iterator[str]:
    """Files and folders that a data set's arguments name, joined as mmengine's ``BaseDataset`` joins them.

    Data in other storage than files, and data sets that download themselves, name none.
    """
    if dataset.get('backend_args') or dataset.get('file_client_args') or _downloads(dataset, scope):
        return
    root = dataset.get('data_root') or ''
    prefix = dataset.get('data_prefix') or {}
    for part in (root, dataset.get('ann_file'), *(prefix.values() if isinstance(prefix, dict) else [prefix])):
        if part and isinstance(part, str):
            yield part if part == root else os.path.join(root, part)


def dataset_class(dataset: dict, scope: Optional[str]) -> type:
    """The class of a data set; raises KeyError, with the registry's own words, where there is none of that name."""
    kind = dataset['type']
    if not isinstance(kind, str):
        return kind
    if type_name(dataset) in lazy.LAZY_DATASETS:
        return lazy.load(type_name(dataset))
    with DATASETS.switch_scope_and_registry(scope) as registry:
        found = registry.get(kind)
    if found is None:
        raise ConfigError(f'the data set type {kind!r} is unknown to {scope}; correct it, or import what defines it')
    return found


def _downloads(dataset: dict, scope: Optional[str]) -> bool:
    if 'download' in dataset:
        return bool(dataset['download'])
    bases = getattr(dataset_class(dataset, scope), '__mro__', ())
    return any('download' in inspect.signature(base.__init__).parameters for base in bases if base is not object)


def _below(path: str, folder: str) -> bool:
    return path != folder and os.path.normpath(path).startswith(os.path.normpath(folder) + os.sep)
