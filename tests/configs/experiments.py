"""The configs as the tests see them: resolved, each with its FC twin."""

import tempfile
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import Iterator

from mmengine.config import Config

import ebv_mm  # noqa: F401, registers the names

REPO = Path(__file__).parents[2]
FILES = sorted(
    str(path.relative_to(REPO / 'configs').with_suffix(''))
    for path in (REPO / 'configs').rglob('*.py')
    if not {'_base_', 'large_n'} & set(path.parts)
)
# For two CPU cores (docs/results.md): ours, as large_n is, and no experiments of the paper.
VOC = [name for name in FILES if name.endswith('_voc')]
SMALL = VOC + [name for name in FILES if name.endswith('_30e')]
CONFIGS = [name for name in FILES if name not in SMALL]
# Hosts' own files, and FC models that several EBV models share.
TWINS = {
    'mmdet/cascade_mask_rcnn_r50_ebv_1x': 'mmdet::cascade_rcnn/cascade-mask-rcnn_r50_fpn_1x_coco.py',
    'mmdet/mask_rcnn_r50_ebv_1x_lvis': 'mmdet::lvis/mask-rcnn_r50_fpn_sample1e-3_ms-1x_lvis-v1.py',
    'mmpretrain/resnet50_ebv_a2_d100_305e': 'mmpretrain/resnet50_fc_a2_305e',
    **{f'mmpretrain/resnet50_ebv_a2_d{d}': 'mmpretrain/resnet50_fc_a2' for d in (100, 200, 300, 400, 500, 2000)},
    **{f'mmpretrain/resnet50_ebv_a2_d{d}_alg1': 'mmpretrain/resnet50_fc_a2' for d in (100, 200, 300, 400, 500)},
}


def is_ebv(name: str) -> bool:
    return 'ebv' in name.rsplit('/', 1)[1].split('_')


def twin(name: str) -> str:
    """The FC twin of an EBV config: the same name with fc for ebv, where nothing else is said."""
    return TWINS.get(name) or name.replace('_ebv_', '_fc_')


@lru_cache(maxsize=None)
def _read(name: str) -> Config:
    if '::' not in name:
        return Config.fromfile(REPO / 'configs' / f'{name}.py')
    with tempfile.TemporaryDirectory() as folder:
        # a config that only inherits is the way to read a host's own file by its address
        inheriting = Path(folder) / 'inheriting.py'
        inheriting.write_text(f'_base_ = {name!r}\n')
        return Config.fromfile(inheriting)


def load(name: str) -> Config:
    """A resolved config: one of ours by its path below configs/, or a host's by its address."""
    return deepcopy(_read(name))


def plain(value: object) -> object:
    """Nested dicts and lists without mmengine's types and scopes; tuples become lists."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items() if key != '_scope_'}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def nodes_with(key: str, value: object) -> Iterator[dict]:
    """All dicts within a nested config that have a key."""
    if isinstance(value, dict):
        if key in value:
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from nodes_with(key, item)
