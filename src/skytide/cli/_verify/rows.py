"""DATA as the definitions need it: which rows a command must take, and what they say.

Times become numbers: themselves, or timestamps in a unit that is fine enough for the lengths that were asked for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skytide.cli._stream import number_or_text
from skytide.errors import InputError
from skytide.model import Booleans, Floats, Integers, duration_value
from skytide.streams.files import Numbers, Source
from skytide.streams.files.output import as_text

NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
FAR = 2**62 - 1
"""Times that are whole numbers go so far, and so do lengths: a longer one reaches beyond all times as well."""
_CERTAIN = 1 + 2e-12
"""Probabilities whose sum is above this are too many; of those a little below, the last digits decide."""


@dataclass(frozen=True)
class Question:
    """What a command is asked: its name and its options, by their names in Python."""

    kind: str
    options: dict[str, Any]
    columns: tuple[str, ...]
    """The columns with values."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self.options[name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def named(self) -> str | None:
        """The column with ids."""
        found = self.options.get("id_column") or self.options.get("object_column")
        return None if found is None else str(found)

    @property
    def time(self) -> str | None:
        """The column with times."""
        return self.options.get("time_column")

    def length(self, name: str) -> float | int | str:
        """A length of time; 0 where it is not given."""
        text = self.options.get(name)
        return 0 if text is None else number_or_text(text)


