"""Objects in fragments on a real Spark: a table, a stream that breaks and goes on, and what is refused."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skytide as sk
from skytide.errors import InputError, OptionError, SkytideError, StateError
from skytide.protocols.fragmented.functions import Functions
from skytide.runtime.fragments import Fragmented
from skytide.spark import ParquetSink, fragments, plain_errors, traffic, write
from tests.spark.rounds.fragments import drifting
from tests.spark.rounds.jobs import broken_at
from tests.spark.rounds.moves import listed
from tests.spark.streaming.contract import write_batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ASKED = ["norm(a, b)"], ["a - b"]
SLOW = sk.Preference(*ASKED)
BATCHES = 3


def simulated(table: pa.Table, method: str, *, whole: bool) -> list[Any]:
    """What `skytide fragments` gives for rows in the order of their times."""
    monitor = Fragmented(Functions(*ASKED), method, nulls="drop")
    found = list(monitor.extend(table, *(table.column(name) for name in ("t", "who", "at"))))
    found += monitor.advance(table.column("t")[-1].as_py()) if whole else []
    return [tuple(change) for change in found]


def test_a_table_gives_the_changes_of_the_command(spark: SparkSession, tmp_path: Path) -> None:
    table = drifting(10, 6, 8, seed=4, step=0.01)
    rows = spark.createDataFrame(table).repartition(3)
    watched = fragments(rows, SLOW, site="at", time="t", id="who", method="pivot", buckets=3)
    outcome = watched.run(folder=str(tmp_path))
    assert listed(outcome.changes) == simulated(table, "pivot", whole=True) != []
    passed = outcome.traffic
    assert 60 <= passed.reached < passed.rows == table.num_rows and passed.row_bytes == passed.rows * (4 + 2 * 8)
    assert passed.reached == sum(count for name, count in outcome.messages.items() if name.startswith("up."))
    assert outcome.letters is not None and not outcome.letters.num_rows
    assert not list(tmp_path.iterdir())


def test_times_ids_and_odd_names_of_columns_keep_what_they_are(spark: SparkSession) -> None:
    start = dt.datetime(2024, 3, 1, tzinfo=dt.UTC)
    rows = [(start, 1, 7, 2.0), (start, 2, 8, 3.0), (start + dt.timedelta(hours=1), 2, 7, 9.0), (start, None, 7, 0.0)]
    df = spark.createDataFrame(rows, "time TIMESTAMP, `the site` INT, id INT, `km/h` DOUBLE")
    speed = sk.Preference(minimize=["km/h"], maximize=["`km/h` ** 2 - 1"])
    outcome = fragments(df, speed, site="the site", time="time", id="id", buckets=2).run()
    assert outcome.changes.schema.field("id").type == pa.int32()
    assert pa.types.is_timestamp(outcome.changes.schema.field("time").type)
    assert [(row["change"], row["id"]) for row in outcome.changes.to_pylist()] == [("+", 7), ("+", 8)]
    assert outcome.letters is not None and outcome.letters.select(["kind", "id", "the site"]).to_pylist() == [
        {"kind": "bad", "id": 7, "the site": None}
    ]


def put(folder: Path, numbers: range, table: pa.Table) -> None:
    size = -(-table.num_rows // BATCHES)
    for number in numbers:
        write_batch(table.slice(number * size, size), folder / "in", number)


def started(spark: SparkSession, folder: Path, method: str) -> Any:
    schema = "t BIGINT, at STRING, who STRING, a DOUBLE, b DOUBLE"
    rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    watched = fragments(rows, SLOW, site="at", time="t", id="who", method=method, buckets=2)
    return write(watched, ParquetSink(str(folder / "out")), checkpoint=str(folder / "checkpoint"), trigger="once")


def test_a_stream_that_breaks_goes_on_as_if_nothing_had_been(spark: SparkSession, tmp_path: Path) -> None:
    table = drifting(6, 4, 13, seed=1, step=0.1)
    put(tmp_path, range(2), table)
    for moment in ("round", "written"):
        with pytest.MonkeyPatch.context() as patch, pytest.raises(Exception, match="broken"):
            broken_at(moment, broken, patch.setattr)
            started(spark, tmp_path, "direct").awaitTermination()
    put(tmp_path, range(2, BATCHES), table)
    started(spark, tmp_path, "direct").awaitTermination()
    found = pq.read_table(tmp_path / "out")
    assert listed(found) == simulated(table, "direct", whole=False) != []
    total = traffic(str(tmp_path / "checkpoint"))
    assert total.rows == table.num_rows and total.changes == found.num_rows and total.timestamps == 12
    put(tmp_path, range(BATCHES, BATCHES + 1), table.slice(0, 0).append_column("c", pa.array([], pa.int64())))
    with pytest.raises(StateError, match="a query with method 'direct', not 'pivot'"), plain_errors():
        started(spark, tmp_path, "pivot").awaitTermination()


def broken() -> None:
    raise OSError("broken")


def test_what_cannot_be_asked_is_refused(spark: SparkSession) -> None:
    df = spark.createDataFrame([(1, "x", "s", 2.0, "y")], "t INT, who STRING, at STRING, a DOUBLE, b STRING")
    wrong: list[tuple[dict[str, Any], type[SkytideError], str]] = [
        ({"method": "fast"}, OptionError, "'fast' is not a method"),
        ({"buckets": True}, OptionError, "is not a number of buckets"),
        ({"site": "what"}, InputError, "there is no such column, and it is to be the site"),
        ({"order": "what"}, InputError, "there is no such column"),
        ({"preference": sk.Preference(minimize=["norm(a, what)"])}, OptionError, "speaks of 'what'"),
        ({"preference": sk.Preference(minimize=["norm(a, b)"])}, InputError, "the column holds string, not numbers"),
        ({"preference": sk.Preference(minimize=["a"], by=["b"])}, OptionError, "'b' is a column to group by"),
    ]
    for given, kind, message in wrong:
        with pytest.raises(kind, match=message):
            fragments(
                df, **{"preference": sk.Preference(minimize=["a"]), "site": "at", "time": "t", "id": "who", **given}
            )
    with pytest.raises(InputError, match="'x' is an object of which a function has no value"), plain_errors():
        none = sk.Preference(minimize=["log(a - 2)"])
        fragments(df, none, site="at", time="t", id="who", nulls="error", buckets=1).run()
