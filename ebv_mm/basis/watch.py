"""When an iteration has to end: a time limit, a wanted coherence, or somebody who says stop."""

import math
import time
from typing import Callable, Optional

# Called with (seconds since the start, best coherence so far); a true return value stops the iteration.
Report = Callable[[float, float], Optional[bool]]
SECONDS_BETWEEN_REPORTS = 0.2


class Watch:
    """Watches over one or several iterations that share a time limit.

    Args:
        time_limit: Seconds from now, None for no limit.
        target: Stop as soon as this coherence is reached.
        report: Called at most every :data:`SECONDS_BETWEEN_REPORTS`.
    """

    def __init__(
        self, time_limit: Optional[float] = None, target: float = 0.0, report: Optional[Report] = None
    ) -> None:
        if time_limit is not None and not time_limit > 0:
            raise ValueError(f'time_limit = {time_limit!r}, but it must be a positive number of seconds or None')
        self.start = time.monotonic()
        self.time_limit = time_limit
        self.target = target
        self.report = report
        self.stopped = False
        self.best = math.inf
        self._last_report = -math.inf

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.start

    @property
    def remaining(self) -> float:
        return math.inf if self.time_limit is None else self.time_limit - self.elapsed

    def see(self, coherence: float) -> bool:
        """Take note of a coherence that was reached; True when it is time to end."""
        self.best = min(self.best, coherence)
        elapsed = self.elapsed
        if self.report is not None and elapsed - self._last_report >= SECONDS_BETWEEN_REPORTS:
            self._last_report = elapsed
            self.stopped = bool(self.report(elapsed, self.best)) or self.stopped
        return self.over

    @property
    def over(self) -> bool:
        return self.stopped or self.best <= self.target or self.remaining <= 0
