"""Compare the layers of two classifiers by CKA, within each and across: the paper's figures of FC and EBV.

python tools/analysis/cka.py CONFIG_FC CKPT_FC CONFIG_EBV CKPT_EBV --out FOLDER

writes FOLDER/cka.png, three heat maps, and FOLDER/cka.npz, the numbers. docs/cka.md explains both.
"""

import argparse
import shlex
import signal
import sys
import time
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional

import numpy as np
import torch
from mmengine.config import Config, ConfigDict, DictAction
from mmengine.registry import init_default_scope
from mmengine.runner import Runner, load_checkpoint
from torch import nn

from ebv_mm.analysis.cka import MIN_BATCH, MinibatchCKA
from ebv_mm.analysis.features import choose_layers, layer_grams
from ebv_mm.analysis.heat_maps import HeatMap, draw_heat_maps
from ebv_mm.devices import check_device
from ebv_mm.launch import load_config
from ebv_mm.output import check_writable, whole_file

INTERRUPTED = 130
HOST = 'mmpretrain'
# in a log file; on a terminal one line is kept up to date
SECONDS_BETWEEN_LINES = 20.0


class Network(NamedTuple):
    name: str
    model: nn.Module
    layers: Dict[str, nn.Module]

    def grams(self, images) -> torch.Tensor:
        """The Gram matrices of the layers for a batch as it comes from the loader, in this model's own scaling."""
        inputs = self.model.data_preprocessor(dict(inputs=images), False)['inputs']
        if inputs.ndim != 4:
            raise ValueError(
                f'the loader gives inputs of shape {tuple(inputs.shape)}, but models need one picture of each image, '
                '(n, channels, height, width); name a config with such a test pipeline by --data CONFIG'
            )
        return layer_grams(self.layers, lambda: self.model(inputs, mode='tensor'))


def main(argv: Optional[List[str]] = None) -> int:
    args = parse_args(argv)
    try:
        return compare(args)
    except (ValueError, OSError, ImportError) as error:
        print(f'error: {error}', file=sys.stderr)
        return 1


