"""Window queries on a real Spark on this machine."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import skytide as sk
from skytide.errors import StateError
from skytide.spark import CurrentTable, ParquetSink, window, write
from tests.spark.streaming.contract import PREFERENCE, Case, rows_of, run, write_batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ALONE = sk.Preference(minimize=["a"], maximize=["b"])


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


# -- tables ------------------------------------------------------------------------------------------------------------


def test_a_table_gives_all_changes_up_to_its_last_instant_and_beyond(spark: SparkSession) -> None:
    for case in (Case(groups=6), Case(groups=6, times="DOUBLE", duration=None, count=5)):
        table = rows_of(case)
        df = spark.createDataFrame(table.to_pandas())
        answers = []
        for partitions in (1, 7):
            found = window(
                df.repartition(partitions),
                PREFERENCE,
                time="t",
                id="key",
                duration=case.duration,
                count=case.count,
                parts=3,
            ).toArrow()
            answers.append(
                sorted(zip(*(found.column(name).to_pylist() for name in ("g", "time", "change", "id")), strict=True))
            )
        assert answers[0] == answers[1] == sorted(whole(case, table))
    after = window(df, PREFERENCE, time="t", id="key", duration=3, until=1000).toArrow()
    assert after.num_rows % 2 == 0 and max(after.column("time").to_pylist()) > max(table.column("t").to_pylist())


def whole(case: Case, table: pa.Table) -> list[tuple[Any, ...]]:
    """The changes of each group of a table whose last instant is closed."""
    found: list[tuple[Any, ...]] = []
    last = max(table.column("t").to_pylist())
    for group in range(case.groups):
        mine = table.filter(pc.field("g") == group).sort_by([("t", "ascending"), ("key", "ascending")])
        if case.count is not None:
            changes = list(sk.SlidingWindow(ALONE, count=case.count).extend(mine, ids="key"))
        else:
            timed = sk.SlidingWindow(ALONE, duration=case.duration)
            changes = [*timed.extend(mine, times="t", ids="key"), *timed.advance(last)]
        found += [(group, *change) for change in changes]
    return found


def test_dates_and_times_without_a_zone_are_times(spark: SparkSession) -> None:
    rows = "SELECT * FROM VALUES ('a', DATE'2024-02-28', 1), ('b', DATE'2024-03-01', 2) AS t(id, day, x)"
    preference = sk.Preference(minimize=["x"])
    days = window(spark.sql(rows), preference, time="day", id="id", duration="2d", until=dt.datetime(2024, 3, 9))
    assert days.columns == ["kind", "time", "change", "id", "day", "x"]
    found = [(row.time.isoformat(), row.change, row.id) for row in days.collect()]
    assert sorted(found) == [
        ("2024-02-28T00:00:00", "+", "a"),
        ("2024-03-01T00:00:00", "+", "b"),
        ("2024-03-01T00:00:00", "-", "a"),
        ("2024-03-03T00:00:00", "-", "b"),
    ]


def test_columns_that_are_called_like_ours_are_renamed(spark: SparkSession) -> None:
    rows = spark.sql("SELECT 1 AS time, 'k' AS kind, 7 AS id, 'x' AS change, 2.0D AS value, 'odd' AS `a.b c`")
    found = window(rows, sk.Preference(minimize=["value"], by=["kind"]), time="time", id="id", duration=3)
    assert found.columns == ["kind", "time", "change", "id", "row_kind", "row_time", "row_change", "value", "a.b c"]
    assert [tuple(row) for row in found.collect()] == [("change", 1, "+", 7, "k", 1, "x", 2.0, "odd")]


# -- what does not fit -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"time": "when"}, r"column 'when': there is no such column, and it is to be the time"),
        ({"id": "list"}, r"column 'list': ids of type array<int> have no order"),
        ({"time": "name"}, r"column 'name': times of type string are not times"),
        ({"emit": "all"}, r"'all' is not what can be emitted; use changes or net"),
        ({"parts": 0}, r"0 is not a number of parts"),
        ({"duration": "2h"}, r"'2h' is text|plain numbers"),
        ({"duration": None}, r"a window needs a length"),
        ({"preference": sk.Preference(minimize=["nothing"])}, r"column 'nothing': there is no such column"),
    ],
)
def test_what_does_not_fit_is_said_at_once(spark: SparkSession, change: dict[str, Any], message: str) -> None:
    rows = spark.sql("SELECT 1 AS t, 'n' AS name, array(1) AS list, 1.0D AS x")
    asked: dict[str, Any] = {"preference": sk.Preference(minimize=["x"]), "time": "t", "id": "name", "duration": 5}
    with pytest.raises(sk.SkytideError, match=message):
        window(rows, **{**asked, **change})


def test_a_second_clock_is_refused(spark: SparkSession) -> None:
    rate = spark.readStream.format("rate").load().withWatermark("timestamp", "1 second")
    with pytest.raises(sk.SkytideError, match=r"column 'timestamp': the stream has a watermark already"):
        window(rate, sk.Preference(minimize=["value"]), time="timestamp", id="value", duration="5s")


# -- to sinks ----------------------------------------------------------------------------------------------------------


def test_changes_dead_letters_and_the_answer_go_where_they_belong(spark: SparkSession, tmp_path: Path) -> None:
    def batch(number: int, rows: list[tuple[Any, ...]]) -> None:
        names = ("t", "key", "x")
        write_batch(pa.table({name: [row[k] for row in rows] for k, name in enumerate(names)}), tmp_path / "in", number)

    batch(0, [(10, "a", 3.0), (20, "b", 5.0), (21, "c", None)])
    batch(1, [(5, "late", 0.0), (30, "d", 4.0)])
    stream = spark.readStream.schema("t BIGINT, key STRING, x DOUBLE").option("maxFilesPerTrigger", 1)
    checkpoint = str(tmp_path / "checkpoint")
    places = {name: str(tmp_path / name) for name in ("changes", "dead", "current")}

    def start(place: str) -> Any:
        rows = stream.parquet(str(tmp_path / "in"))
        found = window(
            rows, sk.Preference(minimize=["x"]), time="t", id="key", duration=12, lateness=2, checkpoint=place
        )
        return write(
            found,
            ParquetSink(places["changes"]),
            checkpoint=place,
            dead_letters=ParquetSink(places["dead"]),
            current=CurrentTable(places["current"]),
            trigger="once",
        )

    query = start(checkpoint)
    query.awaitTermination()
    assert sorted(row["key"] for row in pq.read_table(places["dead"]).to_pylist()) == ["c", "late"]
    assert [(row["kind"], row["id"]) for row in pq.read_table(places["dead"]).to_pylist()] == [
        ("bad", "c"),
        ("late", "late"),
    ]
    changes = [(row["time"], row["change"], row["id"]) for row in pq.read_table(places["changes"]).to_pylist()]
    assert changes == [(10, "+", "a"), (22, "-", "a"), (22, "+", "b")]
    current = CurrentTable(places["current"]).read()
    assert current is not None and [(row["time"], row["id"], row["x"]) for row in current[1].to_pylist()] == [
        (22, "b", 5.0)
    ]
    with pytest.raises(StateError, match=r"the sink holds micro-batch \d already, and the checkpoint is new"):
        start(str(tmp_path / "another"))
