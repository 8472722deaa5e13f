"""`format("skytide")` in Spark: found without registration, the same rows in any partitions and over restarts."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, ReadMinRows

from skytide.errors import InputError, OptionError, SkytideError
from skytide.spark import plain_errors
from skytide.spark.sources.generator import OPTIONS, SkytideSource
from skytide.spark.sources.rows import Rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def expected(rows: Rows, total: int) -> list[tuple[Any, ...]]:
    table = pa.Table.from_batches(rows.batches(0, total), rows.schema())
    return sorted(tuple(row.values()) for row in table.to_pylist())


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_table_is_the_same_in_any_number_of_partitions(spark: SparkSession, partitions: int) -> None:
    options: dict[str, Any] = {"kind": "anti-correlated", "rows": 500, "dimensions": 3, "seed": 4, "groups": 2}
    df = spark.read.format("skytide").options(partitions=partitions, **options).load()
    assert df.columns == ["id", "time", "x1", "x2", "x3", "group"]
    assert sorted(map(tuple, df.collect())) == expected(Rows("anti-correlated", 3, 4, groups=2), 500)
    assert df.rdd.getNumPartitions() == partitions


def test_timestamps_begin_and_step_as_asked(spark: SparkSession) -> None:
    options: dict[str, Any] = {
        "rows": 3,
        "time": "timestamp",
        "timeStart": "2026-03-01T12:00:00+01:00",
        "timeStep": "250ms",
    }
    df = spark.read.format("skytide").options(**options).load()
    assert dict(df.dtypes)["time"] == "timestamp"
    found = sorted(row.text for row in df.selectExpr("string(time) AS text").collect())
    assert found == ["2026-03-01 11:00:00", "2026-03-01 11:00:00.25", "2026-03-01 11:00:00.5"]


def test_an_empty_table_has_its_columns(spark: SparkSession) -> None:
    df = spark.read.format("skytide").options(rows=0, kind="uncertain").load()
    assert df.collect() == [] and df.columns == ["id", "time", "x1", "x2", "prob"]


def run(stream: DataFrame, checkpoint: Path, each: Callable[[DataFrame, int], None]) -> None:
    query = stream.writeStream.foreachBatch(each).option("checkpointLocation", str(checkpoint))
    query.trigger(availableNow=True).start().awaitTermination()


def test_a_stream_ends_and_goes_on_after_a_crash_with_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    options: dict[str, Any] = {"kind": "walk", "objects": 50, "rows": 700, "rowsPerBatch": 200, "seed": 2}
    stream = spark.readStream.format("skytide").options(**options).load()
    seen: dict[int, list[tuple[Any, ...]]] = {}
    failed: list[list[tuple[Any, ...]]] = []

    def each(batch: DataFrame, number: int) -> None:
        rows = sorted(map(tuple, batch.collect()))
        if number == 1 and not failed:
            failed.append(rows)
            raise RuntimeError("the machine stops here")
        seen[number] = rows

    with pytest.raises(Exception, match="the machine stops here"):
        run(stream, tmp_path, each)
    run(stream, tmp_path, each)
    assert [len(rows) for _, rows in sorted(seen.items())] == [200, 200, 200, 100]
    assert seen[1] == failed[0]
    assert sorted(row for rows in seen.values() for row in rows) == expected(Rows("walk", seed=2, objects=50), 700)
    run(stream, tmp_path, each)
    assert len(seen) == 4


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"row": 3}, "'row' is not an option of the format skytide; the options are: kind, rows, dimensions"),
        ({"rows": 3, "kind": "cubes"}, "'cubes' is given for the option kind and is not one of its values"),
        ({"rows": "many"}, "'many' is given for the option rows and is not such a number"),
        ({"rows": 3, "timeStart": "noon"}, "'noon' is given for the option timeStart"),
        ({}, "a table of generated rows needs the option rows"),
    ],
)
def test_wrong_options_are_one_clear_line(spark: SparkSession, options: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionError) as caught, plain_errors():
        spark.read.format("skytide").options(**options).load().collect()
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_a_stream_without_end_is_not_available_at_once(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(SkytideError, match="never has all of its rows available"), plain_errors():
        run(spark.readStream.format("skytide").load(), tmp_path, lambda batch, number: None)


def test_another_schema_is_refused(spark: SparkSession) -> None:
    with pytest.raises(InputError, match="leave the schema out"), plain_errors():
        spark.read.format("skytide").schema("id INT, x1 DOUBLE").options(rows=1).load().collect()


# -- how much at a time: without Spark ---------------------------------------------------------------------------------


def reader(**options: Any) -> Any:
    source = SkytideSource({name: str(value) for name, value in options.items()})
    return source.streamReader(source.schema())


@pytest.mark.parametrize(
    ("limit", "row"),
    [(ReadMaxRows(30), 40), (ReadAllAvailable(), 100), (ReadMinRows(90), 100), (ReadMinRows(91), 100)],
)
def test_limits_of_spark_are_kept(limit: ReadLimit, row: int) -> None:
    assert reader(rows=100).latestOffset({"row": 10}, limit) == {"row": row}


def test_rows_arrive_at_their_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 50.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    stream = reader(rowsPerSecond=10, rowsPerBatch=1000)
    limit = stream.getDefaultReadLimit()
    assert stream.latestOffset({"row": 7}, limit) == {"row": 7}
    now = 52.5
    assert stream.latestOffset({"row": 7}, limit) == {"row": 32}
    assert stream.latestOffset({"row": 7}, ReadMinRows(26)) == {"row": 7}
    assert stream.latestOffset({"row": 7}, ReadMaxRows(5)) == {"row": 12}
    now = 53.0
    assert stream.latestOffset({"row": 32}, limit) == {"row": 37}
    assert reader(rows=20, rowsPerSecond=10).latestOffset({"row": 20}, limit) == {"row": 20}


def test_the_end_is_reported_and_names_are_read_in_any_spelling() -> None:
    assert reader(rows=5).reportLatestOffset() == {"row": 5}
    assert reader(rows_per_batch=9).getDefaultReadLimit() == ReadMaxRows(9)
    assert reader(rows=5, partitions=2).partitions({"row": 5}, {"row": 5}) == []


def test_every_option_says_what_it_is_for() -> None:
    assert all(option.help for option in OPTIONS)
