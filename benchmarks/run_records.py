"""The results that outlive their runs: one small JSON file, a line for each run, from which the page is made."""

import json
from pathlib import Path
from typing import NamedTuple

from ebv_mm.output import whole_file

MEASURED = 'measured'
FILE = Path(__file__).parents[1] / 'docs' / 'results' / 'runs.json'


class Classifier(NamedTuple):
    """Of the classifier's weight (FC's matrix, EBV's projection): its norms, and how far it has turned, as a cosine."""

    norm_begin: float
    norm_end: float | None = None
    cosine: float | None = None


class Record(NamedTuple):
    """What is kept of a finished run.

    Attributes:
        source: MEASURED, or the page that has these figures, of runs that are gone.
        seed, unit, total: Of what; 'epoch' or 'iteration'; how many.
        metrics: The hosts' metrics, by epoch or iteration.
        losses: Means of the losses, by name and by epoch, or twentieth of the iterations.
        classifier: Of its weight.
        versions: What it was measured with.
    """

    source: str
    seed: int
    unit: str
    total: int
    metrics: dict[int, dict[str, float]]
    losses: dict[str, dict[int, float]]
    classifier: Classifier
    versions: dict[str, str]

    def last(self, metric: str) -> float | None:
        """A metric at the end; None if the source does not tell it. In percent; mmdet's are shares of one."""
        value = self.metrics[self.total].get(metric)
        return 100 * value if value is not None and metric.startswith('coco/') else value

    def last_loss(self, key: str) -> float | None:
        return self.losses.get(key, {}).get(self.total)


def read_records(file: Path = FILE) -> dict[str, Record]:
    """The records by the names of their runs."""
    records = json.loads(file.read_text()) if file.exists() else {}
    return {name: _from_json(**record) for name, record in records.items()}


def _from_json(metrics: dict, losses: dict, classifier: list, **others) -> Record:
    return Record(
        metrics={int(step): values for step, values in metrics.items()},
        losses={key: {int(step): loss for step, loss in values.items()} for key, values in losses.items()},
        classifier=Classifier(*classifier),
        **others,
    )


def write_records(records: dict[str, Record], file: Path = FILE) -> None:
    lines = [f'{json.dumps(name)}: {json.dumps(record._asdict())}' for name, record in sorted(records.items())]
    with whole_file(file) as part:
        part.write_text('{\n' + ',\n'.join(lines) + '\n}\n')
