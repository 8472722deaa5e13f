"""Rounds on a real Spark: tables and streams, runs that stop, fail, repeat and are killed."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import skytide as sk
from skytide.errors import InputError, OptionError, StateError
from skytide.spark import ParquetSink, monitor, plain_errors, traffic, write
from tests.spark.rounds.jobs import MOMENTS, broken_at
from tests.spark.rounds.moves import Case, listed, monitored, moves
from tests.spark.rounds.streams import BATCHES, CASE, check, put, started

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_table_gives_the_changes_of_the_simulation(spark: SparkSession, tmp_path: Path) -> None:
    case = Case("filter", grouped=True, clients=30, timestamps=10)
    table = moves(case)
    rows = spark.createDataFrame(table).repartition(3)
    outcome = monitor(rows, case.preference, time="t", id="who", method="filter", buckets=4).run(folder=str(tmp_path))
    truth, cost = monitored(case, table, whole=True)
    assert listed(outcome.changes) == [tuple(change) for change in truth]
    passed = outcome.traffic
    assert passed.reached == cost["uplink"] + cost["initial"]["uplink"] < passed.rows == table.num_rows
    assert passed.row_bytes == passed.rows * (12 + 4 * 8) and passed.changes == len(truth)
    assert outcome.letters is not None and not outcome.letters.num_rows
    assert not list(tmp_path.iterdir())


def test_times_and_ids_keep_their_types(spark: SparkSession) -> None:
    start = dt.datetime(2024, 3, 1, tzinfo=dt.UTC)
    rows = [(start, 7, 2.0), (start, 8, 3.0), (start + dt.timedelta(hours=1), 7, 4.0), (None, 9, 0.0)]
    df = spark.createDataFrame(rows, "time TIMESTAMP, id INT, x DOUBLE")
    watched = monitor(df, sk.Preference(minimize=["x"]), time="time", id="id", theta="0.5", over=2, buckets=2)
    outcome = watched.run()
    assert outcome.changes.schema.field("id").type == pa.int32()
    assert pa.types.is_timestamp(outcome.changes.schema.field("time").type)
    assert [(row["change"], row["id"]) for row in outcome.changes.to_pylist()] == [("+", 7), ("+", 8)]
    assert outcome.letters is not None and outcome.letters.select(["kind", "id", "row_time", "x"]).to_pylist() == [
        {"kind": "bad", "id": 9, "row_time": None, "x": 0.0}
    ]


@dataclass(frozen=True)
class Failing:
    """A sink that fails in one micro-batch, once it has written it, until a flag is there."""

    sink: Any
    flag: str

    def write(self, batch: int, rows: pa.Table) -> None:
        self.sink.write(batch, rows)
        if batch == 2 and not Path(self.flag).exists():
            Path(self.flag).touch()
            raise OSError("the sink has failed")

    def last(self) -> int | None:
        last: int | None = self.sink.last()
        return last


def test_a_stream_that_stops_fails_and_repeats_gives_every_change_once(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path, range(2))
    started(spark, tmp_path).awaitTermination()
    check(tmp_path, 2)
    put(tmp_path, range(2, BATCHES))
    sink = Failing(ParquetSink(str(tmp_path / "changes")), str(tmp_path / "failed"))
    with pytest.raises(Exception, match="the sink has failed"):
        started(spark, tmp_path, sink).awaitTermination()
    started(spark, tmp_path, sink).awaitTermination()
    found = check(tmp_path)
    total = traffic(str(tmp_path / "checkpoint"))
    assert total.changes == found.num_rows and total.rows == moves(CASE).num_rows and 0 < total.reached < total.rows
    # Spark does the last one again: to it, the micro-batch was never finished.
    (tmp_path / "checkpoint" / "commits" / str(BATCHES - 1)).unlink()
    (tmp_path / "checkpoint" / "commits" / f".{BATCHES - 1}.crc").unlink(missing_ok=True)
    started(spark, tmp_path).awaitTermination()
    check(tmp_path)
    assert traffic(str(tmp_path / "checkpoint")) == total
    with pytest.raises(StateError, match="a query with method 'auto', not 'filter'"), plain_errors():
        write_batch_more(tmp_path)
        started(spark, tmp_path, method="filter").awaitTermination()


def write_batch_more(folder: Path) -> None:
    from tests.spark.streaming.contract import write_batch

    write_batch(moves(CASE).slice(0, 1), folder / "in", BATCHES)


def test_a_run_that_breaks_at_any_moment_goes_on_as_if_nothing_had_been(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path, range(BATCHES))
    for moment in MOMENTS:  # each leaves its files behind, and the next begins among them
        with pytest.MonkeyPatch.context() as patch, pytest.raises(Exception, match="broken"):
            broken_at(moment, broken, patch.setattr)
            started(spark, tmp_path).awaitTermination()
    started(spark, tmp_path).awaitTermination()
    check(tmp_path)


def broken() -> None:
    raise OSError("broken")


def test_a_run_that_is_killed_goes_on_as_if_nothing_had_been(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path, range(BATCHES))
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.rounds.jobs", str(tmp_path), "written"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(part for part in sys.path if part)},
    )
    assert done.returncode == -9 and "survived" not in done.stdout, done.stderr[-2000:]
    started(spark, tmp_path).awaitTermination()
    check(tmp_path)


def test_what_cannot_be_asked_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.createDataFrame([(1, "x", 2.0)], "t INT, who STRING, a DOUBLE")
    preference = sk.Preference(minimize=["a"])
    for wrong, kind, message in (
        ({"method": "fast"}, OptionError, "'fast' is not a method"),
        ({"theta": 0.5}, OptionError, "theta and over go together"),
        ({"buckets": 0}, OptionError, "0 is not a number of buckets"),
        ({"method": "sampling", "epsilon": 2.0}, OptionError, "2.0 is not a usable epsilon"),
        ({"id": "what"}, InputError, "there is no such column"),
        ({"order": "what"}, InputError, "there is no such column"),
    ):
        with pytest.raises(kind, match=message):
            monitor(df, preference, **{"time": "t", "id": "who", **wrong})  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="a table is not a stream"):
        write(monitor(df, preference, time="t", id="who"), checkpoint=str(tmp_path))
    with pytest.raises(OptionError, match="a stream has no end"):
        monitor(spark.readStream.schema(df.schema).parquet(str(tmp_path)), preference, time="t", id="who").run()
