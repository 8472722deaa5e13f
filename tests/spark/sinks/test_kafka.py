"""Changes as Kafka messages: all of them, in order per key, marked so that repeats can be dropped."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skytide.errors import InputError, OptionError, OutputError
from skytide.spark.sinks import KafkaSink, deduplicated
from skytide.spark.sinks.keys import mark_groups
from tests.spark.sources.brokers import Kafka


def rows(*ids: int) -> pa.Table:
    return pa.table(
        {
            "time": [1.5] * len(ids),
            "change": ["+"] * len(ids),
            "id": pa.array(ids, pa.int64()),
            "city": [f"c{one % 2}" for one in ids],
        }
    )


def test_rows_arrive_as_json_and_repeats_can_be_dropped(kafka: Kafka) -> None:
    topic = kafka.topic()
    sink = KafkaSink(kafka.servers, topic, query="best")
    for batch, ids in ((0, range(20)), (1, range(20, 30)), (1, range(20, 30)), (2, range(0))):
        sink.write(batch, rows(*ids))
    found: list[Any] = kafka.read(topic, 40)
    assert len(found) == 40
    unique = list(deduplicated(found))
    assert sorted(json.loads(one.value())["id"] for one in unique) == list(range(30))
    first = next(one for one in unique if json.loads(one.value())["id"] == 7)
    assert json.loads(first.value()) == {"time": 1.5, "change": "+", "id": 7, "city": "c1"}
    assert json.loads(first.key()) == {"id": 7}
    assert dict(first.headers()) == {"skytide-query": b"best", "skytide-batch": b"0", "skytide-sequence": b"7"}
    assert sink.last() is None


@pytest.mark.parametrize("marked", [True, False])
def test_a_group_has_one_partition_and_keeps_its_order(kafka: Kafka, marked: bool) -> None:
    topic = kafka.topic()
    sink = KafkaSink(kafka.servers, topic, by=None if marked else ("city",))
    sink.write(0, mark_groups(rows(*range(30)), ["city"]) if marked else rows(*range(30)))
    found: list[Any] = kafka.read(topic, 30)
    for city in ("c0", "c1"):
        mine = [one for one in found if json.loads(one.key()) == {"city": city}]
        assert len({one.partition() for one in mine}) == 1
        ids = [json.loads(one.value())["id"] for one in mine]
        assert ids == sorted(ids) and len(ids) == 15


def test_what_does_not_arrive_is_an_error(kafka: Kafka) -> None:
    sink = KafkaSink("127.0.0.1:1", "t", timeout=0.5)
    with pytest.raises(OutputError, match=r"of micro-batch 3 did not all arrive at 127\.0\.0\.1:1, topic t"):
        sink.write(3, rows(1, 2))
    with pytest.raises(OptionError, match="refused by the client"):
        KafkaSink(kafka.servers, "t", options={"no.such": "1"}).write(0, rows(1))
    with pytest.raises(InputError, match="column 'town': there is no such column to make keys of"):
        KafkaSink(kafka.servers, "t", by=("town",)).write(0, rows(1))


def test_settings_that_the_sink_rests_on_are_refused() -> None:
    with pytest.raises(OptionError, match="'acks' is for the sink to set"):
        KafkaSink("x", "t", options={"acks": "0"})
    with pytest.raises(OptionError, match="seconds to wait"):
        KafkaSink("x", "t", timeout=0)


# -- dropping repeats, without a broker --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sent:
    place: tuple[int, int, int, int]
    """Query, partition, batch, sequence."""

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return self.place[1]

    def headers(self) -> list[tuple[str, bytes]]:
        query, _, batch, sequence = self.place
        texts = {"skytide-query": query, "skytide-batch": batch, "skytide-sequence": sequence}
        return [(name, str(text).encode()) for name, text in texts.items()]


@given(
    sizes=st.lists(st.integers(0, 4), max_size=5),
    attempts=st.lists(st.lists(st.integers(0, 4), max_size=2), min_size=5, max_size=5),
    data=st.data(),
)
def test_every_message_of_a_query_comes_out_once_whatever_came_twice(
    sizes: list[int], attempts: list[list[int]], data: st.DataObject
) -> None:
    logs: dict[tuple[int, int], list[Sent]] = {(query, part): [] for query in (0, 1) for part in (0, 1)}
    for query in (0, 1):
        for batch, size in enumerate(sizes):
            # Attempts that were cut off after some messages, then a whole one.
            for reached in [*attempts[batch], size]:
                for sequence in range(min(reached, size)):
                    logs[query, sequence % 2].append(Sent((query, sequence % 2, batch, sequence)))
    read: list[Sent] = []
    waiting = {place: list(log) for place, log in logs.items()}
    while any(waiting.values()):
        place = data.draw(st.sampled_from([place for place, log in waiting.items() if log]))
        read.append(waiting[place].pop(0))
    found = [one.place for one in deduplicated(read)]
    expected = [(q, s % 2, b, s) for q in (0, 1) for b, size in enumerate(sizes) for s in range(size)]
    assert sorted(found) == sorted(expected)


def test_messages_of_others_pass() -> None:
    class Plain(Sent):
        def headers(self) -> Any:
            return None

    others = [Plain((0, 0, 0, 0)), Plain((0, 0, 0, 0))]
    assert list(deduplicated(others)) == others
