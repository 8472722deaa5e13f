"""`format("skytide_kafka")`: Kafka topics as tables and streams, in Python, where Spark has no Kafka of its own.

The columns and the options are those of Spark's own source, so that a query moves from one to the other by its format's
name. Offsets lie in Spark's log: each message is read once per query, also over restarts. Needs confluent-kafka:
`pip install "skytide[kafka]"`. Options beginning with `kafka.` go to the client as they are; they are librdkafka's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from skytide.errors import InputError, OptionError
from skytide.spark.sources.broker import Broker, Subscription, bounds_of, client_config, messages
from skytide.spark.sources.offsets import (
    Bounds,
    Loss,
    Offset,
    Part,
    advance,
    fail_on_loss,
    pieces,
    ranges,
    read_places,
    resolve,
)
from skytide.spark.sources.options import Option, positive, read_options, truth, whole, words

CLIENT = "kafka."
COLUMNS = (
    ("key", BinaryType()),
    ("value", BinaryType()),
    ("topic", StringType()),
    ("partition", IntegerType()),
    ("offset", LongType()),
    ("timestamp", TimestampType()),
    ("timestampType", IntegerType()),
)
HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
OPTIONS = (
    Option("kafka.bootstrap.servers", words, None, "host:port of one broker or more, with commas between"),
    Option("subscribe", words, None, "topics, with commas between"),
    Option("subscribePattern", words, None, "a regular expression that whole names of topics match"),
    Option("assign", words, None, 'partitions: {"topic": [0, 1]}'),
    Option(
        "startingOffsets", read_places, None, "earliest, latest or JSON; a stream begins at latest, a table at earliest"
    ),
    Option("endingOffsets", read_places, "latest", "where a table ends: latest or JSON"),
    Option("maxOffsetsPerTrigger", whole(1), None, "at most so many messages in a micro-batch"),
    Option("minPartitions", whole(1), 1, "at least about so many tasks; one per partition of Kafka's unless given"),
    Option("failOnDataLoss", truth, True, "whether messages that the broker no longer has are an error"),
    Option("includeHeaders", truth, False, "a column `headers` besides"),
    Option("timeout", positive, 60.0, "seconds without an answer of the broker that are an error"),
)


class KafkaSource(DataSource):
    """The format `skytide_kafka`; `OPTIONS` says what can be asked of it."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "skytide_kafka"

    def schema(self) -> StructType:
        """The columns of Spark's own Kafka source."""
        return _columns(_settings(self.options)["includeHeaders"])

    def reader(self, schema: StructType) -> DataSourceReader:
        """The messages between two places, as they are when the query is planned."""
        return _TableReader(self.options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """The messages from a place on, as they come."""
        return _StreamReader(self.options, schema)


def _columns(headers: bool) -> StructType:
    named = [*COLUMNS, ("headers", ArrayType(HEADER))] if headers else COLUMNS
    return StructType([StructField(name, kind) for name, kind in named])


def _settings(options: Mapping[str, str]) -> dict[str, Any]:
    ours = {name: text for name, text in options.items() if not name.lower().startswith(CLIENT)}
    servers = {name: text for name, text in options.items() if name.lower() == "kafka.bootstrap.servers"}
    return read_options({**ours, **servers}, OPTIONS, source="the format skytide_kafka (or begins with kafka.)")


def _subscription(settings: Mapping[str, Any]) -> Subscription:
    given = [name for name in ("subscribe", "subscribePattern", "assign") if settings[name] is not None]
    if len(given) != 1:
        raise OptionError(
            f"what to read is said {len(given)} times", remedy="give one of subscribe, subscribePattern and assign"
        )
    if settings["subscribe"] is not None:
        return Subscription(topics=tuple(name.strip() for name in settings["subscribe"].split(",") if name.strip()))
    try:
        if settings["subscribePattern"] is not None:
            re.compile(settings["subscribePattern"])
            return Subscription(pattern=settings["subscribePattern"])
        named = json.loads(settings["assign"])
        return Subscription(assigned=tuple((str(topic), int(one)) for topic, some in named.items() for one in some))
    except (re.error, ValueError, TypeError, AttributeError):
        raise OptionError(
            f"is given for the option {given[0]} and cannot be read", value=settings[given[0]], remedy="mend it"
        ) from None


class Messages(InputPartition):
    """The messages of one task."""

    def __init__(self, part: Part, first: int, last: int) -> None:
        self.part = part
        self.first = first
        self.last = last


class _Reader:
    """What tables and streams share. The broker is asked where queries are planned, and messages are read in tasks."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        settings = _settings(options)
        self.wanted = _subscription(settings)
        self.starting, self.ending = settings["startingOffsets"], settings["endingOffsets"]
        self.most: int | None = settings["maxOffsetsPerTrigger"]
        self.tasks: int = settings["minPartitions"]
        self.fail: bool = settings["failOnDataLoss"]
        self.headers: bool = settings["includeHeaders"]
        self.timeout: float = settings["timeout"]
        if settings["kafka.bootstrap.servers"] is None:
            raise OptionError("the option kafka.bootstrap.servers is missing", remedy="give host:port of a broker")
        client = {
            name[len(CLIENT) :].lower(): text for name, text in options.items() if name.lower().startswith(CLIENT)
        }
        client.pop("bootstrap.servers", None)
        self.config = client_config(client, servers=settings["kafka.bootstrap.servers"])
        self.schema = _checked(schema, self.headers)
        self._broker: Broker | None = None

    def __getstate__(self) -> dict[str, Any]:
        # A connection stays with the process that made it.
        return {**self.__dict__, "_broker": None}

    def bounds(self) -> Bounds:
        if self._broker is None:
            self._broker = Broker(self.config, self.timeout)
        return bounds_of(self._broker, self.wanted)

    def lost(self) -> Loss:
        return fail_on_loss if self.fail else lambda what: None

    def parts(self, found: dict[Part, tuple[int, int]]) -> list[InputPartition]:
        return [Messages(*piece) for piece in pieces(found, self.tasks)]

    def made(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # Spark asks for one partition also where there is none.
        if not isinstance(partition, Messages):
            return
        read = messages(
            self.config, partition.part, partition.first, partition.last, timeout=self.timeout, lost=self.lost()
        )
        for chunk in read:
            yield record_batch(chunk, partition.part, self.schema, headers=self.headers)


def _checked(schema: StructType, headers: bool) -> pa.Schema:
    ours = _columns(headers)
    if schema != ours:
        raise InputError(
            f"is asked for as schema, and the messages are {ours.simpleString()}",
            value=schema.simpleString(),
            remedy="leave the schema out, and parse the column value",
        )
    return to_arrow_schema(schema, timezone="UTC")


def record_batch(chunk: list[Any], part: Part, schema: pa.Schema, *, headers: bool) -> pa.RecordBatch:
    """Messages of one partition as the columns of the source. O(messages), most of it in the client's accessors."""
    clocks = [message.timestamp() for message in chunk]
    columns: list[Any] = [
        [message.key() for message in chunk],
        [message.value() for message in chunk],
        pa.repeat(part[0], len(chunk)),
        pa.repeat(pa.scalar(part[1], pa.int32()), len(chunk)),
        [message.offset() for message in chunk],
        # The client counts kinds of clocks from 0 for none, Spark from -1.
        [milliseconds * 1000 if kind else None for kind, milliseconds in clocks],
        [kind - 1 for kind, _ in clocks],
    ]
    if headers:
        pairs = [message.headers() for message in chunk]
        columns.append(
            [None if some is None else [{"key": name, "value": value} for name, value in some] for some in pairs]
        )
    arrays = [
        column if isinstance(column, pa.Array) else pa.array(column, field.type)
        for column, field in zip(columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


class _TableReader(_Reader, DataSourceReader):
    def partitions(self) -> Sequence[InputPartition]:
        if self.ending == "earliest":
            raise OptionError("a table cannot end at earliest", remedy="use latest or JSON for endingOffsets")
        bounds = self.bounds()
        first = resolve(self.starting or "earliest", bounds, option="startingOffsets")
        last = resolve(self.ending, bounds, option="endingOffsets")
        return self.parts({part: (first[part], last[part]) for part in bounds if first[part] < last[part]})

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self.made(partition)


class _StreamReader(_Reader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """An offset is the next message of every partition: see `skytide.spark.sources.offsets`."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        super().__init__(options, schema)
        self.target: Bounds | None = None
        self.seen: Bounds = {}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        places = resolve(self.starting or "latest", self.bounds(), option="startingOffsets")
        return Offset(places, initial=True).to_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadAllAvailable() if self.most is None else ReadMaxRows(self.most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self.target = self.bounds()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        begin = Offset.from_json(start)
        self.seen = self.bounds() if self.target is None else self.target
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        end = advance(begin, self.seen, most, self.lost())
        if isinstance(limit, ReadMinRows) and self.target is None:
            rows = sum(last - first for first, last in ranges(begin, end).values())
            if rows < limit.min_rows:
                return start
        # The very same text where nothing is new: Spark compares texts.
        return start if end == begin else end.to_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        return Offset({part: high for part, (_, high) in self.seen.items()}).to_json() if self.seen else None

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return self.parts(ranges(Offset.from_json(start), Offset.from_json(end)))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self.made(partition)
