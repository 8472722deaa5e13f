"""The pipeline that is soaked, in a process that may be killed at any moment: `python -m benchmarks.soak.job JSON`.

Two queries in one session: the window over rows that come at a rate, and the change stream of a coordinator. Each has
a checkpoint and writes each micro-batch once. A line of JSON on standard output tells of each micro-batch that is done.
With `rows` in the settings it processes what is there and ends. When its standard input ends, so does it: whoever
started it has gone.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import skytide as sk
from benchmarks.soak.homes import end_with_parent
from skytide.spark import CurrentTable, ParquetSink, local_session, window, write
from skytide.spark.sources.rows import Rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

GROUPS, DIMENSIONS, ROWS_PER_TIME, DURATION = 4, 3, 10, 500
"""Of the rows: ten share one time, and a window is 5,000 rows long."""
PREFERENCE = sk.Preference(minimize=["x1", "x2"], maximize=["x3"], by=["group"])
FAILED = 3
EXECUTOR_HEAP = 512
"""MiB."""


@dataclass(frozen=True)
class Settings:
    """What a life of the job is told."""

    folder: str
    master: str
    seed: int
    rate: float
    url: str
    """Of the coordinator that the second query follows; empty: there is none."""
    java: str
    heap: int
    """MiB of the driver's JVM."""
    rows: int | None = None
    """Where the rows end; without, they do not."""

    @property
    def once(self) -> bool:
        """Whether it processes what is there and ends."""
        return self.rows is not None

    def json(self) -> str:
        """As the process is told it."""
        return json.dumps(asdict(self))


def generated(seed: int) -> Rows:
    """The rows of the source: the same at the same position, whoever asks."""
    return Rows("anti-correlated", DIMENSIONS, seed, groups=GROUPS, rows_per_time=ROWS_PER_TIME)


def started(spark: SparkSession, asked: Settings) -> list[StreamingQuery]:
    """The queries, from their checkpoints."""
    folder = Path(asked.folder)
    trigger = "once" if asked.once else "300ms"
    source = spark.readStream.format("skytide").option("kind", "anti-correlated").option("seed", asked.seed)
    source = source.option("dimensions", DIMENSIONS).option("groups", GROUPS).option("rowsPerTime", ROWS_PER_TIME)
    source = source.option("partitions", 2).option("rowsPerSecond", asked.rate)
    if asked.rows is not None:
        source = source.option("rows", asked.rows)
    checkpoint = str(folder / "window-checkpoint")
    changes = window(source.load(), PREFERENCE, time="time", id="id", duration=DURATION, checkpoint=checkpoint, parts=2)
    first = write(
        changes,
        ParquetSink(str(folder / "changes")),
        current=CurrentTable(str(folder / "current")),
        dead_letters=ParquetSink(str(folder / "dead")),
        checkpoint=checkpoint,
        trigger=trigger,
        name="window",
    )
    return [first, _followed(spark, asked, folder, trigger)] if asked.url else [first]


def _followed(spark: SparkSession, asked: Settings, folder: Path, trigger: str) -> StreamingQuery:
    from skytide.spark.streaming.write import start

    sink = ParquetSink(str(folder / "events"))

    def put(batch: DataFrame, number: int) -> None:
        sink.write(number, batch.toArrow())

    events = spark.readStream.format("skytide").option("url", asked.url).load()
    return start(events.writeStream.foreachBatch(put), str(folder / "events-checkpoint"), trigger, "events")


def session(asked: Settings) -> SparkSession:
    """A session on the master, small."""
    return local_session(
        asked.master,
        **{
            "spark.driver.memory": f"{asked.heap}m",
            "spark.executor.memory": f"{EXECUTOR_HEAP}m",
            "spark.driver.extraJavaOptions": asked.java,
            "spark.executor.extraJavaOptions": asked.java,
            "spark.sql.shuffle.partitions": 2,
            "spark.sql.streaming.numRecentProgressUpdates": 5,
            "spark.task.maxFailures": 8,
        },
    )


def report(queries: list[StreamingQuery], told: dict[str, int]) -> None:
    """A line for each micro-batch that was done since."""
    for query in queries:
        last: Any = query.lastProgress
        if last is not None and last.batchId > told.get(query.name, -1):
            told[query.name] = last.batchId
            line = {"query": query.name, "batch": last.batchId, "rows": last.numInputRows}
            print(json.dumps(line), flush=True)


def main(asked: Settings) -> int:
    """Run until all is done, or for ever."""
    end_with_parent()
    spark = session(asked)
    queries, told = started(spark, asked), dict[str, int]()
    while any(query.isActive for query in queries):
        report(queries, told)
        if any(not query.isActive and query.exception() is not None for query in queries):
            break
        if not asked.once and not all(query.isActive for query in queries):
            break
        time.sleep(0.1)
    report(queries, told)
    wrong = [query for query in queries if query.exception() is not None]
    for query in wrong:
        print(f"{query.name} has failed: {query.exception()}", file=sys.stderr, flush=True)
    for query in queries:
        query.stop()
    spark.stop()
    return FAILED if wrong or not asked.once else 0


if __name__ == "__main__":
    sys.exit(main(Settings(**json.loads(sys.argv[1]))))
