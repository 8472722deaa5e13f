"""`format("skytide_kafka")` in Spark, on a broker: every message once, over restarts, new topics and retention."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from skytide.errors import InputError, OptionError
from skytide.spark import plain_errors
from skytide.spark.sources.broker import client_config, messages
from skytide.spark.sources.kafka import KafkaSource
from skytide.spark.sources.offsets import fail_on_loss
from tests.spark.sources.brokers import Kafka

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def options(kafka: Kafka, **more: Any) -> dict[str, Any]:
    return {"kafka.bootstrap.servers": kafka.servers, "timeout": "30", **more}


class Collector:
    """What each micro-batch held; `crash` names one that fails when it is done for the first time."""

    def __init__(self, crash: int | None = None) -> None:
        self.seen: dict[int, list[str]] = {}
        self.failed: list[str] | None = None
        self.crash = crash

    def __call__(self, batch: DataFrame, number: int) -> None:
        values = sorted(row.value for row in batch.selectExpr("string(value) AS value").collect())
        if number == self.crash and self.failed is None:
            self.failed = values
            raise RuntimeError("the machine stops here")
        self.seen[number] = values

    @property
    def values(self) -> list[str]:
        return sorted(value for values in self.seen.values() for value in values)


def run(stream: DataFrame, checkpoint: Path, each: Callable[[DataFrame, int], None]) -> None:
    query = stream.writeStream.foreachBatch(each).option("checkpointLocation", str(checkpoint))
    query.trigger(availableNow=True).start().awaitTermination()


def texts(numbers: range) -> list[str]:
    return sorted(map(str, numbers))


def test_a_table_has_the_columns_of_sparks_own_source(spark: SparkSession, kafka: Kafka) -> None:
    topic = kafka.topic()
    before = time.time()
    kafka.producer.produce(topic, None, key=b"gone", partition=1, headers=[("a", b"1"), ("a", None)])
    kafka.send(topic, ["x", "y"], partition=2)
    df = spark.read.format("skytide_kafka").options(**options(kafka, subscribe=topic, includeHeaders="true")).load()
    assert df.dtypes == [
        ("key", "binary"),
        ("value", "binary"),
        ("topic", "string"),
        ("partition", "int"),
        ("offset", "bigint"),
        ("timestamp", "timestamp"),
        ("timestampType", "int"),
        ("headers", "array<struct<key:string,value:binary>>"),
    ]
    with plain_errors():
        rows = sorted(df.collect(), key=lambda row: (row.partition, row.offset))
    assert [(row.key, row.value, row.topic, row.partition, row.offset) for row in rows] == [
        (b"gone", None, topic, 1, 0),
        (b"k0", b"x", topic, 2, 0),
        (b"k1", b"y", topic, 2, 1),
    ]
    assert [row.headers and [tuple(pair) for pair in row.headers] for row in rows] == [
        [("a", b"1"), ("a", None)],
        None,
        None,
    ]
    assert all(row.timestampType == 0 for row in rows)
    seconds = [row.t for row in df.selectExpr("unix_millis(timestamp) / 1000 AS t").collect()]
    assert all(before - 5 <= second <= time.time() + 5 for second in seconds)


def test_a_table_begins_and_ends_where_asked_in_more_tasks_than_partitions(spark: SparkSession, kafka: Kafka) -> None:
    topic = kafka.topic()
    kafka.send(topic, range(40), partition=3)
    first = {topic: {"0": -2, "1": -1, "2": 0, "3": 7}}
    last = {topic: {"0": -1, "1": 0, "2": -1, "3": 31}}
    asked = options(
        kafka, subscribe=topic, startingOffsets=json.dumps(first), endingOffsets=json.dumps(last), minPartitions=3
    )
    df = spark.read.format("skytide_kafka").options(**asked).load()
    assert sorted(int(row.value) for row in df.collect()) == list(range(7, 31))
    assert df.rdd.getNumPartitions() == 3


def test_each_message_is_read_once_over_a_crash_and_a_restart(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    topic = kafka.topic()
    kafka.send(topic, range(100))
    asked = options(kafka, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=60)
    stream = spark.readStream.format("skytide_kafka").options(**asked).load()
    collector = Collector(crash=1)
    with pytest.raises(Exception, match="the machine stops here"):
        run(stream, tmp_path, collector)
    kafka.send(topic, range(100, 150))
    run(stream, tmp_path, collector)
    assert collector.values == texts(range(150))
    assert collector.seen[1] == collector.failed and len(collector.failed) == 40
    assert all(len(values) <= 60 for values in collector.seen.values())
    run(stream, tmp_path, collector)
    assert collector.values == texts(range(150))


def test_latest_is_where_the_query_first_began_even_if_its_first_batch_is_done_again(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    topic = kafka.topic()
    kafka.send(topic, range(10))
    stream = spark.readStream.format("skytide_kafka").options(**options(kafka, subscribe=topic)).load()
    collector = Collector(crash=0)
    with pytest.raises(Exception, match="the machine stops here"):
        run(stream, tmp_path, collector)
    kafka.send(topic, range(10, 15))
    run(stream, tmp_path, collector)
    assert collector.values == texts(range(10, 15))


def test_topics_that_appear_are_read_from_their_first_message(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    one = kafka.topic("many")
    family = one[:-6]
    kafka.send(one, range(5))
    asked = options(kafka, subscribePattern=f"{family}.*", startingOffsets="latest")
    stream = spark.readStream.format("skytide_kafka").options(**asked).load()
    collector = Collector()
    run(stream, tmp_path, collector)
    kafka.send(kafka.topic(family), range(100, 110))
    kafka.send(one, range(5, 8))
    run(stream, tmp_path, collector)
    assert collector.values == sorted([*texts(range(100, 110)), *texts(range(5, 8))])


def test_messages_that_the_broker_dropped_are_an_error_unless_allowed(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    if kafka.real:
        pytest.skip("a real broker drops messages when it likes to")
    topic = kafka.topic()
    kafka.send(topic, range(10), partition=0)
    asked = options(kafka, assign=json.dumps({topic: [0]}), startingOffsets="earliest")
    stream = spark.readStream.format("skytide_kafka").options(**asked)
    collector = Collector()
    run(stream.load(), tmp_path, collector)
    # The built-in broker keeps 5 MiB of a partition.
    kafka.send(topic, ("x" * 500_000 for _ in range(14)), partition=0)
    with pytest.raises(InputError, match=r"messages are lost: .*is the next to read; .*failOnDataLoss"), plain_errors():
        run(stream.load(), tmp_path, collector)
    run(stream.option("failOnDataLoss", "false").load(), tmp_path, collector)
    assert len(collector.seen[0]) == 10 and 5 <= len(collector.seen[1]) < 14
    # A task finds out on its own when messages go after it was planned.
    config = client_config({}, servers=kafka.servers)
    with pytest.raises(InputError, match="messages are lost: offset 3 of partition 0"):
        list(messages(config, (topic, 0), 3, 24, timeout=20, lost=fail_on_loss))
    left = list(messages(config, (topic, 0), 3, 24, timeout=20, lost=lambda what: None))
    assert sum(map(len, left)) == len(collector.seen[1])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"subscribe": "nowhere"}, "'nowhere' is not a topic of the broker"),
        ({"subscribePattern": "t"}, "what to read is said 2 times"),
        ({"startingOffset": "latest"}, "'startingOffset' is not an option of the format skytide_kafka"),
        ({"kafka.no.such": "1"}, 'refused by the client: No such configuration property: "no.such"'),
        ({"kafka.auto.offset.reset": "latest"}, "'kafka.auto.offset.reset' is for the source to set"),
        ({"kafka.bootstrap.servers": "127.0.0.1:1", "timeout": "1"}, "'127.0.0.1:1' did not answer as expected"),
    ],
)
def test_what_is_wrong_is_one_clear_line(kafka: Kafka, wrong: dict[str, str], said: str) -> None:
    source = KafkaSource({**options(kafka, subscribe="t"), **wrong})
    with pytest.raises((OptionError, InputError)) as caught:
        source.reader(source.schema()).partitions()
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_a_source_without_a_broker_or_with_another_schema_is_refused() -> None:
    source = KafkaSource({"subscribe": "t"})
    with pytest.raises(OptionError, match=r"kafka\.bootstrap\.servers is missing"):
        source.streamReader(source.schema())
    source = KafkaSource({"subscribe": "t", "kafka.bootstrap.servers": "127.0.0.1:1"})
    with pytest.raises(InputError, match="leave the schema out"):
        source.reader(KafkaSource({"includeHeaders": "true"}).schema())
