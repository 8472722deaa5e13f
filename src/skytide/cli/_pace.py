"""The pace of a replay: so many rows per second, or the times of the data, faster."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

PIECES_PER_SECOND = 20
NAP = 3600.0
"""Seconds that are slept at a time: systems know no sleep of centuries."""


class Pace:
    """When rows are due. With `speed` by their times, else `rate` rows per second; a rate of 0 does not wait.

    >>> naps = []
    >>> pace = Pace(rate=100, clock=lambda: 0.0, sleep=naps.append)
    >>> pace.pieces(None, 12), pace.wait(None, 10), pace.wait(None, 2), naps
    ([5, 10], None, None, [0.1])
    """

    def __init__(
        self,
        rate: float = 0,
        speed: float | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._rate, self._speed = rate, speed
        self._clock, self._sleep = clock, sleep
        self._began: float | None = None
        self._first: float | None = None
        self._rows = 0

    @property
    def by_times(self) -> bool:
        """Whether the times of the rows decide."""
        return self._speed is not None

    def pieces(self, times: Any, rows: int) -> list[int]:
        """Where so many rows are to be cut so that a page moves smoothly."""
        if self._speed is not None and times is not None:
            import numpy as np

            beats = np.floor(self._due(times) * PIECES_PER_SECOND)
            return (np.flatnonzero(np.diff(beats)) + 1).tolist()
        if not self._rate:
            return []
        return list(range(0, rows, max(1, int(self._rate / PIECES_PER_SECOND))))[1:]

    def wait(self, times: Any, rows: int) -> None:
        """Wait until the next rows are due."""
        now = self._clock()
        self._began = now if self._began is None else self._began
        if self._speed is not None and times is not None:
            due = float(self._due(times)[0])
        else:
            due = self._rows / self._rate if self._rate else 0.0
        self._rows += rows
        ahead = self._began + due - now
        while ahead > 1 / (2 * PIECES_PER_SECOND):
            self._sleep(min(ahead, NAP))
            ahead -= NAP

    def _due(self, times: Any) -> Any:
        """Seconds after the first row; times without a unit are seconds, and one that is missing is due at once."""
        import numpy as np

        from skytide.dashboard.values import moments

        found, clock = moments(times)
        seconds = found / 1000 if clock == "time" else found
        if self._first is None:
            known = seconds[np.isfinite(seconds)]
            self._first = float(known[0]) if len(known) else None
        due = (seconds - (self._first or 0.0)) / (self._speed or 1.0)
        return np.maximum.accumulate(np.where(np.isfinite(due), np.maximum(due, 0.0), 0.0))
