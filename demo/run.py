"""The demo: EBV against its FC twin on real handwriting, on all three hosts, in a few minutes on two cores.

Makes the data sets and the bases, trains six models with tools/train.py, compares them by the hosts' own metrics,
and draws what the EBV models predict. Stop it with Ctrl-C whenever you like: the next run reuses finished models.
"""

import argparse
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Tuple

from digit_files import STAMP, ensure_datasets
from mmengine.config import Config
from rich import box
from rich.console import Console
from rich.table import Table
from training import DemoError, Result, Training, train_all

from ebv_mm import load_basis
from ebv_mm.output import whole_file

ROOT = Path(__file__).resolve().parent.parent
CONFIGS = Path('demo/configs')
# Where the configs look for the data.
DATA = Path('data/demo')
KINDS = ('EBV', 'FC')
INTERRUPTED = 130


class Metric(NamedTuple):
    """A metric of a host, shown in per cent; a model below ``floor`` has not learned."""

    title: str
    key: str
    factor: float
    floor: float


class Task(NamedTuple):
    """A pair of configs, ``<name>_ebv.py`` and ``<name>_fc.py``, and where its classifier is in the checkpoint."""

    name: str
    host: str
    classifier: str
    metrics: Tuple[Metric, ...]

    def config(self, kind: str) -> Path:
        return CONFIGS / f'{self.name}_{kind.lower()}.py'


TASKS = (
    Task('classification', 'mmpretrain', 'head.fc', (Metric('top-1', 'accuracy/top1', 1, 95),)),
    Task(
        'detection',
        'mmdet',
        'roi_head.bbox_head.fc_cls',
        (Metric('box AP', 'coco/bbox_mAP', 100, 30), Metric('mask AP', 'coco/segm_mAP', 100, 30)),
    ),
    Task('segmentation', 'mmseg', 'decode_head.conv_seg', (Metric('mIoU', 'mIoU', 1, 50),)),
)


def main(argv: Optional[List[str]] = None) -> int:
    args = parse_args(argv)
    work_dir = args.work_dir.resolve()
    # The configs name their data relative to the clone.
    os.chdir(ROOT)
    console = Console(highlight=False, markup=False, soft_wrap=True)
    previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return run(work_dir, args, console)
    except KeyboardInterrupt:
        console.print('Stopped. Finished models are kept: run it again to go on.')
        return INTERRUPTED
    except (DemoError, OSError) as error:
        console.print(f'error: {error}', style='red')
        return 1
    finally:
        signal.signal(signal.SIGTERM, previous)


