"""What the compiled engines for uncertain rows share: a store of candidates that grows and shrinks, and its answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from skytide.errors import OptionError
from skytide.kernel import uncertain_state as state
from skytide.kernel.uncertain_numbers import BAR, HIGH_UNIT, LEVEL, LOW_UNIT, MARGIN, bars_of
from skytide.model import Floats, Integers
from skytide.monitors.uncertain.engine import ThresholdMoves, UncertainRows

_LEAST = 8
"""Slots of an empty engine."""


class CompiledEngine:
    """A store and the calls of `UncertainEngine` on it; the kernel that takes rows is the subclass's `_take`."""

    coded = False
    """Whether the candidates have codes."""

    def __init__(self, dimensions: int, thresholds: Sequence[float]) -> None:
        levels = np.array(thresholds, dtype=np.float64)
        if not len(levels) or not ((levels > 0) & (levels <= 1)).all() or (np.diff(levels) >= 0).any():
            raise OptionError(
                "are not thresholds", value=list(thresholds), remedy="give numbers above 0, up to 1, in falling order"
            )
        self.dimensions = dimensions
        self.thresholds = levels
        self._bars = bars_of(levels)
        self._reset()

    def _reset(self) -> None:
        self._store = state.allocate(self.dimensions, _LEAST, self._bars, self.coded)

    def run(self, rows: UncertainRows, until: int) -> ThresholdMoves:
        """Take the rows with now < arrival <= until, make all instants up to and including `until` final."""
        rows = UncertainRows(
            _behaved(rows.values, np.float64),
            _behaved(rows.probabilities, np.float64),
            _behaved(rows.arrivals, np.int64),
            _behaved(rows.expiries, np.int64),
            _behaved(rows.handles, np.int64),
        )
        parts = []
        taken = 0
        while True:
            taken, moves = self._take(rows, taken, until)
            parts.append(moves)
            if taken == len(rows):
                break
            if 8 * self._store.meta[state.USED] > 7 * self._slots:
                self._resize()
        if self._slots > 4 * self._live + _LEAST:
            self._resize()
        found = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
        return ThresholdMoves(*found)

    def _take(self, rows: UncertainRows, start: int, until: int) -> tuple[int, Integers]:
        """Take rows from `start` on until they end or there is no room: how many are taken in all, and the moves."""
        raise NotImplementedError

    @property
    def _slots(self) -> int:
        return len(self._store.flags)

    @property
    def _live(self) -> int:
        return int(self._store.meta[state.LIVE])

    def _compact(self) -> Integers:
        moved = np.empty(self._slots, np.int64)
        state.compact(self._store, moved)
        return moved

    def _resize(self) -> None:
        """Close the holes, and make room for half as many candidates again."""
        self._compact()
        old = self._store
        used = int(old.meta[state.USED])
        new = state.allocate(self.dimensions, used + used // 2 + _LEAST, self._bars, self.coded)
        new.values[:used] = old.values[:used]
        for of_new, of_old in zip(new[1:6], old[1:6], strict=True):
            of_new[:, :used] = of_old[:, :used]
        for of_new, of_old in zip(new[6:9], old[6:9], strict=True):
            of_new[:used] = of_old[:used]
        if self.coded:
            new.codes[:, :used] = old.codes[:, :used]
            new.alive[: len(old.alive)] = old.alive[: len(new.alive)]
        new.meta[:] = old.meta
        self._store = new

    def _totals(self) -> Floats:
        """The totals of the candidates in the answer, by slot; what stands at other slots means nothing."""
        return np.asarray(self._store.total[0] / HIGH_UNIT + self._store.total[1] / LOW_UNIT)

    def answer(self, threshold: float) -> tuple[Integers, Floats]:
        """Handles and skyline probabilities of the rows that reach a threshold not below the smallest, as of `now`.

        O(candidates).
        """
        if not self.thresholds[-1] <= threshold <= 1:
            raise OptionError(
                "is no threshold that can be asked for",
                value=threshold,
                remedy=f"give a number from {self.thresholds[-1]} to 1",
            )
        bars = bars_of(np.array([threshold]))
        slots = np.empty(self._slots, np.int64)
        chances = np.empty(self._slots)
        count = state.members(
            tuple(self._store), self._totals(), bars[BAR, 0], bars[MARGIN, 0], bars[LEVEL, 0], slots, chances
        )
        return self._store.keys[state.HANDLE, slots[:count]], chances[:count]

    def retained(self) -> UncertainRows:
        """The candidates, in order of arrival, as copies. O(candidates)."""
        alive = np.flatnonzero(self._store.flags & state.ALIVE)
        keys = self._store.keys[:, alive]
        return UncertainRows(
            self._store.values[alive],
            self._store.chances[state.CHANCE, alive],
            keys[state.ARRIVAL],
            keys[state.EXPIRY],
            keys[state.HANDLE],
        )

    def load(self, rows: UncertainRows, now: int) -> None:
        """Start afresh from retained rows as of `now` without emitting moves. As costly as their arrivals."""
        work = self._store.meta[[state.TESTS, state.VISITS]]
        self._reset()
        self._store.meta[[state.TESTS, state.VISITS]] = work
        # Rows that arrived up to `now` are taken as of `now`, all in one instant.
        self._store.meta[state.OPEN] = now
        self.run(rows, now)

    def next_event(self) -> int:
        """The earliest expiry of a candidate, before which nothing moves unless rows arrive. O(1), amortised."""
        return int(state.next_expiry(tuple(self._store)))

    def counters(self) -> dict[str, int]:
        """Comparisons of two rows' values, blocks or nodes looked at since the start, and bytes held now."""
        meta = self._store.meta
        return {
            "dominance_tests": int(meta[state.TESTS]),
            "node_visits": int(meta[state.VISITS]),
            "memory_bytes": sum(array.nbytes for array in self._store),
        }

    def _check(self) -> None:
        """State the invariants, for tests: sums, bands, the list of marks and the bounds of the store."""
        store = self._store
        used = int(store.meta[state.USED])
        slots = np.flatnonzero(store.flags & state.ALIVE)
        values = store.values
        assert len(slots) == self._live and (slots < used).all() and store.meta[state.MARKS] == 0
        assert not (store.flags & ~np.uint8(state.ALIVE | state.KNOWN)).any()
        assert np.isnan(np.delete(values, slots, axis=0)).all() and not np.isnan(values[slots]).any()
        totals, bar = self._totals(), self._bars[BAR, -1]
        for c in slots.tolist():
            above = slots[(values[slots] <= values[c]).all(1) & (values[slots] < values[c]).any(1)]
            total = store.weights[:, above].sum(axis=1)
            if self._known(c):
                assert (self._total(c) == total).all()
            else:
                assert store.shown[c] == len(self.thresholds)
                assert store.chances[state.LOG, c] + total[0] / HIGH_UNIT + total[1] / LOW_UNIT < bar
            if store.shown[c] < len(self.thresholds):
                assert self._known(c) and store.chances[state.LOG, c] + totals[c] > bar - 1e-11
            # Lasting dominators may have been dropped since; those that are left cannot exceed the sum.
            lasting = above[store.keys[state.EXPIRY, above] >= store.keys[state.EXPIRY, c]]
            left = store.weights[:, lasting].sum(axis=1)
            assert self._lasting(c) <= left[0] / HIGH_UNIT + left[1] / LOW_UNIT + 1e-12

    def _known(self, c: int) -> bool:
        return bool(self._store.flags[c] & state.KNOWN)

    def _total(self, c: int) -> Integers:
        return np.asarray(self._store.total[:, c])

    def _lasting(self, c: int) -> float:
        return float(self._store.lasting[0, c] / HIGH_UNIT + self._store.lasting[1, c] / LOW_UNIT)


def columns(rows: UncertainRows) -> tuple[Floats, Floats, Integers, Integers, Integers]:
    """The columns in the order in which the kernels take them."""
    return rows.values, rows.probabilities, rows.arrivals, rows.expiries, rows.handles


def _behaved(array: Any, kind: type) -> Any:
    """The array itself where compiled code can take it as it is, else a copy: views and read-only arrays would each
    compile everything anew."""
    return array if array.flags.carray and array.dtype == kind else np.array(array, dtype=kind, order="C")
