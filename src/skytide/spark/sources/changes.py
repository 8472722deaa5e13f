"""`format("skytide")` with a url: the change stream of a coordinator, as a table and as a stream.

An offset is the number of the last event that was read. The coordinator numbers events before anyone sees them and
keeps them over its restarts, so two numbers are the same rows whenever they are read; each row comes once per query.
An offset also holds when its event was: a coordinator that was made anew counts from 1 again, and is found out.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, ReadMinRows, SupportsTriggerAvailableNow
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from skytide.errors import InputError, OptionError
from skytide.spark.sources.coordinator import Access, Coordinator, access_of
from skytide.spark.sources.options import Option, plain, positive, read_options, whole, words

URL = "url"
COLUMNS = StructType(
    [
        StructField("number", LongType()),
        StructField("time", TimestampType()),
        StructField("kind", StringType()),
        StructField("change", StringType()),
        StructField("id", StringType()),
        StructField("id_number", LongType()),
        StructField("dialogue", LongType()),
        StructField("site", StringType()),
        StructField("since", TimestampType()),
        StructField("objects", ArrayType(StringType())),
        StructField("count", LongType()),
        StructField("exact", BooleanType()),
    ]
)
PAUSE = 0.1
"""Seconds between two questions whether there is anything new: Spark would ask a hundred times a second."""


def _place(text: str) -> str | int:
    if text.lower() in ("earliest", "latest"):
        return text.lower()
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise OptionError("is not a place in the stream", value=text, remedy="use earliest, latest, or a number from 0")
    return int(text)


OPTIONS = (
    Option(URL, words, None, "of the coordinator: http://host:port, or https://host:port"),
    Option("token", words, None, "a reader's token, where the coordinator asks for one"),
    Option("tokenFile", words, None, "or a file with it, read where the query is planned"),
    Option("certificate", words, None, "a PEM file with what the coordinator's certificate is signed by"),
    Option("startingOffset", _place, "earliest", "earliest, latest, or N: the events after number N"),
    Option("maxPerBatch", whole(1), 100_000, "at most so many events in a micro-batch"),
    Option("timeout", positive, 60.0, "seconds without an answer of the coordinator that are an error"),
)


def reads_coordinator(options: Mapping[str, str]) -> bool:
    """Whether these options are for a coordinator: then they have a url."""
    return any(plain(name) == URL for name in options)


def columns(options: Mapping[str, str]) -> StructType:
    """The columns, the same for all options; wrong ones are found here already."""
    _settings(options)
    return COLUMNS


def _settings(options: Mapping[str, str]) -> dict[str, Any]:
    return read_options(options, OPTIONS, source="the format skytide with a url")


def table_reader(options: Mapping[str, str], schema: StructType) -> DataSourceReader:
    """All events that are kept when the query is planned, or those after a number."""
    return _TableReader(options, schema)


def stream_reader(options: Mapping[str, str], schema: StructType) -> DataSourceStreamReader:
    """Events as they come."""
    return _StreamReader(options, schema)


# -- offsets -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mark:
    """The number of an event, and its time; None where there is no such event any more, or not yet."""

    number: int
    time: float | None = None


@dataclass(frozen=True)
class Offset:
    """The last event that was read, and what Spark's log must know besides.

    Spark asks for the beginning of a stream anew where the very first batch is run again, and earliest and latest have
    changed by then. So the end of a batch holds where it began, `since`, if it began at an `initial` offset.
    """

    at: Mark
    since: Mark | None = None
    initial: bool = False

    def to_json(self) -> dict[str, Any]:
        """As Spark stores it."""
        stored: dict[str, Any] = vars(self.at).copy()
        if self.since is not None:
            stored["since"] = vars(self.since).copy()
        if self.initial:
            stored["initial"] = True
        return stored

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Offset:
        """The offset out of Spark's log."""
        try:
            since = stored.get("since")
            return cls(
                Mark(stored["number"], stored["time"]),
                None if since is None else Mark(since["number"], since["time"]),
                bool(stored.get("initial", False)),
            )
        except (LookupError, TypeError):
            raise InputError(
                "the checkpoint is not that of a coordinator's events", remedy="use another checkpoint"
            ) from None


# -- rows --------------------------------------------------------------------------------------------------------------


class Events(InputPartition):
    """The events after a number up to a mark: all that a task must know."""

    def __init__(self, after: int, last: Mark) -> None:
        self.after = after
        self.last = last


