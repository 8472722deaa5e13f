"""`spark.read.format("skytide")` and `spark.readStream.format("skytide")`: the generators as a table and as a stream.

With the option url the same format is a coordinator's change stream: see `skytide.spark.sources.changes`.

A row depends on the options and its position alone. So a task that is tried again, a query that is started again from
its checkpoint, and any number of partitions give the same rows. Rows go to Spark as Arrow batches.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from skytide.errors import InputError, OptionError, WindowError
from skytide.model import duration_value
from skytide.spark.sources import changes
from skytide.spark.sources.options import Option, number, one_of, positive, read_options, whole
from skytide.spark.sources.rows import KINDS, Rows, split
from skytide.streams import KINDS as PLAIN

OPTIONS = (
    Option("kind", one_of(*KINDS), "independent", "which rows, as in `skytide generate`"),
    Option("rows", whole(0), None, "how many; a table needs it, a stream without it never ends"),
    Option("dimensions", whole(1), 2, "columns x1 to xd"),
    Option("seed", whole(0), 0, "same seed, same rows"),
    Option("deviation", number, None, "of anti-correlated rows from their plane, 0.05 unless given"),
    Option("base", one_of(*PLAIN), "independent", "the rows that spikes, uncertain, jitter, fragments are made of"),
    Option("objects", whole(1), 1000, "of walk, jitter, fragments"),
    Option("sites", whole(1), 10, "of fragments"),
    Option("probabilities", one_of("uniform", "normal"), "uniform", "of uncertain rows"),
    Option("mean", number, 0.5, "of normal probabilities"),
    Option("groups", whole(1), None, "a column `group` with so many groups, g1 to gN"),
    Option("time", one_of("number", "timestamp", "none"), "number", "the form of the column `time`"),
    Option("timeStart", str, None, "the first time: a whole number, 0 unless given, or 2026-01-01T00:00:00Z"),
    Option("timeStep", str, None, "from one time to the next: a whole number, or a duration like 100ms; 1 or 1s"),
    Option("rowsPerTime", whole(1), 1, "so many rows share one time"),
    Option("partitions", whole(1), None, "tasks that make a table or a micro-batch; one per core unless given"),
    Option("rowsPerBatch", whole(1), 100_000, "at most so many rows in a micro-batch of a stream"),
    Option("rowsPerSecond", positive, None, "so many new rows of a stream each second; as fast as they are read"),
)
_FIRST_TIMESTAMP = "2026-01-01T00:00:00Z"


class SkytideSource(DataSource):
    """The format `skytide`; `OPTIONS` says what can be asked of it, and with a url those of `changes`."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "skytide"

    def schema(self) -> StructType:
        """The columns that the options ask for."""
        if changes.reads_coordinator(self.options):
            return changes.columns(self.options)
        return from_arrow_schema(rows_of(self._settings()).schema())

    def reader(self, schema: StructType) -> DataSourceReader:
        """A table of `rows` rows, or of what a coordinator keeps."""
        if changes.reads_coordinator(self.options):
            return changes.table_reader(self.options, schema)
        settings = self._settings()
        if settings["rows"] is None:
            raise OptionError("a table of generated rows needs the option rows", remedy="give rows, or read a stream")
        return _TableReader(self._checked(settings, schema), settings)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """A stream that ends after `rows` rows, or never, as that of a coordinator."""
        if changes.reads_coordinator(self.options):
            return changes.stream_reader(self.options, schema)
        settings = self._settings()
        return _StreamReader(self._checked(settings, schema), settings)

    def _settings(self) -> dict[str, Any]:
        return read_options(self.options, OPTIONS, source="the format skytide")

    def _checked(self, settings: dict[str, Any], schema: StructType) -> Rows:
        rows = rows_of(settings)
        ours = from_arrow_schema(rows.schema())
        if schema.simpleString() != ours.simpleString() or not all(field.nullable for field in schema):
            raise InputError(
                f"is asked for as schema, and the rows are {ours.simpleString()}",
                value=schema.simpleString(),
                remedy="leave the schema out",
            )
        return rows


