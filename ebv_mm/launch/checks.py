"""What is looked at before a run, so that what is missing is told at once and once."""

import warnings
from pathlib import Path
from typing import Optional, Sequence, Tuple

import torch
from mmengine.config import Config

from ..basis import config_command, size_in_name
from ..basis_argument import resolve
from ..config_bases import basis_paths
from ..config_nodes import nodes, type_name
from ..head import EBV_LAYERS
from .configs import ConfigError
from .data_files import check_data, dataset_class, datasets_of

# What a run of each kind needs in its config.
NEEDED = {
    'train': ('train_dataloader', 'train_cfg', 'optim_wrapper'),
    'test': ('test_dataloader', 'test_cfg', 'test_evaluator'),
}


def check_run(cfg: Config, config_file: str, kind: str) -> None:
    """Look for everything that a run of this kind ('train' or 'test') would miss.

    Raises:
        ConfigError: one sentence, with the remedy.
    """
    absent = [name for name in NEEDED[kind] if cfg.get(name) is None]
    if absent:
        raise ConfigError(f'config {config_file!r} has no {", ".join(absent)}, but to {kind} it needs that; add it')
    check_work_dir(cfg.work_dir)
    check_heads(cfg.model)
    check_reserve(cfg)
    check_arguments(cfg.model)
    if kind == 'train':
        check_bases(cfg, config_file)
    loaders = ['test_dataloader'] if kind == 'test' else ['train_dataloader', 'val_dataloader']
    check_data(cfg, loaders)
    check_classes(cfg, loaders)
    check_metrics(cfg, loaders)


def check_work_dir(folder: str) -> None:
    """Raise where a file stands in the place of the folder, or of one above it."""
    for path in (Path(folder), *Path(folder).parents):
        if path.exists() and not path.is_dir():
            raise ConfigError(f'the work dir {folder!r} cannot be made, because {str(path)!r} is a file; name another')


def check_heads(model: dict) -> None:
    """Raise where a head or layer of ours has no basis, or a box head's basis has no vector for the background."""
    for path, node in nodes(model):
        name = type_name(node)
        if name.startswith('EBV') and node.get('basis') is None:
            size = node.get('num_classes', 'N')
            raise ConfigError(
                f"{name} (model.{path}) has no basis; name a file, basis='data/ebv/{size}x{size}.safetensors', or a "
                f'closed form, basis=dict(num_classes={size}, dim={size})'
            )
        predictor = node.get('cls_predictor_cfg') or {}
        basis = node.get('basis') if name == 'EBVBBoxHead' else predictor.get('basis')
        vectors, dim = _size(basis)
        classes = node.get('num_classes')
        if vectors is not None and isinstance(classes, int) and vectors == classes:
            dim = classes + 1 if dim == vectors else dim
            raise ConfigError(
                f'the box head model.{path} has {classes} classes and the background, {classes + 1} in all, but its '
                f'basis has {vectors} vectors; take one of {classes + 1} x {dim}, as in basis=dict('
                f'num_classes={classes + 1}, dim={dim})'
            )


def check_arguments(model: dict) -> None:
    """Raise where a ``basis`` is none, or has too few vectors: the model would say so too, after the whole config."""
    seen = set()
    for path, node in nodes(model):
        name, basis = type_name(node), node.get('basis')
        if basis is None or not name.startswith('EBV'):
            continue
        # as far as the config tells; a box head's background was looked for before
        needed = node.get('num_classes', 1) if name in ('EBVClsHead', 'EBVDecodeHead') else 1
        arguments = (basis, needed, node.get('reserve', 0))
        if repr(arguments) not in seen:
            seen.add(repr(arguments))
            try:
                resolve(*arguments)
            except (ValueError, TypeError) as error:
                raise ConfigError(f'model.{path}: {error}') from error


def check_reserve(cfg: Config) -> None:
    """Raise where a reserve of classes cannot be, or where something beside the head must count it in."""
    for path, node in nodes(cfg.model):
        box = node if type_name(node) == 'EBVBBoxHead' else node.get('cls_predictor_cfg') or {}
        if box.get('reserve'):
            raise ConfigError(
                f'the box head model.{path} takes no reserve: its last vector is the background, whose number a class '
                'behind it would take; leave it out, and train anew when classes come'
            )
        if not node.get('reserve') or 'num_classes' not in node:
            continue
        total = node['num_classes'] + node['reserve']
        counted = f'{node["num_classes"]} classes and {node["reserve"]} reserved are {total} outputs in training'
        for where, child in nodes(node):
            weights = child.get('class_weight')
            if isinstance(weights, (list, tuple)) and len(weights) != total:
                raise ConfigError(
                    f'model.{path}: {counted}, but {where}.class_weight has {len(weights)} entries; give one for each'
                )
        mixed = (cfg.model.get('train_cfg') or {}).get('augments')
        preprocessor = cfg.model.get('data_preprocessor') or cfg.get('data_preprocessor') or {}
        if mixed and preprocessor.get('num_classes') != total:
            raise ConfigError(
                f'model.{path}: {counted}, but mixed labels have {preprocessor.get("num_classes")}; set '
                f'data_preprocessor.num_classes={total}'
            )


