"""What every window does, whatever its answer is: it reads rows, times and ids, judges lateness, and nets the changes.

A window has a preference, a `Window`, and a flow of rows to its engines. Rows that are refused leave nothing behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skytide.errors import IdError, InputError, OptionError, WindowError
from skytide.model import Booleans, Floats, Integers, MissingPolicy, Preference, Window
from skytide.monitors.sliding.admission import admit_counted, admit_timed
from skytide.monitors.sliding.clock import LOWEST, Clock
from skytide.monitors.sliding.flow import CountFlow, TimeFlow
from skytide.monitors.sliding.groups import Groups
from skytide.monitors.sliding.ids import Handles, LiveIds
from skytide.tables import column_of

NONE = np.zeros(0, np.int64)
NEVER = 2**62
"""More rows than come: a longer count window is cut to it."""


class Batch(NamedTuple):
    """The rows of one call: what is taken, as the engines want it, and the positions of what is and is not."""

    values: Floats
    keys: Integers
    kept: Integers | slice
    late: Integers
    bad: Integers
    total: int


class MovingWindow:
    """The part that windows share; not for users."""

    preference: Preference
    window: Window
    nulls: MissingPolicy
    check_ids: bool
    _clock: Clock | None
    _flow: CountFlow | TimeFlow

    def _begin(self) -> None:
        """No rows yet. The window's options are set, its flow comes next."""
        if self.window.count is not None and self.window.lateness:
            raise WindowError("a count window knows no lateness", value=self.window.lateness, remedy="leave it out")
        self._clock = Clock(self.window) if self.window.count is None else None
        self._groups = Groups(tuple(self.preference.by))
        self._handles = Handles()
        self._live = LiveIds()
        self._tallies = {"rows": 0, "late": 0, "bad": 0}

    def options(self) -> dict[str, Any]:
        """How the window was made, as plain values."""
        return {
            "minimize": list(self.preference.minimize),
            "maximize": list(self.preference.maximize),
            "by": list(self.preference.by),
            "count": self.window.count,
            "duration": self.window.duration,
            "lateness": self.window.lateness,
            "nulls": self.nulls,
            "check_ids": self.check_ids,
        }

    @property
    def lengths(self) -> tuple[float | int | str, ...]:
        """The lengths of time that were asked for."""
        return self.window.duration or 0, self.window.lateness

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

    # -- rows in -------------------------------------------------------------------------------------------------------

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """While rows are read and judged: if they are refused, what they settled is as it was."""
        kind_of_time, groups = None if self._clock is None else self._clock.kind, self._groups.next
        try:
            yield
        except BaseException:
            self._groups.forget_since(groups)
            if self._clock is not None:
                self._clock.reset(kind_of_time)
            raise

    def _judge(self, table: Any, times: Any, values: Floats, kept: Integers | slice, total: int) -> Batch:
        """The rows of a call that are taken, and those that are not; `kept` are those that the policy takes."""
        keys, late = np.broadcast_to(np.int64(0), len(values)), NONE
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
        bad = NONE
        if len(values) + len(late) < total:
            taken = np.zeros(total, dtype=bool)
            taken[kept] = taken[late] = True
            bad = np.flatnonzero(~taken)
        return Batch(values, keys, kept, late, bad, total)

    def _read_times(self, table: Any, times: Any, total: int) -> tuple[npt.NDArray[Any], Booleans]:
        """The times of all rows, and which of them are missing."""
        assert self._clock is not None
        if times is None:
            raise WindowError("a time window needs times", remedy="give times, one per row, or use a count window")
        stamps = self._clock.prepare(column_or_name(table, times))
        if len(stamps) != total:
            raise WindowError(f"there are {len(stamps)} times for {total} rows", remedy="give one time per row")
        missing = np.isnat(stamps) if stamps.dtype.kind == "M" else np.isnan(stamps)
        if self.nulls != "drop" and missing.any():
            row = int(np.argmax(missing)) + 1
            raise InputError("the time is missing", row=row, remedy="fill it in, or choose the policy drop")
        return stamps, missing

    def _admit(self, ids: npt.NDArray[Any], keys: Integers, codes: Integers, rows: Integers | slice, of: int) -> None:
        """Refuse a second live row with one id, and remember the ids; `rows` are their positions among `of` rows."""
        try:
            if isinstance(self._flow, TimeFlow):
                admit_timed(self._live, self._flow, ids, keys)
            else:
                admit_counted(self._live, self._flow, ids, codes)
        except IdError as error:
            if error.row is not None:
                error.row = int(np.arange(of)[rows][error.row]) + 1
            raise

    def _tally(self, batch: Batch) -> None:
        for name, amount in (("rows", len(batch.values)), ("late", len(batch.late)), ("bad", len(batch.bad))):
            self._tallies[name] += amount

    def _moment(self, now: Any) -> int:
        """The key of a time to advance to."""
        if not isinstance(self._flow, TimeFlow):
            raise WindowError("a count window moves with its rows alone", remedy="use a duration to advance in time")
        stamp = self._flow.clock.prepare([now])
        if np.isnat(stamp[0]) if stamp.dtype.kind == "M" else np.isnan(stamp[0]):
            raise WindowError("is not a time", value=now, remedy="give a number or a timestamp")
        return int(self._flow.clock.keys(stamp)[0])

    # -- changes out ---------------------------------------------------------------------------------------------------

    def _times(self, keys: Integers) -> npt.NDArray[Any]:
        """Keys in the form in which times came in."""
        return keys if self._clock is None or self._clock.kind is None else self._clock.times(keys)

    @property
    def _may_repeat(self) -> bool:
        """Whether an id may have left and come again in one instant."""
        return self._live.came_again or not (self.check_ids or self._handles.kind == "number")

    def _forget(self) -> None:
        """Forget groups and ids that nothing needs any more; the ids of changes must be known by now."""
        if isinstance(self._flow, TimeFlow) and self._flow.idle:
            waiting = set(self._flow.waiting.all().codes.tolist())
            for code in self._flow.idle:
                if code not in waiting and code not in self._flow.engines:
                    self._groups.forget(code)
            self._flow.idle.clear()
        self._handles.sweep(self._needed_handles)

    def _needed_handles(self) -> Iterator[int]:
        for rows in self._flow.retained().values():
            yield from rows.handles.tolist()
        if isinstance(self._flow, TimeFlow):
            yield from self._flow.waiting.all().handles.tolist()


def column_or_name(table: Any, given: Any) -> Any:
    """A column that was given as itself or by its name in the table."""
    if not isinstance(given, str):
        return given
    if isinstance(table, np.ndarray):
        raise OptionError("a bare array has no column names", value=given, remedy="give the column itself")
    return column_of(table, given)


def one_row(preference: Preference, row: Any) -> Any:
    """A table of one row: its values in the order of the preference's columns, or a mapping of columns."""
    if hasattr(row, "items"):
        return {name: [value] for name, value in row.items()}
    if preference.by:
        raise InputError("a window with `by` columns needs rows with names", remedy="give a mapping of columns")
    if len(row) != preference.dimensions:
        raise InputError(
            f"a row of {len(row)} values does not fit {preference.dimensions} preference columns",
            remedy="give one value per preference column",
        )
    if all(isinstance(name, int) for name in preference.names):
        return np.array([[np.nan if value is None else value for value in row]])
    return {name: [value] for name, value in zip(preference.names, row, strict=True)}
