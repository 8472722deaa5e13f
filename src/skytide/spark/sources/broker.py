"""A Kafka broker as the source sees it: which partitions there are, what they hold, and a range of messages.

Stands on confluent-kafka. A task leaves its consumer to the next task in the same process, which mostly goes on where
this one ended: connections stay, and messages fetched ahead are not fetched again.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from skytide.errors import InputError, MissingDependencyError, OptionError
from skytide.spark.sources.offsets import Bounds, Loss, Part

CHUNK = 10_000
"""Messages that go to Spark as one Arrow batch."""
_WAIT = 0.5
"""Seconds until a partial answer is looked at: messages may be missing from a range, where transactions end."""
_CONSUMERS = 8
_OURS = {"enable.auto.commit", "enable.auto.offset.store", "auto.offset.reset", "enable.partition.eof"}


def client_config(options: Mapping[str, str], *, servers: str) -> dict[str, Any]:
    """Settings of the client: the user's, which are librdkafka's, and those that the source rests on."""
    for name in options:
        if name in _OURS or name.endswith("deserializer"):
            raise OptionError("is for the source to set", value=f"kafka.{name}", remedy="leave it out")
    defaults = {
        "group.id": "skytide",
        "client.id": "skytide",
        # What goes wrong arrives as an error; librdkafka would print it as well, many times.
        "log_level": "2",
        # A consumer that goes elsewhere waits for its last request first: half a second, unless told otherwise.
        "fetch.wait.max.ms": "100",
    }
    return {**defaults, **options, "bootstrap.servers": servers}


def need_kafka() -> Any:
    """The package confluent_kafka; an error with the remedy where it is not installed."""
    try:
        import confluent_kafka
    except ImportError:
        raise MissingDependencyError(
            "Kafka needs a package that is not installed (confluent-kafka)",
            remedy='install it with: pip install "skytide[kafka]"',
        ) from None
    return confluent_kafka


@dataclass(frozen=True)
class Subscription:
    """The topics to read: by name, by a pattern of the whole name, or partitions one by one."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    assigned: tuple[Part, ...] = ()


class Broker:
    """Answers about topics. Each takes a round trip or two; `timeout` seconds are waited for it."""

    def __init__(self, config: dict[str, Any], timeout: float) -> None:
        kafka = need_kafka()
        from confluent_kafka.admin import AdminClient

        self._timeout = timeout
        self._trouble = Trouble(config["bootstrap.servers"])
        self._committed = config.get("isolation.level", "read_committed") == "read_committed"
        try:
            self._admin = AdminClient({**config, "error_cb": self._trouble})
        except kafka.KafkaException as problem:
            raise _refused(problem) from None

    def partitions(self, wanted: Subscription) -> list[Part]:
        """The partitions there are of what is subscribed to; a named topic must exist."""
        kafka = need_kafka()
        try:
            topics = self._admin.list_topics(timeout=self._timeout).topics
        except kafka.KafkaException as problem:
            raise self._trouble.error(problem) from None
        known = {name: sorted(topic.partitions) for name, topic in topics.items()}
        if wanted.pattern is not None:
            names = [name for name in known if re.fullmatch(wanted.pattern, name)]
            return sorted((name, partition) for name in names for partition in known[name])
        for name in (*wanted.topics, *(topic for topic, _ in wanted.assigned)):
            if not known.get(name):
                raise InputError("is not a topic of the broker", value=name, remedy="create it, or mend its name")
        if wanted.assigned:
            return sorted(part for part in wanted.assigned if part[1] in known[part[0]])
        return sorted((name, partition) for name in set(wanted.topics) for partition in known[name])

    def bounds(self, parts: list[Part]) -> dict[Part, tuple[int, int]]:
        """The first message that each partition has, and the next one that it will get."""
        from confluent_kafka.admin import OffsetSpec

        low, high = self._offsets(parts, OffsetSpec.earliest()), self._offsets(parts, OffsetSpec.latest())
        return {part: (low[part], high[part]) for part in parts}

    def _offsets(self, parts: list[Part], which: Any) -> dict[Part, int]:
        kafka = need_kafka()
        if not parts:
            return {}
        level = kafka.IsolationLevel.READ_COMMITTED if self._committed else kafka.IsolationLevel.READ_UNCOMMITTED
        asked = self._admin.list_offsets(
            {kafka.TopicPartition(*part): which for part in parts},
            isolation_level=level,
            request_timeout=self._timeout,
        )
        try:
            return {(one.topic, one.partition): answer.result().offset for one, answer in asked.items()}
        except kafka.KafkaException as problem:
            raise self._trouble.error(problem) from None


