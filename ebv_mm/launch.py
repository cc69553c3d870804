"""What tools/train.py and tools/test.py share: one command line for all hosts, on GPUs and without."""

import argparse
import os
from copy import deepcopy
from pathlib import Path
from typing import Callable, Sequence

import torch
from mmengine.config import Config, ConfigDict, DictAction
from mmengine.evaluator import DumpResults
from mmengine.registry import RUNNERS
from mmengine.runner import Runner

from .basis import config_command, size_in_name
from .config_bases import basis_paths
from .layers import EBVConv2d, EBVLinear

# Only mmpretrain's own tools set these, but its loaders are meant to run with them.
MMPRETRAIN_LOADER = dict(pin_memory=True, persistent_workers=True, collate_fn=dict(type='default_collate'))

# What --tta does for a config that does not say it; both flip, as the hosts' own tools do.
DEFAULT_TTA = {
    'mmpretrain': dict(type='AverageClsScoreTTA'),
    'mmdet': dict(type='DetTTAModel', tta_cfg=dict(nms=dict(type='nms', iou_threshold=0.5), max_per_img=100)),
}


def argument_parser(description: str) -> argparse.ArgumentParser:
    """The arguments that training and testing have in common."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument('config', type=existing_file, help='config file')
    parser.add_argument('--work-dir', help='folder for logs and checkpoints (default: work_dirs/<config name>)')
    parser.add_argument(
        '--cfg-options',
        nargs='+',
        action=DictAction,
        help='settings that override the config, as key=value; nested keys with dots, lists as key="[a,b]"',
    )
    parser.add_argument('--launcher', choices=['none', 'pytorch', 'slurm', 'mpi'], default='none', help='job launcher')
    # torch.distributed.launch passes the rank by this flag, torchrun by the variable LOCAL_RANK.
    parser.add_argument('--local_rank', '--local-rank', type=int, default=0, help=argparse.SUPPRESS)
    return parser


def existing_file(path: str) -> str:
    """Type of an argument that names a file."""
    if not Path(path).is_file():
        raise argparse.ArgumentTypeError(f'{path!r} does not exist; give the path of a file')
    return path


def existing_checkpoint(path: str) -> str:
    """Type of an argument that names a checkpoint: a file, or an address, which is not looked up here."""
    return path if '://' in path else existing_file(path)


def load_config(args: argparse.Namespace) -> Config:
    """Read the config file and apply the common arguments."""
    os.environ.setdefault('LOCAL_RANK', str(args.local_rank))
    cfg = Config.fromfile(args.config)
    if args.cfg_options is not None:
        cfg.merge_from_dict(args.cfg_options)
    if cfg.get('default_scope') == 'mmpretrain':
        for name in ('train_dataloader', 'val_dataloader', 'test_dataloader'):
            if cfg.get(name):
                cfg[name] = ConfigDict({**_loader_defaults(cfg[name]), **cfg[name]})
    if args.work_dir is not None:
        cfg.work_dir = args.work_dir
    elif cfg.get('work_dir') is None:
        cfg.work_dir = str(Path('work_dirs') / Path(args.config).stem)
    cfg.launcher = args.launcher
    return cfg


def check_bases(cfg: Config, config_file: str) -> None:
    """Stop at once where a basis file is missing that training from scratch would miss at its first step."""
    missing = [path for path in basis_paths(cfg.model.to_dict()) if not Path(path).exists()]
    if missing and not cfg.get('resume') and not cfg.get('load_from'):
        raise SystemExit(
            f'the config needs {", ".join(missing)}, which does not exist; '
            f'make it with: {config_command(config_file)}'
        )
    unsized = [path for path in missing if size_in_name(path) is None]
    if unsized and cfg.launcher != 'none':
        raise SystemExit(
            f'{", ".join(unsized)} does not exist, and its name tells no size; one process would learn that from the '
            'checkpoint, several cannot: make the file, or give it a name that begins with its size, such as 81x81'
        )


def build_runner(cfg: Config) -> Runner:
    """Build the runner that the config names, with gloo in place of NCCL where there is no GPU."""
    if cfg.launcher != 'none' and not torch.cuda.is_available():
        _distribute_on_cpu(cfg)
    runner = RUNNERS.build(cfg) if 'runner_type' in cfg else Runner.from_cfg(cfg)
    if isinstance(runner.model, torch.nn.Module):  # FlexibleRunner builds it later
        _check_classifiers(cfg, runner.model)
    return runner


def _check_classifiers(cfg: Config, model: torch.nn.Module) -> None:
    """Stop where a host has taken an EBV layer and then put its own in its place: that would train FC."""
    asked = _count(cfg.model, lambda node: 'basis' in node)
    built = sum(isinstance(module, (EBVLinear, EBVConv2d)) for module in model.modules())
    if built < asked:
        raise SystemExit(
            f'the config names a basis {asked} times, but the model has {built} EBV layers: a head of its host has '
            'replaced one by a layer of its own, as DoubleConvFCBBoxHead and DIIHead do; use another head'
        )


def use_tta(cfg: Config) -> None:
    """Test with the config's test-time augmentation, or with flips where the host has a default for it."""
    scope = cfg.get('default_scope')
    if 'tta_model' not in cfg:
        if scope not in DEFAULT_TTA:
            raise SystemExit(
                f'--tta: the config has no tta_model, and there is no default for {scope!r}; add one to it'
            )
        cfg.tta_model = deepcopy(DEFAULT_TTA[scope])
    if 'tta_pipeline' not in cfg:
        cfg.tta_pipeline = _flipped(_test_dataset(cfg).pipeline)
    # the scores of all classes are averaged, hence asked for
    (cfg.model.get('head') or {}).pop('predict_topk', None)
    cfg.model = ConfigDict(**cfg.tta_model, module=cfg.model)
    _test_dataset(cfg).pipeline = cfg.tta_pipeline


