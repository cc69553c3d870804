"""What a table is made of: a row is a config, the tests of its checkpoint, and the figures to compare with."""

from dataclasses import dataclass, replace
from typing import Dict, Optional, Sequence, Tuple

PAPER = 'paper'
TOP1 = 'accuracy/top1'
MIOU = 'mIoU'


@dataclass(frozen=True)
class Figure:
    """A published figure.

    Args:
        metric: What the host calls it.
        value: In percent; NaN for a training that diverged, None where nobody has published any.
        source: Whose run it is. A figure that the paper prints but has from elsewhere is *borrowed*.
    """

    metric: str
    value: Optional[float] = None
    source: str = PAPER

    @property
    def borrowed(self) -> bool:
        return self.value is not None and self.source != PAPER

    def measured(self, metrics: Dict[str, float]) -> float:
        """The same figure of a test, in percent; mmdet alone reports fractions."""
        return metrics[self.metric] * (100 if self.metric.startswith('coco/') else 1)


@dataclass(frozen=True)
class Test:
    """A test of a row's checkpoint.

    Args:
        name: Unique within the config.
        figures: What it measures.
        arguments: Of tools/test.py.
    """

    name: str
    figures: Tuple[Figure, ...]
    arguments: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Row:
    """A model that is trained and tested.

    Args:
        label: As a reader would call it.
        config: Its path below configs/, without the suffix.
        tests: Of its checkpoint.
        note: What a reader must know to compare.
    """

    label: str
    config: str
    tests: Tuple[Test, ...]
    note: str = ''

    @property
    def name(self) -> str:
        """What --only takes, and what the work dir is called."""
        return self.config.rsplit('/', 1)[-1]

    @property
    def configs(self) -> Tuple[str, ...]:
        return (self.config,)


@dataclass(frozen=True)
class Study:
    """A row that is no training: a tool of tools/analysis/, on the checkpoints of some configs.

    Args:
        label: As a reader would call it.
        name: What --only takes, and what its folder is called.
        tool: Path of the tool below tools/.
        configs: Whose checkpoints it needs; each is followed by its checkpoint on the command line.
        arguments: Of the tool, beside ``--out``.
        smoke: In place of ``arguments``, to try it.
        note: What the paper says, which has no figures here.
    """

    label: str
    name: str
    tool: str
    configs: Tuple[str, ...] = ()
    arguments: Tuple[str, ...] = ()
    smoke: Tuple[str, ...] = ()
    note: str = ''


@dataclass(frozen=True)
class Table:
    """Rows that are compared with each other.

    Args:
        name: What the command takes.
        title: With its place in the paper.
        rows: Its rows.
        note: What a reader must know to compare.
    """

    name: str
    title: str
    rows: Tuple[object, ...]
    note: str = ''

    def only(self, names: Sequence[str]) -> 'Table':
        """The table of the rows of these names."""
        return replace(self, rows=tuple(row for row in self.rows if row.name in names))


def sized(size: int, value: Optional[float] = None, source: str = PAPER) -> Test:
    """Resize the short edge to ``size`` and crop as much, as the authors do."""
    options = ('--cfg-options', f'test_dataloader.dataset.pipeline.1.size={size}')
    return Test(str(size), (Figure(TOP1, value, source),), options)


def top1(value: Optional[float] = None, source: str = PAPER, name: str = 'as trained', *arguments: str) -> Test:
    """Top-1 accuracy by the config's own test."""
    return Test(name, (Figure(TOP1, value, source),), arguments)