class Trouble:
    """Remembers what a client complained about last, since the error that follows says only that time ran out."""

    def __init__(self, servers: str) -> None:
        self.servers = servers
        self.last = ""

    def __call__(self, problem: Any) -> None:
        """What the client calls."""
        self.last = problem.str()

    def error(self, problem: Any) -> InputError:
        """The error to raise for an exception of the client."""
        said = problem.args[0].str() if hasattr(problem.args[0], "str") else str(problem)
        if self.last and self.last not in said:
            said += f" ({self.last})"
        return InputError(
            f"did not answer as expected: {said}", value=self.servers, remedy="see that the broker is there"
        )


def _refused(problem: Any) -> OptionError:
    said = problem.args[0].str() if hasattr(problem.args[0], "str") else str(problem)
    return OptionError(
        f"a kafka. option is refused by the client: {said}", remedy="the options are those of librdkafka, see its list"
    )


# -- messages ----------------------------------------------------------------------------------------------------------


@dataclass
class _Open:
    """A consumer, and where it stands."""

    consumer: Any
    trouble: Trouble
    part: Part | None = None
    position: int = -1


_open: dict[tuple[tuple[str, Any], ...], list[_Open]] = {}


def messages(
    config: dict[str, Any], part: Part, first: int, last: int, *, timeout: float, lost: Loss
) -> Iterator[list[Any]]:
    """The messages of a partition with offsets first ... last - 1, some thousand at a time, in order.

    Offsets without a message (compacted, or marks of transactions) are passed over. `lost` is called where the broker
    no longer has them; if it returns, what is left of the range is read. So many seconds of `timeout` without any
    progress are an error.
    """
    key = tuple(sorted(config.items()))
    one = _borrow(key, config, part, first)
    try:
        yield from _range(one, part, first, last, timeout, lost)
    except BaseException:
        one.consumer.close()
        raise
    idle = _open.setdefault(key, [])
    idle.append(one)
    if len(idle) > _CONSUMERS:
        idle.pop(0).consumer.close()


def _borrow(key: tuple[tuple[str, Any], ...], config: dict[str, Any], part: Part, first: int) -> _Open:
    kafka = need_kafka()
    idle = _open.get(key, [])
    for place, one in enumerate(idle):
        if (one.part, one.position) == (part, first):
            return idle.pop(place)
    for place, one in enumerate(idle):
        if one.part == part:
            found = idle.pop(place)
            break
    else:
        trouble = Trouble(config["bootstrap.servers"])
        ours = {
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
        }
        try:
            found = _Open(kafka.Consumer({**config, **ours, "error_cb": trouble}), trouble)
        except kafka.KafkaException as problem:
            raise _refused(problem) from None
    _go(found, part, first)
    return found


def _go(one: _Open, part: Part, position: int) -> None:
    kafka = need_kafka()
    one.part, one.position = part, position
    one.consumer.assign([kafka.TopicPartition(*part, position)])


def _range(one: _Open, part: Part, first: int, last: int, timeout: float, lost: Loss) -> Iterator[list[Any]]:
    kafka = need_kafka()
    deadline = time.monotonic() + timeout
    while one.position < last:
        before = one.position
        got = one.consumer.consume(min(CHUNK, last - one.position), timeout=_WAIT)
        good = []
        for message in got:
            problem = message.error()
            if problem is None:
                one.position = message.offset() + 1
                if message.offset() < last:
                    good.append(message)
            elif problem.code() == kafka.KafkaError._PARTITION_EOF:
                # Nothing but marks between here and there.
                if message.offset() >= last:
                    one.position = max(one.position, message.offset())
            elif problem.code() in (
                kafka.KafkaError._AUTO_OFFSET_RESET,
                kafka.KafkaError.OFFSET_OUT_OF_RANGE,
                kafka.KafkaError.UNKNOWN_TOPIC_OR_PART,
                kafka.KafkaError._UNKNOWN_PARTITION,
            ):
                lost(f"offset {one.position} of partition {part[1]} of topic {part[0]} is no longer there")
                _skip(one, part, last, timeout)
            else:
                raise one.trouble.error(kafka.KafkaException(problem))
        if good:
            yield good
        if one.position != before:
            deadline = time.monotonic() + timeout
        elif time.monotonic() > deadline:
            raise one.trouble.error(
                kafka.KafkaException(f"offset {one.position} of {part[0]} did not come in {timeout:g} seconds")
            )


def _skip(one: _Open, part: Part, last: int, timeout: float) -> None:
    """Go to the first message that is there, or to the end of the range where none of it is."""
    kafka = need_kafka()
    try:
        low, _ = one.consumer.get_watermark_offsets(kafka.TopicPartition(*part), timeout=timeout)
    except kafka.KafkaException:
        low = last
    _go(one, part, min(last, max(one.position, low)))


def bounds_of(broker: Broker, wanted: Subscription) -> Bounds:
    """The bounds of all partitions that are subscribed to."""
    return broker.bounds(broker.partitions(wanted))
