"""Try many inputs in a process of their own, and say how each of them ended.

The package holds if a trial ends as ``read`` or ``refused``; a run that was killed, as ``whole`` or ``as before``.
Everything else is a fault: another exception, a message that is no sentence, a result that is no basis, too long, too
much memory, code that was run, a dead process.
"""

import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Optional

REPO = Path(__file__).parents[2]
HELD = ('read', 'refused', 'whole', 'as before')
# One trial: what any honest file of these sizes needs many times over; of work, and of waiting for a busy machine.
SECONDS = 20
WAITING_SECONDS = 900
MEGABYTES = 400

# (which of them, its own random numbers, an empty folder)
Trial = Callable[[int, random.Random, Path], Optional[str]]


def judged(trial: Trial, index: int, rng: random.Random) -> str:
    """How one trial ends, in an empty folder."""
    from ebv_mm.basis import BasisError

    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # ends this process, wherever it is
        signal.alarm(WAITING_SECONDS)
        try:
            outcome = trial(index, rng, Path(folder)) or 'read'
        except BasisError as error:
            message = str(error)
            outcome = 'refused' if message.isprintable() and len(message) < 2000 else 'no sentence'
            if isinstance(error.__cause__, MemoryError):
                outcome = 'MemoryError'
        except Exception as error:
            outcome = type(error).__name__
        signal.alarm(0)
        signal.setitimer(signal.ITIMER_PROF, 0)
        if (Path(folder) / 'executed').exists():
            outcome = 'code was run'
        os.chdir('/')
    if time.process_time() - start > SECONDS / 2:
        outcome = 'slow'
    if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before > MEGABYTES * 1024:
        outcome = 'much memory'
    return outcome


def work(trial: Trial, name: str, seed: int, start: int, stop: int) -> None:
    """Print how the trials from start to stop ended, a line for each; this is the other process."""
    import ebv_mm  # noqa: F401  whose size is not counted

    size = int(Path('/proc/self/statm').read_text().split()[0]) * resource.getpagesize()
    limit = size + (3 << 30)  # so that a fault does not take the whole machine
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for index in range(start, stop):
        print(judged(trial, index, random.Random(f'{name} {seed} {index}')), flush=True)


def outcomes(script: Path, name: str, seed: int, count: int) -> Iterator[str]:
    """How ``count`` trials ended, in order; a process that dies is one outcome, and the next one goes on behind it."""
    done = 0
    while done < count:
        command = [sys.executable, str(script), 'work', name, str(seed), str(done), str(count)]
        environment = dict(os.environ, PYTHONPATH=str(REPO), OMP_NUM_THREADS='1')
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                done += 1
                yield line.strip()
        if process.returncode < 0:
            done += 1
            yield f'died of {signal.Signals(-process.returncode).name}'
        elif process.returncode:
            raise RuntimeError(f'{" ".join(command)} ended with {process.returncode}')


def faults(counts: Dict[str, int]) -> List[str]:
    return [f'{count} x {outcome}' for outcome, count in counts.items() if outcome not in HELD]


def counted(script: Path, name: str, seed: int, count: int) -> Counter:
    return Counter(outcomes(script, name, seed, count))
