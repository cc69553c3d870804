"""Times of steps that take turns, peak memory in a process of its own, busy neighbours, and what the machine is."""

import contextlib
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable, Iterator, List

import torch

Step = Callable[[], object]


def median_times(steps: List[Step], repeats: int) -> List[float]:
    """Seconds of each step, which take turns, so that whatever else runs hurts all alike; the first turn warms up."""
    times: List[List[float]] = [[] for _ in steps]
    for turn in range(repeats + 1):
        for step, seen in zip(steps, times):
            start = time.perf_counter()
            result = step()
            if torch.is_tensor(result):
                result.cpu()  # waits for a GPU
            if turn:
                seen.append(time.perf_counter() - start)
    return [statistics.median(seen) for seen in times]


@contextlib.contextmanager
def busy_neighbours(count: int) -> Iterator[None]:
    """So many other processes that only count, as data-loading workers keep the cores busy."""
    others = [subprocess.Popen([sys.executable, '-c', 'while True: pass']) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def peak_megabytes(build: Callable[[], Step], with_model: bool, device: torch.device) -> float:
    """Peak memory of two steps in this process, above what it holds before; with the model of a training step."""
    gpu = device.type == 'cuda'
    now = (lambda: torch.cuda.memory_allocated() / 2**20) if gpu else (lambda: memory('VmRSS'))
    before = now()
    step = build()
    if not with_model:
        before = now()
    # forget the peak so far
    torch.cuda.reset_peak_memory_stats() if gpu else Path('/proc/self/clear_refs').write_text('5')
    for _ in range(2):
        step()
    return (torch.cuda.max_memory_allocated() / 2**20 if gpu else memory('VmHWM')) - before


def memory(key: str) -> float:
    """A line of /proc/self/status, in MB."""
    return int(re.search(rf'{key}:\s+(\d+) kB', Path('/proc/self/status').read_text())[1]) / 1024


def machine(device: torch.device) -> str:
    """Cores, instruction set and versions: what a figure is not told without."""
    from ebv_mm.basis.kernels.hadamard import hadamard_library

    kernel = 'compiled kernel' if hadamard_library()[0] is not None else 'no compiled kernel'
    isa = torch.backends.cpu.get_cpu_capability()
    gpu = f'{torch.cuda.get_device_name()}, ' if device.type == 'cuda' else ''
    return f'{gpu}torch {torch.__version__}, {torch.get_num_threads()} threads, {isa}, {kernel}'
