"""Make basis files: one of a given size, or every one that a config needs and does not have yet.

python tools/make_basis.py configs/mmdet/mask_rcnn_r50_ebv_1x.py
python tools/make_basis.py --num-classes 1000 --dim 100 --out data/ebv/1000x100.safetensors
"""

import argparse
import math
import signal
import sys
import time
from pathlib import Path
from typing import Iterator, List, Optional

from ebv_mm.basis import Basis, load_basis, make_basis, make_command, save_basis, size_in_name

INTERRUPTED = 130


def main(argv: Optional[List[str]] = None) -> int:
    args = parse_args(argv)
    try:
        if args.config:
            return make_for_config(args)
        out = args.out or f'data/ebv/{args.num_classes}x{args.dim}.safetensors'
        return make_file(args.num_classes, args.dim, Path(out), args)
    except (ValueError, OSError) as error:
        print(f'error: {error}', file=sys.stderr)
        return 1


def parse_args(argv: Optional[List[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('config', nargs='?', help='make every basis file that this config names and that is missing')
    parser.add_argument('--num-classes', type=int, metavar='N', help='number of vectors')
    parser.add_argument('--dim', type=int, metavar='D', help='number of coordinates')
    parser.add_argument('--out', metavar='FILE', help='default: data/ebv/NxD.safetensors')
    parser.add_argument('--method', default='auto', help='default: auto, the best')
    parser.add_argument('--alpha', type=float, help='the largest |cosine| to reach; stop there, fail if missed')
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--time-limit', type=float, metavar='SECONDS', help='for one basis')
    parser.add_argument('--device', help='where solvers compute, such as cuda; default: cpu')
    parser.add_argument('--force', action='store_true', help='make files anew that exist')
    args = parser.parse_args(argv)
    sized = args.num_classes is not None and args.dim is not None
    if bool(args.config) == sized:
        parser.error('give either a CONFIG, or --num-classes N and --dim D')
    if args.config and args.out:
        parser.error('--out belongs to --num-classes and --dim; the files that a config needs are named in it')
    return args


def make_for_config(args: argparse.Namespace) -> int:
    paths = basis_paths(args.config)
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
        worst = worst or make_file(num_classes, dim, Path(path), args)
    return worst


def basis_paths(config: str) -> List[str]:
    """All basis files that a config names, in order, each once."""
    from mmengine.config import Config

    settings = Config.fromfile(config, import_custom_modules=False).to_dict()
    return list(dict.fromkeys(find_basis(settings)))


def find_basis(node: object) -> Iterator[str]:
    """Every string under a key called ``basis``, however deep."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key == 'basis' and isinstance(value, str):
                yield value
            else:
                yield from find_basis(value)
    elif isinstance(node, (list, tuple)):
        for value in node:
            yield from find_basis(value)


def make_file(num_classes: Optional[int], dim: Optional[int], out: Path, args: argparse.Namespace) -> int:
    """Make one file, unless it is there; tell what it holds. Returns the exit code."""
    if out.exists() and not args.force:
        basis = load_basis(out)
        if num_classes is not None and (basis.num_classes, basis.dim) != (num_classes, dim):
            raise ValueError(
                f'{out} exists and holds {basis.num_classes} x {basis.dim} numbers, but {num_classes} x {dim} are asked '
                'for; choose another --out, or --force'
            )
        print(f'{out} is there')
        print_table(basis, None)
        return 0
    start = time.monotonic()
    with StopOnInterrupt() as stop:
        basis = make_basis(
            num_classes,
            dim,
            method=args.method,
            alpha=args.alpha,
            seed=args.seed,
            time_limit=args.time_limit,
            device=args.device,
            progress=stop.report,
        )
    save_basis(basis, out)
    print_table(basis, time.monotonic() - start)
    print(f'wrote {out}')
    return INTERRUPTED if stop.asked else 0


class StopOnInterrupt:
    """Within this context Ctrl-C asks the solver to end with what it has; a second one ends the program."""

    def __enter__(self) -> 'StopOnInterrupt':
        self.asked = False
        self.shown = False
        self.previous = signal.signal(signal.SIGINT, self.on_interrupt)
        return self

    def on_interrupt(self, *_) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True

    def report(self, elapsed: float, coherence: float) -> bool:
        if sys.stderr.isatty():
            self.shown = True
            sys.stderr.write(f'\r{elapsed:7.1f} s   max |cos| {coherence:.5f}   min angle {degrees(coherence):.3f} ')
            sys.stderr.flush()
        return self.asked

    def __exit__(self, *_) -> None:
        signal.signal(signal.SIGINT, self.previous)
        if self.shown:
            sys.stderr.write('\n')


def degrees(coherence: float) -> float:
    return math.degrees(math.acos(min(coherence, 1.0)))


def print_table(basis: Basis, seconds: Optional[float]) -> None:
    gap = degrees(basis.bound) - degrees(basis.coherence)
    columns = {
        'N': str(basis.num_classes),
        'd': str(basis.dim),
        'method': basis.method,
        'time': '' if seconds is None else f'{seconds:.1f} s',
        'max |cos|': f'{basis.coherence:.6f}',
        'min angle': f'{degrees(basis.coherence):.3f}',
        'mean dev.': f'{basis.mean_deviation:.4f}',
        'best bound': f'{basis.bound:.6f}',
        'gap (deg)': f'{gap:.3f}',
    }
    widths = [max(len(name), len(value)) for name, value in columns.items()]
    print('  '.join(name.rjust(width) for name, width in zip(columns, widths)))
    print('  '.join(value.rjust(width) for value, width in zip(columns.values(), widths)))


if __name__ == '__main__':
    sys.exit(main())
