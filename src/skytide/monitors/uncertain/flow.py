"""Uncertain rows on the way to their engines: they flow like certain ones, the probability as a last column.

The flows of `monitors.sliding` put rows in order, hold them back, split them into groups and wake groups in time. They
carry a matrix of values per row and a sign per move; here the matrix has one column more, and the sign of a move about
the i-th threshold (from 0) is 1 + i or -1 - i. Instances of one object are neighbouring rows with one handle.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skytide.model import Floats, Integers
from skytide.monitors.sliding.clock import LOWEST
from skytide.monitors.sliding.engine import Moves, Rows
from skytide.monitors.sliding.flow import CountFlow
from skytide.monitors.sliding.waiting import Arrivals
from skytide.monitors.uncertain.auto import make_engine
from skytide.monitors.uncertain.engine import TOLERANCE, ThresholdMoves, UncertainEngine, UncertainRows


def packed(rows: UncertainRows) -> Rows:
    """Uncertain rows as rows whose last column is the probability."""
    values = np.column_stack((rows.values, rows.probabilities))
    return Rows(values, rows.arrivals, rows.expiries, rows.handles)


def unpacked(rows: Rows) -> UncertainRows:
    """The other way round. A row of probability 0 never exists: engines do not see it."""
    if not (rows.values[:, -1] > 0).all():
        rows = rows.pick(rows.values[:, -1] > 0)
    values = np.ascontiguousarray(rows.values[:, :-1])
    probabilities = np.ascontiguousarray(rows.values[:, -1])
    return UncertainRows(values, probabilities, rows.arrivals, rows.expiries, rows.handles)


class PackedEngine:
    """An engine for uncertain rows behind the interface of those for certain ones."""

    def __init__(self, inner: UncertainEngine) -> None:
        self.inner = inner

    def run(self, rows: Rows, until: int) -> Moves:
        """As `Engine.run`; signs tell the threshold."""
        moves = self.inner.run(unpacked(rows), until)
        return Moves(moves.times, moves.signs * (1 + moves.thresholds), moves.handles)

    def retained(self) -> Rows:
        """As `Engine.retained`."""
        return packed(self.inner.retained())

    def load(self, rows: Rows, now: int) -> None:
        """As `Engine.load`."""
        self.inner.load(unpacked(rows), now)

    def next_event(self) -> int:
        """As `Engine.next_event`."""
        return self.inner.next_event()

    def counters(self) -> dict[str, int]:
        """As `Engine.counters`."""
        return self.inner.counters()


def make_inner(dimensions: int, thresholds: Floats, method: str, *, objects: bool = False) -> UncertainEngine:
    """An engine of the wanted kind; `thresholds` fall. Imports compiled code."""
    if objects:
        from skytide.monitors.uncertain.objects import ObjectEngine

        return ObjectEngine(dimensions, thresholds)
    return make_engine(dimensions, thresholds.tolist(), method=method)


def most_probable(probabilities: Floats, k: int) -> npt.NDArray[np.bool_]:
    """Which have fewer than k more probable by more than 1e-12, relatively; equal ones share their fate. O(n log n).

    >>> most_probable(np.array([0.5, 0.7, 0.5, 0.2]), 2).tolist()
    [True, True, True, False]
    """
    bars = np.sort(probabilities * (1 - TOLERANCE))
    return len(bars) - np.searchsorted(bars, probabilities, side="right") < k


class TopEngine:
    """Makes the answer of an engine the k most probable rows at the smallest threshold: one look at it per instant."""

    def __init__(self, inner: UncertainEngine, thresholds: Floats, k: int) -> None:
        self.inner, self._k, self._now = inner, k, LOWEST
        self._least, self._place = float(thresholds[-1]), len(thresholds) - 1
        self._members: Integers = np.zeros(0, np.int64)

    def run(self, rows: UncertainRows, until: int) -> ThresholdMoves:
        """As `UncertainEngine.run`; instant by instant, because any change of a probability may change the order."""
        parts: list[ThresholdMoves] = []
        start = 0
        while True:
            arrival = int(rows.arrivals[start]) if start < len(rows) else until
            at = min(arrival, max(self.inner.next_event(), self._now + 1), until)
            stop = start + int(np.searchsorted(rows.arrivals[start:], at, side="right"))
            self.inner.run(rows.pick(slice(start, stop)), at)
            members = np.sort(self.answer(self._least)[0])
            if not np.array_equal(members, self._members):
                parts.append(self._differences(members, at))
            start, self._now = stop, at
            if at == until:
                return ThresholdMoves.joined(parts)

    def _differences(self, members: Integers, at: int) -> ThresholdMoves:
        before, self._members = self._members, members
        gone = np.setdiff1d(before, self._members)
        come = np.setdiff1d(self._members, before)
        signs = np.concatenate((np.full(len(gone), -1), np.full(len(come), 1)))
        handles = np.concatenate((gone, come))
        return ThresholdMoves(np.full(len(signs), at), signs, handles, np.full(len(signs), self._place))

    def answer(self, threshold: float) -> tuple[Integers, Floats]:
        """As `UncertainEngine.answer`: of those that reach the threshold, the k most probable."""
        handles, probabilities = self.inner.answer(threshold)
        inside = most_probable(probabilities, self._k)
        return handles[inside], probabilities[inside]

    def retained(self) -> UncertainRows:
        """As `UncertainEngine.retained`."""
        return self.inner.retained()

    def load(self, rows: UncertainRows, now: int) -> None:
        """As `UncertainEngine.load`."""
        self.inner.load(rows, now)
        self._members, self._now = np.sort(self.answer(self._least)[0]), now

    def next_event(self) -> int:
        """As `UncertainEngine.next_event`."""
        return self.inner.next_event()

    def counters(self) -> dict[str, int]:
        """As `UncertainEngine.counters`."""
        return self.inner.counters()


@dataclass
class CountedFlow(CountFlow):
    """A count window of rows or, once that is said, of objects: then neighbouring rows with one handle count once."""

    objects: bool = False

    def take(self, rows: Arrivals) -> Moves:
        """As `CountFlow.take`."""
        if not self.objects:
            return super().take(rows)
        numbers = self.number + _numbered(rows.handles)
        parts = []
        for code, mine in rows._replace(keys=numbers).by_group():
            before = self.counts.get(code, 0)
            local = before + _numbered(mine.handles)
            last = int(local[-1])
            moves = self.engine(code).run(Rows(mine.values, local, local + self.length, mine.handles), last)
            self.counts[code] = last
            first = np.searchsorted(local, moves.times)
            parts.append(Moves(mine.keys[first], moves.signs, moves.handles))
        self.number = int(numbers[-1]) if len(numbers) else self.number
        return self._count(Moves.joined(parts))


def _numbered(handles: Integers) -> Integers:
    """1 for the rows of the first object, 2 for those of the second, and so on."""
    return np.cumsum(np.concatenate(([True], handles[1:] != handles[:-1])), dtype=np.int64)[: len(handles)]
