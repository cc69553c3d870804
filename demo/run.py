"""The demo: EBV against its FC twin on real handwriting, on all three hosts, in a few minutes on two cores.

Makes the data sets and the bases, trains the twins of three tasks with tools/train.py, compares them by the hosts'
own metrics, and draws what the EBV models predict. Stop it with Ctrl-C whenever you like: the next run reuses finished
models.
"""

import argparse
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.append(str(Path(__file__).resolve().parents[1]))  # trainings/ is beside this folder, and not installed

from digit_files import STAMP, ensure_datasets
from mmengine.config import Config
from rich.console import Console
from training import DemoError, DemoTraining, Result, train_demo

from ebv_mm import load_basis
from ebv_mm.output import print_table, whole_file
from trainings import INTERRUPTED, interruptible

ROOT = Path(__file__).resolve().parents[1]
CONFIGS = Path('demo/configs')
# Where the configs look for the data.
DATA = Path('data/demo')
KINDS = ('EBV', 'FC')
ONE_RUN = (
    'A line with one seed shows that both twins learn, and not which is better: another seed or another machine moves '
    'its difference by several points. docs/results.md has comparisons over seeds.'
)


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
    metrics: tuple[Metric, ...]
    seeds: tuple[int, ...] = (0,)

    def config(self, kind: str) -> Path:
        return CONFIGS / f'{self.name}_{kind.lower()}.py'


TASKS = (
    Task('classification', 'mmpretrain', 'head.fc', (Metric('top-1', 'accuracy/top1', 1, 95),), (0, 1, 2)),
    Task(
        'detection',
        'mmdet',
        'roi_head.bbox_head.fc_cls',
        (Metric('box AP', 'coco/bbox_mAP', 100, 30), Metric('mask AP', 'coco/segm_mAP', 100, 30)),
    ),
    Task('segmentation', 'mmseg', 'decode_head.conv_seg', (Metric('mIoU', 'mIoU', 1, 50),)),
)


# By task and by kind, a result for each seed.
Results = dict[Task, dict[str, list[Result]]]


def main(argv: list[str] | None = None) -> int:
    args = parse_args(argv)
    work_dir = args.work_dir.resolve()
    # The configs name their data relative to the clone.
    os.chdir(ROOT)
    console = Console(highlight=False, markup=False, soft_wrap=True)
    try:
        with interruptible():
            return run(work_dir, args, console)
    except KeyboardInterrupt:
        console.print('Stopped. Finished models are kept: run it again to go on.')
        return INTERRUPTED
    except (DemoError, OSError) as error:
        console.print(f'error: {error}', style='red')
        return 1


def parse_args(argv: list[str] | None) -> argparse.Namespace:
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

    trainings = {
        (task, kind): [DemoTraining(task.config(kind), seed, work_dir, stamp(task, kind)) for seed in task.seeds]
        for task in TASKS
        for kind in KINDS
    }
    every = [training for seeds in trainings.values() for training in seeds]
    if args.fresh:
        for training in every:
            shutil.rmtree(training.folder, ignore_errors=True)
    console.print(f'Training {len(every)} models, {args.jobs} at a time; their logs: {work_dir}/*/train.log')
    by_name = train_demo(every, args.jobs, console)
    results: Results = {
        task: {kind: [by_name[training.name] for training in trainings[task, kind]] for kind in KINDS} for task in TASKS
    }

    write_results(results, work_dir / 'results.json')
    print_table(comparison(results), 'EBV against its FC twin, on test digits (per cent)', console)
    console.print(ONE_RUN)
    console.print('Drawing pictures ...')
    draw_pictures(results, work_dir)
    failures = too_low(results)
    for failure in failures:
        console.print(f'error: {failure}', style='red')
    console.print(
        f'{time.monotonic() - started:.0f} seconds in all. Results, pictures, logs and checkpoints: {work_dir}'
    )
    return 1 if failures else 0


def make_bases() -> list[str]:
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


def comparison(results: Results) -> list[dict[str, str]]:
    """The rows of one table, EBV against FC: means over the seeds, with standard deviations where there are several."""
    rows = []
    for task, pair in results.items():
        for i, metric in enumerate(task.metrics):
            ebv, fc = ([value(result, metric) for result in pair[kind]] for kind in KINDS)
            ahead = [one - other for one, other in zip(ebv, fc, strict=True)]
            seconds = ' / '.join(f'{sum(r.seconds for r in pair[kind]):.0f}' for kind in KINDS)
            rows.append(
                {
                    'host': '' if i else task.host,
                    'task': '' if i else task.name,
                    'metric': metric.title,
                    'seeds': len(task.seeds),
                    'EBV': spread(ebv),
                    'FC': spread(fc),
                    'EBV - FC': spread(ahead, '+'),
                    'seconds': '' if i else seconds,
                }
            )
    return rows


def spread(values: Sequence[float], sign: str = '') -> str:
    """The mean and, of several values, the standard deviation (of the sample, n - 1)."""
    mean = f'{statistics.mean(values):{sign}.1f}'
    return f'{mean} ± {statistics.stdev(values):.1f}' if len(values) > 1 else mean


def value(result: Result, metric: Metric) -> float:
    return metric.factor * result.metrics[metric.key]


def too_low(results: Results) -> list[str]:
    """A sentence for every model that has not learned."""
    return [
        f'{Path(result.checkpoint).parent.name}: {metric.title} is {value(result, metric):.1f} %, but a model that '
        f'has learned reaches {metric.floor} %; see {Path(result.checkpoint).parent / "train.log"}'
        for task, pair in results.items()
        for seeds in pair.values()
        for result in seeds
        for metric in task.metrics
        if not value(result, metric) >= metric.floor
    ]


def write_results(results: Results, path: Path) -> None:
    content = {
        task.name: {kind: [result._asdict() for result in seeds] for kind, seeds in pair.items()}
        for task, pair in results.items()
    }
    with whole_file(path) as part:
        part.write_text(json.dumps(content, indent=2))


def draw_pictures(results: Results, folder: Path) -> None:
    # Imported here, because this imports matplotlib and then the hosts.
    import pictures

    drawings = {
        'classification': (pictures.draw_classification, ()),
        'detection': (pictures.draw_detection, range(pictures.NUM_SCENES)),
        'segmentation': (pictures.draw_segmentation, range(pictures.NUM_SCENES)),
    }
    for task, pair in results.items():
        draw, indices = drawings[task.name]
        draw(pictures.predict(task.config('EBV'), pair['EBV'][0].checkpoint, indices), folder / f'{task.name}.png')
    vectors = {
        task.name: {kind: pictures.class_vectors(seeds[0].checkpoint, task.classifier) for kind, seeds in pair.items()}
        for task, pair in results.items()
    }
    pictures.draw_angles(vectors, folder / 'angles.png')


if __name__ == '__main__':
    sys.exit(main())
