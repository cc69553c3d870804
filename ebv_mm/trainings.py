"""Trainings that run as subprocesses, of demo/ and benchmarks/: what they have written down, and how they are ended."""

import json
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Iterator

PATIENCE_SECONDS = 10


def read_scalars(file: Path) -> Iterator[dict]:
    """The records of a host's scalars.json, also while it is being written."""
    for line in file.read_text().splitlines():
        # The last line may be half written.
        with suppress(ValueError):
            yield json.loads(line)


def stop(process: subprocess.Popen) -> None:
    """End a process, by force if it does not end when it is asked to."""
    process.terminate()
    try:
        process.wait(timeout=PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