def save_pictures(cfg: Config, folder: str) -> None:
    """Have the host's visualisation hook paint the predictions into ``folder``."""
    hook = cfg.get('default_hooks', {}).get('visualization')
    if hook is None:
        raise SystemExit("--show-dir: the config has no default_hooks.visualization; add its host's VisualizationHook")
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


def _loader_defaults(loader: dict) -> dict:
    # torch refuses persistent workers where there are none
    return {**MMPRETRAIN_LOADER, 'persistent_workers': loader.get('num_workers', 0) > 0}


def _test_dataset(cfg: Config) -> ConfigDict:
    dataset = cfg.test_dataloader.dataset
    while 'dataset' in dataset:
        dataset = dataset.dataset
    return dataset


def _flipped(pipeline: list) -> list:
    pack = deepcopy(pipeline[-1])
    if pack['type'].endswith('PackDetInputs'):
        pack['meta_keys'] = (
            'img_id', 'img_path', 'ori_shape', 'img_shape', 'scale_factor', 'flip', 'flip_direction',
        )  # fmt: skip
    flips = [dict(type='RandomFlip', prob=prob) for prob in (1.0, 0.0)]
    return [*deepcopy(pipeline[:-1]), dict(type='TestTimeAug', transforms=[flips, [pack]])]


def _distribute_on_cpu(cfg: Config) -> None:
    """Start gloo before the runner would call ``torch.cuda.set_device``; the runner leaves a running group alone."""
    if cfg.launcher != 'pytorch':
        raise SystemExit(f'--launcher {cfg.launcher} needs GPUs, and there are none here; use tools/dist_train.sh')
    torch.distributed.init_process_group('gloo')
    if _count(cfg.model, _replace_sync_bn) and torch.distributed.get_rank() == 0:
        print('SyncBN needs GPUs: without them every process normalises its own images (BN)')
    wrapper = dict(
        type='MMDistributedDataParallel',
        broadcast_buffers=False,
        find_unused_parameters=cfg.get('find_unused_parameters', False),
    )
    # DistributedDataParallel accepts device_ids for GPUs only
    cfg.model_wrapper_cfg = {**wrapper, **(cfg.get('model_wrapper_cfg') or {}), 'device_ids': None}


def _count(node: object, test: Callable[[dict], bool]) -> int:
    """How many of a config's nodes are dicts that pass a test."""
    if isinstance(node, (list, tuple)):
        return sum(_count(child, test) for child in node)
    if not isinstance(node, dict):
        return 0
    return bool(test(node)) + sum(_count(child, test) for child in node.values())


def _replace_sync_bn(node: dict) -> bool:
    """Make a SyncBN a BN, as mmengine does for one process; returns whether it was one."""
    found = node.get('type') == 'SyncBN'
    if found:
        node['type'] = 'BN'
    return found