def parse_args(argv: Optional[List[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        '--work-dir', type=Path, default=ROOT / 'work_dirs' / 'demo', help='for all results (default: work_dirs/demo)'
    )
    parser.add_argument('--fresh', action='store_true', help='make the data and train all models anew')
    # A model takes about 1 GB, hence not one for every core of a large machine.
    parser.add_argument(
        '--jobs',
        type=int,
        default=min(4, os.cpu_count() or 1),
        help='models to train at once (default: %(default)s here)',
    )
    args = parser.parse_args(argv)
    if args.jobs < 1:
        parser.error(f'--jobs {args.jobs}: at least one model must be trained at a time; give 1 or more')
    return args


def run(work_dir: Path, args: argparse.Namespace, console: Console) -> int:
    started = time.monotonic()
    console.print('Making data sets and bases ...')
    if args.fresh:
        shutil.rmtree(DATA, ignore_errors=True)
    wrote = ensure_datasets(DATA)
    console.print(f'Data: {"made" if wrote else "found"} in {DATA.resolve()}')
    for path in make_bases():
        basis = load_basis(path)
        console.print(f'Basis: {path}, {basis.num_classes} vectors in R^{basis.dim}, min angle {basis.min_angle:.3f}')

    trainings = []
    for task in TASKS:
        for kind in KINDS:
            config = task.config(kind)
            trainings.append(Training(config, work_dir / config.stem, stamp(task, kind)))
    if args.fresh:
        for training in trainings:
            shutil.rmtree(training.folder, ignore_errors=True)
    console.print(f'Training {len(trainings)} models, {args.jobs} at a time; their logs: {work_dir}/*/train.log')
    results = train_all(trainings, args.jobs, console)
    results = {task: {kind: results[task.config(kind).stem] for kind in KINDS} for task in TASKS}

    write_results(results, work_dir / 'results.json')
    console.print(comparison(results))
    console.print('Drawing pictures ...')
    draw_pictures(results, work_dir)
    failures = too_low(results)
    for failure in failures:
        console.print(f'error: {failure}', style='red')
    console.print(
        f'{time.monotonic() - started:.0f} seconds in all. Results, pictures, logs and checkpoints: {work_dir}'
    )
    return 1 if failures else 0


def make_bases() -> List[str]:
    """Make the bases that the configs name, where they are missing; returns their paths."""
    paths = {}
    for config in (task.config('EBV') for task in TASKS):
        command = [sys.executable, 'tools/make_basis.py', str(config)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            raise DemoError(f'{" ".join(command)} failed (exit code {done.returncode}):\n{done.stdout}')
        paths[Config.fromfile(config).basis] = None
    return list(paths)


def stamp(task: Task, kind: str) -> str:
    """A checksum of what a model is trained from: resolved config and data, for EBV also the basis and our code."""
    cfg = Config.fromfile(task.config(kind))
    digest = hashlib.sha256(json.dumps(cfg.to_dict(), sort_keys=True, default=str).encode())
    files = [DATA / STAMP]
    if kind == 'EBV':
        files += [Path(cfg.basis), Path('ebv_mm/layers.py'), *sorted(Path('ebv_mm', task.name).glob('*.py'))]
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def comparison(results: Dict[Task, Dict[str, Result]]) -> Table:
    """One table, EBV against FC."""
    table = Table(title='EBV against its FC twin, on test digits (per cent)', box=box.SIMPLE_HEAD)
    for column in ('host', 'task', 'metric'):
        table.add_column(column, no_wrap=True)
    for column in (*KINDS, 'EBV - FC', 'seconds'):
        table.add_column(column, justify='right', no_wrap=True)
    for task, pair in results.items():
        for i, metric in enumerate(task.metrics):
            ebv, fc = (value(pair[kind], metric) for kind in KINDS)
            names = (task.host, task.name) if i == 0 else ('', '')
            seconds = ' / '.join(f'{pair[kind].seconds:.0f}' for kind in KINDS) if i == 0 else ''
            table.add_row(*names, metric.title, f'{ebv:.1f}', f'{fc:.1f}', f'{ebv - fc:+.1f}', seconds)
    return table


def value(result: Result, metric: Metric) -> float:
    return metric.factor * result.metrics[metric.key]


def too_low(results: Dict[Task, Dict[str, Result]]) -> List[str]:
    """A sentence for every model that has not learned."""
    return [
        f'{task.config(kind).stem}: {metric.title} is {value(result, metric):.1f} %, but a model that has learned '
        f'reaches {metric.floor} %; see {Path(result.checkpoint).parent / "train.log"}'
        for task, pair in results.items()
        for kind, result in pair.items()
        for metric in task.metrics
        if not value(result, metric) >= metric.floor
    ]


def write_results(results: Dict[Task, Dict[str, Result]], path: Path) -> None:
    content = {task.name: {kind: result._asdict() for kind, result in pair.items()} for task, pair in results.items()}
    with whole_file(path) as part:
        part.write_text(json.dumps(content, indent=2))


def draw_pictures(results: Dict[Task, Dict[str, Result]], folder: Path) -> None:
    # Imported here, because this imports matplotlib and then the hosts.
    import pictures

    drawings = {
        'classification': (pictures.draw_classification, ()),
        'detection': (pictures.draw_detection, range(pictures.NUM_SCENES)),
        'segmentation': (pictures.draw_segmentation, range(pictures.NUM_SCENES)),
    }
    for task, pair in results.items():
        draw, indices = drawings[task.name]
        draw(pictures.predict(task.config('EBV'), pair['EBV'].checkpoint, indices), folder / f'{task.name}.png')
    vectors = {
        task.name: {kind: pictures.class_vectors(result.checkpoint, task.classifier) for kind, result in pair.items()}
        for task, pair in results.items()
    }
    pictures.draw_angles(vectors, folder / 'angles.png')


if __name__ == '__main__':
    sys.exit(main())
