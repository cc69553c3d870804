"""Reading a config."""

import argparse
import os
from pathlib import Path
from typing import Optional

from mmengine.config import Config, ConfigDict

from ..compat import HOSTS, why_not_usable

# Only mmpretrain's own tools set these, but its loaders are meant to run with them.
MMPRETRAIN_LOADER = dict(pin_memory=True, persistent_workers=True, collate_fn=dict(type='default_collate'))
LOADERS = ('train_dataloader', 'val_dataloader', 'test_dataloader')


class ConfigError(ValueError):
    """Something that the author of a config can mend; the message is one sentence."""


def load_config(args: argparse.Namespace) -> Config:
    """Read the config file and apply the common arguments."""
    os.environ.setdefault('LOCAL_RANK', str(args.local_rank))
    cfg = read_config(args.config, args.cfg_options)
    if cfg.get('default_scope') is None:
        cfg.default_scope = scope_of_model(cfg.model)
    unusable = why_not_usable(cfg.default_scope) if cfg.default_scope in HOSTS else None
    if unusable:
        raise ConfigError(unusable)
    if cfg.default_scope == 'mmpretrain':
        for name in LOADERS:
            if cfg.get(name):
                cfg[name] = ConfigDict({**_loader_defaults(cfg[name]), **cfg[name]})
    if args.work_dir is not None:
        cfg.work_dir = args.work_dir
    elif cfg.get('work_dir') is None:
        cfg.work_dir = str(Path('work_dirs') / Path(args.config).stem)
    cfg.launcher = args.launcher
    return cfg


def read_config(file: str, settings: Optional[dict] = None) -> Config:
    """Read a config file, with settings merged into it; every defect is one sentence."""
    try:
        cfg = Config.fromfile(file)
    except Exception as error:  # a config is a program: it can raise whatever it likes
        raise ConfigError(f'config {file!r} cannot be read ({described(error)}); mend it') from error
    try:
        cfg.merge_from_dict(settings or {})
    except Exception as error:  # KeyError, TypeError, IndexError, by what the setting meets
        names = ', '.join(settings)
        raise ConfigError(
            f'--cfg-options {names} does not fit the config ({described(error)}); look at the names in {file!r}'
        ) from error
    if not isinstance(cfg.get('model'), dict):
        raise ConfigError(f'config {file!r} has no model; give one that describes a training')
    return cfg


def described(error: BaseException) -> str:
    """The kind of an error and the first line of what it says."""
    text = str(error.args[0] if isinstance(error, KeyError) and error.args else error).strip()
    return f'{type(error).__name__}: {text.splitlines()[0]}' if text else type(error).__name__


def scope_of_model(model: dict) -> Optional[str]:
    """The host of a model: of its class in a pure Python config, which has no ``default_scope``, or of its prefix."""
    kind = model.get('type')
    name = kind if isinstance(kind, str) else getattr(kind, '__module__', '')
    return name.partition('.')[0] if '.' in name else None


def _loader_defaults(loader: dict) -> dict:
    # torch refuses persistent workers where there are none
    return {**MMPRETRAIN_LOADER, 'persistent_workers': loader.get('num_workers', 0) > 0}
