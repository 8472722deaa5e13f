"""What the engines with a compiled run loop and an event list share: batches in, growing arrays, rows out."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from skytide.kernel.events import EventList
from skytide.model import Floats, Integers
from skytide.monitors.sliding.engine import Moves, Rows

_ROW, _SIZE = 0, 3


class CompiledEngine(ABC):
    """An engine around an event list. Subclasses hold the rows' coordinates and name the compiled loop."""

    state_size: int

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self.dominance_tests = self.node_visits = 0
        self._now: int | None = None
        self._reset()

    # what a subclass says

    def _reset(self) -> None:
        """Forget all rows; subclasses add their own structures."""
        self.events = EventList()
        self._state = np.zeros(self.state_size, dtype=np.int64)

    @abstractmethod
    def _advance(self, values: Floats, keys: Integers, until: int, out: Integers) -> bool:
        """Call the compiled loop; True when all is done, False when something must grow first."""

    @abstractmethod
    def _grow(self) -> None:
        """Make room for at least one more step."""

    @abstractmethod
    def _values(self, slots: Integers) -> Floats:
        """The coordinates of these slots."""

    @abstractmethod
    def _work(self) -> tuple[int, int, int]:
        """Dominance tests and node visits since the last reset, and bytes held beside the event list."""

    # the interface of all engines

    def run(self, rows: Rows, until: int) -> Moves:
        """Take the rows, make all instants up to and including `until` final. One compiled call, unless arrays grow."""
        moves = self._drive(rows, rows.arrivals, until)
        self._now = until
        # A quarter in use or less: the rows move into arrays that fit, at a cost that their going has paid for.
        if self.events.room > 1024 and 4 * len(self.events) < self.events.room:
            self.load(self.retained(), until)
        return moves

    def retained(self) -> Rows:
        """Every row kept, in order of arrival, as copies. O(n)."""
        slots = self.events.order()
        e = self.events.arrays
        return Rows(self._values(slots), e.arrivals[slots], e.times[slots], e.handles[slots])

    def load(self, rows: Rows, now: int) -> None:
        """Start afresh from these rows as of `now`. Costs what their arrival costs."""
        tests, visits, _ = self._work()
        self.dominance_tests += tests
        self.node_visits += visits
        self._reset()
        self._now = now
        self._drive(rows, np.full(len(rows), now, dtype=np.int64), now)

    def next_event(self) -> int:
        """The earliest expiry of a row kept; the largest int64 if there is none. O(1)."""
        return self.events.next_time

    def counters(self) -> dict[str, int]:
        """Dominance tests and node visits since the start, bytes of all arrays held now. O(1)."""
        tests, visits, held = self._work()
        return {
            "dominance_tests": self.dominance_tests + tests,
            "node_visits": self.node_visits + visits,
            "memory_bytes": self.events.memory_bytes + self._state.nbytes + held,
        }

    def _drive(self, rows: Rows, instants: Integers, until: int) -> Moves:
        values = np.ascontiguousarray(rows.values, dtype=np.float64).reshape(len(rows), self.dimensions)
        keys = np.empty((len(rows), 4), dtype=np.int64)
        for column, given in enumerate((instants, rows.arrivals, rows.expiries, rows.handles)):
            keys[:, column] = given
        # Each row enters at most once and leaves at most once.
        out = np.empty((2 * (len(self.events) + len(rows)), 3), dtype=np.int64)
        self._state[[_ROW, _SIZE]] = 0
        while not self._advance(values, keys, until, out):
            self._grow()
        out = out[: self._state[_SIZE]]
        return Moves(out[:, 0].copy(), out[:, 1].copy(), out[:, 2].copy())
