"""What a window on Spark is asked for, as a plain value that travels to the tasks, and how it reads rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skytide.errors import InputError, SkytideError
from skytide.model import Booleans, Floats, Integers, MissingPolicy, Preference, Window
from skytide.monitors.sliding.choice import maker
from skytide.monitors.sliding.engine import Engine
from skytide.spark.streaming.clock import EventClock
from skytide.tables import EXACT, as_array, oriented

BUCKET = "bucket"
"""The column that says to which share of the groups a row belongs."""
_FURTHEST = 2**62 - 1


class Read(NamedTuple):
    """Rows as the engines want them: which rows of the table are good, and of those the values and the time keys."""

    good: Booleans
    values: Floats
    keys: Integers


@dataclass(frozen=True)
class Query:
    """One window query. Columns have inner names, which are unique and plain; `labels` are the user's."""

    preference: Preference
    window: Window
    time: str
    id: str
    kind: str
    nulls: MissingPolicy
    emit: str
    parts: int
    labels: tuple[tuple[str, str], ...]
    types: tuple[str, ...]
    probability: str | None = None
    """The column with the rows' probabilities, where they are uncertain; it goes with the values as a last one."""
    thresholds: tuple[float, ...] = ()
    """In falling order."""

    @property
    def width(self) -> int:
        """How many numbers of a row the engines take."""
        return self.preference.dimensions + (self.probability is not None)

    def maker(self) -> Callable[[], Engine]:
        """A function that makes the engines of the merge, one per group."""
        if self.probability is None:
            return maker("auto", "auto", self.preference.dimensions)
        from skytide.monitors.uncertain.flow import PackedEngine, make_inner

        dimensions, thresholds = self.preference.dimensions, np.array(self.thresholds)
        return lambda: PackedEngine(make_inner(dimensions, thresholds, "auto"))

    @property
    def columns(self) -> list[str]:
        """The inner names of the row's columns."""
        return [inner for inner, _ in self.labels]

    @property
    def counted(self) -> bool:
        """Whether the window holds a number of rows, not a length of time."""
        return self.window.count is not None

    @cached_property
    def clock(self) -> EventClock:
        """The clock of the rows' times; a count window orders its rows by time, so it has one as well."""
        if not self.counted:
            return EventClock(self.window, self.kind)
        return EventClock(Window(duration="1s" if self.kind == "us" else 1, lateness=self.window.lateness), self.kind)

    @cached_property
    def fingerprint(self) -> dict[str, Any]:
        """What must stay the same for state to be usable; `emit` may change."""
        names = dict(self.labels)
        return {
            "minimize": [names[str(name)] for name in self.preference.minimize],
            "maximize": [names[str(name)] for name in self.preference.maximize],
            "by": [names[str(name)] for name in self.preference.by],
            "count": self.window.count,
            "duration": self.window.duration,
            "lateness": self.window.lateness,
            "time": names[self.time],
            "id": names[self.id],
            "nulls": self.nulls,
            "parts": self.parts,
            **({} if self.probability is None else {"prob": names[self.probability], "thresholds": [*self.thresholds]}),
            "columns": [f"{name} {kind}" for name, kind in zip(names.values(), self.types, strict=True)],
        }

    def time_type(self, kind: pa.DataType) -> pa.DataType:
        """The type of the times that come out of a time window, where those that come in have this type."""
        if self.kind == "us":
            return kind if pa.types.is_timestamp(kind) else pa.timestamp("us")
        return pa.float64() if self.kind == "real" else pa.int64()

    # -- rows ----------------------------------------------------------------------------------------------------------

    def read(self, table: pa.Table) -> Read:
        """The rows of a table; a row that cannot be used is not good, or an error where the policy says so."""
        try:
            return self._read(table)
        except SkytideError as problem:
            problem.row = None  # rows of a stream have no numbers; this one would be counted within a run
            problem.column = dict(self.labels).get(str(problem.column), problem.column)
            raise

    def _read(self, table: pa.Table) -> Read:
        if self.nulls == "drop":
            table = self._without_inexact(table)
        found = oriented(table.select(self.columns), self.preference, self.nulls)
        good = np.ones(table.num_rows, dtype=bool)
        if found.rows is not None:
            good[:] = False
            good[found.rows] = True
        times, usable = self._times(table.column(self.time))
        self._sort_out(good, usable, self.time, "the time is missing or out of range")
        self._sort_out(good, as_mask(table.column(self.id)), self.id, "the id is missing")
        values = found.values
        if self.probability is not None:
            chances, possible = self._chances(table.column(self.probability))
            self._sort_out(good, possible, self.probability, "the probability is missing or not between 0 and 1")
            values = np.column_stack((values, chances if found.rows is None else chances[found.rows]))
        if good.all():
            return Read(good, values, self.clock.keys.keys(times))
        return Read(good, values[good if found.rows is None else good[found.rows]], self.clock.keys.keys(times[good]))

    def _sort_out(self, good: Booleans, usable: Booleans, column: str, reason: str) -> None:
        """Rows that are not usable are not good, or an error."""
        if not usable.all():
            if self.nulls == "error":
                raise InputError(reason, column=column, remedy="mend it, or choose the policy drop")
            good &= usable

    def _chances(self, column: pa.ChunkedArray) -> tuple[Floats, Booleans]:
        """Probabilities, and which of them are some."""
        chances: Floats = column.cast(pa.float64()).fill_null(np.nan).to_numpy()
        possible = (chances >= 0) & (chances <= 1)
        return np.where(possible, chances, 0.0), possible

    def _times(self, column: pa.ChunkedArray) -> tuple[Any, Booleans]:
        """Times as the clock takes them, and which are usable."""
        present = as_mask(column)
        if self.kind == "us":
            keys = column.cast(self.time_type(column.type)).cast(pa.int64()).fill_null(0).to_numpy()
            return keys.view("datetime64[us]"), present & (keys <= _FURTHEST) & (keys >= -_FURTHEST)
        if pa.types.is_integer(column.type):
            whole = column.cast(pa.int64()).fill_null(0).to_numpy()
            limit = _FURTHEST if self.kind == "whole" else EXACT
            return whole, present & (whole <= limit) & (whole >= -limit)
        real = as_array(column.cast(pa.float64()).fill_null(0.0))
        return real, present & np.isfinite(real)

    def _without_inexact(self, table: pa.Table) -> pa.Table:
        """Whole numbers that float64 cannot hold as missing ones: one bad row must not stop a stream."""
        for name in self.preference.names:
            column = table.column(str(name))
            if pa.types.is_int64(column.type) and len(column):
                extremes = pc.min_max(column).as_py()
                if extremes["min"] is not None and max(extremes["max"], -extremes["min"]) > EXACT:
                    usable = pc.and_(pc.less_equal(column, EXACT), pc.greater_equal(column, -EXACT))
                    at = table.column_names.index(str(name))
                    table = table.set_column(at, str(name), pc.if_else(usable, column, pa.scalar(None, column.type)))
        return table


def as_mask(column: pa.ChunkedArray) -> Booleans:
    """Which values are there; NaN is not."""
    if not column.null_count and not pa.types.is_floating(column.type):
        return np.ones(len(column), dtype=bool)
    found: Booleans = pc.is_valid(column).to_numpy()
    if pa.types.is_floating(column.type):
        found &= ~pc.is_nan(column).fill_null(False).to_numpy()
    return found