def _size(basis: object) -> Tuple[Optional[int], Optional[int]]:
    """(N, d) of a ``basis`` argument, as far as it tells them."""
    if isinstance(basis, dict):
        return basis.get('num_classes'), basis.get('dim')
    return (size_in_name(basis) or (None, None)) if isinstance(basis, str) else (None, None)


def check_bases(cfg: Config, config_file: str) -> None:
    """Raise where a basis file is missing that training from scratch would miss at its first step."""
    missing = [path for path in basis_paths(cfg.model.to_dict()) if not Path(path).exists()]
    if missing and not cfg.get('resume') and not cfg.get('load_from'):
        raise ConfigError(
            f'the config needs {", ".join(missing)}, which does not exist; '
            f'make it with: {config_command(config_file)}'
        )
    unsized = [path for path in missing if size_in_name(path) is None]
    if unsized and cfg.launcher != 'none':
        raise ConfigError(
            f'{", ".join(unsized)} does not exist, and its name tells no size; one process would learn that from the '
            'checkpoint, several cannot: make the file, or give it a name that begins with its size, such as 81x81'
        )


def check_classes(cfg: Config, loaders: Sequence[str]) -> None:
    """Raise where the data has more classes than one of our heads."""
    heads = [(path, node) for path, node in nodes(cfg.model) if 'basis' in node and 'num_classes' in node]
    for loader in loaders:
        for dataset in datasets_of(cfg, loader):
            classes = _classes(dataset, cfg.get('default_scope'))
            for path, head in heads:
                if classes is not None and len(classes) > head['num_classes']:
                    raise ConfigError(
                        f'{type_name(head)} (model.{path}) has num_classes={head["num_classes"]}, but {loader} has '
                        f'{len(classes)} classes; set num_classes={len(classes)}, with a basis for as many'
                    )


def _classes(dataset: dict, scope: Optional[str]) -> Optional[Sequence]:
    """The classes that a data set is known to have before it is built; None where only its files tell them."""
    named = (dataset.get('metainfo') or {}).get('classes', dataset.get('classes'))
    if named is None and 'dataset' not in dataset and 'datasets' not in dataset:
        named = getattr(dataset_class(dataset, scope), 'METAINFO', {}).get('classes')
    return named if isinstance(named, (list, tuple)) else None


def check_metrics(cfg: Config, loaders: Sequence[str]) -> None:
    """Raise where a head predicts fewer best classes than a metric counts."""
    asked = [node['predict_topk'] for _, node in nodes(cfg.model) if node.get('predict_topk')]
    for loader in loaders if asked else ():
        for _, metric in nodes(cfg.get(loader.replace('dataloader', 'evaluator'))):
            most = max(_tuple(metric.get('topk', 1)))
            if type_name(metric) in ('Accuracy', 'StreamingAccuracy') and most > min(asked):
                raise ConfigError(
                    f'the head has predict_topk={min(asked)}, but its {type_name(metric)} is asked for top-{most}; set '
                    f'predict_topk={most}'
                )


def _tuple(value: object) -> tuple:
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


def watch_for_lost_bases(model: torch.nn.Module) -> None:
    """Warn when a checkpoint brings a basis to a layer that holds none, and takes its projection for FC's weights."""

    def look(state_dict: dict, prefix: str, *_) -> None:
        holders = {f'{name}.basis' for name, part in model.named_modules() if isinstance(part, EBV_LAYERS)}
        brought = (key.replace('.basis_recipe', '.basis') for key in state_dict if '.basis' in key)
        lost = sorted({key for key in brought if key.endswith('.basis') and key not in holders})
        if lost and not prefix:
            warnings.warn(
                f'the checkpoint is of an EBV model ({lost[0]}), but the config has an FC classifier there, which '
                'would read the projection as its weights; use the EBV config, or tools/export.py --to fc',
                stacklevel=2,
            )

    model._register_load_state_dict_pre_hook(look)
