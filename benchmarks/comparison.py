"""EBV against FC and what people pick instead, on 1,000, 10,000 and 90,000 written characters: docs/large_n.md.

    python -m ebv_mm.characters data/characters            # once: the data
    python benchmarks/comparison.py run first              # trains what is not finished, one after the other
    python benchmarks/comparison.py run --dry-run          # shows what there is to train
    python benchmarks/comparison.py report                 # tables and the picture of the page

A training that was cut off goes on from its last checkpoint. A finished one is a small json file in
benchmarks/results/comparison/; its checkpoints are removed. Seconds are those of the process, so that other jobs do not
count; with --alone, on a machine that does nothing else, those of the clock.
"""

import argparse
import json
import math
import os
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))  # trainings/ is beside this folder, and not installed

from chosen import add_names, chosen
from comparison_arms import BATCH
from comparison_hook import FILE
from comparison_report import PAGE, report
from comparison_trials import (
    BUDGET,
    DEFAULT_RATE,
    EPOCHS,
    PACE,
    PACE_STEPS,
    PRETRAINING,
    SOURCE,
    STUDIES,
    Plan,
    Trial,
    optimizer_of,
    options,
    trials_of,
)
from real_data import HERE, show
from rich.console import Console
from studies import REPO, Run

from ebv_mm.characters import Store, split_by_family
from ebv_mm.output import whole_file
from trainings import ENVIRONMENT, INTERRUPTED, Training, interruptible, train_all

RESULTS = REPO / 'benchmarks' / 'results' / 'comparison'


@lru_cache(maxsize=None)
def train_images(data: Path, num_classes: int, skip: int, min_train: int) -> int:
    return len(split_by_family(Store(data), num_classes, skip=skip, min_train=min_train).train)


class ComparisonTraining(Training):
    """A trial in its folder, with the plan that was made when it first began."""

    def __init__(self, trial: Trial, args: argparse.Namespace) -> None:
        self.trial, self.args = trial, args
        threads = {name: str(args.threads) for name in ('OMP_NUM_THREADS', 'MKL_NUM_THREADS')}
        self.environment = {**ENVIRONMENT, **HERE, **threads}
        folder = args.work_dir / trial.name
        self._file = folder / 'plan.json'
        super().__init__(trial.name, folder, 0)
        self.total = self.plan().iterations

    def plan(self) -> Plan:
        return Plan(**json.loads(self._file.read_text())) if self._file.exists() else self._made_plan()

    def _made_plan(self) -> Plan:
        trial, args = self.trial, self.args
        rate = trial.rate or best_rate(trial.of.rate_of, args.results)
        if trial.kind == PACE:
            return Plan(rate, PACE_STEPS)
        if trial.steps is not None:
            return Plan(rate, trial.steps)
        epochs = trial.epochs or EPOCHS.get(trial.num_classes)
        source = trial.kind == SOURCE
        images = train_images(
            args.data, PRETRAINING if source else trial.num_classes, trial.num_classes * source, trial.min_train
        )
        if epochs is not None:
            return Plan(rate, epochs * math.ceil(images / BATCH))
        record = read(args.results, trial.pace())
        if record is None:
            return Plan(rate, 0)  # only to be shown: what is measured first is not there yet
        parts = record['parts']
        pace = sum(parts.values())
        # the means take one more pass over all images: reading and the backbone forward, a third of both its ways
        means = images / BATCH * (parts['data'] + parts['backbone'] / 3) if trial.of.means else 0
        left = 60 * (trial.minutes or BUDGET) - means
        return Plan(rate, max(1, int(left / pace)), round(pace, 4))

    def command(self) -> list[str]:
        plan, trial, args = self.plan(), self.trial, self.args
        source = trial.source()
        backbone = None if source is None else str(last_checkpoint(args.work_dir / source.name) or 'BACKBONE')
        changes = options(trial, plan, 'wall' if args.alone else 'cpu', str(args.data), backbone)
        command = Run(trial.name, trial.of.config, changes, trial.seed).train(args.work_dir)
        # of means there is nothing to tell before the end
        silent = trial.kind == PACE or trial.of.means
        return [*command[:2], '--no-validate', *command[2:]] if silent else command

    def start(self) -> None:
        with whole_file(self._file) as part:
            part.write_text(json.dumps(self.plan()._asdict()))
        super().start()

    def finished(self) -> bool:
        return (self.folder / FILE).exists()

    def keep(self) -> None:
        """Write the results down, and remove the checkpoints, unless a backbone is taken from them."""
        trial, plan = self.trial, self.plan()
        told = dict(
            num_classes=trial.num_classes, arm=trial.arm, seed=trial.seed, kind=trial.kind, threads=self.args.threads
        )
        told |= dict(rate=plan.rate, planned_seconds_a_step=plan.seconds_a_step, epochs=trial.epochs)
        told |= dict(steps=trial.steps, warm_up=trial.warm_up, minutes=trial.minutes)
        with whole_file(self.args.results / f'{trial.name}.json') as part:
            part.write_text(json.dumps({**told, **json.loads((self.folder / FILE).read_text())}) + '\n')
        if trial.kind != SOURCE:
            for checkpoint in self.folder.glob('*.pth'):
                checkpoint.unlink()