def record_batch(events: list[dict[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Events as the columns of the source. O(events)."""

    def all_of(name: str) -> list[Any]:
        return [event.get(name) for event in events]

    ids = all_of("id")
    columns: dict[str, list[Any]] = {
        **{name: all_of(name) for name in ("number", "kind", "change", "dialogue", "site", "count", "exact")},
        **{name: [None if one is None else round(one * 1e6) for one in all_of(name)] for name in ("time", "since")},
        "id": [_text(one) for one in ids],
        "id_number": [one if isinstance(one, int) else None for one in ids],
        "objects": [None if some is None else [_text(one) for one in some] for some in all_of("objects")],
    }
    return pa.RecordBatch.from_arrays([pa.array(columns[field.name], field.type) for field in schema], schema=schema)


def _text(one: int | str | None) -> str | None:
    return None if one is None else str(one)


class _Reader:
    """What tables and streams share. The coordinator is asked for numbers where queries are planned, and for events in
    tasks; these get what they need to know with them."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        settings = _settings(options)
        if schema != COLUMNS:
            raise InputError(
                f"is asked for as schema, and the events are {COLUMNS.simpleString()}",
                value=schema.simpleString(),
                remedy="leave the schema out",
            )
        self.access: Access = access_of(
            settings[URL],
            token=settings["token"],
            token_file=settings["tokenFile"],
            certificate=settings["certificate"],
            timeout=settings["timeout"],
        )
        self.starting: str | int = settings["startingOffset"]
        self.most: int = settings["maxPerBatch"]
        self._coordinator: Coordinator | None = None

    def __getstate__(self) -> dict[str, Any]:
        # A connection stays with the process that made it.
        return {**self.__dict__, "_coordinator": None}

    @property
    def coordinator(self) -> Coordinator:
        if self._coordinator is None:
            self._coordinator = Coordinator(self.access)
        return self._coordinator

    def close(self) -> None:
        if self._coordinator is not None:
            self._coordinator.close()

    def beginning(self, oldest: int, newest: int) -> int:
        if isinstance(self.starting, str):
            return newest if self.starting == "latest" else oldest - 1
        if not oldest - 1 <= self.starting <= newest:
            raise OptionError(
                f"is given for the option startingOffset, and events {oldest} to {newest} are kept",
                value=self.starting,
                remedy=f"give {oldest - 1} to {newest}, earliest or latest",
            )
        return self.starting

    def mark(self, number: int, oldest: int) -> Mark:
        return Mark(number, self.coordinator.event(number)["time"] if number >= oldest else None)

    def made(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # Spark asks for one partition also where there is none.
        if not isinstance(partition, Events):
            return
        coordinator, schema = Coordinator(self.access), to_arrow_schema(COLUMNS, timezone="UTC")
        try:
            for events in coordinator.events(partition.after, partition.last.number):
                ends = events[-1]["number"] == partition.last.number
                if ends and events[-1]["time"] != partition.last.time:
                    raise coordinator.another(partition.last.number)
                yield self._batch(events, schema)
        finally:
            coordinator.close()

    def _batch(self, events: list[dict[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
        try:
            return record_batch(events, schema)
        except (pa.ArrowException, ValueError, TypeError, OverflowError):
            first, last = events[0]["number"], events[-1]["number"]
            raise InputError(
                f"has events of another form between {first} and {last}",
                value=self.access.url,
                remedy="use the same version of Skytide on both sides",
            ) from None


class _TableReader(_Reader, DataSourceReader):
    def partitions(self) -> Sequence[InputPartition]:
        try:
            oldest, newest = self.coordinator.bounds()
            after = self.beginning(oldest, newest)
            return [Events(after, self.mark(newest, oldest))] if after < newest else []
        finally:
            self.close()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self.made(partition)


class _StreamReader(_Reader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        super().__init__(options, schema)
        self.target: int | None = None
        self.newest: int | None = None
        self.quiet_until = 0.0

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        oldest, newest = self.coordinator.bounds()
        return Offset(self.mark(self.beginning(oldest, newest), oldest), initial=True).to_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self.most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self.target = self.coordinator.bounds()[1]

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        begin = Offset.from_json(start)
        time.sleep(max(0.0, self.quiet_until - time.monotonic()))
        oldest, newest = self.coordinator.bounds()
        if not oldest - 1 <= begin.at.number <= newest:
            raise self.coordinator.lost(begin.at.number, newest)
        self.newest = newest
        there = newest if self.target is None else max(begin.at.number, min(self.target, newest))
        if there == begin.at.number or _too_few(there - begin.at.number, limit, self.target):
            self.quiet_until = time.monotonic() + PAUSE
            return start  # the very same text: Spark compares texts
        if begin.at.time is not None and begin.at.number >= oldest and self.mark(begin.at.number, oldest) != begin.at:
            raise self.coordinator.another(begin.at.number)
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else there
        end = self.mark(min(there, begin.at.number + most), oldest)
        return Offset(end, since=begin.at if begin.initial else None).to_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        return None if self.newest is None else Offset(Mark(self.newest)).to_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        begin, last = Offset.from_json(start), Offset.from_json(end)
        if last.initial or begin == last:
            return []
        after = begin.at if last.since is None else last.since
        return [Events(after.number, last.at)] if after.number < last.at.number else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self.made(partition)

    def stop(self) -> None:
        self.close()


def _too_few(rows: int, limit: ReadLimit, target: int | None) -> bool:
    return isinstance(limit, ReadMinRows) and target is None and rows < limit.min_rows
