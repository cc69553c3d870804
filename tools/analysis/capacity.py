"""How many classes fit into d dimensions at a given largest |cosine| alpha: the relation of alpha, d and N.

Three answers for every (alpha, d), in one table (csv) and one figure:
    solver   the largest N for which the solver reaches alpha, by bisection as in the paper's supplement
    closed   the largest N for which a closed form does
    bound    what no basis can exceed

    python tools/analysis/capacity.py --out work_dirs/capacity
    python tools/analysis/capacity.py --solver algorithm1 --steps 1500 --max-classes 2000 --out work_dirs/capacity-paper

Every finished (alpha, d) is written at once; run the command again and it goes on where it was.
"""

import argparse
import sys
from pathlib import Path
from typing import List, Optional

from ebv_mm.analysis.capacity import CapacityTable, Search, draw_capacities
from ebv_mm.output import Progress, print_table

INTERRUPTED = 130


def main(argv: Optional[List[str]] = None) -> int:
    args = parse_args(argv)
    try:
        return run(args)
    except KeyboardInterrupt:
        print('\ninterrupted; what is finished is kept, run the same command to go on', file=sys.stderr)
        return INTERRUPTED
    except (OSError, ValueError, ImportError) as error:
        print(f'error: {error}', file=sys.stderr)
        return 1


def parse_args(argv: Optional[List[str]]) -> argparse.Namespace:
    default = Search()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--dims', type=int, nargs='+', default=[8, 16, 24, 32, 48, 64], metavar='D')
    parser.add_argument('--alphas', type=float, nargs='+', default=[0.05, 0.1, 0.2, 0.3], metavar='A')
    parser.add_argument('--out', default='work_dirs/capacity', help='folder of capacity.csv and capacity.png')
    parser.add_argument(
        '--solver', choices=['solver', 'algorithm1'], default=default.solver, help="ours, or the paper's"
    )
    parser.add_argument(
        '--steps',
        type=int,
        default=default.steps,
        help='of the solver, for each N that is tried (default: %(default)s)',
    )
    parser.add_argument(
        '--max-classes', type=int, default=default.max_classes, help='the largest N to try (default: %(default)s)'
    )
    parser.add_argument('--seed', type=int, default=default.seed)
    args = parser.parse_args(argv)
    for name, values in (('--dims', args.dims), ('--steps', [args.steps]), ('--max-classes', [args.max_classes])):
        if min(values) < 1:
            parser.error(f'{name} {min(values)}, but a whole number >= 1 is needed; give one')
    if not all(0 < alpha < 1 for alpha in args.alphas):
        parser.error(f'--alphas {args.alphas}, but each lies between 0 and 1; give such numbers')
    return args


def run(args: argparse.Namespace) -> int:
    folder = Path(args.out)
    search = Search(args.solver, args.steps, args.max_classes, args.seed)
    table = CapacityTable(folder / 'capacity.csv', search)
    wanted = [(alpha, dim) for alpha in args.alphas for dim in args.dims]
    with Progress() as progress:
        for number, (alpha, dim) in enumerate(wanted):
            progress.show('capacity', number, len(wanted), f'alpha {alpha:g}, d {dim}')
            if (alpha, dim) not in table.rows:
                table.add(search.measure(alpha, dim))
        progress.show('capacity', len(wanted), len(wanted))
    rows = [table.rows[key] for key in wanted]
    print_table([row._asdict() for row in rows])
    draw_capacities(rows, folder / 'capacity.png', search)
    print(f'wrote {table.path} and {folder / "capacity.png"}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
