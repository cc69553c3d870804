"""Compare the layers of two classifiers by CKA, within each and across: the paper's figures of FC and EBV.

python tools/analysis/cka.py CONFIG_FC CKPT_FC CONFIG_EBV CKPT_EBV --out FOLDER

writes FOLDER/cka.png, three heat maps, and FOLDER/cka.npz, the numbers. docs/cka.md explains both.
"""

import argparse
import sys
from pathlib import Path
from typing import List, Optional

import torch
from mmengine.config import DictAction
from mmengine.registry import init_default_scope

from ebv_mm.analysis.cka import MIN_BATCH
from ebv_mm.analysis.comparison import (
    HOST,
    Comparison,
    build_loader,
    check_checkpoint,
    load_network,
    read_config,
    same_images,
)
from ebv_mm.devices import check_device
from ebv_mm.output import Progress, StopOnInterrupt, check_writable, print_table

INTERRUPTED = 130


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
    parser.add_argument(
        '--embedding',
        action='store_true',
        help='take the embedding v = A x + b of an EBV classifier, as it is trained, in place of its logits',
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
    files, checkpoints = (args.config_fc, args.config_ebv), (args.ckpt_fc, args.ckpt_ebv)
    configs = [read_config(file, args.cfg_options) for file in files]
    data_file = args.data or args.config_fc
    data = read_config(args.data, args.cfg_options) if args.data else configs[0]
    for file, checkpoint in zip(files, checkpoints):
        check_checkpoint(file, checkpoint)
    folder = Path(args.out)
    for name in ('cka.npz', 'cka.png'):
        check_writable(folder / name)

    init_default_scope(HOST)
    loader = build_loader(data, data_file, args.batch_size, args.seed)
    total = len(loader) if args.batches is None else args.batches
    if total > len(loader):
        raise ValueError(
            f'--batches {total}, but the {len(loader.dataset)} images give {len(loader)} batches of '
            f'{args.batch_size}; ask for fewer, or leave it out to take all'
        )
    comparison = Comparison(
        *(
            load_network(name, config, checkpoint, args.layers, device, args.embedding)
            for name, config, checkpoint in zip(args.names, configs, checkpoints)
        )
    )
    for network in comparison.networks:
        names = list(network.layers)
        print(f'{network.name}: {len(names)} layers, {names[0]} to {names[-1]}')
    print(f'both see the test images of {data_file}: {total} batches of {args.batch_size}')
    if not same_images(configs, data):
        print('note: the configs differ in their test images or in how they are cut')

    with StopOnInterrupt() as stop, Progress() as progress:
        for batch in loader:
            comparison.update(batch['inputs'])
            progress.show('batches', comparison.batches, total)
            if stop.asked or comparison.batches == total:
                break
    comparison.save(
        folder,
        f'{comparison.batches * args.batch_size} images in batches of {args.batch_size}',
        names=args.names,
        configs=files,
        checkpoints=checkpoints,
        data=data_file,
        batch_size=args.batch_size,
        seed=args.seed,
        embedding=args.embedding,
    )
    print_table(comparison.summary())
    print(f'wrote {folder / "cka.npz"} and {folder / "cka.png"}')
    if stop.asked:
        print(f'interrupted: this is from {comparison.batches} of {total} batches', file=sys.stderr)
        return INTERRUPTED
    return 0


if __name__ == '__main__':
    sys.exit(main())
