"""Skytide on Spark. `pip install "skytide[spark]"` brings all it needs, a Java included.

- `local_session()`: a Spark session on this machine, quiet, on loopback only. `remote_session("sc://host:15002")`: one
  on a Spark Connect server. `check_session(spark)`: whether a session of your own has what a function needs.
- `skyline(df, preference)`: the exact skyline of a DataFrame, a DataFrame again.
- `window(stream, preference, ...)`: the exact changes of the skyline of a sliding window, a DataFrame again.
  `uncertain(...)`: the same for rows that exist with a probability.
- `snapshots(updates, preference, ...)`: the exact changes of the skyline of objects whose values change.
  `frequent(...)`: those of who is in most of the last skylines.
- `monitor(moves, preference, ...)`: those of the skyline of clients of whom the driver hears only what matters, which
  `traffic(checkpoint)` counts.
- `fragments(updates, preference, ...)`: those of the skyline of objects whose values are averages over sites, of which
  the driver hears only what matters, too.
- `write(changes, sink, ...)`: changes, dead letters and the current answer to where they belong.
- `register(spark)`: SQL, as in `SELECT * FROM skyline(TABLE(cars), 'price min', 'mpg max', 'brand by')`. The formats
  `skytide` and `skytide_kafka` are found by Spark itself, and registered too for where they are not.
- `ParquetSink`, `CurrentTable`, `KafkaSink`, `FeedSink`, `ConsoleSink`, ...: where changes go, each micro-batch once;
  `Feed` reads what a `FeedSink` writes, without Spark.
- `plain_errors()`: what a task complains about, as one line, instead of Spark's page.
- `find_java()`, `ensure_java()`: the Java that Spark will run on.

The functions are plain ones, usable with `df.transform`, and work on Spark Connect as well. Importing this module is
cheap and needs no pyspark; calling a function without it gives an error with the remedy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_HOMES = {
    "ConsoleSink": "skytide.spark.sinks",
    "CsvSink": "skytide.spark.sinks",
    "CurrentTable": "skytide.spark.sinks",
    "Feed": "skytide.spark.sinks",
    "FeedSink": "skytide.spark.sinks",
    "Java": "skytide.spark.java",
    "JsonLinesSink": "skytide.spark.sinks",
    "KafkaSink": "skytide.spark.sinks",
    "ParquetSink": "skytide.spark.sinks",
    "Sink": "skytide.spark.sinks",
    "check_session": "skytide.spark.session",
    "ensure_java": "skytide.spark.java",
    "find_java": "skytide.spark.java",
    "fragments": "skytide.spark.rounds.fragments",
    "frequent": "skytide.spark.streaming.snapshots.operator",
    "local_session": "skytide.spark.session",
    "make_sink": "skytide.spark.sinks",
    "monitor": "skytide.spark.rounds.operator",
    "plain_error": "skytide.spark.faults",
    "plain_errors": "skytide.spark.faults",
    "register": "skytide.spark.registration",
    "remote_session": "skytide.spark.session",
    "skyline": "skytide.spark.batch",
    "snapshots": "skytide.spark.streaming.snapshots.operator",
    "traffic": "skytide.spark.rounds.operator",
    "uncertain": "skytide.spark.streaming.operator",
    "window": "skytide.spark.streaming.operator",
    "write": "skytide.spark.streaming.write",
}

if TYPE_CHECKING:
    from skytide.spark.batch import skyline
    from skytide.spark.faults import plain_error, plain_errors
    from skytide.spark.java import Java, ensure_java, find_java
    from skytide.spark.registration import register
    from skytide.spark.rounds.fragments import fragments
    from skytide.spark.rounds.operator import monitor, traffic
    from skytide.spark.session import check_session, local_session, remote_session
    from skytide.spark.sinks import (
        ConsoleSink,
        CsvSink,
        CurrentTable,
        Feed,
        FeedSink,
        JsonLinesSink,
        KafkaSink,
        ParquetSink,
        Sink,
        make_sink,
    )
    from skytide.spark.streaming.operator import uncertain, window
    from skytide.spark.streaming.snapshots.operator import frequent, snapshots
    from skytide.spark.streaming.write import write

__all__ = [
    "ConsoleSink",
    "CsvSink",
    "CurrentTable",
    "Feed",
    "FeedSink",
    "Java",
    "JsonLinesSink",
    "KafkaSink",
    "ParquetSink",
    "Sink",
    "check_session",
    "ensure_java",
    "find_java",
    "fragments",
    "frequent",
    "local_session",
    "make_sink",
    "monitor",
    "plain_error",
    "plain_errors",
    "register",
    "remote_session",
    "skyline",
    "snapshots",
    "traffic",
    "uncertain",
    "window",
    "write",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'skytide.spark' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
