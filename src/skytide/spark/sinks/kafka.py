"""Changes as Kafka messages, at least once, and marked so that a reader can drop what comes twice.

A micro-batch that is done again after a crash is sent again. The headers `skytide-query`, `skytide-batch` and
`skytide-sequence` say which message of which micro-batch each one is; `deduplicated` drops repeats by them. The key is
the group, or the id where there are no groups, so that all changes of a group (an id) are in one partition, in order.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from skytide.errors import InputError, OptionError, OutputError
from skytide.spark.sinks.keys import group_columns
from skytide.spark.sources.broker import need_kafka
from skytide.streams.files import json_bytes

QUERY, BATCH, SEQUENCE = "skytide-query", "skytide-batch", "skytide-sequence"
_GRACE = 5.0
_OURS = ("enable.idempotence", "acks", "message.timeout.ms", "bootstrap.servers")


@dataclass(frozen=True)
class KafkaSink:
    """Sends each row as JSON to a topic and waits until the brokers have it.

    `by` are the columns of the key; without it those that the rows mark as groups, or `id`. `query` tells the messages
    of several queries in one topic apart. `options` go to the client as they are (librdkafka's names). Not delivered
    within `timeout` seconds is an error; the micro-batch is then sent again as a whole when the query goes on.
    """

    servers: str
    topic: str
    by: tuple[str, ...] | None = None
    id: str = "id"
    query: str = "skytide"
    options: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 60.0

    def __post_init__(self) -> None:
        for name in self.options:
            if name in _OURS:
                raise OptionError("is for the sink to set", value=name, remedy="leave it out")
        if not self.timeout > 0:
            raise OptionError("is not a number of seconds to wait", value=self.timeout, remedy="give more than 0")

    def write(self, batch: int, rows: pa.Table) -> None:
        """Send a micro-batch; an error where not all of it arrived."""
        if not rows.num_rows:
            return
        keys = self._keys(rows)
        failures: list[str] = []

        def delivered(problem: Any, message: Any) -> None:
            if problem is not None:
                failures.append(problem.str())

        producer = _producer(self._config())
        marks = [(QUERY, self.query.encode()), (BATCH, str(batch).encode())]
        try:
            for sequence, (key, value) in enumerate(zip(keys, _lines(rows), strict=True)):
                _send(
                    producer,
                    self.timeout,
                    topic=self.topic,
                    key=key,
                    value=value,
                    headers=[*marks, (SEQUENCE, str(sequence).encode())],
                    on_delivery=delivered,
                )
            waiting = producer.flush(self.timeout + _GRACE)
        except BaseException as problem:
            _discard(self._config(), producer)
            if isinstance(problem, need_kafka().KafkaException):
                raise self._undelivered(batch, _said(problem)) from None
            raise
        if waiting or failures:
            _discard(self._config(), producer)
            raise self._undelivered(batch, failures[0] if failures else f"{waiting} messages without an answer")

    def last(self) -> int | None:
        """None: the topic is not searched."""
        return None

    def _keys(self, rows: pa.Table) -> list[bytes]:
        by = self.by if self.by is not None else group_columns(rows)
        named = list(by) or [self.id]
        for name in named:
            if name not in rows.column_names:
                raise InputError("there is no such column to make keys of", column=name, remedy="name another one")
        return _lines(rows.select(named))

    def _config(self) -> tuple[tuple[str, str], ...]:
        ours = {
            "bootstrap.servers": self.servers,
            "enable.idempotence": "true",
            "acks": "all",
            "message.timeout.ms": str(max(1, round(self.timeout * 1000))),
        }
        defaults = {"client.id": "skytide", "log_level": "2", "linger.ms": "5", "partitioner": "murmur2_random"}
        return tuple(sorted({**defaults, **self.options, **ours}.items()))

    def _undelivered(self, batch: int, said: str) -> OutputError:
        return OutputError(
            f"of micro-batch {batch} did not all arrive at {self.servers}, topic {self.topic}: {said}",
            value="messages",
            remedy="see that the broker is there and start again: the micro-batch is sent again",
        )


def _lines(rows: pa.Table) -> list[bytes]:
    return json_bytes(rows).split(b"\n")[:-1]


# -- producers ---------------------------------------------------------------------------------------------------------

_producers: dict[tuple[tuple[str, str], ...], Any] = {}
"""One per configuration and process: a connection outlives its micro-batch."""


def _producer(config: tuple[tuple[str, str], ...]) -> Any:
    if config not in _producers:
        kafka = need_kafka()
        try:
            _producers[config] = kafka.Producer(dict(config))
        except kafka.KafkaException as problem:
            raise OptionError(
                f"an option is refused by the client: {_said(problem)}", remedy="the options are those of librdkafka"
            ) from None
    return _producers[config]


def _discard(config: tuple[tuple[str, str], ...], producer: Any) -> None:
    """Forget a producer with all it has not sent: late messages of one attempt would mix with those of the next."""
    _producers.pop(config, None)
    producer.purge()
    producer.flush(_GRACE)


def _send(producer: Any, timeout: float, **message: Any) -> None:
    deadline = time.monotonic() + timeout
    while True:
        try:
            producer.produce(**message)
            producer.poll(0)
            return
        except BufferError:
            # The queue is full: room comes with deliveries.
            producer.poll(0.1)
            if time.monotonic() > deadline:
                raise OutputError(
                    "the queue of messages stays full", remedy="see that the broker is there and start again"
                ) from None


def _said(problem: BaseException) -> str:
    first = problem.args[0] if problem.args else problem
    return str(first.str()) if hasattr(first, "str") else str(first)


# -- readers -----------------------------------------------------------------------------------------------------------


class Message(Protocol):
    """What a reader's message must tell; those of confluent-kafka do."""

    def topic(self) -> str | None:
        """The topic."""
        ...

    def partition(self) -> int | None:
        """The partition."""
        ...

    def headers(self) -> Any:
        """Pairs of a name and bytes, or None."""
        ...


One = TypeVar("One", bound=Message)


def deduplicated(messages: Iterable[One]) -> Iterator[One]:
    """The messages without repeats of a micro-batch that was sent again. O(1) each; memory for queries and partitions.

    Messages of a partition must come in its order, as they do from Kafka. Those of others than `KafkaSink` pass. A
    topic that gets further partitions in the middle of a crash is beyond it: repeats may then lie elsewhere.
    """
    reached: dict[tuple[Any, ...], tuple[int, int]] = {}
    for message in messages:
        marks = dict(message.headers() or ())
        if BATCH in marks and SEQUENCE in marks:
            here = (message.topic(), message.partition(), marks.get(QUERY))
            place = (int(marks[BATCH]), int(marks[SEQUENCE]))
            if place <= reached.get(here, (-1, -1)):
                continue
            reached[here] = place
        yield message
