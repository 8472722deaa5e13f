"""The protocol in simulation over tables: rows that name clients, times and points in, changes out.

What `skytide monitor` runs. Rows come in the order of their times; a timestamp is over when a later row is seen, or by
`advance`. Of several rows of a client for one timestamp the last one counts. `by` columns split clients into groups
that do not compete: a group's number and its negative become two more columns, so that no client of one group dominates
one of another, and the protocol needs not know of groups.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skytide.errors import InputError
from skytide.model import Booleans, Changes, Floats, Integers, MissingPolicy, Preference, check_missing_policy
from skytide.monitors.sliding.clock import LOWEST, Clock
from skytide.monitors.sliding.groups import Groups
from skytide.monitors.snapshots.names import Names
from skytide.runtime.simulate import Simulation
from skytide.tables import Table, open_table, partly, row_count, with_worst


class _Instants(NamedTuple):
    """What a clock wants to know: instants have no length, and no row may be late."""

    duration: int = 0
    lateness: int = 0
    fractional: bool = False


class _Moves(NamedTuple):
    """Rows that are taken, in order: client, values, whether it goes, time key."""

    clients: Integers
    points: Floats
    gone: Booleans
    keys: Integers

    def pick(self, which: Any) -> _Moves:
        return _Moves(*(column[which] for column in self))


class Monitored:
    """A simulation whose clients have names and whose timestamps have times.

    >>> monitor = Monitored(Preference(minimize=["a"]), "filter")
    >>> rows = {"a": [3.0, 2.0, 4.0]}
    >>> for change in monitor.extend(rows, times=[10, 10, 20], ids=["x", "y", "y"]):
    ...     print(*change)
    10 + y
    >>> for change in monitor.advance(20):
    ...     print(*change)
    20 - y
    20 + x
    """

    def __init__(
        self, preference: Preference, method: str = "filter", *, nulls: MissingPolicy = "error", **options: Any
    ) -> None:
        self.preference, self.nulls = preference, check_missing_policy(nulls)
        self.lengths = (0,)
        more = 2 if preference.by else 0
        self._simulation = Simulation(preference.dimensions + more, method, **options)
        self._clock = Clock(_Instants())
        self._names, self._groups = Names(), Groups(tuple(preference.by))
        self._latest, self._closed = LOWEST, LOWEST
        self._open = _Moves(
            np.zeros(0, np.int64), np.zeros((0, preference.dimensions + more)), np.zeros(0, bool), np.zeros(0, np.int64)
        )

    def extend(self, rows: Table, times: Any, ids: Any) -> Changes:
        """Take rows; the changes of the timestamps that they complete, and the positions of rows not taken."""
        table = open_table(rows)
        total = row_count(table)
        values = partly(table, self.preference)
        missing = np.isnan(values)
        gone: Booleans = np.asarray(missing.all(axis=1))
        fit = self._fit(missing, gone)
        stamps = self._clock.prepare(times)
        timeless = np.isnat(stamps) if stamps.dtype.kind == "M" else np.isnan(stamps)
        if timeless.any() and self.nulls != "drop":
            row = int(np.argmax(timeless)) + 1
            raise InputError("the time is missing", row=row, remedy="fill it in, or choose the policy drop")
        fit &= ~timeless
        kind, column = self._names.check(ids, total)
        kept = np.flatnonzero(fit)
        keys = self._clock.keys(stamps[kept])
        before = np.maximum.accumulate(np.concatenate(([self._latest], keys)))[:-1]
        tardy = (keys < before) | (keys <= self._closed)
        late, kept, keys = kept[tardy], kept[~tardy], keys[~tardy]
        clients = self._names.take(kind, column)[kept]
        points = with_worst(values[kept]) if self.nulls == "worst" else values[kept]
        points = self._grouped(table, kept, points, ~gone[kept])
        changes = self._take(_Moves(clients, points, gone[kept], keys))
        return changes.beside(late, np.flatnonzero(~fit))

    def _fit(self, missing: Booleans, gone: Booleans) -> Booleans:
        """Which rows the missing-value policy takes: all values there, or none."""
        partial = missing.any(axis=1) & ~gone
        if self.nulls == "error" and partial.any():
            row = int(np.argmax(partial))
            raise InputError(
                "the value is missing (NULL or NaN), but not all values of the row",
                row=row + 1,
                column=self.preference.names[int(np.argmax(missing[row]))],
                remedy="choose the policy drop or worst for missing values; a row without any value deletes",
            )
        return ~partial if self.nulls == "drop" else np.ones(len(missing), bool)

    def _grouped(self, table: Any, kept: Integers, points: Floats, placed: Booleans) -> Floats:
        if not self.preference.by:
            return points
        codes = np.zeros(len(kept))
        if placed.any():
            codes[placed] = self._groups.of(table, kept[placed])
        return np.column_stack((points, codes, -codes))

    def _take(self, moves: _Moves) -> Changes:
        """Add rows, which are in order, and run the timestamps that are over."""
        moves = _Moves(*(np.concatenate(pair) for pair in zip(self._open, moves, strict=True)))
        if len(moves.keys):
            self._latest = int(moves.keys[-1])
        return self._run(moves, self._latest)

    def advance(self, now: Any) -> Changes:
        """Every timestamp up to and including `now` is over."""
        key = int(self._clock.keys(self._clock.prepare([now]))[0])
        self._latest = max(self._latest, key)
        found = self._run(self._open, key + 1)
        self._closed = max(self._closed, key)
        return found

    def _run(self, moves: _Moves, end: int) -> Changes:
        """Run the timestamps before a key; the rest stays open."""
        due = int(np.searchsorted(moves.keys, end))
        self._open, moves = moves.pick(slice(due, None)), moves.pick(slice(0, due))
        pieces = np.split(np.arange(due), np.flatnonzero(np.diff(moves.keys)) + 1)
        return Changes.concatenate([self._timestamp(moves.pick(piece)) for piece in pieces if len(piece)])

    def _timestamp(self, moves: _Moves) -> Changes:
        # Of several rows the last counts; counted from the end, it is the first of its client.
        _, first = np.unique(moves.clients[::-1], return_index=True)
        last = moves.pick(len(moves.clients) - 1 - first)
        placed = last.pick(~last.gone)
        found = self._simulation.step(placed.clients, placed.points, last.clients[last.gone])
        times = self._clock.times(np.repeat(moves.keys[:1], len(found)))
        return Changes.of(times, found.signs, self._names.ids(found.ids))

    @property
    def latest(self) -> Any:
        """The latest time seen, in the form in which times came in; None before the first row."""
        return None if self._latest == LOWEST else self._clock.times(np.array([self._latest]))[0]

    def times_like(self, form: np.dtype[Any]) -> np.dtype[Any]:
        """The type of the times in changes where the rows' times have this type."""
        return self._clock.form_of(form)

    def cost(self) -> dict[str, Any]:
        """What was sent: see `Simulation.cost`."""
        return self._simulation.cost()
