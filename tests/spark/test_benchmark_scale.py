"""The cases of the benchmark of scale run, small, and their answers are the kernel's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.scale.job import Case, measure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_table_and_a_stream_are_measured_and_their_answers_are_equal(spark: SparkSession) -> None:
    table = measure(spark, Case("rows", 3_000, groups=2), seed=1)
    assert table["equal"] and 0 < table["skyline"] <= table["reach"] < 3_000
    stream = measure(spark, Case("window", 1_500, batch=500, length=200), seed=1)
    assert stream["equal"] and stream["changes"] and stream["retained"] and 0 < stream["reach"] < 500
