"""The benchmark of rounds runs, small, and finds its changes equal to those of one machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.spark.fragments import Fragments
from benchmarks.spark.rounds import Moves, measure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_benchmark_of_rounds_runs_and_its_changes_are_equal(spark: SparkSession) -> None:
    said: list[str] = []
    line = measure(spark, Moves("independent:2:0.02", 60, 4, 2), "filter", 2, said.append)
    assert line["equal"] and line["changes"] and line["rows"] == 240 and "equal" in said[0]


def test_the_benchmark_of_fragments_runs_and_its_changes_are_equal(spark: SparkSession) -> None:
    said: list[str] = []
    line = measure(spark, Fragments("independent:2", 10, 4, 60, 20, 2), "pivot", 2, said.append)
    assert line["equal"] and line["changes"] and line["rows"] == 100 and "equal" in said[0]
