"""How many classes fit into d dimensions at a given largest |cosine| alpha: the relation of alpha, d and N.

Three answers for every (alpha, d), in one table (csv) and one figure:
    solver   the largest N for which the solver reaches alpha, by bisection as in the paper's supplement
    closed   the largest N for which a closed form does
    bound    what no basis can exceed

    python tools/analysis/capacity.py --out work_dirs/capacity

Every finished (alpha, d) is written at once; run the command again and it goes on where it was.
"""

import argparse
import csv
import sys
from pathlib import Path
from typing import Dict, List, Optional, Tuple

from ebv_mm.basis import capacity, closed_forms
from ebv_mm.basis.solvers import soft_maximum, tight_frame
from ebv_mm.basis.watch import Watch
from ebv_mm.output import save_figure, whole_file

FIELDS = ['alpha', 'dim', 'solver', 'closed', 'bound']
TOLERANCE = 1e-6
INTERRUPTED = 130


def main(argv: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--dims', type=int, nargs='+', default=[8, 16, 24, 32, 48, 64], metavar='D')
    parser.add_argument('--alphas', type=float, nargs='+', default=[0.05, 0.1, 0.2, 0.3], metavar='A')
    parser.add_argument('--out', default='work_dirs/capacity', help='folder of capacity.csv and capacity.png')
    parser.add_argument('--steps', type=int, default=300, help='of the solver, for each N that is tried')
    parser.add_argument('--max-classes', type=int, default=600, help='the largest N that the solver tries')
    parser.add_argument('--seed', type=int, default=0)
    args = parser.parse_args(argv)
    for name, values in (('--dims', args.dims), ('--steps', [args.steps]), ('--max-classes', [args.max_classes])):
        if min(values) < 1:
            parser.error(f'{name} {min(values)}, but a whole number >= 1 is needed; give one')
    if not all(0 < alpha < 1 for alpha in args.alphas):
        parser.error(f'--alphas {args.alphas}, but each lies between 0 and 1; give such numbers')
    try:
        return run(args)
    except KeyboardInterrupt:
        print('\ninterrupted; what is finished is kept, run the same command to go on', file=sys.stderr)
        return INTERRUPTED
    except (OSError, ValueError, ImportError) as error:
        print(f'error: {error}', file=sys.stderr)
        return 1


def run(args: argparse.Namespace) -> int:
    folder = Path(args.out)
    folder.mkdir(parents=True, exist_ok=True)
    table = folder / 'capacity.csv'
    # one file belongs to one set of solver options; the rows of others are not mixed in
    options = f'# steps={args.steps} max_classes={args.max_classes} seed={args.seed}'
    rows = read_rows(table, options)
    for alpha in args.alphas:
        for dim in args.dims:
            if (alpha, dim) not in rows:
                rows[alpha, dim] = measure(alpha, dim, args)
                write_rows(table, options, rows)
            row = rows[alpha, dim]
            print(
                f'alpha {alpha:<5g} d {dim:<5d}' + ''.join(f'{name} {row[name]:<8}' for name in FIELDS[2:]), flush=True
            )
    wanted = {key: row for key, row in rows.items() if key[0] in args.alphas and key[1] in args.dims}
    draw(wanted, folder / 'capacity.png', args.max_classes)
    print(f'wrote {table} and {folder / "capacity.png"}')
    return 0


def read_rows(table: Path, options: str) -> Dict[Tuple[float, int], Dict[str, float]]:
    if not table.is_file():
        return {}
    with open(table, newline='') as file:
        if file.readline().strip() != options:
            raise ValueError(f'{table} was made with other options than {options[2:]!r}; give another --out')
        rows = list(csv.DictReader(file))
    return {
        (float(row['alpha']), int(row['dim'])): {
            name: float(row[name]) if name == 'alpha' else int(row[name]) for name in FIELDS
        }
        for row in rows
    }


def write_rows(table: Path, options: str, rows: Dict[Tuple[float, int], Dict[str, float]]) -> None:
    """Write the whole table anew, atomically: an interruption leaves the one before."""
    with whole_file(table) as part, open(part, 'w', newline='') as file:
        file.write(f'{options}\n')
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(rows.values())


def measure(alpha: float, dim: int, args: argparse.Namespace) -> Dict[str, float]:
    most = capacity(dim, alpha)
    return {
        'alpha': alpha,
        'dim': dim,
        'solver': solver_capacity(alpha, dim, min(most, args.max_classes), args.steps, args.seed),
        'closed': closed_capacity(alpha, dim, most),
        'bound': most,
    }


def solver_capacity(alpha: float, dim: int, most: int, steps: int, seed: int) -> int:
    """The paper's bisection: N fits if the solver reaches alpha; d always do."""
    fits, too_many = min(dim, most), most + 1
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        watch = Watch(target=alpha)
        _, reached = soft_maximum(tight_frame(middle, dim, seed), steps=steps, watch=watch)
        fits, too_many = (middle, too_many) if reached <= alpha + TOLERANCE else (fits, middle)
    return fits


def closed_capacity(alpha: float, dim: int, most: int) -> int:
    """The largest N with a closed form at alpha or better. Bisection: what has N vectors has fewer, too."""

    def fits(num_classes: int) -> bool:
        return any(offer.coherence <= alpha + TOLERANCE for offer in closed_forms(num_classes, dim))

    few, many = min(dim, most), most + 1
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (middle, many) if fits(middle) else (few, middle)
    return few


def draw(rows: Dict[Tuple[float, int], Dict[str, float]], picture: Path, max_classes: int) -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('the figure needs matplotlib; install it with: pip install matplotlib') from error
    alphas = sorted({alpha for alpha, _ in rows})
    figure = Figure(figsize=(3.4 * len(alphas) + 0.6, 4.2), layout='constrained')
    panels = figure.subplots(1, len(alphas), sharey=True, squeeze=False)[0]
    styles = {
        'bound': dict(color='#d1495b', linestyle='--', label='no basis has more'),
        'closed': dict(color='#222222', marker='s', markersize=4, label='closed form'),
        'solver': dict(color='#4c78a8', marker='o', markersize=4, label=f'solver (tried up to N = {max_classes})'),
    }
    for axes, alpha in zip(panels, alphas):
        dims = sorted(dim for a, dim in rows if a == alpha)
        for name, style in styles.items():
            axes.plot(dims, [rows[alpha, dim][name] for dim in dims], linewidth=1.4, **style)
        axes.plot(dims, dims, color='#bbbbbb', linewidth=1, label='N = d, orthonormal')
        axes.set_xscale('log', base=2)
        axes.set_yscale('log')
        axes.set_xticks(dims, [str(dim) for dim in dims])
        axes.minorticks_off()
        axes.set_xlabel('d')
        axes.set_title(f'largest |cosine| = {alpha:g}', loc='left', fontsize=11)
        axes.spines[['top', 'right']].set_visible(False)
    # a bound that is far away needs no room
    reached = max(max(row['solver'], row['closed']) for row in rows.values())
    panels[0].set_ylim(min(dim for _, dim in rows) * 0.8, reached * 6)
    panels[0].set_ylabel('N, number of classes')
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, loc='outside lower center', ncols=4)
    save_figure(figure, picture)


if __name__ == '__main__':
    sys.exit(main())
