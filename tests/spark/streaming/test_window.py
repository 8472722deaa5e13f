"""Window queries on a real Spark on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.streaming.contract import Case, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    "case",
    [
        Case(times="TIMESTAMP"),
        Case(times="DOUBLE", lateness=0, pruned=False, seed=2),
        Case(times="BIGINT", duration=None, count=7, seed=3),
    ],
    ids=["timestamps", "real-numbers-unpruned", "count"],
)
def test_every_group_gets_the_changes_of_a_sliding_window(spark: SparkSession, case: Case, tmp_path: Path) -> None:
    assert run(spark, case, tmp_path) == []