def rows_of(settings: dict[str, Any]) -> Rows:
    """The stream of rows that the options ask for."""
    start, step = _clock(settings["time"], settings["timeStart"], settings["timeStep"])
    same = ("kind", "dimensions", "seed", "deviation", "base", "objects", "sites", "probabilities", "mean", "groups")
    return Rows(
        **{name: settings[name] for name in same},
        time=settings["time"],
        time_start=start,
        time_step=step,
        rows_per_time=settings["rowsPerTime"],
    )


def _clock(form: str, start: str | None, step: str | None) -> tuple[int, int]:
    if form != "timestamp":
        return _whole("timeStart", start, 0), _whole("timeStep", step, 1)
    try:
        first = datetime.fromisoformat(start or _FIRST_TIMESTAMP)
    except ValueError:
        raise OptionError(
            "is given for the option timeStart and is not a timestamp", value=start, remedy=f"use {_FIRST_TIMESTAMP}"
        ) from None
    since = first.replace(tzinfo=first.tzinfo or UTC) - datetime.fromtimestamp(0, UTC)
    microseconds = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    try:
        length, rest = divmod(duration_value(step or "1s"), 1000)
    except WindowError:
        length, rest = 0, 1
    if rest:
        raise OptionError(
            "is given for the option timeStep and is not a duration in whole microseconds",
            value=step,
            remedy="write it like 100ms, 1s or 15m",
        )
    return microseconds, int(length)


def _whole(name: str, text: str | None, default: int) -> int:
    try:
        return default if text is None else int(text)
    except ValueError:
        raise OptionError(
            f"is given for the option {name} and is not a whole number",
            value=text,
            remedy="give one, or ask for time=timestamp",
        ) from None


class Positions(InputPartition):
    """The rows of one task."""

    def __init__(self, first: int, last: int) -> None:
        self.first = first
        self.last = last


class _Reader:
    """What tables and streams share: the rows, and how many tasks make them."""

    def __init__(self, rows: Rows, settings: dict[str, Any]) -> None:
        self.rows = rows
        self.total: int | None = settings["rows"]
        # The tasks of a sequential kind would each run through the whole stream.
        self.tasks = settings["partitions"] or (1 if rows.sequential else os.cpu_count() or 1)

    def parts(self, first: int, last: int) -> list[InputPartition]:
        return [Positions(*part) for part in split(first, last, self.tasks)]

    def made(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # Spark asks for one partition also where there is none.
        if isinstance(partition, Positions):
            yield from self.rows.batches(partition.first, partition.last)


class _TableReader(_Reader, DataSourceReader):
    def partitions(self) -> Sequence[InputPartition]:
        return self.parts(0, self.total or 0)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self.made(partition)


class _StreamReader(_Reader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """An offset is the number of rows before it."""

    def __init__(self, rows: Rows, settings: dict[str, Any]) -> None:
        super().__init__(rows, settings)
        self.most: int = settings["rowsPerBatch"]
        self.rate: float | None = settings["rowsPerSecond"]
        self.began: tuple[int, float] | None = None
        self.closed = False

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"row": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self.most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        if self.total is None:
            raise OptionError(
                "a stream without an end never has all of its rows available",
                remedy="give the option rows, or another trigger than availableNow",
            )
        self.closed = True

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        first = start["row"]
        there = self.available(first)
        if isinstance(limit, ReadMaxRows):
            there = min(there, first + limit.max_rows)
        elif isinstance(limit, ReadMinRows):
            last = there == self.total
            there = there if last or there - first >= limit.min_rows else first
        elif isinstance(limit, ReadAllAvailable) and self.total is None and self.rate is None:
            raise OptionError(
                "a stream without an end never has all of its rows available",
                remedy="give the option rows or rowsPerSecond, or another trigger than once",
            )
        return {"row": max(first, there)}

    def available(self, first: int) -> int:
        """How many rows there are by now; the clock runs from when the query was started or started again."""
        end = self.total if self.total is not None else 2**62
        if self.rate is None or self.closed:
            return end
        now = time.monotonic()
        if self.began is None:
            self.began = first, now
        before, then = self.began
        return min(end, before + int((now - then) * self.rate))

    def reportLatestOffset(self) -> dict[str, int] | None:  # noqa: N802
        return None if self.total is None else {"row": self.total}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return self.parts(start["row"], end["row"])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self.made(partition)
