"""The contract of sliding windows on a real Spark: many random streams, each a group of one query, in one run.

`run` works on any session (local, local-cluster, Connect), and compares every group's changes with `SlidingWindow` on
the rows of the group alone.
"""

from __future__ import annotations

import datetime as dt
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import skytide as sk
from skytide.spark.streaming.operator import window

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PREFERENCE = sk.Preference(minimize=["a"], maximize=["b"], by=["g"])
START = dt.datetime(2024, 3, 1, tzinfo=dt.UTC)
Change = tuple[Any, str, Any]


@dataclass(frozen=True)
class Case:
    """A kind of window over times of one type; lengths are in seconds or plain numbers."""

    times: str = "BIGINT"
    duration: int | None = 12
    count: int | None = None
    lateness: int = 3
    groups: int = 12
    rows: int = 40
    batches: int = 4
    seed: int = 1
    pruned: bool = True

    def length(self, amount: int | None) -> Any:
        return f"{amount}s" if self.times == "TIMESTAMP" and amount is not None else amount


def rows_of(case: Case) -> pa.Table:
    """Rows of all groups in the order in which they come: out of order by no more than the lateness, with many ties."""
    rng = np.random.default_rng(case.seed)
    n = case.groups * case.rows
    times = rng.integers(0, case.rows, n)
    order = np.argsort(times + rng.uniform(0, case.lateness, n) if case.lateness else times, kind="stable")
    values = rng.choice([0.0, 1.0, 2.0, 3.0, -0.0, math.inf, -math.inf, 1e308], size=(n, 2))
    table = pa.table(
        {
            "t": stamps(case, times),
            "key": pa.array([f"r{one}" for one in rng.permutation(n)]),
            "g": rng.integers(0, case.groups, n),
            "a": values[:, 0],
            "b": values[:, 1],
            "tags": pa.array([[str(one), None] for one in range(n)]),
        }
    )
    return table.take(pa.array(order))


def stamps(case: Case, times: Any) -> pa.Array:
    if case.times == "TIMESTAMP":
        return pa.array([START + dt.timedelta(seconds=int(one)) for one in times], pa.timestamp("us", "UTC"))
    return pa.array(times, pa.int64() if case.times == "BIGINT" else pa.float64())


def expected(case: Case, table: pa.Table) -> dict[int, list[Change]]:
    """The changes of every group up to the last instant that all rows together close."""
    times = table.column("t").to_pylist()
    one = dt.timedelta(seconds=1) if case.times == "TIMESTAMP" else 1
    last = max(times) - case.lateness * one - one
    found = {}
    preference = sk.Preference(minimize=["a"], maximize=["b"])
    for group in range(case.groups):
        mine = table.filter(pa.array([one == group for one in table.column("g").to_pylist()]))
        mine = mine.sort_by([("t", "ascending"), ("key", "ascending")])
        mine = mine.filter(pa.array([time <= last for time in mine.column("t").to_pylist()]))
        if case.count is not None:
            counted = sk.SlidingWindow(preference, count=case.count)
            changes = list(counted.extend(mine, ids="key"))
        else:
            timed = sk.SlidingWindow(preference, duration=case.length(case.duration))
            changes = list(timed.extend(mine, times="t", ids="key"))
            changes += list(timed.advance(last)) if mine.num_rows else []
        found[group] = sorted((plain(change.time), change.change, change.id) for change in changes)
    return found


def plain(time: Any) -> Any:
    """A time as it compares everywhere: without a zone."""
    return time.replace(tzinfo=None) if isinstance(time, dt.datetime) else time


def write_batch(table: pa.Table, folder: Path, number: int) -> None:
    """A file that a file stream will see. Spark takes files in the order of their times, which must differ."""
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, folder / f".{number:04}.parquet")
    os.utime(folder / f".{number:04}.parquet", (1_700_000_000 + number,) * 2)
    (folder / f".{number:04}.parquet").rename(folder / f"{number:04}.parquet")


def stream(spark: SparkSession, case: Case, folder: Path) -> Any:
    schema = f"t {case.times}, key STRING, g BIGINT, a DOUBLE, b DOUBLE, tags ARRAY<STRING>"
    rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    return window(
        rows.repartition(3),
        PREFERENCE,
        time="t",
        id="key",
        duration=case.length(case.duration),
        count=case.count,
        lateness=case.length(case.lateness) or 0,
        checkpoint=str(folder / "checkpoint") if case.pruned else None,
        parts=3,
    )


def run(spark: SparkSession, case: Case, folder: Path) -> list[str]:
    """What is wrong: groups whose changes differ, columns that got lost; the query is stopped and started again."""
    table = rows_of(case)
    size = -(-table.num_rows // case.batches)
    for half in (range(case.batches // 2), range(case.batches // 2, case.batches)):
        for number in half:
            write_batch(table.slice(number * size, size), folder / "in", number)
        query = (
            stream(spark, case, folder)
            .writeStream.format("parquet")
            .option("path", str(folder / "out"))
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    out = spark.read.parquet(str(folder / "out")).toArrow()
    return differences(case, table, out)


def differences(case: Case, table: pa.Table, out: pa.Table) -> list[str]:
    wrong = [f"{kind} rows" for kind in set(out.column("kind").to_pylist()) - {"change"}]
    truth = expected(case, table)
    own = {row["key"]: row for row in table.to_pylist()}
    found: dict[int, list[Change]] = {group: [] for group in truth}
    for row in out.to_pylist():
        found[row["g"]].append((plain(row["time"]), row["change"], row["id"]))
        if row["tags"] != own[row["id"]]["tags"] or row["key"] != row["id"] or row["t"] != own[row["id"]]["t"]:
            wrong.append(f"the columns of {row['id']}")
    for group, changes in truth.items():
        if sorted(found[group]) != changes:
            wrong.append(f"group {group}: {len(found[group])} changes, not {len(changes)}")
    if not any(truth.values()):
        wrong.append("nothing was expected")
    return wrong
