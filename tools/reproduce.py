"""Reproduce a table of the paper: make its bases, train what is not finished, test every checkpoint, write the table.

python tools/reproduce.py imagenet --gpus 8
python tools/reproduce.py ade20k --gpus 8 --dry-run                    prints the commands
python tools/reproduce.py coco --gpus 8 --only mask_rcnn_r50_ebv_1x    one model of it
python tools/reproduce.py coco --gpus 8 --slurm PARTITION              a job for each model
python tools/reproduce.py coco --report                                only writes the table of what is there
python tools/reproduce.py coco --smoke                                 tries every row on noise, without a GPU

The same command goes on where it was interrupted. Tables: see docs/experiments.md.
"""

import argparse
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import List, Optional

import torch

from ebv_mm.output import print_table
from ebv_mm.paper import TABLES, Table
from ebv_mm.paper.processes import shown
from ebv_mm.paper.report import write_report
from ebv_mm.paper.reproduction import Reproduction
from ebv_mm.paper.slurm import job
from ebv_mm.paper.smoke import try_table

ROOT = Path(__file__).resolve().parents[1]
INTERRUPTED = 130


def main(argv: Optional[List[str]] = None) -> int:
    args = parse_args(argv)
    previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return smoke(choose(args), args) if args.smoke else reproduce(choose(args), args)
    except KeyboardInterrupt:
        print('\nstopped; the same command goes on from here', file=sys.stderr)
        return INTERRUPTED
    except (ValueError, OSError) as error:
        print(f'error: {error}', file=sys.stderr)
        return 1
    finally:
        signal.signal(signal.SIGTERM, previous)


def parse_args(argv: Optional[List[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('table', choices=[*TABLES, 'all'], metavar='TABLE', help=f'{", ".join(TABLES)}, or all')
    parser.add_argument('--gpus', type=int, metavar='N', help='how many there are; a model uses those its batch needs')
    parser.add_argument('--only', nargs='+', default=[], metavar='ROW', help='the name of a config of the table')
    parser.add_argument('--work-dir', type=Path, default=Path('work_dirs', 'paper'), help='default: work_dirs/paper')
    doing = parser.add_mutually_exclusive_group()
    doing.add_argument('--dry-run', action='store_true', help='print the commands and do nothing')
    doing.add_argument('--report', action='store_true', help='write the table of what is there and do nothing else')
    doing.add_argument('--smoke', action='store_true', help='try every row for a few iterations on noise')
    doing.add_argument('--slurm', metavar='PARTITION', help='submit a job for each model')
    args = parser.parse_args(argv)
    if args.gpus is None and not (args.report or args.smoke):
        parser.error('--gpus N is needed: how many GPUs there are')
    if args.gpus is not None and (args.gpus < 1 or args.smoke):
        parser.error(f'--gpus {args.gpus}: give at least 1, and none with --smoke')
    return args


def choose(args: argparse.Namespace) -> List[Table]:
    """The tables, with the rows that are asked for."""
    tables = list(TABLES.values()) if args.table == 'all' else [TABLES[args.table]]
    known = list(dict.fromkeys(row.name for table in tables for row in table.rows))
    unknown = [name for name in args.only if name not in known]
    if unknown:
        raise ValueError(f'--only {" ".join(unknown)}: there is no such row; choose from {", ".join(known)}')
    chosen = [table.only(args.only) if args.only else table for table in tables]
    return [table for table in chosen if table.rows]


def reproduce(tables: List[Table], args: argparse.Namespace) -> int:
    if args.report:
        return max(report(table, args) for table in tables)
    work = [begin(table, args) for table in tables]
    missing = list(dict.fromkeys(what for table in work for what in table.missing()))
    for sentence in missing:
        print(f'missing: {sentence}', file=sys.stderr)
    if missing and not args.dry_run:
        return 1
    if args.slurm:
        return max(submit(table, args) for table in work)
    there = torch.cuda.device_count()
    if args.gpus > there and not args.dry_run and any(table.experiments for table in work):
        raise ValueError(f'--gpus {args.gpus}, but this machine has {there}; give that number, or --smoke, without any')
    return max(carry_out(table, args) for table in work)


def begin(table: Table, args: argparse.Namespace) -> Reproduction:
    root = relative(ROOT)
    return Reproduction(table, args.work_dir, root, root / 'configs', args.gpus or 1, dry=args.dry_run)


def carry_out(table: Reproduction, args: argparse.Namespace) -> int:
    failed = table.carry_out()
    if not args.dry_run:
        report(table.table, args)
    if failed:
        print(f'not finished: {", ".join(failed)}', file=sys.stderr)
    return int(bool(failed))


def report(table: Table, args: argparse.Namespace) -> int:
    """The whole table, also where one row was asked for."""
    files = write_report(begin(TABLES[table.name], args), args.work_dir)
    print('\nwrote', ' and '.join(map(str, files)))
    return 0


def submit(table: Reproduction, args: argparse.Namespace) -> int:
    table.folder.mkdir(parents=True, exist_ok=True)
    for row in {row.name: row for row in table.table.rows}.values():
        command = job(row, table, args.slurm, Path(__file__).resolve(), ['--work-dir', str(args.work_dir)])
        print(f'$ {shown(command)}', flush=True)
        subprocess.run(command, check=True)
    print(f'when they are done: python tools/reproduce.py {table.table.name} --report --work-dir {args.work_dir}')
    return 0


def smoke(tables: List[Table], args: argparse.Namespace) -> int:
    """Every row anew; exits with 1 if one has failed."""
    folder = (args.work_dir / 'smoke').resolve()
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    os.environ.update(CUDA_VISIBLE_DEVICES='')
    lines = []
    for table in tables:
        ran = try_table(table, ROOT)
        lines += [{'table': table.name, 'row': row, 'state': 'ran' if well else 'FAILED'} for row, well in ran.items()]
    print_table(lines)
    print(f'logs and tables are in {folder}')
    return int(any(line['state'] != 'ran' for line in lines))


def relative(path: Path) -> Path:
    """As a user in the clone would type it; absolute from elsewhere."""
    return Path(os.path.relpath(path)) if path == Path.cwd() or Path.cwd() in path.parents else path


if __name__ == '__main__':
    sys.exit(main())
