"""A config in its work dir: what is left to do, as command lines of tools/."""

import json
import re
import sys
from pathlib import Path
from typing import Dict, List, Optional

from mmengine.config import Config

from ..config_bases import basis_paths
from ..output import whole_file
from .origin import origin
from .rows import Study, Test
from .work_dir import WorkDir


class Experiment:
    """A training and its tests.

    Args:
        config: The config file.
        folder: Of everything that comes of it.
        gpus: How many there are; the config's batch tells how many of them are used. 0 for a process without any.
        tools: The folder of the tools.
    """

    def __init__(self, config: Path, folder: Path, gpus: int, tools: Path) -> None:
        self.config, self.folder, self.gpus, self.tools = config, folder, gpus, tools
        self.cfg = Config.fromfile(config, import_custom_modules=False)
        self.work = WorkDir(folder, self.cfg)
        self.batch = self.cfg.auto_scale_lr.base_batch_size
        self.images = self.cfg.train_dataloader.batch_size  # on each GPU
        self.processes = max(1, min(gpus, self.batch // self.images))

    @property
    def scaled(self) -> bool:
        """Whether there are too few GPUs for the batch, so that the learning rate shrinks with it."""
        return self.gpus > 0 and self.processes * self.images != self.batch

    @property
    def seed(self) -> Optional[int]:
        return self.cfg.get('randomness', {}).get('seed')

    @property
    def missing_bases(self) -> List[str]:
        return [path for path in basis_paths(self.cfg.model.to_dict()) if not Path(path).exists()]

    def make_bases(self, *arguments: str) -> List[str]:
        return [sys.executable, str(self.tools / 'make_basis.py'), str(self.config), *arguments]

    def train(self) -> List[str]:
        """Train, from the newest whole checkpoint if there is one."""
        arguments = ['--work-dir', str(self.folder)]
        if self.work.begun:
            arguments += ['--resume', str(self.work.newest)]
        if self.scaled:
            arguments.append('--auto-scale-lr')
        return [*self._tool('train', self.config), *arguments]

    def test(self, test: Test, checkpoint: str) -> List[str]:
        arguments = ['--work-dir', str(self.test_folder(test)), *test.arguments]
        return [*self._tool('test', self.config, checkpoint), *arguments]

    def test_folder(self, test: Test) -> Path:
        return self.folder / 'tests' / slug(test.name)

    def result(self, test: Test) -> Optional[dict]:
        """What a test of the present checkpoint has written down."""
        result = read_json(self.test_folder(test).with_suffix('.json'))
        checkpoint = self.work.to_test
        if result is None or checkpoint is None:
            return None
        return result if result['checkpoint'] == fingerprint(checkpoint) else None

    def keep_result(self, test: Test, checkpoint: Path) -> None:
        """Write down what the host has measured, so that it is not measured again."""
        newest = max(self.test_folder(test).glob('*/*.json'))  # folders are called by the time
        metrics = json.loads(newest.read_text())
        absent = [figure.metric for figure in test.figures if figure.metric not in metrics]
        if absent:
            raise ValueError(f'{newest} has no {", ".join(absent)}; see the log beside it')
        result = dict(checkpoint=fingerprint(checkpoint), metrics=metrics, **origin())
        write_json(self.test_folder(test).with_suffix('.json'), result)

    @property
    def sessions(self) -> List[dict]:
        """The times that the training was started here, each with commit and versions."""
        return read_json(self.folder / 'sessions.json') or []

    def add_session(self) -> None:
        session = dict(gpus=self.processes if self.gpus else 0, scaled=self.scaled, **origin())
        write_json(self.folder / 'sessions.json', [*self.sessions, session])

    def _tool(self, tool: str, *first: object) -> List[str]:
        if self.processes == 1:
            return [sys.executable, str(self.tools / f'{tool}.py'), *map(str, first)]
        return [str(self.tools / f'dist_{tool}.sh'), *map(str, first), str(self.processes)]


class Analysis:
    """A study in its folder; done when it has ended well on the present checkpoints.

    Args:
        study: The study.
        experiments: Those of its configs, in order.
        folder: Of its output.
        tools: The folder of the tools.
    """

    def __init__(self, study: Study, experiments: List[Experiment], folder: Path, tools: Path) -> None:
        self.study, self.experiments, self.folder, self.tools = study, experiments, folder, tools

    def command(self, checkpoints: List[str], smoke: bool) -> List[str]:
        models = [str(part) for pair in zip((e.config for e in self.experiments), checkpoints) for part in pair]
        arguments = self.study.smoke if smoke else self.study.arguments
        return [sys.executable, str(self.tools / self.study.tool), *models, '--out', str(self.folder), *arguments]

    @property
    def done(self) -> bool:
        if not all(experiment.work.to_test for experiment in self.experiments):
            return False
        record = read_json(self.folder / 'done.json')
        return record is not None and record['checkpoints'] == self._fingerprints()

    def keep(self) -> None:
        write_json(self.folder / 'done.json', dict(checkpoints=self._fingerprints(), **origin()))

    def _fingerprints(self) -> List[dict]:
        return [fingerprint(experiment.work.to_test) for experiment in self.experiments]


def fingerprint(checkpoint: Path) -> Dict[str, object]:
    """What tells a checkpoint from another of the same name."""
    status = checkpoint.stat()
    return dict(file=checkpoint.name, size=status.st_size, modified=int(status.st_mtime))


def read_json(file: Path) -> Optional[object]:
    return json.loads(file.read_text()) if file.is_file() else None


def write_json(file: Path, content: object) -> None:
    with whole_file(file) as part:
        part.write_text(json.dumps(content, indent=2) + '\n')


def slug(name: str) -> str:
    return re.sub(r'\W+', '-', name).strip('-')
