"""Tables into simulations: rows that name who moves, when and where to are gathered by their times.

Rows come in the order of their times; an instant is over when a later row is seen, or by `advance`. Only what is over
is run. Names become small numbers, which is all that simulations know of.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skytide.errors import InputError
from skytide.model import Booleans, Changes, Floats, Integers, MissingPolicy, Preference, check_missing_policy
from skytide.monitors.sliding.clock import LOWEST, Clock
from skytide.monitors.sliding.groups import Groups
from skytide.monitors.snapshots.names import Names
from skytide.tables import Table, open_table, partly, row_count


class _Lengths(NamedTuple):
    """What a clock wants to know: instants have no length, and no row may be late."""

    duration: int = 0
    lateness: int = 0
    fractional: bool = False


class Moves(NamedTuple):
    """Rows that are taken, in order: who (a number for each role), values, whether it ends, group, time key."""

    who: Integers
    values: Floats
    gone: Booleans
    groups: Integers
    keys: Integers

    def pick(self, which: Any) -> Moves:
        """Some of the rows."""
        return Moves(*(column[which] for column in self))


class Instants(ABC):
    """What monitors over tables in simulation share; the first role is that of the ids in changes."""

    EMPTY = "a row without any value deletes"
    """What a row without values means, for whoever wrote one with some."""

    def __init__(self, preference: Preference, nulls: MissingPolicy, *roles: str) -> None:
        self.preference, self.nulls = preference, check_missing_policy(nulls)
        self.lengths = (0,)
        self._clock = Clock(_Lengths())
        self._names = [Names(role) for role in roles]
        self._groups = Groups(tuple(preference.by))
        self._latest, self._closed = LOWEST, LOWEST
        none: Integers = np.zeros(0, np.int64)
        self._open = Moves(
            np.zeros((0, len(roles)), np.int64),
            np.zeros((0, preference.dimensions)),
            np.zeros(0, np.bool_),
            none,
            none,
        )

    @abstractmethod
    def _instants(self, moves: Moves) -> Changes:
        """Run whole instants; what changes in each."""

    def _extended(self, rows: Table, times: Any, *names: Any) -> Changes:
        """Take rows; the changes of the instants that they complete, and the positions of rows not taken."""
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
        checked = [kept.check(given, total) for kept, given in zip(self._names, names, strict=True)]
        kept = np.flatnonzero(fit)
        keys = self._clock.keys(stamps[kept])
        before = np.maximum.accumulate(np.concatenate(([self._latest], keys)))[:-1]
        tardy = (keys < before) | (keys <= self._closed)
        late, kept, keys = kept[tardy], kept[~tardy], keys[~tardy]
        who = [known.take(*each)[kept] for known, each in zip(self._names, checked, strict=True)]
        groups = self._grouped(table, kept, ~gone[kept])
        changes = self._take(Moves(np.column_stack(who), values[kept], gone[kept], groups, keys))
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
                remedy=f"choose the policy drop or worst for missing values; {self.EMPTY}",
            )
        return ~partial if self.nulls == "drop" else np.ones(len(missing), bool)

    def _grouped(self, table: Any, kept: Integers, placed: Booleans) -> Integers:
        codes: Integers = np.zeros(len(kept), np.int64)
        if self.preference.by and placed.any():
            codes[placed] = self._groups.of(table, kept[placed])
        return codes

    def _take(self, moves: Moves) -> Changes:
        """Add rows, which are in order, and run the instants that are over."""
        moves = Moves(*(np.concatenate(pair) for pair in zip(self._open, moves, strict=True)))
        if len(moves.keys):
            self._latest = int(moves.keys[-1])
        return self._run(moves, self._latest)

    def advance(self, now: Any) -> Changes:
        """Every instant up to and including `now` is over."""
        key = int(self._clock.keys(self._clock.prepare([now]))[0])
        self._latest = max(self._latest, key)
        found = self._run(self._open, key + 1)
        self._closed = max(self._closed, key)
        return found

    def _run(self, moves: Moves, end: int) -> Changes:
        """Run the instants before a key; the rest stays open."""
        due = int(np.searchsorted(moves.keys, end))
        self._open = moves.pick(slice(due, None))
        return self._instants(moves.pick(slice(0, due))) if due else Changes.concatenate([])

    def _changes(self, keys: Integers, signs: npt.ArrayLike, numbers: Integers) -> Changes:
        """Changes with the times and names of the rows. O(n log n)."""
        return Changes.of(self._clock.times(keys), signs, self._names[0].ids(numbers))

    @property
    def latest(self) -> Any:
        """The latest time seen, in the form in which times came in; None before the first row."""
        return None if self._latest == LOWEST else self._clock.times(np.array([self._latest]))[0]

    def is_over(self, times: Any) -> Booleans:
        """Which of these times are over: a later row was seen, or `advance` said so. O(times)."""
        keys = self._clock.keys(self._clock.prepare(times))
        return np.asarray((keys < self._latest) | (keys <= self._closed))

    @property
    def told_preference(self) -> Preference:
        """The preference of `standing`."""
        return self.preference

    def times_like(self, form: np.dtype[Any]) -> np.dtype[Any]:
        """The type of the times in changes where the rows' times have this type."""
        return self._clock.form_of(form)
