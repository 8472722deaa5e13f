"""The streaming benchmark runs, small, and finds its changes equal to those of one machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.spark.streaming import Stream, measure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_streaming_benchmark_runs_and_its_changes_are_equal(spark: SparkSession) -> None:
    said: list[str] = []
    (line,) = measure(spark, Stream("independent", 3, 3_000, 2), [1_000], said.append)
    assert line["equal"] and line["changes"] and "equal" in said[0]
