"""The peers on Spark run, small, and their answers are equal, those of equal rows too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.peers import peers
from benchmarks.peers._runners import ON_SPARK
from benchmarks.peers.batch import Shape

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_peers_on_spark_run_and_their_answers_are_equal(spark: SparkSession) -> None:
    notes: list[str] = []
    lines = list(peers.measure([Shape(300, 2, peers.TIES)], ON_SPARK, 60.0, 1, 1, notes.append, spark))
    assert [(line.peer, line.equal, line.compared) for line in lines] == [
        ("NOT EXISTS", True, 300),
        ("one task", True, 300),
    ]
    assert not notes
