"""The Spark session that a pipeline asks for, with the package on its executors."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from typing import TYPE_CHECKING

from skytide.spark.faults import need_pyspark
from skytide.spark.pipeline.plan import Run
from skytide.spark.pipeline.quiet import filtered_stderr
from skytide.spark.session import SHUFFLE_PARTITIONS, local_session, remote_session
from skytide.spark.shipping import needs_shipping, ship

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_HERE = re.compile(r"spark://(localhost|127\.0\.0\.1|\[::1\])[:/]")


def start(run: Run) -> tuple[SparkSession, bool]:
    """The session, and whether it was started now: then whoever asked must stop it."""
    need_pyspark()
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession() is not None
    with contextlib.nullcontext() if active else filtered_stderr():
        spark = _classic(run, active) if run.remote is None else remote_session(run.remote, **run.spark)
    if run.remote is not None or needs_shipping(run.master):
        ship(spark)
    _choose_partitions(spark)
    return spark, not active


def _classic(run: Run, active: bool) -> SparkSession:
    settings = dict(run.spark)
    if not active:
        settings.setdefault("spark.app.name", run.name)
        if not run.master.startswith("local"):
            settings.setdefault("spark.log.level", "ERROR")
        # Spark plans with a Python beside the driver, which is this one wherever the executors are.
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        if _HERE.match(run.master) and "PYSPARK_PYTHON" not in os.environ:
            settings.setdefault("spark.pyspark.python", sys.executable)
    return local_session(run.master, **settings)


def _choose_partitions(spark: SparkSession) -> None:
    """As many shuffle partitions as tasks run at once, where nobody chose: each is a state store of its own."""
    if SHUFFLE_PARTITIONS in spark.conf.getAll:
        return
    from pyspark.sql import functions as F  # noqa: N812

    tasks = spark.range(1 << 16).select(F.spark_partition_id().alias("task")).distinct().count()
    spark.conf.set(SHUFFLE_PARTITIONS, str(tasks))