def last_checkpoint(folder: Path) -> Path | None:
    named = folder / 'last_checkpoint'
    path = Path(named.read_text().strip()) if named.exists() else None
    return path if path is not None and path.exists() else None


def read(results: Path, trial: Trial) -> dict | None:
    file = results / f'{trial.name}.json'
    return json.loads(file.read_text()) if file.exists() else None


def best_rate(arm: str, results: Path) -> float:
    """The learning rate with which an arm was best in the study of rates; the usual one before that has run."""
    tried = {trial.rate: read(results, trial) for trial in STUDIES['rates'] if trial.arm == arm}
    reached = {rate: record['curve'][-1]['top1'] for rate, record in tried.items() if record is not None}
    return max(reached, key=reached.get) if len(reached) == len(tried) else DEFAULT_RATE[optimizer_of(arm)]


def is_done(trial: Trial, args: argparse.Namespace) -> bool:
    """On record; and a backbone is there."""
    missing = trial.kind == SOURCE and last_checkpoint(args.work_dir / trial.name) is None
    return read(args.results, trial) is not None and not missing


def run_all(trials: Sequence[Trial], args: argparse.Namespace, console: Console) -> list[str]:
    """Train what is not on record, and before it what it needs; returns the names of what has failed."""
    failed = []

    def ended(training: ComparisonTraining) -> None:
        failure = training.failure()
        console.print(failure or f'{training.name}: finished')
        failed.append(training.name) if failure else training.keep()

    asked = [trial for trial in trials if not is_done(trial, args)]
    # what a training needs comes right before it
    todo = dict.fromkeys(one for trial in asked for one in (trial.pace(), trial.source(), trial) if one)
    todo = [trial for trial in todo if not is_done(trial, args)]
    console.print(f'{len(todo)} trainings to do')
    for trial in todo:
        if args.dry_run:
            console.print(trial.name)
            continue
        training = ComparisonTraining(trial, args)
        if training.finished():
            training.keep()
            continue
        missing = [one.name for one in (trial.pace(), trial.source()) if one and not is_done(one, args)]
        if missing:
            console.print(f'{trial.name}: needs {", ".join(missing)}, which failed')
            failed.append(trial.name)
            continue
        show(console, training.command())
        train_all([training], 1, console, ended)
    return failed


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest='command', required=True)
    running = commands.add_parser('run', help='train what is not finished')
    running.add_argument('studies', nargs='*', metavar='STUDY', help=f'of {", ".join(STUDIES)}; all without')
    add_names(running)
    running.add_argument('--data', type=Path, default=REPO / 'data' / 'characters')
    running.add_argument('--work-dir', type=Path, default=REPO / 'work_dirs' / 'comparison')
    running.add_argument('--threads', type=int, default=1)
    running.add_argument('--alone', action='store_true', help='nothing else runs: measure by the clock')
    running.add_argument('--dry-run', action='store_true')
    reporting = commands.add_parser('report', help='write the tables of the page, paint its picture')
    reporting.add_argument('--page', type=Path, default=PAGE, help='its tables are replaced')
    for command in (running, reporting):
        command.add_argument('--results', type=Path, default=RESULTS)
    args = parser.parse_args(argv)
    # configs and tools are named from the clone, the folders of the command line from where it is given
    paths = {key: value.absolute() for key, value in vars(args).items() if isinstance(value, Path)}
    os.chdir(REPO)
    vars(args).update({key: Path(os.path.relpath(path)) for key, path in paths.items()})
    console = Console(highlight=False, markup=False, soft_wrap=True)
    if args.command == 'report':
        return report(args.results, args.page, console)
    trials = chosen_trials(args, parser)
    try:
        with interruptible():
            failed = run_all(trials, args, console)
    except KeyboardInterrupt:
        console.print('\nstopped; the same command goes on from here')
        return INTERRUPTED
    if failed:
        console.print(f'not finished: {", ".join(failed)}')
    return int(bool(failed))


def chosen_trials(args: argparse.Namespace, parser: argparse.ArgumentParser) -> list[Trial]:
    unknown = [name for name in args.studies if name not in STUDIES]
    if unknown:
        parser.error(f'unknown study {unknown[0]!r}; choose from {", ".join(STUDIES)}')
    if args.threads < 1:
        parser.error(f'--threads {args.threads}: at least one')
    if args.threads > 1 and not args.alone:
        parser.error(f'--threads {args.threads}: the seconds of a process add up those of its threads; add --alone')
    trials = {trial.name: trial for trial in trials_of(args.studies or list(STUDIES))}
    return chosen(trials, args.names, parser)


if __name__ == '__main__':
    sys.exit(main())
