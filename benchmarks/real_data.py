"""EBV against FC on real images: every training behind docs/results.md, and its tables and pictures.

    python benchmarks/real_data.py run long-tail tau --jobs 2
    python benchmarks/real_data.py classes  # accuracy class by class of what long-tail and long-tail-10 have trained
    python benchmarks/real_data.py report

A training that was cut off goes on from its last checkpoint, a finished one is skipped: `run` can be stopped at any
time and started again. One thread for each training.
"""

import argparse
import fcntl
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import List, Optional, Sequence

from histories import History
from studies import CLASSES, LONG_TAILS, REPO, STUDIES, TEST, Run, resolve, runs_of
from study_report import report

from ebv_mm.basis import size_in_name
from ebv_mm.config_bases import basis_paths
from ebv_mm.trainings import stop

INTERRUPTED = 130  # the exit code of Ctrl-C
POLL_SECONDS = 1.0
PROGRESS_SECONDS = 60
ENVIRONMENT = {
    'OMP_NUM_THREADS': '1',
    'MKL_NUM_THREADS': '1',
    # Or glibc returns every large activation to the system and fetches it again.
    'MALLOC_ARENA_MAX': '1',
    'MALLOC_MMAP_THRESHOLD_': str(2**33),
    'MALLOC_TRIM_THRESHOLD_': str(2**34),
}


class Training:
    """A run as a subprocess. Its log is locked while it lasts, so that nobody trains into the same folder."""

    def __init__(self, run: Run, work_dir: Path) -> None:
        self.run, self.work_dir = run, work_dir
        self.log = work_dir / run.name / 'train.log'
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open('a') as log:
            fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the subprocess inherits it
            self.process = subprocess.Popen(
                [sys.executable, *next_step(run, work_dir)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **ENVIRONMENT},
            )

    def progress(self) -> str:
        history = History(self.run, self.work_dir)
        loss = f', loss {history.train[max(history.train)]["loss"]:.3f}' if history.train else ''
        return f'{self.run.name}: {history.done}/{history.total}{loss}'


def next_step(run: Run, work_dir: Path) -> List[str]:
    """To train; or only to test, if a training was cut off within its last validation, which nothing would resume."""
    last = History(run, work_dir).last_checkpoint
    # mmengine writes this after the checkpoint, which may be half written if it does not name it
    newest = last.with_name('last_checkpoint')
    trained = newest.exists() and Path(newest.read_text().strip()).name == last.name
    return run.test(last, TEST) if trained else run.train(work_dir)


def show(arguments: Sequence[str]) -> None:
    print('$', shlex.join(['python', *arguments]), flush=True)


def make_bases(runs: Sequence[Run], dry: bool) -> None:
    """Make the basis files of some runs that are not there yet."""
    for path in dict.fromkeys(path for run in runs for path in basis_paths(resolve(run).model.to_dict())):
        if not Path(path).exists():
            num_classes, dim = size_in_name(path)
            arguments = ['tools/make_basis.py', '--num-classes', str(num_classes), '--dim', str(dim), '--out', path]
            show(arguments)
            if not dry:
                subprocess.run([sys.executable, *arguments], check=True)


def run_all(runs: Sequence[Run], work_dir: Path, jobs: int, dry: bool = False) -> List[str]:
    """Train what is not finished; returns the names of what has failed."""
    waiting = []
    for run in runs:
        if History(run, work_dir).finished:
            print(f'{run.name}: finished before')
        else:
            waiting.append(run)
    make_bases(waiting, dry)
    print(' '.join(f'{key}={value}' for key, value in ENVIRONMENT.items()))
    running: List[Training] = []
    failed: List[str] = []
    said = time.monotonic()
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                run = waiting.pop(0)
                show(next_step(run, work_dir))
                if dry:
                    continue
                try:
                    running.append(Training(run, work_dir))
                except BlockingIOError:
                    print(f'{run.name}: is being trained by another process; left to it')
                    failed.append(run.name)
            time.sleep(0 if dry else POLL_SECONDS)
            for training in list(running):
                if training.process.poll() is not None:
                    running.remove(training)
                    if not _ended_well(training):
                        failed.append(training.run.name)
            if time.monotonic() - said > PROGRESS_SECONDS:
                said = time.monotonic()
                print('; '.join(training.progress() for training in running), flush=True)
    finally:
        for training in running:
            stop(training.process)
    return failed


def _ended_well(training: Training) -> bool:
    if training.process.returncode == 0 and History(training.run, training.work_dir).finished:
        print(f'{training.run.name}: finished', flush=True)
        return True
    last = '\n'.join(training.log.read_text(errors='replace').splitlines()[-15:])
    code = training.process.returncode
    print(f'{training.run.name}: failed (exit code {code}); the end of {training.log}:\n{last}', flush=True)
    return False


def measure_classes(runs: Sequence[Run], work_dir: Path) -> None:
    """Test the last checkpoint of each finished run class by class."""
    evaluator = {'_delete_': True, 'type': 'SingleLabelMetric', 'items': ['recall'], 'average': None}
    options = {f'test_evaluator.{key}': value for key, value in evaluator.items()}
    for run in runs:
        history = History(run, work_dir)
        if history.finished and not history.recalls:
            arguments = run.test(history.last_checkpoint, CLASSES, **options)
            show(arguments)
            subprocess.run([sys.executable, *arguments], check=True, env={**os.environ, **ENVIRONMENT})


def main(argv: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest='command', required=True)
    running = commands.add_parser('run', help='train what is not finished')
    running.add_argument('studies', nargs='+', choices=list(STUDIES), metavar='STUDY', help=', '.join(STUDIES))
    running.add_argument('--jobs', type=int, default=2, help='trainings at a time, one core for each')
    running.add_argument('--dry-run', action='store_true', help='only print the commands')
    reporting = commands.add_parser('report', help='print the tables, paint the pictures')
    reporting.add_argument('--pictures', type=Path, default=REPO / 'docs' / 'results')
    classes = commands.add_parser('classes', help='test the finished runs of 30 epochs class by class')
    for command in (running, reporting, classes):
        command.add_argument('--work-dir', type=Path, default=REPO / 'work_dirs' / 'results')
    args = parser.parse_args(argv)
    if args.command == 'run' and args.jobs < 1:
        parser.error(f'--jobs {args.jobs}: at least one')
    # configs, tools and data are named from the clone, the folders of the command line from where it is given
    folders = {key: value.resolve() for key, value in vars(args).items() if isinstance(value, Path)}
    os.chdir(REPO)
    vars(args).update({key: Path(os.path.relpath(folder)) for key, folder in folders.items()})
    previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return carry_out(args)
    except KeyboardInterrupt:
        print('\nstopped; the same command goes on from here')
        return INTERRUPTED
    finally:
        signal.signal(signal.SIGTERM, previous)


def carry_out(args: argparse.Namespace) -> int:
    if args.command == 'report':
        report(args.work_dir, args.pictures)
        return 0
    if args.command == 'classes':
        measure_classes(runs_of(LONG_TAILS), args.work_dir)
        return 0
    failed = run_all(runs_of(args.studies), args.work_dir, args.jobs, args.dry_run)
    if failed:
        print(f'not finished: {", ".join(failed)}')
    return int(bool(failed))


if __name__ == '__main__':
    sys.exit(main())
