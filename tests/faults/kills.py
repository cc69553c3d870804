"""Kill the command that makes a basis, at any moment, and look at what is there."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

from ebv_mm.basis import load_basis, make_basis, save_basis

TOOL = Path(__file__).parents[2] / 'tools' / 'make_basis.py'
# 4 MB, made at once and written in one piece, to be killed while writing; and one that a solver works at
COMMANDS = (
    ['--num-classes', '16384', '--dim', '64', '--method', 'delsarte-goethals'],
    ['--num-classes', '300', '--dim', '50', '--method', 'solver', '--time-limit', '2'],
)
LONGEST = 10.0


def killed_run(index: int, rng: random.Random, folder: Path) -> str:
    """Kill one run with SIGKILL: under the name of the file is what was there before, or the whole new basis."""
    command = COMMANDS[index % len(COMMANDS)]
    size = int(command[1]), int(command[3])
    out = folder / 'basis.safetensors'
    before = None
    if rng.random() < 0.5:
        save_basis(make_basis(5, 5), out)
        before = out.read_bytes()
    process = subprocess.Popen(
        [sys.executable, str(TOOL), *command, '--out', str(out), '--force'],
        env=dict(os.environ, PYTHONPATH=str(TOOL.parents[1]), OMP_NUM_THREADS='1'),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait(process, folder, rng)
    process.kill()
    process.wait()
    others = [name for name in os.listdir(folder) if name != out.name]
    assert len(others) <= 1 and all(name.startswith('.part-') for name in others), others
    if (out.read_bytes() if out.exists() else None) == before:
        return 'as before'
    basis = load_basis(out)
    assert (basis.num_classes, basis.dim) == size
    return 'whole'


def wait(process: subprocess.Popen, folder: Path, rng: random.Random) -> None:
    """For some time; or until a temporary file is there, which is the moment of writing."""
    writing = rng.random() < 0.6
    delay = rng.random() * LONGEST
    start = time.monotonic()
    while process.poll() is None and (writing or time.monotonic() - start < delay):
        if writing and any(name.startswith('.part-') for name in os.listdir(folder)):
            time.sleep(rng.random() * 0.01)
            return
        time.sleep(0 if writing else 0.01)
