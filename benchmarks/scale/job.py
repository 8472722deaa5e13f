"""Cases measured on one master, in a process of its own: `python -m benchmarks.scale.job JSON` prints a line for each.

The rows are those of the source `skytide`, which makes them where they are needed: nothing of any size is on the disk.
A table is read three times: by a sink that does nothing, by the prune of the skyline, which counts what is left, and by
the skyline. A stream gives a window's rows in micro-batches. Answers are compared with the kernel's without Spark.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import skytide as sk
from benchmarks.soak.homes import end_with_parent
from skytide.spark import ParquetSink, local_session, skyline, window, write
from skytide.spark.batch_tasks import Task
from skytide.spark.sources.rows import Rows
from skytide.spark.streaming.operator import MERGED, PRUNED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHUNK = 1 << 20
Change = tuple[int, str, int]
SKIPPED = 2
"""Micro-batches at the start of a query that do not count: workers start, code is loaded."""
TASK_ROWS = 2_500_000
"""Rows of a task, at most: a table of more has more tasks."""
FEW = 3_000_000
"""Rows up to which a table is measured three times, of which the fastest counts: there noise is a large part."""


@dataclass(frozen=True)
class Case:
    """What is measured: a table, or with `batch` rows in a micro-batch a stream."""

    part: str
    """To which comparison it belongs."""
    rows: int
    dimensions: int = 3
    kind: str = "independent"
    groups: int = 0
    batch: int = 0
    length: int = 0
    """Of the window, in rows' worth of time."""
    pruned: bool = True
    """Whether tasks drop rows where they lie; else all rows travel to the merge."""
    tasks: int = 2

    @property
    def partitions(self) -> int:
        """Tasks of a table, or of a micro-batch."""
        return max(self.tasks, 0 if self.batch else -(-self.rows // TASK_ROWS))

    @property
    def preference(self) -> sk.Preference:
        """All columns are minimised, in each group."""
        names = [f"x{place + 1}" for place in range(self.dimensions)]
        return sk.Preference(minimize=names, by=["group"] if self.groups else [])

    def generated(self, seed: int) -> Rows:
        """The rows."""
        return Rows(self.kind, self.dimensions, seed, groups=self.groups or None)

    def read(self, reader: Any, seed: int) -> DataFrame:
        """The rows on Spark."""
        options = {"kind": self.kind, "rows": self.rows, "dimensions": self.dimensions, "seed": seed}
        options |= {"partitions": self.partitions} | ({"groups": self.groups} if self.groups else {})
        options |= {"rowsPerBatch": self.batch} if self.batch else {}
        found: DataFrame = reader.format("skytide").options(**options).load()
        return found


# -- tables ------------------------------------------------------------------------------------------------------------


def measure_table(spark: SparkSession, case: Case, seed: int) -> dict[str, Any]:
    """Seconds of the source alone, of source and prune, of all; and how many rows reach the merge."""
    df = case.read(spark.read, seed)
    repeats = 3 if case.rows <= FEW else 1
    source, _ = _clock(lambda: df.write.format("noop").mode("overwrite").save(), repeats)
    task = Task(case.preference, "error", {})
    prune, reach = _clock(lambda: df.mapInArrow(task.pruner(), df.schema).count(), repeats)
    whole, ids = _clock(lambda: skyline(df, case.preference).select("id").toArrow().column("id").to_numpy(), repeats)
    equal = bool(np.array_equal(np.sort(ids), _best(case, seed)))
    found = {"source s": source, "prune s": prune, "skyline s": whole, "reach": reach, "skyline": len(ids)}
    return {**found, "tasks": case.partitions, "equal": equal}


def _best(case: Case, seed: int) -> Any:
    """The ids of the skyline, by the kernel, a chunk at a time."""
    best: pa.Table | None = None
    for start in range(0, case.rows, CHUNK):
        batches = case.generated(seed).batches(start, min(case.rows, start + CHUNK))
        part = pa.Table.from_batches(batches)
        part = part if best is None else pa.concat_tables([best, part])
        best = part.filter(pa.array(sk.skyline(part, case.preference))).combine_chunks()
    return np.sort(best.column("id").to_numpy()) if best is not None else np.empty(0, np.int64)


# -- streams -----------------------------------------------------------------------------------------------------------


def measure_stream(spark: SparkSession, case: Case, seed: int) -> dict[str, Any]:
    """Seconds of a micro-batch, the rows that reach the merge, and the rows that the window holds."""
    with tempfile.TemporaryDirectory(prefix="skytide-scale-") as name:
        checkpoint = str(Path(name, "checkpoint"))
        changes = window(
            case.read(spark.readStream, seed),
            case.preference,
            time="time",
            id="id",
            duration=case.length,
            checkpoint=checkpoint if case.pruned else None,
        )
        query = write(changes, ParquetSink(str(Path(name, "changes"))), checkpoint=checkpoint, trigger="once")
        query.awaitTermination()
        progress: list[Any] = [one for one in query.recentProgress if one.numInputRows]
        equal = written(Path(name, "changes")) == _changes(case, seed)
    full = progress[min(SKIPPED, len(progress) - 1) :]
    rows = sum(one.numInputRows for one in full)
    seconds = statistics.median(one.durationMs["triggerExecution"] for one in full) / 1e3
    return {
        "batch s": seconds,
        "rows/s": statistics.median(one.numInputRows for one in full) / seconds,
        "reach": sum(one.observedMetrics[PRUNED].sent for one in full) / len(full),
        "per million": sum(one.observedMetrics[PRUNED].sent for one in full) * 1e6 / rows,
        "retained": progress[-1].observedMetrics[MERGED].retained,
        "changes": sum(one.observedMetrics[MERGED].changes or 0 for one in full) / len(full),
        "equal": equal,
    }


def _changes(case: Case, seed: int) -> Counter[Change]:
    kept = sk.SlidingWindow(case.preference, duration=case.length, check_ids=False)
    found: Counter[Change] = Counter()
    for start in range(0, case.rows, CHUNK):
        part = pa.Table.from_batches(case.generated(seed).batches(start, min(case.rows, start + CHUNK)))
        ids, times = (part.column(name).to_numpy() for name in ("id", "time"))
        found.update(map(tuple, kept.extend(part, times=times, ids=ids)))
    return found


def written(folder: Path) -> Counter[Change]:
    """The changes of a sink, each as often as it is there."""
    table = pq.read_table(folder, columns=["time", "change", "id"])
    return Counter(zip(*(table.column(name).to_pylist() for name in ("time", "change", "id")), strict=True))


# -- all ---------------------------------------------------------------------------------------------------------------


def measure(spark: SparkSession, case: Case, seed: int) -> dict[str, Any]:
    """The case and what was found."""
    found = measure_stream(spark, case, seed) if case.batch else measure_table(spark, case, seed)
    return {**asdict(case), **found}


def warm_up(spark: SparkSession, seed: int) -> None:
    """Start workers and load compiled code, ours and Spark's."""
    measure(spark, Case("warm", 20_000), seed)
    measure(spark, Case("warm", 20_000, batch=10_000, length=1_000), seed)


def _clock(work: Any, repeats: int = 1) -> tuple[float, Any]:
    """Seconds, the least of so many, and what was found."""
    least, found = math.inf, None
    for _ in range(repeats):
        start = time.perf_counter()
        found = work()
        least = min(least, time.perf_counter() - start)
    return least, found


def main(asked: dict[str, Any]) -> int:
    """Measure all cases on the master."""
    end_with_parent()
    spark = local_session(asked["master"], **asked["settings"])
    warm_up(spark, asked["seed"])
    for case in asked["cases"]:
        print(json.dumps(measure(spark, Case(**case), asked["seed"])), flush=True)
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
