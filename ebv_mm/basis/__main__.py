"""Make basis files: one of a given size, or every one that a config needs and does not have yet.

python -m ebv_mm.basis configs/mmdet/mask_rcnn_r50_ebv_1x.py
python -m ebv_mm.basis --num-classes 1000 --dim 100 --out data/ebv/1000x100.safetensors
python -m ebv_mm.basis --num-classes 1000 --dim 100 --list
python -m ebv_mm.basis --num-classes 100000 --advise
python -m ebv_mm.basis --import theirs.pth --out data/ebv/1000x100.safetensors

In a clone, python tools/make_basis.py is the same.
"""

import argparse
import sys
from pathlib import Path
from typing import Dict, List, Optional

from .commands import COMMAND, make_command
from .files import size_in_name
from .jobs import ALGORITHM1_OPTIONS, INTERRUPTED, import_file, make_file, print_list
from .make import SOLVERS

# what a config may say of how its basis is made
CONFIG_OPTIONS = ('method', 'alpha', 'seed', *ALGORITHM1_OPTIONS)


def main(argv: Optional[List[str]] = None) -> int:
    args = parse_args(argv)
    try:
        if args.config:
            return make_for_config(args)
        if args.advise:
            return print_advice(args.num_classes, args.features)
        if args.list:
            return print_list(args.num_classes, args.dim)
        if args.import_file:
            return import_file(args)
        out = args.out or f'data/ebv/{args.num_classes}x{args.dim}.safetensors'
        return make_file(args.num_classes, args.dim, Path(out), args)
    except KeyboardInterrupt:
        print('interrupted', file=sys.stderr)
        return INTERRUPTED
    except (ValueError, OSError, ImportError) as error:
        print(f'error: {error}', file=sys.stderr)
        return 1


def parse_args(argv: Optional[List[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=COMMAND, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('config', nargs='?', help='make every basis file that this config names and that is missing')
    parser.add_argument('--num-classes', type=int, metavar='N', help='number of vectors')
    parser.add_argument('--dim', type=int, metavar='D', help='number of coordinates')
    parser.add_argument('--out', metavar='FILE', help='default: data/ebv/NxD.safetensors')
    parser.add_argument('--method', help='auto (the best; default), solver, polish, algorithm1, or one of --list')
    parser.add_argument('--alpha', type=float, metavar='A', help='stop at this largest |cosine|; fail if it is missed')
    parser.add_argument('--seed', type=int, help='default: 0')
    parser.add_argument(
        '--time-limit', type=float, metavar='SECONDS', help='after which a solver ends, with what it has'
    )
    parser.add_argument('--device', help='where solvers compute, such as cuda; default: cpu')
    parser.add_argument(
        '--sparse', action='store_true', help='keep a closed form in its natural, mostly sparse, coordinates'
    )
    parser.add_argument('--plot', metavar='PICTURE', help='also draw the histogram of all angles, with the bound')
    parser.add_argument('--force', action='store_true', help='make files anew that exist')
    parser.add_argument('--list', action='store_true', help='show which methods exist for N and D, and make nothing')
    parser.add_argument('--advise', action='store_true', help='say which D, tau and helpers to take for N classes')
    parser.add_argument(
        '--features', type=int, metavar='C', help='of --advise: features before the head; default: 2048'
    )
    parser.add_argument(
        '--import',
        dest='import_file',
        metavar='FILE',
        help='take the vectors from a .npy, .pt or pickle of tensors; nothing in it is executed',
    )
    paper = parser.add_argument_group('options of --method algorithm1')
    paper.add_argument('--lr', type=float, metavar='S', help='step size; default: 0.001, as in the paper')
    paper.add_argument(
        '--last-lr', type=float, metavar='S', help='step size after --max-steps, to which it falls; default: the same'
    )
    paper.add_argument(
        '--tightness',
        type=float,
        metavar='T',
        help='press on pairs above T times the present largest |cosine| until that is alpha; default: 0, alpha at once',
    )
    paper.add_argument('--max-steps', type=int, metavar='K', help='default: 100000')
    paper.add_argument(
        '--patience', type=int, metavar='K', help='steps without gain after which it has diverged; default: 2000'
    )
    args = parser.parse_args(argv)
    sized = args.num_classes is not None and (args.dim is not None or args.advise)
    if sum(map(bool, (args.config, sized, args.import_file))) != 1:
        parser.error('give either a CONFIG, or --num-classes N and --dim D (or --advise), or --import FILE')
    closed_form = args.method is not None and args.method not in ('auto', *SOLVERS)
    for asked, what, unused in (
        (args.config, 'CONFIG, which names its own files', 'num_classes dim out plot list advise'),
        (args.import_file, '--import', 'advise num_classes dim method alpha seed time_limit device sparse list'),
        (args.advise, '--advise', 'dim out method alpha seed time_limit device sparse plot force list'),
        (not args.advise, 'anything but --advise', 'features'),
        (args.list, '--list', 'out method alpha seed time_limit device sparse plot force'),
        (args.sparse, '--sparse', 'seed time_limit device'),
        (closed_form, f'--method {args.method}', 'time_limit device'),
        (args.method != 'algorithm1', f'--method {args.method or "auto"}', ' '.join(ALGORITHM1_OPTIONS)),
    ):
        given = [f'--{name.replace("_", "-")}' for name in unused.split() if is_given(getattr(args, name))]
        if asked and given:
            parser.error(f'{", ".join(given)} would be ignored with {what}; leave it out')
    if args.alpha is not None and not 0 <= args.alpha < 1:
        parser.error(f'--alpha {args.alpha:g}, but a largest |cosine| to reach lies in [0, 1); give such a number')
    args.method = args.method or 'auto'
    return args


def print_advice(num_classes: int, features: Optional[int]) -> int:
    from ..many_classes.advice import DEFAULT_FEATURES, advise  # whose room needs mmengine

    print(advise(num_classes, DEFAULT_FEATURES if features is None else features))
    return 0


def is_given(value: object) -> bool:
    return value is not None and value is not False  # 0 is given


def make_for_config(args: argparse.Namespace) -> int:
    from ..config_bases import basis_paths, read_config  # the one place here that needs mmengine

    config = read_config(args.config)
    take_options(args, config.get('basis_options') or {})
    paths = basis_paths(config)
    if not paths:
        print(f'{args.config} names no basis file: nothing to make')
    worst = 0
    for path in paths:
        size = size_in_name(path)
        if size is None and not Path(path).is_file():
            command = make_command('N', 'D', path)
            raise ValueError(
                f'{args.config} needs the basis {path!r}, whose name tells no size; call it NxD.safetensors in the '
                f'config, or make it with: {command}'
            )
        num_classes, dim = size or (None, None)
        worst = max(worst, make_file(num_classes, dim, Path(path), args))
        if worst == INTERRUPTED:
            break
    return worst


def take_options(args: argparse.Namespace, options: Dict[str, object]) -> None:
    """Let a config say how its basis is made, as ``basis_options = dict(method='algorithm1', seed=42, ...)``."""
    for name, value in options.items():
        if name not in CONFIG_OPTIONS:
            raise ValueError(
                f'{args.config} has {name!r} among its basis_options, but they are some of '
                f'{", ".join(CONFIG_OPTIONS)}; correct it'
            )
        given = getattr(args, name)
        if is_given(given) and given not in ('auto', value):
            raise ValueError(
                f'--{name.replace("_", "-")} {given}, but the basis_options of {args.config} say {value}; leave it out'
            )
        setattr(args, name, value)


if __name__ == '__main__':
    sys.exit(main())
