"""EBV against FC on real images: every training behind docs/results.md, and the page's tables and picture.

    python benchmarks/real_data.py run lt100-8e voc-seg --jobs 2
    python benchmarks/real_data.py report

A training that was cut off goes on from its last checkpoint, a finished one is skipped: `run` can be stopped at any
time and started again. What a finished training has measured goes into docs/results/runs.json; `report` needs nothing
else.
"""

import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))  # trainings/ is beside this folder, and not installed

from chosen import add_names, chosen
from histories import History
from rich.console import Console
from run_records import FILE, MEASURED, read_records, write_records
from studies import REPO, STUDIES, Run, resolve, runs_of
from study_report import PAGE, report

from ebv_mm.basis import size_in_name
from ebv_mm.config_bases import basis_paths
from trainings import ENVIRONMENT, INTERRUPTED, Training, interruptible, train_all

# benchmarks/configs/ imports modules of this folder
HERE = {'PYTHONPATH': os.pathsep.join(filter(None, ['benchmarks', os.environ.get('PYTHONPATH')]))}


class StudyTraining(Training):
    """A run of a study in its folder."""

    def __init__(self, run: Run, work_dir: Path) -> None:
        self.run, self.work_dir = run, work_dir
        super().__init__(run.name, work_dir / run.name, self.history().total)

    def history(self) -> History:
        return History(self.run, self.work_dir)

    def finished(self) -> bool:
        return self.history().finished

    def command(self) -> list[str]:
        """To train; or only to test, if it was cut off within its last validation, which nothing would resume."""
        last = self.history().last_checkpoint
        # mmengine writes this after the checkpoint, which may be half written if it does not name it
        newest = last.with_name('last_checkpoint')
        trained = newest.exists() and Path(newest.read_text().strip()).name == last.name
        return self.run.test(last) if trained else self.run.train(self.work_dir)


def show(console: Console, arguments: Sequence[str]) -> None:
    console.print(f'$ {shlex.join(["python", *arguments])}')


def make_bases(runs: Sequence[Run], console: Console, dry: bool) -> None:
    """Make the basis files of some runs that are not there yet."""
    for path in dict.fromkeys(path for run in runs for path in basis_paths(resolve(run).model.to_dict())):
        if not Path(path).exists():
            num_classes, dim = size_in_name(path)
            arguments = ['tools/make_basis.py', '--num-classes', str(num_classes), '--dim', str(dim), '--out', path]
            show(console, arguments)
            if not dry:
                subprocess.run([sys.executable, *arguments], check=True)


def run_all(runs: Sequence[Run], args: argparse.Namespace, console: Console) -> list[str]:
    """Train what is neither finished nor on record; returns the names of what has failed."""
    waiting, failed = [], []
    for training in (StudyTraining(run, args.work_dir) for run in runs):
        if training.finished():
            console.print(f'{training.name}: finished before')
            if not args.dry_run:
                keep(training, args.records)
        elif training.name in read_records(args.records) and not args.again:
            console.print(f'{training.name}: on record (--again trains it)')
        else:
            waiting.append(training)
    make_bases([training.run for training in waiting], console, args.dry_run)
    console.print(' '.join(f'{key}={value}' for key, value in {**HERE, **ENVIRONMENT}.items()))
    for training in waiting:
        show(console, training.command())
    if args.dry_run:
        return []
    os.environ.update(HERE)

    def ended(training: StudyTraining) -> None:
        failure = training.failure()
        if failure:
            console.print(failure)
            failed.append(training.name)
        else:
            keep(training, args.records)
            console.print(f'{training.name}: finished')

    train_all(waiting, args.jobs, console, ended)
    return failed


def keep(training: StudyTraining, file: Path) -> None:
    """Write a finished run down, once."""
    records = read_records(file)
    if training.name not in records or records[training.name].source != MEASURED:
        study = next(s for s in STUDIES.values() if any(training.run in runs for runs in s.settings.values()))
        records[training.name] = training.history().record(list(study.metrics), list(study.losses))
        write_records(records, file)


def collect(work_dir: Path, file: Path, console: Console) -> None:
    """Write down every finished run of a folder, whoever trained it."""
    for run in runs_of(list(STUDIES)):
        if (work_dir / run.name).is_dir() and (training := StudyTraining(run, work_dir)).finished():
            keep(training, file)
            console.print(f'{run.name}: on record')


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest='command', required=True)
    running = commands.add_parser('run', help='train what is not finished')
    running.add_argument('studies', nargs='+', choices=list(STUDIES), metavar='STUDY', help=', '.join(STUDIES))
    add_names(running)
    running.add_argument('--jobs', type=int, default=2, help='trainings at a time, one core for each')
    running.add_argument('--dry-run', action='store_true', help='only print the commands')
    running.add_argument('--again', action='store_true', help='train also what is on record')
    collecting = commands.add_parser(
        'collect', help='only write down what is finished, such as what `run` left elsewhere'
    )
    for command in (running, collecting):
        command.add_argument('--work-dir', type=Path, default=REPO / 'work_dirs' / 'results')
    reporting = commands.add_parser('report', help='write the tables of the page, paint its picture')
    reporting.add_argument('--page', type=Path, default=PAGE, help='its tables are replaced')
    for command in (running, collecting, reporting):
        command.add_argument('--records', type=Path, default=FILE, help='the file of all results')
    args = parser.parse_args(argv)
    if args.command == 'run' and args.jobs < 1:
        parser.error(f'--jobs {args.jobs}: at least one')
    runs = chosen({run.name: run for run in runs_of(args.studies)}, args.names, parser) if args.command == 'run' else []
    # configs, tools and data are named from the clone, the folders of the command line from where it is given
    paths = {key: value.resolve() for key, value in vars(args).items() if isinstance(value, Path)}
    os.chdir(REPO)
    vars(args).update({key: Path(os.path.relpath(path)) for key, path in paths.items()})
    console = Console(highlight=False, markup=False, soft_wrap=True)
    try:
        with interruptible():
            return carry_out(args, runs, console)
    except KeyboardInterrupt:
        console.print('\nstopped; the same command goes on from here')
        return INTERRUPTED


def carry_out(args: argparse.Namespace, runs: Sequence[Run], console: Console) -> int:
    if args.command == 'report':
        report(read_records(args.records), args.page, console)
        return 0
    if args.command == 'collect':
        collect(args.work_dir, args.records, console)
        return 0
    failed = run_all(runs, args, console)
    if failed:
        console.print(f'not finished: {", ".join(failed)}')
    return int(bool(failed))


if __name__ == '__main__':
    sys.exit(main())
