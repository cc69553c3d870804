"""Building the runner that a config names, on GPUs and without."""

import torch
from mmengine.config import Config
from mmengine.fileio import LocalBackend, register_backend
from mmengine.hooks import CheckpointHook
from mmengine.registry import RUNNERS
from mmengine.runner import Runner

from ..config_nodes import count_nodes
from ..output import whole_file
from .checks import watch_for_lost_bases
from .configs import ConfigError

WHOLE_FILES = 'ebv_mm.whole_files'


def build_runner(cfg: Config) -> Runner:
    """Build it, with gloo in place of NCCL where there is no GPU, and checkpoints that are written whole."""
    if cfg.launcher != 'none' and not torch.cuda.is_available():
        _distribute_on_cpu(cfg)
    runner = RUNNERS.build(cfg) if 'runner_type' in cfg else Runner.from_cfg(cfg)
    if isinstance(runner.model, torch.nn.Module):  # FlexibleRunner builds it later
        watch_for_lost_bases(runner.model)
    for hook in runner.hooks:
        if isinstance(hook, CheckpointHook):
            _write_whole(hook, runner.work_dir)
    return runner


@register_backend(WHOLE_FILES, force=True)
class _WholeFileBackend(LocalBackend):
    """mmengine's local files, but what is put there is there whole or not at all."""

    def put(self, obj: bytes, filepath) -> None:
        with whole_file(filepath) as part:
            part.write_bytes(obj)


def _write_whole(hook: CheckpointHook, work_dir: str) -> None:
    """Let a kill leave the checkpoint before, and no half of this one under its name; other storage stays as it is."""
    place = hook.out_dir or work_dir
    if hook.backend_args is None and hook.file_client_args is None and '://' not in str(place):
        hook.backend_args = dict(backend=WHOLE_FILES)


def _distribute_on_cpu(cfg: Config) -> None:
    """Start gloo before the runner would call ``torch.cuda.set_device``; the runner leaves a running group alone."""
    if cfg.launcher != 'pytorch':
        raise ConfigError(f'--launcher {cfg.launcher} needs GPUs, and there are none here; use tools/dist_train.sh')
    torch.distributed.init_process_group('gloo')
    if count_nodes(cfg.model, _replace_sync_bn) and torch.distributed.get_rank() == 0:
        print('SyncBN needs GPUs: without them every process normalises its own images (BN)')
    wrapper = dict(
        type='MMDistributedDataParallel',
        broadcast_buffers=False,
        find_unused_parameters=cfg.get('find_unused_parameters', False),
    )
    # DistributedDataParallel accepts device_ids for GPUs only
    cfg.model_wrapper_cfg = {**wrapper, **(cfg.get('model_wrapper_cfg') or {}), 'device_ids': None}


def _replace_sync_bn(node: dict) -> bool:
    """Make a SyncBN a BN, as mmengine does for one process; returns whether it was one."""
    found = node.get('type') == 'SyncBN'
    if found:
        node['type'] = 'BN'
    return found