class Unit:
    """In which numbers the times of DATA are told: those of a clock with so many nanoseconds, or themselves."""

    def __init__(self, kind: pa.DataType | None, lengths: list[float | int | str]) -> None:
        self.size: int | None = None
        self.real = False
        if kind is None:
            return
        if pa.types.is_temporal(kind):
            self.size = NANOSECONDS["s" if pa.types.is_date(kind) else kind.unit]
            while self.size > 1 and any(duration_value(one) % self.size for one in lengths):
                self.size //= 1000
        else:
            broken = any(isinstance(one, float) and not one.is_integer() for one in lengths)
            self.real = broken or not pa.types.is_integer(kind)

    def numbers(self, column: pa.ChunkedArray) -> npt.NDArray[Any]:
        """Times as numbers; what is missing must have been left out."""
        kind = column.type
        if self.size is None:
            return np.asarray(column.to_numpy()).astype(np.float64 if self.real else np.int64)
        if pa.types.is_date(kind):
            column, kind = column.cast(pa.timestamp("s")), pa.timestamp("s")
        own = NANOSECONDS[kind.unit]
        counts = np.asarray(column.cast(pa.int64()).to_numpy())
        return counts * (own // self.size) if own >= self.size else counts / (self.size // own)

    def length(self, given: float | int | str) -> Any:
        """A length of time as a number."""
        found = duration_value(given)
        if self.size is not None:
            return int(found) // self.size
        return float(found) if self.real else int(found)

    def later(self, times: npt.NDArray[Any], length: Any) -> npt.NDArray[Any]:
        """Times plus a length; what is beyond all times stays so."""
        return np.asarray(times + (length if self.real else min(length, FAR)))

    @property
    def _word(self) -> str:
        return next(name for name, size in NANOSECONDS.items() if size == self.size)

    def moment(self, text: str, kind: pa.DataType) -> Any:
        """A time from the command line, or from a pipeline, as a number."""
        if self.size is None:
            return float(text) if self.real else int(float(text)) if "." in text or "e" in text.lower() else int(text)
        zone = None if pa.types.is_date(kind) else kind.tz
        try:
            return pa.scalar(text).cast(pa.timestamp(self._word, zone)).value
        except pa.ArrowInvalid:  # a pipeline's times are in UTC and do not say so; a command has refused them before
            return pa.scalar(text).cast(pa.timestamp(self._word)).value

    def told(self, times: list[Any], kind: pa.DataType) -> list[Any]:
        """Numbers as the times that a column of this type holds."""
        if self.size is None:
            return list(pa.array(times, kind).to_pylist())
        stamps = pa.array(np.array(times, np.int64)).cast(pa.timestamp(self._word))
        plain = kind if pa.types.is_date(kind) else pa.timestamp(kind.unit)
        return list(stamps.cast(plain).view(kind).to_pylist())

    def shown(self, time: Any) -> str:
        """A time for people."""
        if self.size is None:
            return str(time)
        return str(np.array([int(time)]).view(f"datetime64[{self._word}]")[0])


@dataclass
class Rows:
    """The rows that a command must take, in their order, and the positions in DATA of those that it must not."""

    values: Floats
    """As they are in DATA; NaN is missing."""
    ids: list[Any]
    times: npt.NDArray[Any] | None
    groups: Integers
    positions: Integers
    beside: dict[str, Any]
    """Further columns: `chances`, `runs` (the number of the object), `sites`."""
    late: Integers
    bad: Integers
    unit: Unit
    until: Any
    total: int
    places: list[tuple[str, int, int]]
    """The pieces of DATA: file, number of the first row in it, position."""
    unusable: str = ""
    """Why DATA must be refused as a whole, if it must."""
    spoiled: list[tuple[Any, Any]] = field(default_factory=list)
    """Times and ids of rows that are taken, turn out to have results that are no numbers, and are then left out."""

    def place(self, position: int) -> tuple[str, int]:
        """The file and the number in it of the row at a position of DATA."""
        file, first, start = [piece for piece in self.places if piece[2] <= position][-1]
        return file, first + position - start


def read_rows(question: Question, source: Source) -> Rows:
    """Read DATA and sort out the rows that are not taken: first the missing values, then lateness. O(rows)."""
    options = question.options
    more = [options.get("prob"), options.get("site_column")]
    names = [*question.columns, *options["by"], question.named, question.time, *more]
    wanted = list(dict.fromkeys(str(name) for name in names if name is not None))
    numbers, places, parts = Numbers(), list[tuple[str, int, int]](), list[pa.Table]()
    numeric = [*question.columns, *([options["prob"]] if options.get("prob") else [])]
    values: list[list[Floats]] = []
    for chunk in source.chunks(wanted):
        places.append((chunk.file, chunk.first, chunk.start))
        values.append([numbers.read(chunk, name) for name in numeric])
        parts.append(chunk.table)
    table = pa.concat_tables(parts) if parts else source.schema.empty_table().select(wanted)
    total = table.num_rows
    matrix = np.array([np.concatenate(columns) for columns in zip(*values, strict=True)]).T.reshape(total, len(numeric))
    return _judged(question, table, matrix, places)


def _judged(question: Question, table: pa.Table, matrix: Floats, places: list[tuple[str, int, int]]) -> Rows:
    total, width = len(matrix), len(question.columns)
    kind = None if question.time is None else table.schema.field(question.time).type
    lengths = [question.length(name) for name in ("duration", "lateness")]
    unit = Unit(kind, lengths)
    lacking, lost = _lacking(question, matrix, width), np.isnan(matrix[:, width:]).any(axis=1)
    if question.time is not None:
        lost = lost | np.asarray(table.column(question.time).is_null(nan_is_null=True))
    policy = question.options["nulls"]
    bad = (lacking | lost) & (policy == "drop")
    unusable = ""
    if policy != "drop" and (lost | (lacking & (policy == "error"))).any():
        unusable = "a value is missing"
    kept = np.flatnonzero(~(bad | lost))
    times = None
    late: Integers = np.zeros(0, np.int64)
    if question.time is not None:
        times = unit.numbers(table.column(question.time).take(pa.array(kept)))
        seen = np.maximum.accumulate(times) if len(times) else times
        before = np.concatenate((times[:1], seen[:-1]))
        tardy = unit.later(times, unit.length(question.length("lateness"))) < before
        late, kept, times = kept[tardy], kept[~tardy], times[~tardy]
    beside: dict[str, Any] = {}
    groups = _groups(table, question.options["by"])[kept]
    if question.options.get("prob"):
        beside["chances"] = matrix[kept, width]
        if ((matrix[:, width] < 0) | (matrix[:, width] > 1)).any():
            unusable = unusable or "a probability is not between 0 and 1"
    if question.options.get("object_column"):
        runs = _runs(names_in(table, question.named))
        beside["runs"] = runs[kept]
        if question.time is not None:
            stamps = table.column(question.time)
            there = np.flatnonzero(~np.asarray(stamps.is_null(nan_is_null=True)))
            unusable = unusable or _torn(runs[there], unit.numbers(stamps.take(pa.array(there))), "times")
        unusable = unusable or _torn(runs[kept], groups, "groups") or _too_probable(runs[kept], beside["chances"])
    if question.options.get("site_column"):
        sites = names_in(table, question.options["site_column"])
        beside["sites"] = [sites[row] for row in kept.tolist()]
    names = list(range(1, total + 1)) if question.named is None else names_in(table, question.named)
    text = question.options.get("until")
    return Rows(
        values=matrix[kept, :width],
        ids=[names[row] for row in kept.tolist()],
        times=times,
        groups=groups,
        positions=kept,
        beside=beside,
        late=late,
        bad=np.flatnonzero(bad),
        unit=unit,
        until=None if text is None or kind is None else unit.moment(text, kind),
        total=total,
        places=places,
        unusable=unusable,
    )


def _lacking(question: Question, matrix: Floats, width: int) -> Booleans:
    """The rows about which the missing-value policy decides. In an update stream a row without any value deletes."""
    missing = np.isnan(matrix[:, :width])
    if question.kind in ("snapshots", "monitor", "fragments"):
        return np.asarray(missing.any(axis=1) & ~missing.all(axis=1))
    return np.asarray(missing.any(axis=1))


def names_in(table: pa.Table, column: str | None) -> list[Any]:
    """Ids as the commands tell them: whole numbers as they are, all else as text."""
    found = table.column(column)
    if not pa.types.is_integer(found.type):
        found = as_text(found).cast(pa.string())
    if found.null_count:
        raise InputError("an id is missing", column=column, remedy="fill it in")
    return list(found.to_pylist())


def _runs(names: list[Any]) -> Integers:
    """The number of the run of equal names that each row belongs to."""
    new = [place > 0 and name != names[place - 1] for place, name in enumerate(names)]
    return np.cumsum(np.array(new, np.int64)) if new else np.zeros(0, np.int64)


def _torn(runs: Integers, column: npt.NDArray[Any], what: str) -> str:
    """Why objects cannot be used whose places differ in what they must share; or nothing."""
    apart = (runs[1:] == runs[:-1]) & (column[1:] != column[:-1])
    return f"an object has several {what}" if apart.any() else ""


def _too_probable(runs: Integers, chances: Floats) -> str:
    """Why objects cannot be used that are at their places with more than certainty; or nothing."""
    starts = np.flatnonzero(np.concatenate(([True], runs[1:] != runs[:-1]))) if len(runs) else np.zeros(0, np.int64)
    sums = [math.fsum(part.tolist()) for part in np.split(chances, starts)[1:]]
    return "the probabilities of an object sum to more than 1" if max(sums, default=0.0) > _CERTAIN else ""


def _groups(table: pa.Table, by: tuple[str, ...]) -> Integers:
    """A number for each combination of values; NULL is a value like others, and so is NaN."""
    known: dict[tuple[Any, ...], int] = {}
    if not by:
        return np.zeros(table.num_rows, np.int64)
    columns = [[_same(value) for value in table.column(name).to_pylist()] for name in by]
    return np.array([known.setdefault(key, len(known)) for key in zip(*columns, strict=True)], np.int64)


def _same(value: Any) -> Any:
    return "NaN" if isinstance(value, float) and value != value else (type(value).__name__, value)
