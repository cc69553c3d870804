"""Carries out rows of a table: bases, trainings, tests; what is done already is left as it is."""

from pathlib import Path
from typing import Callable, Dict, List, Sequence, TextIO

from .experiment import Analysis, Experiment
from .needs import missing_data, weights
from .processes import CommandError, last_lines, locked_log, run_process, shown
from .rows import Row, Study, Table, Test
from .work_dir import WorkDir

Runner = Callable[[Sequence[str], TextIO], int]


class Reproduction:
    """A table in its folder.

    Args:
        table: What is reproduced.
        folder: Each config has its work dir in it, which all tables share.
        root: Where tools/ is.
        configs: Where the configs are.
        gpus: How many there are.
        run: What runs a command, with its output in an open log, and returns its exit code.
        dry: Only print the commands.
        smoke: Whether this is to try the rows, with ``Study.smoke`` and sparse bases.
    """

    def __init__(
        self,
        table: Table,
        folder: Path,
        root: Path,
        configs: Path,
        gpus: int,
        run: Runner = run_process,
        dry: bool = False,
        smoke: bool = False,
    ) -> None:
        self.table, self.folder, self.run, self.dry, self.smoke = table, folder, run, dry, smoke
        self.tools = root / 'tools'
        names = dict.fromkeys(config for row in table.rows for config in row.configs)
        self.experiments: Dict[str, Experiment] = {
            name: Experiment(configs / f'{name}.py', folder / name.rsplit('/', 1)[-1], gpus, self.tools)
            for name in names
        }

    def analysis(self, study: Study) -> Analysis:
        experiments = [self.experiments[config] for config in study.configs]
        return Analysis(study, experiments, self.folder / study.name, self.tools)

    def missing(self) -> List[str]:
        """What has to be there before it can begin."""
        return missing_data(experiment.cfg for experiment in self.experiments.values())

    def carry_out(self) -> List[str]:
        """Do what is left of every row; returns the names of those that have failed."""
        failed = []
        for row in self.table.rows:
            self._say(f'\n{row.label} ({row.name})')
            try:
                self._study(row) if isinstance(row, Study) else self._row(row)
            except (CommandError, OSError, ValueError) as error:
                self._say(f'{row.name} failed: {error}')
                failed.append(row.name)
        return list(dict.fromkeys(failed))

    def _row(self, row: Row) -> None:
        experiment = self.experiments[row.config]
        self._train(experiment)
        for test in row.tests:
            self._test(experiment, test)

    def _study(self, study: Study) -> None:
        analysis = self.analysis(study)
        for experiment in analysis.experiments:
            self._train(experiment)
        if analysis.done:
            self._say('done before')
            return
        self._command(
            analysis.command([self._checkpoint(e.work) for e in analysis.experiments], self.smoke),
            analysis.folder / 'log.txt',
        )
        if not self.dry:
            analysis.keep()

    def _train(self, experiment: Experiment) -> None:
        if experiment.work.trained:
            self._say('trained before')
            return
        if experiment.missing_bases:
            sparse = ['--sparse'] if self.smoke else []  # made at once
            self._command(experiment.make_bases(*sparse), experiment.folder / 'bases.txt')
        if weights(experiment.cfg):
            self._say(f'the host downloads {", ".join(weights(experiment.cfg))} where its cache lacks it')
        if experiment.scaled:
            self._say(
                f'{experiment.processes} x {experiment.images} images, but the batch is {experiment.batch}: '
                'the learning rate shrinks with it'
            )
        self._command(experiment.train(), experiment.folder / 'train.txt', begin=experiment.add_session)
        if not self.dry and not experiment.work.trained:
            raise ValueError(f'the training has ended, but {experiment.folder} has no whole last checkpoint')

    def _test(self, experiment: Experiment, test: Test) -> None:
        if experiment.result(test):
            self._say(f'tested before: {test.name}')
            return
        checkpoint = self._checkpoint(experiment.work)
        self._command(experiment.test(test, checkpoint), experiment.test_folder(test).with_suffix('.txt'))
        if not self.dry:
            experiment.keep_result(test, Path(checkpoint))

    def _checkpoint(self, work: WorkDir) -> str:
        if not work.trained:  # a dry run
            return work.to_test_pattern
        if work.to_test is None:
            raise ValueError(
                f'{work.folder} is trained, but a kill has left no whole best_*.pth; remove it and train again'
            )
        return str(work.to_test)

    def _command(self, command: Sequence[str], log: Path, begin: Callable[[], None] = lambda: None) -> None:
        self._say(f'$ {shown(command)}')
        if self.dry:
            return
        with locked_log(log) as output:
            begin()
            code = self.run(command, output)
        if code != 0:
            raise CommandError(f'exit code {code}; the end of {log}:\n{last_lines(log)}')

    def _say(self, text: str) -> None:
        print(text, flush=True)
