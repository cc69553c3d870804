"""Make basis files: one of a given size, or every one that a config needs and does not have yet.

python tools/make_basis.py configs/mmdet/mask_rcnn_r50_ebv_1x.py
python tools/make_basis.py --num-classes 1000 --dim 100 --out data/ebv/1000x100.safetensors
python tools/make_basis.py --num-classes 1000 --dim 100 --list
python tools/make_basis.py --import theirs.pth --out data/ebv/1000x100.safetensors
"""

import argparse
import sys
import time
from pathlib import Path
from typing import Dict, List, Optional

from ebv_mm.basis import (
    Basis,
    BasisError,
    best_bound,
    closed_form_basis,
    closed_forms,
    import_basis,
    load_basis,
    make_basis,
    make_command,
    save_basis,
    size_in_name,
)
from ebv_mm.basis.files import check_name
from ebv_mm.basis.make import SOLVERS, check_alpha, check_size, reaches
from ebv_mm.basis.measure import mean_deviation, to_degrees
from ebv_mm.config_bases import basis_paths
from ebv_mm.output import Progress, StopOnInterrupt, check_writable, print_table

INTERRUPTED = 130
# above this many multiplications the mean deviation is estimated from a sample of the rows
EXACT_WORK = 2e12


def main(argv: Optional[List[str]] = None) -> int:
    args = parse_args(argv)
    try:
        if args.config:
            return make_for_config(args)
        if args.list:
            return print_list(args.num_classes, args.dim)
        if args.import_file:
            return import_file(args)
        out = args.out or f'data/ebv/{args.num_classes}x{args.dim}.safetensors'
        return make_file(args.num_classes, args.dim, Path(out), args)
    except (ValueError, OSError, ImportError) as error:
        print(f'error: {error}', file=sys.stderr)
        return 1


