"""The benchmark of the batch skyline runs, small, and finds all answers equal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from benchmarks.spark import batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_batch_benchmark_runs_and_its_answers_are_equal(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skytide.spark.batch_strong.LEAST_SAMPLE", 1)
    said: list[str] = []
    report = batch.run(
        ["3000x3-anti-correlated"],
        sql=["200x3-independent"],
        merges=["2000x3-independent"],
        repeats=1,
        limit=0,
        say=said.append,
        spark=spark,
    )
    assert report["equal"] and said[-1] == "all answers are equal"
    (cell,), (plain,), (merge,) = report["cells"], report["sql"], report["merge"]
    assert set(cell["seconds"]) == {batch.OURS, batch.STABLE, batch.ONE_TASK, batch.LOCAL}
    # Both sides are timed alike: a time that has no worst was taken on another way.
    assert plain["shape"]["rows"] == 200 and set(plain["seconds"]) == set(plain["worst"]) == {batch.OURS, batch.EXISTS}
    assert cell["skyline"] <= cell["filtered"] < 3000
    assert merge["reach"][1] * 2000 / 1e6 == merge["skyline"]
    assert list(merge["reach"].values()) == sorted(merge["reach"].values())
