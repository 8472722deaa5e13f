"""What breaks is mended by starting again: nothing lost, nothing doubled. Executors: tests.test_benchmark_soak."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING

from tests.spark.streaming.faults import again, check, job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_killed_driver_loses_and_doubles_nothing(spark: SparkSession, folder: Path) -> None:
    for crash in ("1:before", "2:after"):
        assert job(folder, "--crash", crash).returncode == -signal.SIGKILL
    again(spark, folder)
    check(folder)
