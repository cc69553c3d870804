"""Work on the rows of a batch, split over threads that never wait for each other before the end."""

import threading
from typing import Callable, List

import torch

# so many parts for each thread: one that shares its core with another process then does fewer of them
TURNS = 4


def over_rows(batch: int, unit: int, work: Callable[[slice], None]) -> None:
    """Call ``work`` with slices that cover the rows 0 ... batch - 1, on as many threads as torch has.

    torch's own operators split each single operation, and after each of them all threads wait for the slowest, which
    is slow as soon as another process wants one of the cores. Here a thread takes the next rows when it is done.

    Args:
        unit: Slices begin at multiples of this.
        work: Gets a slice of rows; runs without gradients, on one thread.
    """
    units = -(-batch // unit)
    threads = max(1, min(torch.get_num_threads(), units))
    step = max(1, -(-units // (threads * TURNS))) * unit
    parts = [slice(start, min(start + step, batch)) for start in range(0, batch, step)]
    if threads == 1:
        _work_on(parts, work)
        return
    errors: List[BaseException] = []

    def run() -> None:
        torch.set_num_threads(1)  # of this thread alone
        try:
            _work_on(parts, work)
        except BaseException as error:  # for the caller
            errors.append(error)

    helpers = [threading.Thread(target=run) for _ in range(threads)]
    for helper in helpers:
        helper.start()
    for helper in helpers:
        helper.join()
    if errors:
        raise errors[0]


def _work_on(parts: List[slice], work: Callable[[slice], None]) -> None:
    with torch.no_grad():
        while parts:
            try:
                part = parts.pop()
            except IndexError:  # another thread was faster
                return
            work(part)
