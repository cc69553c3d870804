import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def read_scalars(folder: Path) -> Iterator[list[dict]]:
    """The records of a host's scalars.json, a list for each time that the training was started, the newest last.

    A training may be writing them: a last line that is half written is left out.
    """
    # Folders are named by the time at which they were begun.
    for file in sorted(folder.glob('*/vis_data/scalars.json')):
        records = []
        for line in file.read_text().splitlines():
            with suppress(ValueError):
                records.append(json.loads(line))
        yield records
