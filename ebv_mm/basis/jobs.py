"""What the command line does: make, show and import basis files, and tell what they hold."""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Dict, List, Optional

from ..output import Progress, StopOnInterrupt, check_writable, print_table
from .arguments import check_size
from .basis import Basis, BasisError, nearly_same
from .bounds import best_bound, check_alpha
from .closed_form import closed_form_basis
from .constructions import closed_forms
from .files import check_name, load_basis, save_basis
from .foreign import import_basis
from .make import SOLVERS, make_basis, methods, reaches
from .measure import mean_deviation, to_degrees

INTERRUPTED = 130
# the parameters of solvers.algorithm1 that the command line has
ALGORITHM1_OPTIONS = ('lr', 'last_lr', 'tightness', 'max_steps', 'patience')
# above this many multiplications, some seconds, the mean deviation is estimated from a sample of the rows
EXACT_WORK = 5e10


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
                options={name: getattr(args, name) for name in ALGORITHM1_OPTIONS if getattr(args, name) is not None},
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
    if args.seed is not None or args.sparse or args.method != 'auto':
        check_word(basis, out)


def check_word(basis: Basis, out: Path) -> None:
    """Raise where a file does not hold what its method and seed make; of a solver only tell that it may be so."""
    forms = {offer.method for offer in closed_forms(basis.num_classes, basis.dim)}
    if basis.method not in forms:
        print(f'{out} says itself that {basis.method!r} made it with seed {basis.seed}; --force makes it anew')
        return
    rotate = basis.seed is not None
    size = basis.num_classes, basis.dim
    made = closed_form_basis(*size, method=basis.method, seed=basis.seed or 0, rotate=rotate)
    if not nearly_same(made.vectors, basis.vectors):
        raise ValueError(
            f'{out} says that {basis.method!r} made it with seed {basis.seed}, but that makes other vectors; choose '
            'another --out, or --force'
        )


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
    save_or_save_elsewhere(basis, out)
    print_table([description(basis, seconds)])
    print(f'wrote {out}')
    if args.plot:
        draw(basis, args.plot)


def save_or_save_elsewhere(basis: Basis, out: Path) -> None:
    """Save a basis; where that fails, such as on a disk that is full by now, keep the work elsewhere and say so."""
    try:
        return save_basis(basis, out)
    except OSError as error:
        failure = error
    name = f'{basis.num_classes}x{basis.dim}.kept-{os.getpid()}.safetensors'
    for folder in (Path(tempfile.gettempdir()), Path.cwd(), Path.home()):
        try:
            save_basis(basis, folder / name)
        except OSError:
            continue
        raise OSError(f'{failure}; the basis is kept as {str(folder / name)!r}, move it from there') from failure
    raise failure


def draw(basis: Basis, picture: str) -> None:
    from ..analysis.angles import plot_angles

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
    for solver in [name for name in methods(num_classes, dim) if name in SOLVERS]:
        rows.append({'method': solver, 'has': f'{num_classes} x {dim}', 'made of': SOLVERS[solver]})
    print(f'{num_classes} vectors in R^{dim}: no largest |cosine| below {bound:.6f}, {to_degrees(bound):.3f} degrees')
    print_table(rows)
    return 0
