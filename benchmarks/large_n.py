"""What many classes cost: ours against dense logits, the FC layer and what others use, side by side in one run.

Times are medians of steps that take turns, so that other jobs on the machine hurt all alike; extra memory is the peak
above what the process holds before the step, in a process of its own. Every table is kept in a JSON file, from which
--docs writes the tables of the documentation.

    python benchmarks/large_n.py                        # half an hour, 16 GB
    python benchmarks/large_n.py --quick                # small sizes, to see that it works
    python benchmarks/large_n.py --only loss neighbours
    python benchmarks/large_n.py --docs docs/speed.md   # no measurement: the tables of the JSON file
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Callable, Dict, List, NamedTuple, Optional, Tuple

import torch
from costs import network, prediction, steps
from costs.measure import Step, busy_neighbours, machine, median_times, peak_megabytes
from costs.steps import dense_loss, ebv_step, fc_step, fused_loss, resnet50_step, sampled_loss, streamed_loss
from pages import fill
from torch.nn import functional

from ebv_mm.output import markdown_table, new_figure, print_table, save_figure, whole_file

RESULTS = Path(__file__).with_name('results') / 'large_n.json'
PICTURE = Path(__file__).parents[1] / 'docs' / 'large_n.png'
MARKER = '<!-- costs of {}: python benchmarks/large_n.py -->'


class Case(NamedTuple):
    """Two ways to do the same.

    Args:
        what: For the table.
        sizes, quick: (N, d, batch).
        baseline, ours: What makes a step of a size.
        method: Further argument of ours.
        exact: Whether the baseline computes the loss itself, or an estimate of it.
    """

    what: str
    sizes: Tuple[int, int, int]
    quick: Tuple[int, int, int] = (10_000, 256, 64)
    baseline: Callable[..., Step] = dense_loss
    ours: Callable[..., Step] = streamed_loss
    method: Optional[str] = 'kerdock'
    exact: bool = True


LOSSES = {
    'kerdock': Case('Kerdock / dense logits', (100_000, 1024, 1024)),
    'kerdock-4096': Case('Kerdock / dense logits', (100_000, 4096, 256), (5_000, 256, 32)),
    'kerdock-16384': Case('Kerdock / dense logits', (100_000, 16_384, 64), (5_000, 1024, 8)),
    'design': Case('design / dense logits', (100_000, 5000, 128), (10_000, 1000, 32), method='transversal'),
    'blocked': Case('dense in blocks / dense logits', (100_000, 512, 1024), (10_000, 128, 64), method=None),
    'sampled': Case('Kerdock / a tenth of the classes', (100_000, 1024, 1024), baseline=sampled_loss, exact=False),
}
# torch's own loss without all logits, from torch 2.13 on: a table of its own, as another torch measures it
FUSED: Dict[str, Case] = {}
if hasattr(functional, 'linear_cross_entropy'):
    theirs, sizes = "torch's linear_cross_entropy", dict(sizes=(20_000, 1024, 256), quick=(2_000, 256, 16))
    FUSED['fused'] = Case(f'Kerdock / {theirs}', **sizes, baseline=fused_loss)
    FUSED['fused-dense'] = Case(f'dense logits / {theirs}', **sizes, baseline=fused_loss, ours=dense_loss, method=None)
HEAD, RESNET = dict(baseline=fc_step, ours=ebv_step), dict(baseline=resnet50_step, ours=resnet50_step)
HEADS = {
    'head': Case('EBV / FC', (100_000, 4096, 256), **HEAD),
    'head-1024': Case('EBV / FC', (100_000, 1024, 256), **HEAD),
    'unit': Case('unit vectors / FC', (1000, 1000, 256), (1000, 1000, 32), **HEAD, method='orthonormal'),
    'dense': Case('dense basis / FC', (1000, 1000, 256), (1000, 1000, 32), **HEAD, method='dense'),
    'resnet50': Case('whole ResNet-50, dense basis / FC', (1000, 1000, 8), (100, 100, 1), **RESNET, method='dense'),
}
CASES = {**LOSSES, **FUSED, **HEADS}
GROWTH = ((1_000, 256), (10_000, 1024), (100_000, 1024), (1_000_000, 4096))
QUICK_GROWTH = ((1_000, 64), (10_000, 256))


def build(name: str, quick: bool, ours: bool) -> Step:
    if name.startswith('growth'):
        return streamed_loss(*map(int, name.split('-')[1:]), 128, 'kerdock')
    case = CASES[name]
    sizes = case.quick if quick else case.sizes
    further = () if case.method is None else (case.method,)
    return case.ours(*sizes, *further) if ours else case.baseline(*sizes)


def extra_megabytes(name: str, quick: bool, ours: bool) -> float:
    command = [sys.executable, __file__, '--worker', name, str(int(ours)), '--device', str(steps.device)]
    command += ['--quick'] * quick
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def worker(name: str, quick: bool, ours: bool) -> float:
    for tiny in (dense_loss(64, 8, 2), streamed_loss(64, 16, 2, 'kerdock'), streamed_loss(64, 8, 2)):
        tiny()  # the libraries' own memory
    return peak_megabytes(lambda: build(name, quick, ours), name in HEADS, steps.device)


def compare(name: str, quick: bool, repeats: int) -> Dict[str, str]:
    case = CASES[name]
    baseline, ours = median_times([build(name, quick, own) for own in (False, True)], repeats)
    megabytes = [extra_megabytes(name, quick, own) for own in (False, True)]
    num_classes, dim, batch = case.quick if quick else case.sizes
    return {
        'ours / baseline': case.what, 'N': f'{num_classes:,}', 'd': f'{dim:,}', 'batch': f'{batch:,}',
        'baseline is': 'exact' if case.exact else 'an estimate', 'baseline': f'{baseline * 1e3:,.1f} ms',
        'ours': f'{ours * 1e3:,.1f} ms', 'faster': f'{baseline / ours:.2f} x',
        'baseline memory': f'{megabytes[0]:,.0f} MB', 'our memory': f'{megabytes[1]:,.0f} MB',
    }  # fmt: skip


def losses(quick: bool, repeats: int) -> List[dict]:
    return [compare(name, quick, repeats) for name in LOSSES]


def fused(quick: bool, repeats: int) -> List[dict]:
    return [compare(name, quick, repeats) for name in FUSED]


def heads(quick: bool, repeats: int) -> List[dict]:
    return [compare(name, quick, repeats) for name in HEADS if not (quick and name == 'resnet50')]


def neighbours(quick: bool, repeats: int) -> List[dict]:
    out = []
    for name in ('kerdock', 'blocked'):
        case = CASES[name]
        both = [build(name, quick, own) for own in (False, True)]
        num_classes, dim, batch = case.quick if quick else case.sizes
        for count in (0, 1, 2):
            with busy_neighbours(count):
                baseline, ours = median_times(both, repeats)
            out.append({
                'ours / baseline': case.what, 'N': f'{num_classes:,}', 'd': dim, 'batch': batch,
                'other busy processes': count, 'baseline': f'{baseline * 1e3:,.1f} ms',
                'ours': f'{ours * 1e3:,.1f} ms', 'faster': f'{baseline / ours:.2f} x',
            })  # fmt: skip
    return out


def growth(quick: bool, repeats: int) -> List[dict]:
    out = []
    for num_classes, dim in QUICK_GROWTH if quick else GROWTH:
        name = f'growth-{num_classes}-{dim}'
        (seconds,) = median_times([build(name, quick, True)], repeats)
        megabytes = extra_megabytes(name, quick, True)
        size = {'N': f'{num_classes:,}', 'd': f'{dim:,}', 'batch': 128}
        out.append({**size, 'time': f'{seconds * 1e3:,.1f} ms', 'extra memory': f'{megabytes:,.0f} MB'})
    return out


def predictions(quick: bool, repeats: int) -> List[dict]:
    if quick:
        return prediction.rows(2_000, 256, 32, repeats, dense=True)
    many = prediction.rows(100_000, 1024, 256, repeats, dense=True)
    return [*many, *prediction.rows(1_000_000, 4096, 64, repeats, dense=False)]


def servers(quick: bool, repeats: int) -> List[dict]:
    sizes = [(2_000, 256)] if quick else [(100_000, 1024), (100_000, 4096), (1_000_000, 4096)]
    return [row for size in sizes for row in prediction.server(*size, repeats)]


def networks(quick: bool, repeats: int) -> List[dict]:
    """The same images in one process and shared by several, so that the losses must be equal."""
    out = []
    for processes in (1, 2) if quick else (1, 2, 4):
        sizes = (2_000, 64, processes, 8 // processes) if quick else (100_000, 2048, processes, 128 // processes)
        dims = [256] if quick else [1024, 4096]
        out += network.rows(network.Size(*sizes, repeats), dims, port=29_500 + processes)
    return out


TABLES: Dict[str, Callable[[bool, int], List[dict]]] = {
    'loss': losses,
    **({'fused': fused} if FUSED else {}),
    'neighbours': neighbours,
    'heads': heads,
    'growth': growth,
    'prediction': predictions,
    'server': servers,
    'network': networks,
}


def write_docs(page: Path, results: Path) -> None:
    """Put the tables of the results into a page."""
    kept = json.loads(results.read_text())
    fill(page, {
        MARKER.format(name): f'{markdown_table(table["rows"])}\n\n{table["machine"]}, medians of {table["repeats"]}.'
        for name, table in kept.items()
    })  # fmt: skip
    if 'growth' in kept:
        draw_growth(kept['growth']['rows'])


def draw_growth(rows: List[dict]) -> None:
    number = lambda cell: float(cell.split()[0].replace(',', ''))  # noqa: E731
    figure = new_figure(9, 3.5)
    for place, (column, label) in enumerate({'time': 'ms for loss and gradient', 'extra memory': 'MB'}.items(), 1):
        axes = figure.add_subplot(1, 2, place)
        axes.loglog([number(row['N']) for row in rows], [number(row[column]) for row in rows], 'o-')
        axes.set(xlabel='classes', ylabel=label, title='structured basis, batch 128')
        axes.grid(alpha=0.3)
    save_figure(figure, PICTURE)


def main(argv: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--quick', action='store_true', help='small sizes; the results are not kept')
    parser.add_argument('--only', nargs='+', choices=TABLES, default=list(TABLES))
    parser.add_argument('--repeats', type=int, default=5, help='steps of each kind')
    parser.add_argument('--device', type=torch.device, default='cpu', help='of losses and heads; default: cpu')
    parser.add_argument('--docs', type=Path, metavar='PAGE', help='write the tables of the results into a page')
    parser.add_argument('--worker', nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.repeats < 1:
        parser.error(f'--repeats {args.repeats}, but at least 1 is needed; give more')
    torch.manual_seed(0)
    steps.device = args.device
    if args.worker:
        name, ours = args.worker
        print(json.dumps(worker(name, args.quick, ours == '1')))
        return 0
    if args.docs:
        write_docs(args.docs, RESULTS)
        return 0
    print(machine(args.device))
    for name in args.only:
        rows = TABLES[name](args.quick, args.repeats)
        print_table(rows, title=name)
        if not args.quick:
            keep(name, dict(machine=machine(args.device), repeats=args.repeats, rows=rows))
    return 0


def keep(name: str, table: dict) -> None:
    """Replace one table of the results, at once, so that an interrupted run loses nothing."""
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    with whole_file(RESULTS) as part:
        part.write_text(json.dumps({**known, name: table}, indent=1, ensure_ascii=False) + '\n')


if __name__ == '__main__':
    sys.exit(main())
