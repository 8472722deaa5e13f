"""Spark jobs that tests start in a process of their own: `python -m tests.spark.jobs NAME` prints what they found."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import skytide as sk
from skytide.spark import ensure_java, local_session, plain_errors, skyline
from tests.spark.small import PLAIN_JAVA

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import SparkSession


def points(spark: SparkSession, partitions: int) -> list[int]:
    """A skyline of integers that anybody can check: on a = id mod 50, b = 49 - a, plus dominated rows."""
    rows = spark.range(400, numPartitions=partitions).selectExpr(
        "id", "double(id % 50) AS a", "double(49 - id % 50 + IF(id < 100, 0, id)) AS b", "string(id) AS text"
    )
    return sorted(row.id for row in skyline(rows, sk.Preference(minimize=["a", "b"])).collect())


def bare() -> dict[str, Any]:
    """Batch, Arrow, and a stream with RocksDB state, on whatever Java there is."""
    java = ensure_java()
    spark = local_session(
        "local[2]",
        **{
            "spark.driver.memory": "1g",
            "spark.driver.extraJavaOptions": PLAIN_JAVA,
            "spark.sql.shuffle.partitions": 1,
        },
    )
    found = {"origin": java.origin, "wrapped": java.wrapped, "skyline": points(spark, 3), "counts": counts(spark)}
    try:
        with plain_errors():
            skyline(spark.sql("SELECT double('NaN') AS a"), sk.Preference(minimize=["a"])).collect()
    except sk.SkytideError as error:
        found["error"] = str(error)
    spark.stop()
    return found


def counts(spark: SparkSession) -> dict[str, int]:
    """How often each key was seen, counted in state over two micro-batches."""
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

    class Counter(StatefulProcessor):
        def init(self, handle: StatefulProcessorHandle) -> None:
            self.seen = handle.getValueState("seen", "n long")

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802
            import pandas as pd

            before = self.seen.get()
            total = (0 if before is None else before[0]) + sum(len(part) for part in rows)
            self.seen.update((total,))
            yield pd.DataFrame({"key": [key[0]], "n": [total]})

        def close(self) -> None:
            pass

    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "in")
        for part in range(2):
            spark.range(10 * (part + 1)).selectExpr("string(id % 3) AS key").coalesce(1).write.mode("append").json(
                str(source)
            )
        stream = spark.readStream.schema("key string").option("maxFilesPerTrigger", 1).json(str(source))
        totals = stream.groupBy("key").transformWithStateInPandas(
            Counter(), outputStructType="key string, n long", outputMode="Update", timeMode="None"
        )
        query = (
            totals.writeStream.format("memory")
            .queryName("totals")
            .outputMode("update")
            .option("checkpointLocation", str(Path(folder, "checkpoint")))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        rows = spark.sql("SELECT key, max(n) AS n FROM totals GROUP BY key").collect()
        return {row.key: row.n for row in rows}


def cluster() -> dict[str, Any]:
    """The skyline on executors in processes of their own, which get nothing from this one but what Spark ships."""
    spark = local_session(
        "local-cluster[2,1,1024]",
        **{
            "spark.driver.memory": "1g",
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": PLAIN_JAVA,
            "spark.driver.extraJavaOptions": PLAIN_JAVA,
            "spark.sql.shuffle.partitions": 2,
        },
    )
    grouped = spark.range(100, numPartitions=3).selectExpr("id", "double(id) AS a", "string(id % 4) AS g")
    best = skyline(grouped, sk.Preference(minimize=["a"], by=["g"]))
    found = {"skyline": points(spark, 4), "groups": sorted(row.id for row in best.collect())}
    spark.stop()
    return found


if __name__ == "__main__":
    job = {"bare": bare, "cluster": cluster}[sys.argv[1]]
    print(json.dumps(job()))
