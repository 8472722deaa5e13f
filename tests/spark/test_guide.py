"""The examples of docs/spark.md do what it says: its Python is run, its pipeline is checked."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from skytide.spark.pipeline import Pipeline
from tests.spark.sources.coordinators import Running

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GUIDE = (Path(__file__).parents[2] / "docs" / "spark.md").read_text(encoding="utf-8")

PLACES = [
    *("cars.parquet", "best.parquet", "in", "changes", "dead-letters", "current", "checkpoint"),
    *("followed", "followed-checkpoint"),
]


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)


def test_the_pipeline_of_the_guide_is_one(tmp_path: Path) -> None:
    (block,) = blocks("toml")
    (tmp_path / "flights").mkdir()
    (tmp_path / "flights.toml").write_text(block, encoding="utf-8")
    assert "window" in Pipeline.load(str(tmp_path / "flights.toml")).described()


def test_the_python_of_the_guide_runs(spark: SparkSession, tmp_path: Path) -> None:
    cars = {"price": [1.0, 2.0], "mpg": [9.0, 8.0], "brand": ["a", "a"]}
    pq.write_table(pa.table(cars), tmp_path / "cars.parquet")
    (tmp_path / "in").mkdir()
    start = dt.datetime(2024, 5, 1, tzinfo=dt.UTC)
    flights = {
        "ts": pa.array([start, start + dt.timedelta(hours=9)], pa.timestamp("us", "UTC")),
        "flight": ["x", "y"],
        "origin": ["BRU", "BRU"],
        "delay": [3.0, 4.0],
        "distance": [100.0, 90.0],
    }
    pq.write_table(pa.table(flights), tmp_path / "in" / "1.parquet")
    names: dict[str, Any] = {}
    with Running(tmp_path / "coordinator") as running:
        running.move(range(2))
        for block in blocks("python"):
            for place in PLACES:
                block = block.replace(f'"{place}"', repr(str(tmp_path / place)))
            exec(block.replace("http://127.0.0.1:8750", running.url), names)  # noqa: S102
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
