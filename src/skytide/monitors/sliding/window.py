"""The sliding-window skyline: rows arrive, live for a while and expire; the changes of the skyline come out.

After Tao and Papadias, "Maintaining Sliding Window Skylines on Data Streams", TKDE 2006. Where we differ: dominance
needs one strictly better column, rows of one instant are taken together, rows may come out of order, and groups are
independent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skytide.errors import IdError, InputError, OptionError, WindowError
from skytide.model import (
    Booleans,
    Changes,
    Column,
    Floats,
    Integers,
    MissingPolicy,
    Preference,
    Window,
    check_missing_policy,
)
from skytide.monitors.sliding import stored
from skytide.monitors.sliding.admission import admit_counted, admit_timed
from skytide.monitors.sliding.choice import maker
from skytide.monitors.sliding.clock import LOWEST, Clock
from skytide.monitors.sliding.engine import Moves, Rows
from skytide.monitors.sliding.flow import CountFlow, TimeFlow
from skytide.monitors.sliding.groups import Groups
from skytide.monitors.sliding.ids import Handles, LiveIds, net
from skytide.monitors.sliding.scoring import Score, ScoreFunction
from skytide.monitors.sliding.skyband import SkybandEngine
from skytide.monitors.sliding.waiting import Arrivals
from skytide.tables import Table, column_of, open_table, oriented, restored, row_count


@dataclass(frozen=True)
class Skyline:
    """An answer: the rows' ids, their preference columns as they came in, their arrival times and groups.

    In a window with a score the values are the scores alone.
    """

    ids: npt.NDArray[Any]
    values: npt.NDArray[np.float64]
    times: npt.NDArray[Any]
    groups: list[tuple[Any, ...]]

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.ids.tolist())


class _Batch(NamedTuple):
    """The rows of one call: what is taken, as the engines want it, and the positions of what is and is not."""

    values: Floats
    keys: Integers
    kept: Integers | slice
    late: Integers
    bad: Integers
    total: int


_NONE = np.zeros(0, np.int64)


class SlidingWindow:
    """Keeps the skyline of the last `count` rows, or of the rows of the last `duration`, and says what changes.

    `method` is `eager` (keeps only rows that can still enter the answer), `lazy` (does less per row, keeps the window)
    or `auto`; `index` is `list`, `rtree` or `auto`. All give the same changes. `nulls` is the missing-value policy.
    `lateness` is how far rows may come out of order in a time window. With `by` columns each group has its own window.

    With `k` above 1 the answer is the k-skyband: the rows that fewer than k rows dominate. With `score`, a weight per
    column or a monotone function (see `scoring.Score`), it is the top k: the rows with fewer than k better scores.

    With `capacity` at most so many rows of a call (and group) are worked on; of a larger spike, rows are dropped that
    matter least. `stats()` then says how many, and how many changes may be missing or wrong for it at most (see
    `shedding`).

    >>> window = SlidingWindow(Preference.columns(2), count=2)
    >>> for change in window.extend(np.array([[1.0, 2.0], [2.0, 1.0], [3.0, 0.0]])):
    ...     print(*change)
    1 + 1
    2 + 2
    3 - 1
    3 + 3
    >>> sorted(window.skyline())
    [2, 3]
    """

    def __init__(
        self,
        preference: Preference,
        *,
        count: int | None = None,
        duration: float | int | str | None = None,
        lateness: float | int | str = 0,
        method: str = "auto",
        index: str = "auto",
        nulls: MissingPolicy = "error",
        k: int = 1,
        score: Mapping[Column, float] | Sequence[float] | ScoreFunction | None = None,
        capacity: int | None = None,
        check_ids: bool = True,
    ) -> None:
        self.preference = preference
        self.window = Window(count=count, duration=duration, lateness=lateness)
        self.method, self.index = method, index
        self.nulls = check_missing_policy(nulls)
        self.check_ids = check_ids
        self.k = k
        self.score = None if score is None else Score(preference, score)
        dimensions = preference.dimensions if score is None else 1
        self.capacity = capacity
        make = maker(method, index, dimensions, k, capacity)
        self._clock = Clock(self.window) if count is None else None
        self._flow: CountFlow | TimeFlow
        if self._clock is None:
            if lateness:
                raise WindowError("a count window knows no lateness", value=lateness, remedy="leave it out")
            self._flow = CountFlow(dimensions, make, length=min(int(count or 1), 2**62))  # more rows never come
        else:
            self._flow = TimeFlow(dimensions, make, clock=self._clock)
        self._groups = Groups(tuple(preference.by))
        self._handles = Handles()
        self._live = LiveIds()
        self._tallies = {"rows": 0, "late": 0, "bad": 0}

    # -- rows in -------------------------------------------------------------------------------------------------------

    def extend(self, rows: Table, times: Any = None, ids: Any = None) -> Changes:
        """Take rows in order of arrival and return the changes of the answer that have become final.

        `times` and `ids` are columns or names of columns of `rows`. A time window needs times, a count window has none.
        Without ids the rows are numbered from 1. Rows that come too late, and rows that the policy `drop` leaves out,
        are not taken: their positions are in `late` and `bad` of the result, and they are counted. A call that is
        refused leaves the window as it was. Cost: amortised, a few comparisons per row; see docs/benchmarks.md. Ids
        cost memory for every live row, to refuse one that comes twice, and time unless they are growing numbers.
        """
        table = open_table(rows)
        if not row_count(table):
            return Changes.concatenate([])
        kind_of_time, groups = None if self._clock is None else self._clock.kind, self._groups.next
        try:
            batch = self._read(table, times)
            kind, column = self._handles.kind_of(_column(table, ids), batch.total)
            codes = self._groups.of(table, batch.kept)
            self._admit_ids(kind, column, batch, codes)
        except BaseException:
            self._groups.forget_since(groups)
            if self._clock is not None:
                self._clock.reset(kind_of_time)
            raise
        # From here on the window changes, and nothing is refused any more.
        handles = self._handles.take(kind, column, batch.total, batch.kept)
        for name, amount in (("rows", len(handles)), ("late", len(batch.late)), ("bad", len(batch.bad))):
            self._tallies[name] += amount
        moves = self._flow.take(Arrivals(batch.values, codes, handles, batch.keys))
        return self._changes(moves).beside(batch.late, batch.bad)

    def insert(self, row: Sequence[Any] | Mapping[str, Any], time: Any = None, id: Any = None) -> Changes:
        """Take one row: its values in the order of the preference's columns, or by column name. As `extend`."""
        if isinstance(row, Mapping):
            table: Any = {name: [value] for name, value in row.items()}
        elif self.preference.by:
            raise InputError("a window with `by` columns needs rows with names", remedy="give a mapping of columns")
        else:
            if len(row) != self.preference.dimensions:
                raise InputError(
                    f"a row of {len(row)} values does not fit {self.preference.dimensions} preference columns",
                    remedy="give one value per preference column",
                )
            named = not all(isinstance(name, int) for name in self.preference.names)
            table = (
                {name: [value] for name, value in zip(self.preference.names, row, strict=True)}
                if named
                else np.array([[np.nan if value is None else value for value in row]])
            )
        return self.extend(table, times=None if time is None else [time], ids=None if id is None else [id])

    def advance(self, now: Any) -> Changes:
        """Let time run on: every instant up to and including `now` is closed. O(what changes)."""
        if not isinstance(self._flow, TimeFlow):
            raise WindowError("a count window moves with its rows alone", remedy="use a duration to advance in time")
        stamp = self._flow.clock.prepare([now])
        if np.isnat(stamp[0]) if stamp.dtype.kind == "M" else np.isnan(stamp[0]):
            raise WindowError("is not a time", value=now, remedy="give a number or a timestamp")
        return self._changes(self._flow.close(int(self._flow.clock.keys(stamp)[0])))

    # -- answers out ---------------------------------------------------------------------------------------------------

    def skyline(self) -> Skyline:
        """The answer as of the latest row (or the time advanced to, if later). Costs a skyline of what is kept."""
        values, handles, arrivals, groups = [], [], [], []
        for code, rows in self._flow.answer_rows().items():
            inside = self._answer(rows)
            values.append(rows.values[inside])
            handles.append(rows.handles[inside])
            arrivals.append(rows.arrivals[inside])
            groups += [self._groups.keys.get(code, ())] * int(inside.sum())
        times = np.concatenate([_NONE, *arrivals])
        columns = np.concatenate([np.zeros((0, self._flow.dimensions)), *values])
        return Skyline(
            self._handles.ids(np.concatenate([_NONE, *handles])),
            restored(columns, self.preference, self.nulls) if self.score is None else columns,
            times if self._clock is None or self._clock.kind is None else self._clock.times(times),
            groups,
        )

    def _answer(self, rows: Rows) -> Booleans:
        """Which of the rows, all of them alive, are in the answer."""
        from skytide.kernel.batch import skyline_mask

        if self.k == 1:
            return skyline_mask(rows.values)
        inside = np.zeros(len(rows), dtype=bool)
        alike = np.zeros(len(rows), np.int64)
        every = Rows(rows.values, alike, alike + 1, np.arange(len(rows)))
        inside[SkybandEngine(self._flow.dimensions, self.k).run(every, 0).handles] = True
        return inside

    @property
    def latest(self) -> Any:
        """The latest time seen, in the form in which times came in; None before the first row and in count windows."""
        if not isinstance(self._flow, TimeFlow) or self._flow.latest == LOWEST:
            return None
        return self._flow.clock.times(np.array([self._flow.latest]))[0]

    def times_like(self, form: np.dtype[Any]) -> np.dtype[Any]:
        """The type of the times in changes where the rows' times have this type; arrival numbers in count windows."""
        return np.dtype(np.int64) if self._clock is None else self._clock.form_of(form)

    def stats(self) -> dict[str, int]:
        """Rows taken, late, bad, retained and pending; entered and left; dominance tests, node visits, bytes."""
        retained = sum(len(rows) for rows in self._flow.retained().values())
        pending = len(self._flow.waiting) if isinstance(self._flow, TimeFlow) else 0
        return {
            **self._tallies,
            "retained": retained,
            "pending": pending,
            "groups": len(self._flow.engines),
            "known_ids": len(self._live),
            **self._flow.counters(),
        }

    # -- stored --------------------------------------------------------------------------------------------------------

    def options(self) -> dict[str, Any]:
        """How the window was made, as plain values."""
        return {
            "minimize": list(self.preference.minimize),
            "maximize": list(self.preference.maximize),
            "by": list(self.preference.by),
            "count": self.window.count,
            "duration": self.window.duration,
            "lateness": self.window.lateness,
            "method": self.method,
            "index": self.index,
            "nulls": self.nulls,
            "k": self.k,
            "score": None if self.score is None else list(self.score.weights),
            "capacity": self.capacity,
            "check_ids": self.check_ids,
        }

    def to_bytes(self) -> bytes:
        """The window as bytes: versioned, checked, without pickle. O(retained rows and live ids).

        >>> window = SlidingWindow(Preference.columns(1), duration=5)
        >>> _ = window.extend(np.array([[2.0], [1.0]]), times=[1, 2])
        >>> again = SlidingWindow.from_bytes(window.to_bytes())
        >>> [tuple(change) for change in again.advance(9)]
        [(2, '-', 1), (2, '+', 2), (7, '-', 2)]
        """
        return stored.dump(self)

    @classmethod
    def from_bytes(cls, blob: bytes, *, score: ScoreFunction | None = None) -> SlidingWindow:
        """The window that `to_bytes` gave; a `StateError` says what is wrong with any other bytes.

        A score that is a function is not stored and must be given again; weights are.
        """
        return stored.restore(blob, cls, score)

    # -- details -------------------------------------------------------------------------------------------------------

    def _read(self, table: Any, times: Any) -> _Batch:
        """The rows of a call that are taken, and those that are not; nothing is changed."""
        total = row_count(table)
        found = oriented(table, self.preference, self.nulls)
        kept = slice(None) if found.rows is None else found.rows
        values = found.values if self.score is None else self.score(found.values)
        keys, late = np.broadcast_to(np.int64(0), len(values)), _NONE
        if self._clock is None and times is not None:
            raise WindowError("a count window has no times", remedy="leave times out, or give a duration")
        if isinstance(self._flow, TimeFlow):
            stamps, missing = self._read_times(table, times, total)
            if missing.any():
                inner = np.flatnonzero(~missing[kept])
                values, kept = values[inner], np.arange(total)[kept][inner]
            keys = self._flow.clock.keys(stamps[kept])
            tardy = self._flow.late(keys)
            if tardy.any():
                kept = np.arange(total)[kept]
                late, kept, values, keys = kept[tardy], kept[~tardy], values[~tardy], keys[~tardy]
        bad = _NONE
        if len(values) + len(late) < total:
            taken = np.zeros(total, dtype=bool)
            taken[kept] = taken[late] = True
            bad = np.flatnonzero(~taken)
        return _Batch(values, keys, kept, late, bad, total)

    def _read_times(self, table: Any, times: Any, total: int) -> tuple[npt.NDArray[Any], Booleans]:
        """The times of all rows, and which of them are missing."""
        assert self._clock is not None
        if times is None:
            raise WindowError("a time window needs times", remedy="give times, one per row, or use a count window")
        stamps = self._clock.prepare(_column(table, times))
        if len(stamps) != total:
            raise WindowError(f"there are {len(stamps)} times for {total} rows", remedy="give one time per row")
        missing = np.isnat(stamps) if stamps.dtype.kind == "M" else np.isnan(stamps)
        if self.nulls != "drop" and missing.any():
            row = int(np.argmax(missing)) + 1
            raise InputError("the time is missing", row=row, remedy="fill it in, or choose the policy drop")
        return stamps, missing

    def _admit_ids(self, kind: str, column: npt.NDArray[Any], batch: _Batch, codes: Integers) -> None:
        """Refuse a second live row with one id, and remember the ids of the rows that are taken."""
        if kind == "number" or not self.check_ids:
            return
        try:
            if isinstance(self._flow, TimeFlow):
                admit_timed(self._live, self._flow, column[batch.kept], batch.keys)
            else:
                admit_counted(self._live, self._flow, column[batch.kept], codes)
        except IdError as error:
            if error.row is not None:
                error.row = int(np.arange(batch.total)[batch.kept][error.row]) + 1
            raise

    def _changes(self, moves: Moves) -> Changes:
        times = moves.times if self._clock is None or self._clock.kind is None else self._clock.times(moves.times)
        signs, ids = moves.signs, self._handles.ids(moves.handles)
        if self._live.came_again or not (self.check_ids or self._handles.kind == "number"):
            stays = net(moves.times, signs, ids)
            times, signs, ids = times[stays], signs[stays], ids[stays]
        found = Changes.of(times, signs, ids)
        if isinstance(self._flow, TimeFlow) and self._flow.idle:
            waiting = set(self._flow.waiting.all().codes.tolist())
            for code in self._flow.idle:
                if code not in waiting and code not in self._flow.engines:
                    self._groups.forget(code)
            self._flow.idle.clear()
        self._handles.sweep(self._needed_handles)
        return found

    def _needed_handles(self) -> Iterator[int]:
        for rows in self._flow.retained().values():
            yield from rows.handles.tolist()
        if isinstance(self._flow, TimeFlow):
            yield from self._flow.waiting.all().handles.tolist()


def _column(table: Any, given: Any) -> Any:
    """A column that was given as itself or by its name in the table."""
    if not isinstance(given, str):
        return given
    if isinstance(table, np.ndarray):
        raise OptionError("a bare array has no column names", value=given, remedy="give the column itself")
    return column_of(table, given)
