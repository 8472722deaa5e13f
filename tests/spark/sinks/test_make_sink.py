"""Sinks by name, as a pipeline file asks for them, and the console."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from skytide.errors import OptionError
from skytide.spark import make_sink
from skytide.spark.sinks import SINKS, ConsoleSink, CurrentTable, FeedSink, KafkaSink, ParquetSink, Sink


@pytest.mark.parametrize(
    ("format", "options", "sink"),
    [
        ("parquet", {"path": "x"}, ParquetSink("x")),
        ("current", {"path": "x"}, CurrentTable("x")),
        ("console", {}, ConsoleSink()),
        ("console", {"rows": "5"}, ConsoleSink(5)),
        ("feed", {"path": "x", "keep": 99, "by": ["a", "b"]}, FeedSink("x", keep=99, by=("a", "b"))),
        ("feed", {"path": "x", "by": "a, b"}, FeedSink("x", by=("a", "b"))),
        ("kafka", {"servers": "h:1", "topic": "t", "timeout": 5}, KafkaSink("h:1", "t", timeout=5.0)),
        (
            "kafka",
            {
                "kafka.bootstrap.servers": "h:1",
                "topic": "t",
                "kafka.linger.ms": 7,
                "kafka.socket.keepalive.enable": True,
            },
            KafkaSink("h:1", "t", options={"linger.ms": "7", "socket.keepalive.enable": "true"}),
        ),
    ],
)
def test_options_make_the_sink(format: str, options: dict[str, Any], sink: Sink) -> None:
    assert make_sink(format, options) == sink and isinstance(sink, Sink)


@pytest.mark.parametrize(
    ("format", "options", "said"),
    [
        ("parqet", {}, "'parqet' is not a kind of sink; use one of parquet, csv, jsonl, current, console, feed, kafka"),
        ("parquet", {}, "the option path of the sink parquet is missing; give it"),
        ("parquet", {"path": ""}, "'' is given for the option path and is not a text"),
        ("console", {"rows": 0}, "0 is given for the option rows and is not such a number"),
        ("console", {"rows": True}, "True is given for the option rows"),
        ("console", {"rows": 2.5}, "2.5 is given for the option rows"),
        ("console", {"rows": "many"}, "'many' is given for the option rows"),
        ("feed", {"path": "x", "by": [1]}, "[1] is given for the option by and is not a list of columns"),
        ("kafka", {"topic": "t"}, "the option servers of the sink kafka is missing"),
        ("kafka", {"server": "t"}, "the options are: servers, topic, by, id, query, timeout, kafka...."),
    ],
)
def test_wrong_options_are_one_clear_line(format: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionError) as caught:
        make_sink(format, options)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_every_option_of_every_sink_is_taken() -> None:
    for form in SINKS.values():
        assert set(form.options) <= set(form.make.__dataclass_fields__)  # type: ignore[attr-defined]


def test_the_console_shows_a_bounded_table(capsys: pytest.CaptureFixture[str]) -> None:
    sink = ConsoleSink(rows=2)
    sink.write(0, pa.table({"id": pa.array([], pa.int64())}))
    assert capsys.readouterr().out == ""
    sink.write(12, pa.table({"id": [5, 12345, 7], "name": ["a\nb", None, "c"], "x" * 50: [0.5, -1.0, 2.0]}))
    assert capsys.readouterr().out == (
        "micro-batch 12: 3 rows\n"
        f"   id  name  {'x' * 37}...\n"
        f"    5  a b   {'0.5':>40}\n"
        f"12345  NULL  {'-1.0':>40}\n"
        "... and 1 more\n"
    )
    assert sink.last() is None
