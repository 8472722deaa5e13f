"""What a query on Spark asks for, as a plain value that travels to the tasks, and how it reads rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

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


class Output(NamedTuple):
    """What comes out: the rows concerned, and for each of them what it is, when, and whether it enters or leaves.

    A sign is 1 or -1; for uncertain rows 1 + i or -1 - i, where i is the place of the threshold.
    """

    rows: pa.Table
    kinds: list[str]
    times: Integers
    signs: Integers

    def __len__(self) -> int:
        return len(self.kinds)


class State(Protocol):
    """What the rows of one bucket of groups have become, and its answer as of the last closed instant."""

    closed: int

    def __len__(self) -> int:
        """How many rows are held."""
        ...

    def take(self, table: pa.Table) -> tuple[pa.Table, Output]:
        """Take rows in any order: those accepted, to be stored, and those that are not, as they come out."""
        ...

    def close(self, bound: int) -> Output:
        """Make every instant up to the bound final; the changes that this makes, in order."""
        ...

    def next_event(self) -> int:
        """Nothing changes before this instant is closed, unless rows come; the largest int64 where nothing will."""
        ...

    def compacted(self) -> pa.Table | None:
        """The log of accepted rows anew, where it is worth it: to be stored in place of all before."""
        ...


@dataclass(frozen=True, kw_only=True)
class Query(ABC):
    """What every query has. Columns have inner names, which are unique and plain; `labels` are the user's."""

    preference: Preference
    time: str
    id: str
    kind: str
    """Of time: `whole`, `real` or `us`."""
    lateness: float | int | str
    nulls: MissingPolicy
    emit: str
    parts: int
    labels: tuple[tuple[str, str], ...]
    types: tuple[str, ...]
    thresholds: tuple[float, ...] = ()
    """Of probabilities, in falling order; a change then says which it is about."""

    @property
    def columns(self) -> list[str]:
        """The inner names of the row's columns."""
        return [inner for inner, _ in self.labels]

    @property
    def counted(self) -> bool:
        """Whether the time of a change is a rank."""
        return False

    @property
    def prunes(self) -> bool:
        """Whether rows may be dropped where they lie, by who knows the watermark."""
        return False

    @property
    def recast(self) -> tuple[str, ...]:
        """The columns that come out as DOUBLE, whatever they came in as."""
        return ()

    @abstractmethod
    def state(self) -> State:
        """The state of a bucket before its first row."""

    @abstractmethod
    def restored(self, closed: int, stored: Sequence[pa.Table]) -> State:
        """The state whose log was stored in these pieces."""

    @cached_property
    def clock(self) -> EventClock:
        """The clock of the rows' times."""
        return EventClock(Window(duration="1s" if self.kind == "us" else 1, lateness=self.lateness), self.kind)

    @cached_property
    def fingerprint(self) -> dict[str, Any]:
        """What must stay the same for state to be usable; `emit` may change."""
        names = dict(self.labels)
        return {
            "minimize": [names[str(name)] for name in self.preference.minimize],
            "maximize": [names[str(name)] for name in self.preference.maximize],
            "by": [names[str(name)] for name in self.preference.by],
            **self._particular(names),
            "lateness": self.lateness,
            "time": names[self.time],
            "id": names[self.id],
            "nulls": self.nulls,
            "parts": self.parts,
            "columns": [f"{name} {kind}" for name, kind in zip(names.values(), self.types, strict=True)],
        }

    @abstractmethod
    def _particular(self, names: dict[str, str]) -> dict[str, Any]:
        """What the fingerprint of this kind of query has beside that of all."""

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

    @abstractmethod
    def _read(self, table: pa.Table) -> Read:
        """`read`, whose complaints may still name a row."""

    def _keys(self, table: pa.Table, good: Booleans) -> Integers:
        """The time keys of good rows; a row without a usable time or id is not good."""
        times, usable = self._times(table.column(self.time))
        self._sort_out(good, usable, self.time, "the time is missing or out of range")
        self._sort_out(good, as_mask(table.column(self.id)), self.id, "the id is missing")
        return self.clock.keys.keys(times if good.all() else times[good])

    def _sort_out(self, good: Booleans, usable: Booleans, column: str, reason: str) -> None:
        """Rows that are not usable are not good, or an error."""
        if not usable.all():
            if self.nulls == "error":
                raise InputError(reason, column=column, remedy="mend it, or choose the policy drop")
            good &= usable

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

    def without_inexact(self, table: pa.Table) -> pa.Table:
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


@dataclass(frozen=True, kw_only=True)
class WindowQuery(Query):
    """A sliding window."""

    window: Window
    probability: str | None = None
    """The column with the rows' probabilities, where they are uncertain; it goes with the values as a last one."""

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
    def counted(self) -> bool:
        """Whether the window holds a number of rows, not a length of time."""
        return self.window.count is not None

    @property
    def prunes(self) -> bool:
        """Rows of a count window must get their rank first."""
        return not self.counted

    def state(self) -> State:
        """The state of a bucket before its first row."""
        from skytide.spark.streaming.merge import Merge

        return Merge(self)

    def restored(self, closed: int, stored: Sequence[pa.Table]) -> State:
        """The state whose log was stored in these pieces."""
        from skytide.spark.streaming.merge import Merge

        return Merge.restored(self, closed, stored)

    @cached_property
    def clock(self) -> EventClock:
        """The clock of the rows' times; a count window orders its rows by time, so it has one as well."""
        return super().clock if self.counted else EventClock(self.window, self.kind)

    def _particular(self, names: dict[str, str]) -> dict[str, Any]:
        found: dict[str, Any] = {"count": self.window.count, "duration": self.window.duration}
        if self.probability is not None:
            found |= {"prob": names[self.probability], "thresholds": [*self.thresholds]}
        return found

    def _read(self, table: pa.Table) -> Read:
        if self.nulls == "drop":
            table = self.without_inexact(table)
        found = oriented(table.select(self.columns), self.preference, self.nulls)
        good = np.ones(table.num_rows, dtype=bool)
        if found.rows is not None:
            good[:] = False
            good[found.rows] = True
        values = found.values
        if self.probability is not None:
            chances, possible = self._chances(table.column(self.probability))
            self._sort_out(good, possible, self.probability, "the probability is missing or not between 0 and 1")
            values = np.column_stack((values, chances if found.rows is None else chances[found.rows]))
        keys = self._keys(table, good)
        return Read(good, values if good.all() else values[good if found.rows is None else good[found.rows]], keys)

    def _chances(self, column: pa.ChunkedArray) -> tuple[Floats, Booleans]:
        """Probabilities, and which of them are some."""
        chances: Floats = column.cast(pa.float64()).fill_null(np.nan).to_numpy()
        possible = (chances >= 0) & (chances <= 1)
        return np.where(possible, chances, 0.0), possible


def as_mask(column: pa.ChunkedArray) -> Booleans:
    """Which values are there; NaN is not."""
    if not column.null_count and not pa.types.is_floating(column.type):
        return np.ones(len(column), dtype=bool)
    found: Booleans = pc.is_valid(column).to_numpy()
    if pa.types.is_floating(column.type):
        found &= ~pc.is_nan(column).fill_null(False).to_numpy()
    return found
