"""`skytide.spark.skyline` beside one task that does it all, `NOT EXISTS` in SQL, and the kernel without Spark.

All read the same Parquet files, one per partition, and all answers are compared in the same run, before any clock
starts. Every time is the best of several repeats into a sink that keeps nothing, after a call that does not count, and
taken in turn so that a busy moment hits all alike; the ratios are what counts. `NOT EXISTS` is tried on growing tables
until it takes too long, and nothing is extrapolated. A second table counts the rows that reach the merge, which does
not depend on the machine.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import skytide as sk
from benchmarks import machine
from benchmarks.peers.batch import Shape
from skytide.model import Floats
from skytide.spark import local_session, skyline
from skytide.spark.batch_strong import filtered
from skytide.spark.batch_tasks import Task
from skytide.streams.generators import generate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CELLS = (
    *(f"1000000x{d}-{kind}" for d in (3, 4, 6) for kind in ("independent", "anti-correlated")),
    *(f"10000000x{d}-{kind}" for d in (3, 6) for kind in ("independent", "anti-correlated")),
)
QUICK_CELLS = ("100000x4-anti-correlated",)
SQL_REPEATS = 3
"""Repeats of tables on which `NOT EXISTS` is tried, at most, of both: it is slow."""
SQL_CELLS = ("1000x4-independent", "1000x4-anti-correlated")
"""Where `NOT EXISTS` begins; each next table has three times the rows."""
PARTITIONS = (1, 2, 4, 8, 16, 32, 64)
OURS, STABLE, ONE_TASK, LOCAL, EXISTS = "skytide", "skytide, stable", "one task", "without Spark", "NOT EXISTS"


@dataclass
class Cell:
    """What one table measured: seconds by name, and whether all answers were equal."""

    shape: Shape
    partitions: int
    skyline: int
    seconds: dict[str, float] = field(default_factory=dict)
    worst: dict[str, float] = field(default_factory=dict)
    filtered: int = 0
    equal: bool = True

    def ratio(self, name: str, other: str = OURS) -> float:
        """How many times as long as ours the other took."""
        return self.seconds[name] / self.seconds[other]


@dataclass
class Merge:
    """How many rows of a table reach the merge, per million, by the number of partitions."""

    shape: Shape
    skyline: int
    reach: dict[int, float] = field(default_factory=dict)


# -- tables ------------------------------------------------------------------------------------------------------------


def names_of(shape: Shape) -> list[str]:
    return [f"x{k}" for k in range(shape.dimensions)]


@contextmanager
def table(spark: SparkSession, shape: Shape, values: Floats, partitions: int) -> Iterator[tuple[DataFrame, Path]]:
    """The rows as Parquet files, each of which is one partition, rows dealt out in turn."""
    with tempfile.TemporaryDirectory(prefix="skytide-bench-") as folder:
        for part in range(partitions):
            mine = values[part::partitions]
            columns: dict[str, Any] = {"id": np.arange(part, len(values), partitions)}
            columns |= {name: mine[:, k] for k, name in enumerate(names_of(shape))}
            pq.write_table(pa.table(columns), Path(folder, f"{part:03}.parquet"), compression="none")
        largest = 1 + max(path.stat().st_size for path in Path(folder).iterdir())
        for setting in ("maxPartitionBytes", "openCostInBytes"):
            spark.conf.set(f"spark.sql.files.{setting}", str(largest))
        yield spark.read.parquet(folder), Path(folder)
        for setting in ("maxPartitionBytes", "openCostInBytes"):
            spark.conf.unset(f"spark.sql.files.{setting}")


def one_task(df: DataFrame, preference: sk.Preference) -> DataFrame:
    """The same kernel in a single task: the plan without a merge."""
    return df.coalesce(1).mapInArrow(Task(preference, "error", {}).pruner(), df.schema)


def not_exists(df: DataFrame, preference: sk.Preference) -> DataFrame:
    """The skyline as plain SQL has it."""
    spark = df.sparkSession
    df.createOrReplaceTempView("competitors")
    names = [str(name) for name in preference.names]
    weakly = " AND ".join(f"b.{name} <= a.{name}" for name in names)
    better = " OR ".join(f"b.{name} < a.{name}" for name in names)
    return spark.sql(
        f"SELECT * FROM competitors a WHERE NOT EXISTS (SELECT 1 FROM competitors b WHERE {weakly} AND ({better}))"
    )


def without_spark(folder: Path, preference: sk.Preference) -> Any:
    """The files read and compared in this process; the ids."""
    read = pq.read_table(folder)
    return read.column("id").to_numpy()[sk.skyline(read, preference)]


# -- measured ----------------------------------------------------------------------------------------------------------


def run_plan(df: DataFrame) -> None:
    """Run it all and keep nothing."""
    df.write.format("noop").mode("overwrite").save()


def run_made(plan: Callable[..., DataFrame], df: DataFrame, preference: sk.Preference) -> None:
    """Plan and run: planning is on the clock of all alike."""
    run_plan(plan(df, preference))


def ids_of(df: DataFrame) -> Any:
    return np.sort(df.select("id").toArrow().column("id").to_numpy())


def in_turn(work: Mapping[str, Callable[[], object]], repeats: int, cell: Cell) -> None:
    """The best and the worst seconds of each, in turn, after one call that does not count."""
    for call in work.values():
        call()
    for _ in range(repeats):
        for name, call in work.items():
            start = time.perf_counter()
            call()
            taken = time.perf_counter() - start
            cell.seconds[name] = min(taken, cell.seconds.get(name, math.inf))
            cell.worst[name] = max(taken, cell.worst.get(name, 0.0))


def measure(spark: SparkSession, shape: Shape, partitions: int, repeats: int, seed: int) -> Cell:
    """One table: ours, one task, and the kernel without Spark."""
    values = generate(shape.kind, shape.rows, shape.dimensions, seed)
    expected = np.flatnonzero(sk.skyline(values))
    cell = Cell(shape, partitions, len(expected))
    preference = sk.Preference(minimize=names_of(shape))
    with table(spark, shape, values, partitions) as (df, folder):
        for plan in (skyline(df, preference), skyline(df, preference, stable=True), one_task(df, preference)):
            cell.equal &= bool(np.array_equal(ids_of(plan), expected))
        cell.equal &= bool(np.array_equal(np.sort(without_spark(folder, preference)), expected))
        cell.filtered = filtered(df, preference, "error")[0].count()
        in_turn(
            {
                OURS: lambda: run_made(skyline, df, preference),
                STABLE: lambda: run_plan(skyline(df, preference, stable=True)),
                ONE_TASK: lambda: run_made(one_task, df, preference),
                LOCAL: lambda: without_spark(folder, preference),
            },
            repeats,
            cell,
        )
    return cell


def measure_sql(
    spark: SparkSession, shape: Shape, partitions: int, repeats: int, limit: float, seed: int
) -> list[Cell]:
    """Tables of growing size on which `NOT EXISTS` ended, until a call takes a tenth of the limit."""
    cells: list[Cell] = []
    rows = shape.rows
    while not cells or cells[-1].seconds[EXISTS] < limit / 10:
        larger = Shape(rows, shape.dimensions, shape.kind)
        values = generate(larger.kind, rows, larger.dimensions, seed)
        expected = np.flatnonzero(sk.skyline(values))
        cell = Cell(larger, partitions, len(expected))
        preference = sk.Preference(minimize=names_of(larger))
        with table(spark, larger, values, partitions) as (df, _):
            for plan in (skyline(df, preference), not_exists(df, preference)):
                cell.equal &= bool(np.array_equal(ids_of(plan), expected))
            work = {
                OURS: partial(run_made, skyline, df, preference),
                EXISTS: partial(run_made, not_exists, df, preference),
            }
            in_turn(work, min(repeats, SQL_REPEATS), cell)
        cells.append(cell)
        rows *= 3
    return cells


def measure_merge(shape: Shape, partitions: Sequence[int], seed: int) -> Merge:
    """The rows that partitions leave, counted without Spark by the function that its tasks call."""
    values = generate(shape.kind, shape.rows, shape.dimensions, seed)
    preference = sk.Preference.columns(shape.dimensions)
    merge = Merge(shape, int(sk.skyline(values, preference).sum()))
    for count in partitions:
        left = sum(int(sk.skyline(np.ascontiguousarray(values[part::count])).sum()) for part in range(count))
        merge.reach[count] = left * 1e6 / shape.rows
    return merge


# -- what is printed ---------------------------------------------------------------------------------------------------


def heading() -> list[str]:
    columns = ["rows x d", "kind", "skyline", "past the filter", f"{OURS}, s", f"{STABLE}, s", f"{ONE_TASK}, s"]
    columns += [f"{LOCAL}, s", f"{ONE_TASK} / {OURS}", f"{ONE_TASK} / stable", f"{LOCAL} / {OURS}", "worst / best"]
    return ["| " + " | ".join(columns) + " |", "|---|---|" + "---:|" * (len(columns) - 2)]


def line(cell: Cell) -> str:
    texts = [f"{cell.shape.rows:,} x {cell.shape.dimensions}", cell.shape.kind, f"{cell.skyline:,}"]
    texts += [f"{cell.filtered / cell.shape.rows:.1%}"]
    texts += [f"{cell.seconds[name]:.2f}" for name in (OURS, STABLE, ONE_TASK, LOCAL)]
    texts += [f"{cell.ratio(ONE_TASK):.2f}", f"{cell.ratio(ONE_TASK, STABLE):.2f}", f"{cell.ratio(LOCAL):.2f}"]
    texts += [f"{cell.worst[OURS] / cell.seconds[OURS]:.1f}"]
    return "| " + " | ".join(texts) + ("" if cell.equal else " | ANSWERS DIFFER") + " |"


def sql_line(cell: Cell) -> str:
    ours, theirs = cell.seconds[OURS], cell.seconds[EXISTS]
    return (
        f"{EXISTS}, {cell.shape.rows:,} x {cell.shape.dimensions} {cell.shape.kind} (skyline {cell.skyline:,}): "
        f"{theirs:.2f} s, {OURS} {ours:.2f} s, ratio {theirs / ours:.1f}" + ("" if cell.equal else ", ANSWERS DIFFER")
    )


def merge_line(merge: Merge) -> str:
    reach = ", ".join(f"{count}: {rows:,.0f}" for count, rows in merge.reach.items())
    return f"rows per million that reach the merge, {merge.shape} (skyline {merge.skyline:,}), by partitions: {reach}"


# -- command -----------------------------------------------------------------------------------------------------------


def run(
    cells: Sequence[str] = CELLS,
    *,
    sql: Sequence[str] = SQL_CELLS,
    merges: Sequence[str] = ("1000000x3-independent", "1000000x6-independent", "1000000x6-anti-correlated"),
    partitions: int = 2,
    repeats: int = 5,
    limit: float = 300.0,
    seed: int = 1,
    say: Callable[[str], object] = print,
    spark: SparkSession | None = None,
) -> dict[str, Any]:
    """All parts, as asked for, in this session or one of our own; everything that was measured."""
    session = local_session("local[2]", **{"spark.driver.memory": "4g"}) if spark is None else spark
    say(f"{partitions} partitions; seconds are the best of {repeats}, in turn")
    if machine.busy() > 0.6:
        say(f"the machine is busy ({machine.busy():.1f} processes per core): only ratios say something")
    for text in heading() if cells else ():
        say(text)
    measured = []
    for name in cells:
        shape = Shape.read(name)
        measured.append(measure(session, shape, max(partitions, shape.rows // 2_500_000), repeats, seed))
        say(line(measured[-1]))
    plain = [cell for name in sql for cell in measure_sql(session, Shape.read(name), partitions, repeats, limit, seed)]
    for cell in plain:
        say(sql_line(cell))
    counted = [measure_merge(Shape.read(name), PARTITIONS, seed) for name in merges]
    for merge in counted:
        say(merge_line(merge))
    equal = all(cell.equal for cell in (*measured, *plain))
    say("all answers are equal" if equal else "ANSWERS DIFFER")
    if spark is None:
        session.stop()
    return {
        "benchmark": "spark batch",
        "seed": seed,
        "equal": equal,
        "cells": [asdict(cell) for cell in measured],
        "sql": [asdict(cell) for cell in plain],
        "merge": [asdict(merge) for merge in counted],
    }


def main(argv: list[str]) -> int:
    """Run the benchmark; 0 when all answers are equal."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark.batch", description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one small table of each kind only")
    parser.add_argument("--cells", nargs="*", metavar="CELL", help="only these, like 1000000x4-independent")
    parser.add_argument("--sql", nargs="*", metavar="CELL", help="where NOT EXISTS begins; none: leave it out")
    parser.add_argument("--merges", nargs="*", metavar="CELL", help="tables whose merge is counted")
    parser.add_argument("--partitions", type=int, default=2, help="partitions of a table, at least (2)")
    parser.add_argument("--repeats", type=int, default=5, help="the best of so many runs counts (5)")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds that a call of NOT EXISTS may take (300)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything measured")
    chosen = parser.parse_args(argv)
    found = machine.describe("pyspark", "pyarrow")
    print(machine.sentence(found), flush=True)
    given: dict[str, Any] = {"cells": QUICK_CELLS, "sql": SQL_CELLS[:1], "merges": QUICK_CELLS} if chosen.quick else {}
    given |= {name: getattr(chosen, name) for name in ("cells", "sql", "merges") if getattr(chosen, name) is not None}
    report = run(
        **given,
        partitions=chosen.partitions,
        repeats=chosen.repeats,
        limit=chosen.limit,
        seed=chosen.seed,
        say=lambda text: print(text, flush=True),
    )
    if chosen.json:
        chosen.json.write_text(json.dumps(report | {"machine": found}, indent=1))
    return 0 if report["equal"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
