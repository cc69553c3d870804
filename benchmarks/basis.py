"""Our basis generator against the authors' algorithm, side by side in one run, on the same (N, d).

For every d: the angle that the authors' Algorithm 1 (written from the paper; the alpha that they reached, their step
size) and our solver, both from a random start, have after the same time, one after the other; how long ours takes to
the angle that Algorithm 1 ends with; and the best closed form, with the time that it takes to make.

    python benchmarks/basis.py --seconds 20
"""

import argparse
import sys
import time
from typing import Dict, List, Optional, Tuple

import torch

from ebv_mm.basis import best_bound, closed_form_basis, make_basis
from ebv_mm.basis.measure import to_degrees
from ebv_mm.basis.solvers import algorithm1
from ebv_mm.basis.watch import Watch
from ebv_mm.output import Progress, print_table

# largest |cosine| and minimum angle of the bases that the authors published, N = 1000
PUBLISHED = {100: (0.13504, 82.239), 200: (0.08003, 85.410), 300: (0.05803, 86.673), 400: (0.04402, 87.477),
             500: (0.03502, 87.993)}  # fmt: skip


class Curve:
    """Records (seconds, best angle so far) as a solver reports them."""

    def __init__(self) -> None:
        self.points: List[Tuple[float, float]] = []

    def __call__(self, seconds: float, coherence: float) -> None:
        self.points.append((seconds, to_degrees(coherence)))

    @property
    def angle(self) -> float:
        return max((angle for _, angle in self.points), default=0.0)

    def time_to(self, angle: float) -> Optional[float]:
        return next((seconds for seconds, reached in self.points if reached >= angle), None)


def main(argv: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--num-classes', type=int, default=1000, metavar='N')
    parser.add_argument('--dims', type=int, nargs='+', default=sorted(PUBLISHED), metavar='D')
    parser.add_argument('--seconds', type=float, default=20.0, help='for each of the solvers, at each d')
    parser.add_argument('--seed', type=int, default=0)
    args = parser.parse_args(argv)
    if not args.seconds > 0:
        parser.error(f'--seconds {args.seconds:g}, but a solver needs some time; give a number above 0')
    print(f'{torch.get_num_threads()} threads, {args.seconds:g} s for each solver, N = {args.num_classes}')
    rows = []
    with Progress() as progress:
        for done, dim in enumerate(args.dims):
            progress.show('comparing', done, len(args.dims), f'd = {dim}')
            rows.append(compare(args.num_classes, dim, args.seconds, args.seed))
        progress.show('comparing', len(rows), len(rows))
    print_table(rows)
    return 0


def compare(num_classes: int, dim: int, seconds: float, seed: int) -> Dict[str, str]:
    bound = best_bound(num_classes, dim)
    alpha, published = PUBLISHED.get(dim, (1.2 * bound, None)) if num_classes == 1000 else (1.2 * bound, None)
    theirs, ours = Curve(), Curve()
    algorithm1(num_classes, dim, alpha, seed=seed, watch=Watch(seconds, 0.0, theirs))
    solved = make_basis(num_classes, dim, method='solver', seed=seed, time_limit=seconds, progress=ours)
    row = {
        'd': str(dim),
        'bound': f'{to_degrees(bound):.2f}',
        'published': '-' if published is None else f'{published:.3f}',
        'algorithm 1': f'{theirs.angle:.3f}',
        'our solver': f'{solved.min_angle:.3f}',
    }
    reached, spent = ours.time_to(theirs.angle), theirs.time_to(theirs.angle)
    row['as good after'] = 'never' if reached is None else f'{reached:.1f} s'
    row['faster by'] = f'{spent / reached:.1f} x' if reached and spent else '-'
    start = time.monotonic()
    try:
        closed = closed_form_basis(num_classes, dim, seed=seed)
    except ValueError:
        return {**row, 'closed form': 'none'}
    seconds = time.monotonic() - start
    return {**row, 'closed form': f'{closed.min_angle:.3f}', 'made in': f'{seconds:.1f} s', 'method': closed.method}


if __name__ == '__main__':
    sys.exit(main())
