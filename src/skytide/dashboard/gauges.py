"""Numbers about a run: what was counted so far, how fast it grows, and a line of each over the time of the wall."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

LINES = ("size", "rows_per_second", "changes_per_second", "latency", "retained")
MOST_POINTS = 600
SPAN = 3.0
"""Seconds over which a speed is taken."""


class Gauges:
    """Counts by name; `rows` and `changes` have speeds.

    >>> clock = iter([0.0, 0.0, 2.0, 2.0]).__next__
    >>> gauges = Gauges(clock); gauges.set(rows=0); gauges.set(rows=100); gauges.now()["rows_per_second"]
    50.0
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._numbers: dict[str, float] = {}
        self._past: dict[str, deque[tuple[float, float]]] = {"rows": deque(), "changes": deque()}
        self._at: list[float] = []
        self._lines: dict[str, list[float | None]] = {name: [] for name in LINES}
        self._step = 0.5
        self._began = clock()

    def set(self, **numbers: float) -> None:
        """What is counted by now."""
        now = self._clock()
        self._numbers.update(numbers)
        for name, past in self._past.items():
            if name in numbers:
                past.append((now, numbers[name]))
                while len(past) > 2 and past[1][0] < now - SPAN:
                    past.popleft()
        if not self._at or now - self._at[-1] >= self._step:
            self._note(now)

    def now(self) -> dict[str, float]:
        """All numbers, with speeds."""
        found = dict(self._numbers)
        for name, past in self._past.items():
            if len(past) > 1 and past[-1][0] > past[0][0]:
                given = found.get(f"{name}_per_second")
                speed = (past[-1][1] - past[0][1]) / (past[-1][0] - past[0][0])
                found[f"{name}_per_second"] = round(speed, 3) if given is None else given
        return found

    def lines(self) -> dict[str, list[float | None]]:
        """A line of each number: `at` has the times of its points, in milliseconds since 1970."""
        return {
            "at": [round(1000 * one) for one in self._at],
            **{name: list(line) for name, line in self._lines.items()},
        }

    def _note(self, now: float) -> None:
        numbers = self.now()
        self._at.append(now)
        for name, line in self._lines.items():
            line.append(numbers.get(name))
        if len(self._at) >= MOST_POINTS:  # every other point goes, and from now on points are twice as far apart
            self._step *= 2
            del self._at[1::2]
            for line in self._lines.values():
                del line[1::2]