def parse_args(argv: Optional[List[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('config', nargs='?', help='make every basis file that this config names and that is missing')
    parser.add_argument('--num-classes', type=int, metavar='N', help='number of vectors')
    parser.add_argument('--dim', type=int, metavar='D', help='number of coordinates')
    parser.add_argument('--out', metavar='FILE', help='default: data/ebv/NxD.safetensors')
    parser.add_argument('--method', help='auto (the best; default), solver, polish, algorithm1, or one of --list')
    parser.add_argument('--alpha', type=float, metavar='A', help='stop at this largest |cosine|; fail if it is missed')
    parser.add_argument('--seed', type=int, help='default: 0')
    parser.add_argument('--time-limit', type=float, metavar='SECONDS', help='for the solvers, for one basis')
    parser.add_argument('--device', help='where solvers compute, such as cuda; default: cpu')
    parser.add_argument(
        '--sparse', action='store_true', help='keep a closed form in its natural, mostly sparse, coordinates'
    )
    parser.add_argument('--plot', metavar='PICTURE', help='also draw the histogram of all angles, with the bound')
    parser.add_argument('--force', action='store_true', help='make files anew that exist')
    parser.add_argument('--list', action='store_true', help='show which methods exist for N and D, and make nothing')
    parser.add_argument(
        '--import',
        dest='import_file',
        metavar='FILE',
        help='take the vectors from a .npy, .pt or pickle of tensors; nothing in it is executed',
    )
    args = parser.parse_args(argv)
    sized = args.num_classes is not None and args.dim is not None
    if sum(map(bool, (args.config, sized, args.import_file))) != 1:
        parser.error('give either a CONFIG, or --num-classes N and --dim D, or --import FILE')
    closed_form = args.method is not None and args.method not in ('auto', *SOLVERS)
    for asked, what, unused in (
        (args.config, 'CONFIG, which names its own files', 'num_classes dim out plot list'),
        (args.import_file, '--import', 'num_classes dim method alpha seed time_limit device sparse list'),
        (args.list, '--list', 'out method alpha seed time_limit device sparse plot force'),
        (args.sparse, '--sparse', 'seed time_limit device'),
        (closed_form, f'--method {args.method}', 'time_limit device'),
    ):
        given = [f'--{name.replace("_", "-")}' for name in unused.split() if is_given(getattr(args, name))]
        if asked and given:
            parser.error(f'{", ".join(given)} would be ignored with {what}; leave it out')
    if args.alpha is not None and not 0 <= args.alpha < 1:
        parser.error(f'--alpha {args.alpha:g}, but a largest |cosine| to reach lies in [0, 1); give such a number')
    args.method = args.method or 'auto'
    return args


def is_given(value: object) -> bool:
    return value is not None and value is not False  # 0 is given


def make_for_config(args: argparse.Namespace) -> int:
    paths = basis_paths(read_config(args.config))
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


def read_config(file: str) -> dict:
    from mmengine.config import Config

    try:
        return Config.fromfile(file, import_custom_modules=False).to_dict()
    except (OSError, ImportError):
        raise
    except Exception as error:  # a config is a program
        raise ValueError(f'config {file!r} cannot be read ({type(error).__name__}: {error}); mend it') from error


def make_file(num_classes: Optional[int], dim: Optional[int], out: Path, args: argparse.Namespace) -> int:
    """Make one file, unless it is there; tell what it holds. Returns the exit code."""
    if stays(out, args):
        return show_existing(num_classes, dim, out, args)
    check_size(num_classes, dim)
    check_name(out, (num_classes, dim))
    check_writable(out, num_classes * dim * 4)
    alpha = args.alpha
    try:
        check_alpha(alpha, num_classes, dim)
    except ValueError as error:
        print(f'{error}\nmaking the best that can be had', file=sys.stderr)
        alpha = None
    start = time.monotonic()
    with StopOnInterrupt() as stop, Progress() as progress:

        def report(elapsed: float, coherence: float) -> bool:
            state = f'max |cos| {coherence:.5f}, min angle {to_degrees(coherence):.3f}'
            progress.show(f'{num_classes} x {dim}', state=state)
            return stop.asked

        if args.sparse:
            basis = closed_form_basis(num_classes, dim, method=args.method, seed=args.seed or 0, rotate=False)
        else:
            basis = make_basis(
                num_classes,
                dim,
                method=args.method,
                alpha=alpha,
                seed=args.seed or 0,
                time_limit=args.time_limit,
                device=args.device,
                progress=report,
                structured=False,
            )
    seconds = time.monotonic() - start
    missed = args.alpha is not None and not reaches(basis, args.alpha)
    if missed or (stop.asked and is_better(out, basis)):
        # a name that still begins with the size, so that it can be used as it is
        why = f'missed-{args.alpha:g}' if missed else 'interrupted'
        out = out.with_name(f'{out.stem}.{why}-reached-{basis.coherence:.6f}{out.suffix}')
    finish(basis, out, seconds, args)
    if stop.asked:
        print(f'interrupted: the best so far is {out}; --force makes it anew', file=sys.stderr)
        return INTERRUPTED
    if missed:
        print(f'error: alpha = {args.alpha:g} was asked for, {basis.coherence:.6f} was reached', file=sys.stderr)
    return int(missed)


def is_better(out: Path, basis: Basis) -> bool:
    """Whether a file holds a basis that is at least as good."""
    try:
        return load_basis(out).coherence <= basis.coherence
    except (FileNotFoundError, BasisError):
        return False


def stays(out: Path, args: argparse.Namespace) -> bool:
    """Whether there is a file that is left as it is; of a folder check_writable tells that it is one."""
    return out.exists() and not out.is_dir() and not args.force


def show_existing(num_classes: Optional[int], dim: Optional[int], out: Path, args: argparse.Namespace) -> int:
    basis = load_basis(out)
    if num_classes is not None and (basis.num_classes, basis.dim) != (num_classes, dim):
        raise ValueError(
            f'{out} exists and holds {basis.num_classes} x {basis.dim} numbers, but {num_classes} x {dim} are asked '
            'for; choose another --out, or --force'
        )
    check_origin(basis, out, args)
    print(f'{out} is there')
    print_table([description(basis, None)])
    if args.plot:
        draw(basis, args.plot)
    if args.alpha is not None and not reaches(basis, args.alpha):
        raise ValueError(
            f'{out} exists with a largest |cosine| above alpha = {args.alpha:g}; make it anew with --force'
        )
    return 0


def check_origin(basis: Basis, out: Path, args: argparse.Namespace) -> None:
    """Raise where an existing file was not made as the command line says; what it leaves open is as in the file."""
    same_method = args.method == 'auto' or basis.method in made_by(args.method, basis)
    same_seed = basis.seed is None if args.sparse else args.seed in (None, basis.seed)
    if not (same_method and same_seed):
        seed = 'without a seed' if basis.seed is None else f'with seed {basis.seed}'
        raise ValueError(f'{out} exists, made by {basis.method!r} {seed}; choose another --out, or --force')


def made_by(method: str, basis: Basis) -> List[str]:
    """What ``Basis.method`` can be when ``method`` makes a basis of this size."""
    if method != 'polish':
        return [method]
    forms = [offer.method for offer in closed_forms(basis.num_classes, basis.dim)]
    return forms[:1] + [f'{form}+solver' for form in forms]  # the best one stays where the solver found no better


def import_file(args: argparse.Namespace) -> int:
    basis = import_basis(args.import_file)
    out = Path(args.out or f'data/ebv/{basis.num_classes}x{basis.dim}.safetensors')
    if stays(out, args):
        raise ValueError(f'{out} exists; choose another --out, or --force')
    check_name(out, (basis.num_classes, basis.dim))
    check_writable(out, basis.vectors.numel() * 4)
    finish(basis, out, None, args)
    return 0


def finish(basis: Basis, out: Path, seconds: Optional[float], args: argparse.Namespace) -> None:
    save_basis(basis, out)
    print_table([description(basis, seconds)])
    print(f'wrote {out}')
    if args.plot:
        draw(basis, args.plot)


def draw(basis: Basis, picture: str) -> None:
    from ebv_mm.analysis.angles import plot_angles

    plot_angles(basis, picture)
    print(f'wrote {picture}')


def description(basis: Basis, seconds: Optional[float]) -> Dict[str, str]:
    exact = basis.num_classes**2 * basis.dim <= EXACT_WORK
    deviation = mean_deviation(basis.vectors, sample=None if exact else 1000)
    gap = to_degrees(basis.bound) - basis.min_angle
    return {
        'N': str(basis.num_classes),
        'd': str(basis.dim),
        'method': basis.method,
        'time': '' if seconds is None else f'{seconds:.1f} s',
        'max |cos|': f'{basis.coherence:.6f}',
        'min angle': f'{basis.min_angle:.3f}',
        'mean dev.': ('' if exact else '~') + f'{deviation:.4f}',
        'best bound': f'{basis.bound:.6f}',
        'gap (deg)': f'{gap:.3f}',
    }


def print_list(num_classes: int, dim: int) -> int:
    check_size(num_classes, dim)
    bound = best_bound(num_classes, dim)
    rows = [
        {
            'method': offer.method,
            'max |cos|': f'{offer.coherence:.6f}',
            'min angle': f'{to_degrees(offer.coherence):.3f}',
            'gap (deg)': f'{to_degrees(bound) - to_degrees(offer.coherence):.3f}',
            'has': f'{offer.num_vectors} x {offer.dim}',
            'made of': offer.detail,
        }
        for offer in closed_forms(num_classes, dim)
    ]
    for solver in ('solver', 'algorithm1') + (('polish',) if rows else ()):
        rows.append({'method': solver, 'has': f'{num_classes} x {dim}', 'made of': 'iteration; seen when done'})
    print(f'{num_classes} vectors in R^{dim}: no largest |cosine| below {bound:.6f}, {to_degrees(bound):.3f} degrees')
    print_table(rows)
    return 0


if __name__ == '__main__':
    sys.exit(main())
