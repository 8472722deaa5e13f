"""Snapshots and frequent skylines on a real Spark on this machine: many random series, each a group of one query."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import skytide as sk
from skytide.monitors.snapshots.reading import OPERATIONS
from skytide.spark import CurrentTable, ParquetSink, frequent, snapshots, write
from tests.spark.streaming.contract import START, plain, write_batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

GROUPS, ROWS, LATENESS = 12, 1200, 3
ALONE = sk.Preference(minimize=["a"], maximize=["b"])
GROUPED = sk.Preference(minimize=["a"], maximize=["b"], by=["g"])
SCHEMA = "t TIMESTAMP, key STRING, g BIGINT, a DOUBLE, b INT, does STRING, seq BIGINT"
Change = tuple[Any, str, Any]


def updates(groups: int = GROUPS) -> pa.Table:
    """Updates in the order in which they come: out of order by no more than the lateness, every tenth one deletes."""
    rng = np.random.default_rng(4)
    times = rng.integers(0, 60, ROWS)
    gone = rng.random(ROWS) < 0.1
    table = pa.table(
        {
            "t": pa.array([START + dt.timedelta(seconds=int(one)) for one in times], pa.timestamp("us", "UTC")),
            "key": [f"o{one}" for one in rng.integers(0, 8, ROWS)],
            "g": rng.integers(0, groups, ROWS),
            "a": pa.array(rng.choice([0.0, 1.0, 2.0, 0.5, -1.0], ROWS), mask=gone),
            "b": pa.array(rng.integers(-2, 3, ROWS), pa.int32(), mask=gone),
            "does": rng.choice(OPERATIONS, ROWS),
            "seq": rng.permutation(ROWS),
        }
    )
    return table.take(pa.array(np.argsort(times + rng.uniform(0, LATENESS, ROWS), kind="stable")))


def expected(table: pa.Table, last: Any, share: tuple[float, int] | None) -> list[tuple[Any, ...]]:
    """What the library says of each group by itself, up to a time; the values as they are then."""
    found: list[tuple[Any, ...]] = []
    for group in pc.unique(table.column("g")).to_pylist():
        mine = table.filter((pc.field("g") == group) & (pc.field("t") <= last)).sort_by(
            [("t", "ascending"), ("seq", "ascending")]
        )
        monitor = sk.Snapshots(ALONE)
        changes = [monitor.extend(mine, times="t", ids="key", op="does"), monitor.advance(last)]
        told: list[Any] = changes
        if share is not None:
            counter = sk.Frequent(*share)
            told = [counter.extend(run, snapshots=run.snapshots) for run in changes]
        found += [(group, plain(change.time), change.change, change.id) for run in told for change in run]
    return sorted(found)


def seen(out: pa.Table) -> list[tuple[Any, ...]]:
    assert set(out.column("kind").to_pylist()) == {"change"}
    return sorted((row["g"], plain(row["time"]), row["change"], row["id"]) for row in out.to_pylist())


def stream(spark: SparkSession, folder: Path) -> DataFrame:
    rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    return rows.repartition(2)


ASKED: dict[str, Any] = {"time": "t", "id": "key", "op": "does", "order": "seq"}


@pytest.mark.parametrize(
    ("share", "runs"), [(None, [[0, 1], [2]]), ((0.3, 7), [[0, 1, 2]])], ids=["snapshots-restarted", "frequent"]
)
def test_every_group_gets_the_changes_of_the_library(
    spark: SparkSession, share: tuple[float, int] | None, runs: list[list[int]], tmp_path: Path
) -> None:
    table, asked = updates(), {**ASKED, "lateness": f"{LATENESS}s", "parts": 2}
    size = ROWS // 3
    for batches in runs:
        for number in batches:
            write_batch(table.slice(number * size, size), tmp_path / "in", number)
        rows = stream(spark, tmp_path)
        if share is None:
            changes = snapshots(rows, GROUPED, **asked)
        else:
            changes = frequent(rows, GROUPED, theta=share[0], over=share[1], **asked)
        writer = changes.writeStream.format("parquet").option("path", str(tmp_path / "out"))
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
        query.awaitTermination()
    last = max(table.column("t").to_pylist()) - dt.timedelta(seconds=LATENESS + 1)
    truth = expected(table, last, share)
    assert seen(spark.read.parquet(str(tmp_path / "out")).toArrow()) == truth and len(truth) > 100


def test_a_table_gives_all_changes_up_to_its_last_snapshot(spark: SparkSession) -> None:
    table = updates()
    last = max(table.column("t").to_pylist())
    for partitions in (1, 5):
        df = spark.createDataFrame(table.to_pandas(), SCHEMA).repartition(partitions)
        assert seen(snapshots(df, GROUPED, **ASKED, parts=3).toArrow()) == expected(table, last, None)
    found = frequent(df, GROUPED, theta="0.3", over=7, **ASKED, method="recompute").toArrow()
    assert seen(found) == expected(table, last, (0.3, 7))


def test_without_groups_the_objects_are_one_series_and_carry_their_values(spark: SparkSession) -> None:
    rows = spark.sql(
        "SELECT * FROM VALUES (1, 'x', 5, 'a'), (1, 'y', 6, 'b'), (2, 'x', 3, 'c'), (3, 'x', NULL, 'd'), "
        "(4, 'x', 1, 'e') AS t(time, id, cost, note)"
    )
    preference = sk.Preference(minimize=["cost"])
    added = snapshots(rows, preference, time="time", id="id", op="add")
    assert added.columns == ["kind", "time", "change", "id", "row_time", "cost", "note"]
    assert added.schema["cost"].dataType.simpleString() == "double"
    found = [tuple(row)[1:4] + tuple(row)[5:] for row in added.orderBy("time", "change").collect()]
    assert found == [
        (1, "+", "x", 5.0, "a"),
        (2, "+", "y", 6.0, "b"),
        (2, "-", "x", 8.0, "c"),
        (4, "+", "x", 1.0, "e"),
        (4, "-", "y", 6.0, "b"),
    ]
    told = snapshots(rows, preference, time="time", id="id")
    assert told.schema["cost"].dataType.simpleString() == "int"
    assert [tuple(row)[1:4] for row in told.orderBy("time", "change").collect()] == [
        (1, "+", "x"),
        (3, "+", "y"),
        (3, "-", "x"),
        (4, "+", "x"),
        (4, "-", "y"),
    ]


def test_changes_dead_letters_and_the_answer_go_where_they_belong(spark: SparkSession, tmp_path: Path) -> None:
    form = updates().schema
    batches: list[list[tuple[Any, ...]]] = [
        [(9, "a", 3.0, "set"), (9, "b", 5.0, "set"), (9, "c", None, "set")],
        [(20, "a", 3.0, "add"), (1, "late", 1.0, "set"), (30, "d", 4.0, "odd")],
        [(25, "b", 1.0, "average")],
    ]
    for number, rows in enumerate(batches):
        told = [(START + dt.timedelta(seconds=at), one, 0, cost, 0, does, 0) for at, one, cost, does in rows]
        arrays = [pa.array([row[k] for row in told], field.type) for k, field in enumerate(form)]
        write_batch(pa.table(arrays, schema=form), tmp_path / "in", number)
    changes = snapshots(stream(spark, tmp_path), GROUPED, **ASKED)
    places = {name: str(tmp_path / name) for name in ("changes", "dead", "current")}
    query = write(
        changes,
        ParquetSink(places["changes"]),
        checkpoint=str(tmp_path / "checkpoint"),
        dead_letters=ParquetSink(places["dead"]),
        current=CurrentTable(places["current"]),
        trigger="once",
    )
    query.awaitTermination()
    dead = pq.read_table(places["dead"]).to_pylist()
    assert sorted((row["kind"], row["id"]) for row in dead) == [("bad", "c"), ("bad", "d"), ("late", "late")]
    found = [(row["change"], row["id"], row["a"]) for row in pq.read_table(places["changes"]).to_pylist()]
    assert found == [("+", "a", 3.0), ("-", "a", 6.0), ("+", "b", 5.0)]
    current = CurrentTable(places["current"]).read()
    assert current is not None and [row["id"] for row in current[1].to_pylist()] == ["b"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"op": "sum"}, r"'sum' is neither an operation nor a column; choose one of set, add, multiply, average"),
        ({"op": "x"}, r"column 'x': the column holds no words"),
        ({"op": "add", "preference": sk.Preference(minimize=["day"])}, r"column 'day': values of type date can be set"),
        ({"order": "list"}, r"column 'list': orders of type array<int> have no order"),
        ({"order": "nothing"}, r"column 'nothing': there is no such column, and it is to be the order"),
        ({"method": "fast"}, r"'fast' is not a method; choose one of auto, mbr, recompute"),
        ({"lateness": -1}, r"-1 is not a lateness"),
        ({"lateness": "2h"}, r"'2h' has a unit, but the times are plain numbers"),
        ({"theta": 0, "over": 3}, r"0 is not a share of the snapshots"),
        ({"theta": 0.5, "over": 0}, r"0 is not a number of snapshots"),
    ],
)
def test_what_does_not_fit_is_said_at_once(spark: SparkSession, change: dict[str, Any], message: str) -> None:
    rows = spark.sql("SELECT 1 AS t, 'n' AS name, array(1) AS list, 1.0D AS x, DATE'2024-01-01' AS day")
    asked: dict[str, Any] = {"preference": sk.Preference(minimize=["x"]), "time": "t", "id": "name", **change}
    with pytest.raises(sk.SkytideError, match=message):
        (frequent if "theta" in change else snapshots)(rows, **asked)
