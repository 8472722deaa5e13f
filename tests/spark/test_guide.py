"""The documents with examples for Spark do what they say, all of them in one session."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.documents.blocks import DOCUMENTS, ROOT, name_of, needs_spark, to_run
from tests.documents.session import Session
from tests.spark.sources.coordinators import Running

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATH = ROOT / "docs" / "spark.md"
GUIDE = PATH.read_text(encoding="utf-8")
OTHERS = [path for path in DOCUMENTS if needs_spark(path) and path != PATH]
FLIGHTS = "ts TIMESTAMP, flight STRING, origin STRING, delay DOUBLE, distance DOUBLE"

PLACES = [
    *("cars.parquet", "best.parquet", "in", "changes", "dead-letters", "current", "checkpoint"),
    *("followed", "followed-checkpoint"),
]


@pytest.mark.parametrize("path", OTHERS, ids=name_of)
def test_a_document_gives_what_it_shows_on_spark(path: Path, spark: SparkSession, tmp_path: Path) -> None:
    session = Session(tmp_path, spark)
    if path == ROOT / "README.md":
        put_flights(tmp_path / "in")
        session.names["flights"] = spark.readStream.schema(FLIGHTS).parquet(str(tmp_path / "in"))
    try:
        session.run(path)  # streams are begun; what comes out of them is looked at below
    finally:
        for query in spark.streams.active:
            query.stop()


def put_flights(folder: Path) -> None:
    folder.mkdir()
    start = dt.datetime(2024, 5, 1, tzinfo=dt.UTC)
    flights = {
        "ts": pa.array([start, start + dt.timedelta(hours=9)], pa.timestamp("us", "UTC")),
        "flight": ["x", "y"],
        "origin": ["BRU", "BRU"],
        "delay": [3.0, 4.0],
        "distance": [100.0, 90.0],
    }
    pq.write_table(pa.table(flights), folder / "1.parquet")


def test_the_python_of_the_guide_runs(spark: SparkSession, tmp_path: Path) -> None:
    cars = {"price": [1.0, 2.0], "mpg": [9.0, 8.0], "brand": ["a", "a"]}
    pq.write_table(pa.table(cars), tmp_path / "cars.parquet")
    put_flights(tmp_path / "in")
    names: dict[str, Any] = {}
    with Running(tmp_path / "coordinator") as running:
        running.move(range(2))
        for block in to_run(PATH, "python"):
            text = block.text
            for place in PLACES:
                text = text.replace(f'"{place}"', repr(str(tmp_path / place)))
            exec(text.replace("http://127.0.0.1:8750", running.url), names)  # noqa: S102
            query = names.pop("query", None)
            if query is not None:
                query.processAllAvailable()
                query.stop()
    assert pq.read_table(tmp_path / "best.parquet").num_rows == 1
    found = [(row["change"], row["id"]) for row in pq.read_table(tmp_path / "changes").to_pylist()]
    assert found == [("+", "x"), ("-", "x")]
    followed = pq.read_table(tmp_path / "followed").to_pylist()
    assert [(row["number"], row["change"], row["id"]) for row in followed] == [
        (1, "+", "7"),
        (2, "-", "7"),
        (3, "+", "7"),
    ]
    for name in ("moves", "steady"):
        told = re.findall(rf"^{name} = .*# (.*)$", GUIDE, re.MULTILINE)
        rows = names[name].orderBy("time", "change", "id").collect()
        assert sorted(f"{row.time} {row.change} {row.id}" for row in rows) == sorted(told[0].split(", "))
