"""DATA as the definitions need it: which rows a command must take, and what they say.

Times become numbers: themselves, or timestamps in a unit that is fine enough for the lengths that were asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
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

    def moment(self, text: str, kind: pa.DataType) -> Any:
        """A time from the command line as a number."""
        if self.size is None:
            return float(text) if self.real else int(float(text)) if "." in text or "e" in text.lower() else int(text)
        stamp = pa.scalar(text).cast(pa.timestamp("s") if pa.types.is_date(kind) else kind)
        return self.numbers(pa.chunked_array([pa.array([stamp.value], pa.int64()).cast(stamp.type)]))[0].item()

    def shown(self, time: Any) -> str:
        """A time for people."""
        if self.size is None:
            return str(time)
        word = next(name for name, size in NANOSECONDS.items() if size == self.size)
        return str(np.array([int(time)]).view(f"datetime64[{word}]")[0])


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
    spoiled: int = 0
    """Of the rows that are taken, how many turn out to have results that are no numbers, and are then left out."""

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
    unusable = policy != "drop" and (lost | (lacking & (policy == "error"))).any()
    kept = np.flatnonzero(~(bad | lost))
    times = None
    late: Integers = np.zeros(0, np.int64)
    if question.time is not None:
        times = unit.numbers(table.column(question.time).take(pa.array(kept)))
        seen = np.maximum.accumulate(times) if len(times) else times
        before = np.concatenate((times[:1], seen[:-1]))
        tardy = times + unit.length(question.length("lateness")) < before
        late, kept, times = kept[tardy], kept[~tardy], times[~tardy]
    beside: dict[str, Any] = {}
    if question.options.get("prob"):
        beside["chances"] = matrix[kept, width]
    if question.options.get("object_column"):
        beside["runs"] = _runs(names_in(table, question.named))[kept]
    if question.options.get("site_column"):
        sites = names_in(table, question.options["site_column"])
        beside["sites"] = [sites[row] for row in kept.tolist()]
    names = list(range(1, total + 1)) if question.named is None else names_in(table, question.named)
    text = question.options.get("until")
    return Rows(
        values=matrix[kept, :width],
        ids=[names[row] for row in kept.tolist()],
        times=times,
        groups=_groups(table, question.options["by"])[kept],
        positions=kept,
        beside=beside,
        late=late,
        bad=np.flatnonzero(bad),
        unit=unit,
        until=None if text is None or kind is None else unit.moment(text, kind),
        total=total,
        places=places,
        unusable="a value is missing" if unusable else "",
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


def _groups(table: pa.Table, by: tuple[str, ...]) -> Integers:
    """A number for each combination of values; NULL is a value like others, and so is NaN."""
    known: dict[tuple[Any, ...], int] = {}
    if not by:
        return np.zeros(table.num_rows, np.int64)
    columns = [[_same(value) for value in table.column(name).to_pylist()] for name in by]
    return np.array([known.setdefault(key, len(known)) for key in zip(*columns, strict=True)], np.int64)


def _same(value: Any) -> Any:
    return "NaN" if isinstance(value, float) and value != value else (type(value).__name__, value)
