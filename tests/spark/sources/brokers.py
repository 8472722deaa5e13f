"""A Kafka broker for tests: the one built into the client, or a real one where SKYTIDE_KAFKA names it."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

PARTITIONS = 4
"""What the built-in broker gives a topic."""


class Kafka:
    """A broker that other processes reach at `servers`, and what tests do with it."""

    def __init__(self, real: str | None) -> None:
        self.real = real is not None
        mock = {"test.mock.num.brokers": 1, "bootstrap.servers": "none", "log_level": 2}
        self.producer = Producer({"bootstrap.servers": real, "linger.ms": 0} if real else {**mock, "linger.ms": 0})
        found = self.producer.list_topics(timeout=10).brokers.values()
        self.servers = real or ",".join(f"{broker.host}:{broker.port}" for broker in found)

    def topic(self, prefix: str = "skytide") -> str:
        """A new topic."""
        name = f"{prefix}-{uuid.uuid4().hex[:12]}"
        if self.real:
            admin = AdminClient({"bootstrap.servers": self.servers})
            admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(30)
        else:
            self.producer.list_topics(name, timeout=10)
        return name

    def send(self, topic: str, values: Iterable[object], *, partition: int | None = None) -> None:
        """Messages with these values as text, spread over the partitions in turn."""
        for place, value in enumerate(values):
            chosen = place % PARTITIONS if partition is None else partition
            self.producer.produce(topic, str(value).encode(), key=f"k{place}".encode(), partition=chosen)
            self.producer.poll(0)
        assert self.producer.flush(30) == 0

    def read(self, topic: str, count: int) -> list[object]:
        """The first messages of a topic, partition after partition."""
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": "tests", "enable.partition.eof": True})
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
        found: list[object] = []
        for _ in range(60):
            got = consumer.consume(count, timeout=0.5)
            found += [message for message in got if message.error() is None]
            if len(found) >= count:
                break
        consumer.close()
        return found


@pytest.fixture(scope="module", params=["mock", "real"])
def kafka(request: pytest.FixtureRequest) -> Iterator[Kafka]:
    real = os.environ.get("SKYTIDE_KAFKA")
    if request.param == "real" and not real:
        pytest.skip("SKYTIDE_KAFKA does not name a broker (host:port)")
    yield Kafka(real if request.param == "real" else None)
