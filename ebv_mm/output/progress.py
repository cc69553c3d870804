"""How far a long job is, and a way to end it without losing what it has."""

import signal
import time
from typing import Dict, Optional, Set, Tuple

from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn
from rich.progress import Progress as LiveLines

# in a log file; on a terminal a live line is kept up to date
SECONDS_BETWEEN_LINES = 20.0


class Progress:
    """Shows how far jobs are: one live line for each on a terminal, a line now and then where there is none.

    Example:
        >>> with Progress() as progress:
        ...     for done in range(1, 4):
        ...         progress.show('batches', done, 3)
    """

    def __init__(self, console: Optional[Console] = None) -> None:
        self.console = console or Console(stderr=True)
        self.alive = self.console.is_terminal and not self.console.is_dumb_terminal
        self.live = LiveLines(
            TextColumn('{task.description}', markup=False),
            BarColumn(bar_width=12),
            TextColumn('{task.fields[line]}', markup=False),
            console=self.console,
        )
        self.tasks: Dict[str, TaskID] = {}
        self.printed: Dict[str, float] = {}
        self.begun: Dict[str, float] = {}
        self.whole: Set[str] = set()
        # the first count seen, and when: a pace without the time that a start takes
        self.first: Dict[str, Tuple[float, float]] = {}

    def __enter__(self) -> 'Progress':
        if self.alive:
            self.live.start()
        return self

    def __exit__(self, *_) -> None:
        if self.alive:
            self.live.stop()

    def show(
        self, name: str, done: float = 0, total: Optional[float] = None, state: str = '', finished: bool = False
    ) -> None:
        """Tell how far the job ``name`` is, and in what state; ``total`` None where nobody knows how long it takes."""
        now = time.monotonic()
        line = self._line(name, done, total, state, now)
        if self.alive:
            if name not in self.tasks:
                self.tasks[name] = self.live.add_task(name, total=total, line=line)
            self.live.update(self.tasks[name], completed=done, line=line)
            return
        # the whole count is told at once, but not again while the job goes on, such as a training that is tested
        ends = finished or (done == total and name not in self.whole)
        if ends:
            self.whole.add(name)
        if name not in self.printed or ends or now - self.printed[name] >= SECONDS_BETWEEN_LINES:
            self.printed[name] = now
            print(f'{name}: {line}', file=self.console.file, flush=True)

    def _line(self, name: str, done: float, total: Optional[float], state: str, now: float) -> str:
        parts = [] if total is None else [f'{done:g}/{total:g}']
        parts += [state] if state else []
        parts.append(f'{now - self.begun.setdefault(name, now):.0f} s')
        if total is not None and 0 < done < total:
            first, since = self.first.setdefault(name, (done, now))
            if done > first:
                parts.append(f'{(now - since) / (done - first) * (total - done):.0f} s left')
        return ', '.join(parts)


class StopOnInterrupt:
    """Within this context Ctrl-C only asks for an end, which ``asked`` tells; a second one ends the program.

    Processes that are started inside inherit this, and so survive the first Ctrl-C as well.
    """

    def __enter__(self) -> 'StopOnInterrupt':
        self.asked = False
        self.previous = signal.signal(signal.SIGINT, self._on_interrupt)
        return self

    def __exit__(self, *_) -> None:
        signal.signal(signal.SIGINT, self.previous)

    def _on_interrupt(self, *_) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