def parse_args(argv: Optional[List[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('config_fc', help='mmpretrain config of the first model')
    parser.add_argument('ckpt_fc', help='its checkpoint, a file or an address')
    parser.add_argument('config_ebv', help='mmpretrain config of the second model')
    parser.add_argument('ckpt_ebv', help='its checkpoint')
    parser.add_argument('--out', required=True, metavar='FOLDER', help='where cka.png and cka.npz go')
    parser.add_argument('--batches', type=int, metavar='N', help='stop after so many batches; default: all images')
    parser.add_argument('--batch-size', type=int, default=256, metavar='B', help='default: 256')
    parser.add_argument(
        '--layers',
        metavar='REGEX',
        help='take the layers in whose names this is found; default: the blocks of a transformer, or else all '
        'convolutions outside shortcuts, and the classifier',
    )
    parser.add_argument('--names', nargs=2, default=['FC', 'EBV'], metavar='NAME', help='default: FC EBV')
    parser.add_argument(
        '--data', metavar='CONFIG', help='both models see the test images of this config; default: of CONFIG_FC'
    )
    parser.add_argument('--seed', type=int, default=0, help='of the order of the images; default: 0')
    parser.add_argument('--device', help='such as cuda:1; default: the GPU where there is one')
    parser.add_argument(
        '--cfg-options', nargs='+', action=DictAction, help='settings that override all configs, as key=value'
    )
    return parser.parse_args(argv)


def compare(args: argparse.Namespace) -> int:
    if args.batch_size < MIN_BATCH:
        raise ValueError(
            f'--batch-size {args.batch_size}, but the unbiased HSIC needs at least {MIN_BATCH} images in a batch; '
            'give a larger one, such as 256'
        )
    if args.batches is not None and args.batches < 1:
        raise ValueError(f'--batches {args.batches}, but at least 1 is needed; leave it out to take all images')
    device = args.device or ('cuda' if torch.cuda.is_available() else 'cpu')
    check_device(device)
    # All files are looked at before anything slow begins.
    configs = [read_config(file, args.cfg_options) for file in (args.config_fc, args.config_ebv)]
    data = read_config(args.data, args.cfg_options) if args.data else configs[0]
    for config, checkpoint in ((args.config_fc, args.ckpt_fc), (args.config_ebv, args.ckpt_ebv)):
        check_checkpoint(config, checkpoint)
    folder = Path(args.out)
    for name in ('cka.npz', 'cka.png'):
        check_writable(folder / name)

    init_default_scope(HOST)
    loader = build_loader(data, args.data or args.config_fc, args.batch_size, args.seed)
    total = len(loader) if args.batches is None else args.batches
    if total > len(loader):
        raise ValueError(
            f'--batches {total}, but the {len(loader.dataset)} images give {len(loader)} batches of '
            f'{args.batch_size}; ask for fewer, or leave it out to take all'
        )
    networks = [
        load_network(name, config, checkpoint, args.layers, device)
        for name, config, checkpoint in zip(args.names, configs, (args.ckpt_fc, args.ckpt_ebv))
    ]
    for network in networks:
        names = list(network.layers)
        print(f'{network.name}: {len(names)} layers, {names[0]} to {names[-1]}')
    print(f'both see the test images of {args.data or args.config_fc}: {total} batches of {args.batch_size}')
    if any(cfg.get('test_dataloader', {}).get('dataset') != data.test_dataloader.dataset for cfg in configs):
        print('note: the configs differ in their test images or in how they are cut')

    similarity = MinibatchCKA()
    with Progress(total) as progress:
        for batch in loader:
            similarity.update(torch.cat([network.grams(batch['inputs']) for network in networks]))
            if progress.step() or similarity.batches == total:
                break
    save(similarity, networks, folder, args)
    if progress.interrupted:
        print(f'interrupted: this is from {similarity.batches} of {total} batches', file=sys.stderr)
        return INTERRUPTED
    return 0


def read_config(file: str, options: Optional[dict]) -> Config:
    arguments = dict(config=file, cfg_options=options, work_dir=None, launcher='none', local_rank=0)
    cfg = load_config(argparse.Namespace(**arguments))
    scope = cfg.get('default_scope')
    if scope != HOST:
        raise ValueError(
            f'{file} has default_scope = {scope!r}, but CKA is computed for classifiers of {HOST}; give one of its '
            'configs'
        )
    return cfg


def check_checkpoint(config: str, checkpoint: str) -> None:
    if '://' not in checkpoint and not Path(checkpoint).is_file():
        raise ValueError(
            f'checkpoint {checkpoint!r} does not exist; give the file that this has made: '
            f'python tools/train.py {shlex.quote(config)}'
        )


def build_loader(cfg: Config, file: str, batch_size: int, seed: int) -> torch.utils.data.DataLoader:
    """The test images in whole batches and, because they are mostly sorted by class, in random order."""
    if not cfg.get('test_dataloader'):
        raise ValueError(f'{file} has no test_dataloader, but its images are to be used; name another by --data CONFIG')
    changes = dict(batch_size=batch_size, drop_last=True, sampler=dict(type='DefaultSampler', shuffle=True))
    loader = ConfigDict({**cfg.test_dataloader, **changes})
    loader.pop('batch_sampler', None)
    loader = Runner.build_dataloader(loader, seed=seed)
    if len(loader) == 0:
        raise ValueError(
            f'the {len(loader.dataset)} test images of {file} do not fill a batch of {batch_size}; '
            'give a smaller --batch-size'
        )
    return loader


def load_network(name: str, cfg: Config, checkpoint: str, pattern: Optional[str], device: str) -> Network:
    from mmpretrain.apis import get_model

    model = get_model(cfg, pretrained=False)
    layers = choose_layers(model, pattern)
    try:
        # Weights that stay random would make a picture that looks plausible.
        load_checkpoint(model, checkpoint, map_location='cpu', strict=True)
    except Exception as error:  # a file that is no pickle may end in any
        reason = ' '.join(str(error).split())[:400]
        raise ValueError(
            f'checkpoint {checkpoint!r} cannot be loaded into the model of {cfg.filename}; give the .pth file of a '
            f'training, and the config it was trained with ({type(error).__name__}: {reason})'
        ) from error
    return Network(name, model.to(device).eval(), layers)


def save(similarity: MinibatchCKA, networks: List[Network], folder: Path, args: argparse.Namespace) -> None:
    """Write picture and numbers, each whole or not at all, and print what the paper reads off them."""
    cka = similarity.cka().numpy()
    split = len(networks[0].layers)
    first, second = args.names
    maps = [
        HeatMap(cka[:split, :split], first, first),
        HeatMap(cka[split:, split:], second, second),
        HeatMap(cka[:split, split:], first, second),
    ]
    numbers = dict(
        first=maps[0].values,
        second=maps[1].values,
        across=maps[2].values,
        hsic=similarity.hsic().numpy(),
        layers_first=list(networks[0].layers),
        layers_second=list(networks[1].layers),
        names=args.names,
        configs=[args.config_fc, args.config_ebv],
        checkpoints=[args.ckpt_fc, args.ckpt_ebv],
        data=args.data or args.config_fc,
        batches=similarity.batches,
        batch_size=args.batch_size,
        seed=args.seed,
    )
    with whole_file(folder / 'cka.npz') as part:
        np.savez(part, **numbers)
    caption = f'{similarity.batches * args.batch_size} images in batches of {args.batch_size}'
    draw_heat_maps(maps, folder / 'cka.png', caption)
    print_summary(maps)
    print(f'wrote {folder / "cka.npz"} and {folder / "cka.png"}')


def print_summary(maps: List[HeatMap]) -> None:
    """Mean similarity of the first tenth of the layers, and of the last one, with all others that have a value."""
    print(f'{"mean CKA":12}  first tenth with the rest  last with the rest  same layer')
    for values, rows, columns in maps:
        height, width = values.shape
        tenth = max(1, round(height / 10))
        early = values[:tenth, max(1, round(width / 10)) :]
        same = f'{np.nanmean(values.diagonal()):10.3f}' if height == width else f'{"-":>10}'
        means = [f'{np.nanmean(part):.3f}' if part.size else '-' for part in (early, values[-1, :-1])]
        print(f'{rows + " - " + columns:12}  {means[0]:>25}  {means[1]:>18}  {same}')


class Progress:
    """Shows how far it is; within this context Ctrl-C ends after the current batch, a second one at once."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.done = 0
        self.interrupted = False

    def __enter__(self) -> 'Progress':
        self.start = time.monotonic()
        self.last_line = self.start
        # Worker processes of the loader inherit this, and so survive the first Ctrl-C as well.
        self.previous = signal.signal(signal.SIGINT, self.on_interrupt)
        return self

    def on_interrupt(self, *_) -> None:
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True

    def step(self) -> bool:
        """Count a batch; True when somebody wants to stop."""
        self.done += 1
        now = time.monotonic()
        elapsed = now - self.start
        left = elapsed / self.done * (self.total - self.done)
        line = f'batch {self.done}/{self.total}   {elapsed:.0f} s   {left:.0f} s left'
        if sys.stderr.isatty():
            print(f'\r{line}   ', end='', file=sys.stderr, flush=True)
        elif self.done in (1, self.total) or now - self.last_line >= SECONDS_BETWEEN_LINES:
            self.last_line = now
            print(line, file=sys.stderr, flush=True)
        return self.interrupted

    def __exit__(self, *_) -> None:
        signal.signal(signal.SIGINT, self.previous)
        if sys.stderr.isatty() and self.done:
            print(file=sys.stderr)


if __name__ == '__main__':
    sys.exit(main())
