"""`kind = "snapshots"` and `"frequent"` in a pipeline file: their keys, and a run over a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skytide as sk
from skytide.spark.pipeline import Pipeline, run
from tests.spark.pipeline.files import complaint, pipeline_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE = """\
[source]
format = "parquet"
path = "in"
[query]
kind = "{kind}"
min = ["cost"]
max = ["gain"]
id = "id"
time = "time"
{more}
[sink]
format = "parquet"
path = "out"
"""


@pytest.mark.parametrize(
    ("kind", "more", "message"),
    [
        ("snapshots", 'method = "fast"', "[query] method: 'fast' is not allowed; use one of: auto, mbr, recompute"),
        ("snapshots", "lateness = -1", "[query] lateness: -1 is not a lateness; give 0 or more, and finite"),
        ("snapshots", "duration = 5", "[query] duration: there is no such key of the kind snapshots"),
        ("snapshots", "theta = 0.5", "[query] theta: there is no such key of the kind snapshots"),
        ("frequent", "theta = 0.5", "[query] over: the key is missing; expected: of how many snapshots"),
        ("frequent", "over = 5", "[query] theta: the key is missing"),
        ("frequent", "theta = 1.5\nover = 5", "[query] theta: 1.5 is not a share of the snapshots"),
        ("frequent", "theta = 0.5\nover = 0", "[query] over: 0 is too small; give 1 or more"),
    ],
)
def test_keys_that_do_not_fit_are_refused_at_their_line(kind: str, more: str, message: str, tmp_path: Path) -> None:
    said = complaint(tmp_path, FILE.format(kind=kind, more=more))
    assert said.startswith("pipeline.toml") and message in said


def test_a_table_of_updates_gives_the_changes_of_the_library(spark: SparkSession, tmp_path: Path) -> None:
    rows = [(1, "a", 3.0, 1.0), (1, "b", 4.0, 0.0), (2, "a", 3.0, -2.0), (3, "b", None, None), (4, "c", 9.0, 9.0)]
    table = pa.table({name: [row[k] for row in rows] for k, name in enumerate(("time", "id", "cost", "gain"))})
    monitor, counter = sk.Snapshots(sk.Preference(minimize=["cost"], maximize=["gain"]), op="add"), sk.Frequent(0.5, 2)
    runs = [monitor.extend(table, times="time", ids="id"), monitor.advance(4)]
    truth: dict[str, Any] = {
        "snapshots": runs,
        "frequent": [counter.extend(one, snapshots=one.snapshots) for one in runs],
    }
    for kind, more in (("snapshots", 'op = "add"'), ("frequent", 'op = "add"\ntheta = 0.5\nover = 2')):
        folder = tmp_path / kind
        folder.mkdir()
        path = pipeline_file(folder, FILE.format(kind=kind, more=more))
        pq.write_table(table, folder / "in" / "rows.parquet")
        said: list[str] = []
        assert run(Pipeline.load(str(path)), said.append) == 0
        found = pq.read_table(folder / "out").to_pylist()
        assert [(row["time"], row["change"], row["id"]) for row in found] == [tuple(c) for r in truth[kind] for c in r]
        assert "5 rows in" in said[-1] and len(found) >= 4
