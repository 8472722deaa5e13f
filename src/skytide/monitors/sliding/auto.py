"""The engine that `auto` means: a list or an R-tree, by what it sees, changed while it runs.

Both keep the same rows, so one can take over from the other at any instant. The list compares rows by small codes, a
few words for many rows, and falls back on values only where codes tie. As long as that is rare the list is the
fastest there is. It is not rare when the stream drifts so that codes tell nothing, or (for Lazy) when the skyline that
each row is compared with is large. So the rule looks at one number, the dominance tests per row of the last span:

* on the list, above a limit: change to the R-tree;
* on the R-tree, after a patience of four spans: try the list for an eighth of one. If it is above the limit still,
  double the patience, up to 64 spans. So a stream for which the R-tree is right pays for few and short trials.

The numbers were chosen from the sweep in docs/benchmarks.md. Eager is the method that `auto` picks: Lazy keeps the
whole window, and is not faster by more than the noise on any stream there.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from skytide.model import Integers
from skytide.monitors.sliding.engine import Engine, Moves, Rows
from skytide.monitors.sliding.engines import load_engine

SPAN = 65_536
"""Rows after which the choice is looked at again."""
PATIENCE, LONGEST_PATIENCE = 4, 64
"""Spans on the R-tree before the list is tried again: at first, and at most."""


def limit_of(method: str, dimensions: int) -> int:
    """The dominance tests per row above which the R-tree is the better choice.

    Lazy's list is a plain scan, so it may do more of them; R-trees lose their bite with the dimensions.
    """
    if method == "eager":
        return 128
    return 4_096 if dimensions < 6 else 65_536


class AutoEngine:
    """Eager (or Lazy) over whichever of list and R-tree suits the stream. Changing costs one load of the rows kept."""

    def __init__(self, dimensions: int, method: str = "eager", *, span: int = SPAN, limit: int | None = None) -> None:
        self._dimensions = dimensions
        self._method = method
        self._span = span
        self._limit = limit_of(method, dimensions) if limit is None else limit
        self.index = "list"
        self._engine: Engine = load_engine(method, "list")(dimensions)
        self._done = {"dominance_tests": 0, "node_visits": 0, "engine_changes": 0}
        self._taken = 0
        self._tests = 0
        self._patience = PATIENCE
        self._spans = 0
        self._due = max(1, span // 8)

    def run(self, rows: Rows, until: int) -> Moves:
        """Take the rows with now < arrival <= until, make all instants up to and including `until` final."""
        parts = []
        for part, end in self._slices(rows, until):
            parts.append(self._engine.run(part, end))
            self._taken += len(part)
            if self._taken >= self._due:
                self._reconsider(end)
        return Moves.joined(parts)

    def _slices(self, rows: Rows, until: int) -> Iterator[tuple[Rows, int]]:
        """The rows in parts of about a span that end between two instants, each with the instant it makes final."""
        start, n = 0, len(rows)
        while n - start > 2 * self._due:
            cut = _instant_after(rows.arrivals, start + self._due)
            if cut == n:
                break
            yield rows.pick(slice(start, cut)), int(rows.arrivals[cut]) - 1
            start = cut
        yield (rows.pick(slice(start, n)) if start else rows), until

    def _reconsider(self, now: int) -> None:
        tests = self._engine.counters()["dominance_tests"]
        busy = tests - self._tests > self._limit * self._taken
        self._taken, self._tests = 0, tests
        self._spans += 1
        self._due = self._span
        if self.index == "list":
            if busy:
                self._change("rtree", now)
            elif self._spans > 1:
                self._patience = PATIENCE
        elif self._spans >= self._patience:
            self._patience = min(LONGEST_PATIENCE, 2 * self._patience)
            self._change("list", now)
            self._due = max(1, self._span // 8)

    def _change(self, index: str, now: int) -> None:
        rows = self._engine.retained()
        self._retire()
        self.index = index
        self._engine = load_engine(self._method, index)(self._dimensions)
        self._engine.load(rows, now)
        self._done["engine_changes"] += 1
        self._tests = self._engine.counters()["dominance_tests"]
        self._spans = 0

    def _retire(self) -> None:
        for name, amount in self._engine.counters().items():
            if name in self._done:
                self._done[name] += amount

    def retained(self) -> Rows:
        """Every row that may still matter, as of `now`."""
        return self._engine.retained()

    def load(self, rows: Rows, now: int) -> None:
        """Start afresh from retained rows as of `now` without emitting moves."""
        self._engine.load(rows, now)
        self._tests, self._taken = self._engine.counters()["dominance_tests"], 0

    def next_event(self) -> int:
        """No move happens before this instant unless rows arrive."""
        return self._engine.next_event()

    def counters(self) -> dict[str, int]:
        """Work of both engines since the start, how often they changed, and memory as of now."""
        found = self._engine.counters()
        return {**found, **{name: amount + found.get(name, 0) for name, amount in self._done.items()}}


def _instant_after(arrivals: Integers, position: int) -> int:
    """The first position from this one on at which a new instant begins."""
    return int(np.searchsorted(arrivals, arrivals[position - 1], side="right"))
