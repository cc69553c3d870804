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
    tables = list(TABLES.values()) if args.table == 'all' else [TABLES[args.table]]
    try:
        return smoke(tables, args) if args.smoke else reproduce(tables, args)
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


def reproduce(tables: List[Table], args: argparse.Namespace) -> int:
    root = relative(ROOT)
    work = [Reproduction(t, args.work_dir, root, root / 'configs', args.gpus or 1, dry=args.dry_run) for t in tables]
    if args.report:
        return max(report(table) for table in work)
    rows = [table.select(args.only) for table in work]
    missing = list(dict.fromkeys(what for table, chosen in zip(work, rows) for what in table.missing(chosen)))
    for sentence in missing:
        print(f'missing: {sentence}', file=sys.stderr)
    if missing and not args.dry_run:
        return 1
    if args.slurm:
        return max(submit(table, chosen, args) for table, chosen in zip(work, rows))
    there = torch.cuda.device_count()
    if args.gpus > there and not args.dry_run and any(row.configs for chosen in rows for row in chosen):
        raise ValueError(f'--gpus {args.gpus}, but this machine has {there}; give that number, or --smoke, without any')
    return max(carry_out(table, chosen) for table, chosen in zip(work, rows))


def carry_out(table: Reproduction, rows: list) -> int:
    failed = table.carry_out(rows)
    if not table.dry:
        report(table)
    if failed:
        print(f'not finished: {", ".join(failed)}', file=sys.stderr)
    return int(bool(failed))


def report(table: Reproduction) -> int:
    print('\nwrote', ' and '.join(map(str, write_report(table, table.folder))))
    return 0


def submit(table: Reproduction, rows: list, args: argparse.Namespace) -> int:
    table.folder.mkdir(parents=True, exist_ok=True)
    for row in {row.name: row for row in rows}.values():
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
        ran = try_table(table, ROOT, args.only)
        lines += [{'table': table.name, 'row': row, 'state': 'ran' if well else 'FAILED'} for row, well in ran.items()]
    print_table(lines)
    print(f'logs and tables are in {folder}')
    return int(any(line['state'] != 'ran' for line in lines))


def relative(path: Path) -> Path:
    """As a user in the clone would type it; absolute from elsewhere."""
    return Path(os.path.relpath(path)) if path == Path.cwd() or Path.cwd() in path.parents else path


if __name__ == '__main__':
    sys.exit(main())
