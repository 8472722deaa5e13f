"""`kind = "fragments"` in a pipeline file: its keys, a run over a stream and one over a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from skytide.spark.pipeline import Pipeline, run
from tests.spark.pipeline.files import complaint, pipeline_file
from tests.spark.rounds.fragments import Fragments, drifting
from tests.spark.rounds.moves import listed
from tests.spark.streaming.contract import write_batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE = """\
[source]
format = "parquet"
path = "in"
stream = {stream}
schema = "t BIGINT, at STRING, who STRING, a DOUBLE, b DOUBLE"
options = {{ maxFilesPerTrigger = 1 }}
[query]
kind = "fragments"
{asked}
site = "at"
id = "who"
time = "t"
{more}
[sink]
format = "parquet"
path = "out"
dead_letters = "dead"
[run]
trigger = "once"
checkpoint = "checkpoint"
"""
ASKED = 'min = ["norm(a, b)", "a - b"]'


@pytest.mark.parametrize(
    ("asked", "more", "message"),
    [
        ('min = "norm(a, b"', "", "line 9: [query] min: 'norm(a, b' ends at character 10, before a closing bracket"),
        ('min = ["a", "open(b)"]', "", "line 9: [query] min: 'open(b)' calls 'open', which is not a function"),
        ('max = "norm(a, size)"', "", "line 9: [query] max: 'norm(a, size)' speaks of 'size', which is not a column"),
        ('min = ["a",\n"a / c"]', "", "line 10: [query] min: 'a / c' speaks of 'c', which is not a column"),
        ('min = ["a", "a"]', "", "line 9: [query] min: 'a' is named more than once"),
        ('min = "a+b"\nmax = "a + b"', "", "line 9: [query] min: 'a + b' is named more than once"),
        ('min = "2 + 3"', "", "line 9: [query] min: '2.0 + 3.0' speaks of no column"),
        ("", "", "[query] min: a preference needs at least one column"),
        (
            ASKED,
            'method = "naive"',
            "line 13: [query] method: 'naive' is not allowed; use one of: central, pivot, direct, auto",
        ),
        (ASKED, "buckets = 20000", "line 13: [query] buckets: 20000 is too large; give at most 10000"),
        (ASKED, 'by = "g"', "line 13: [query] by: there is no such key of the kind fragments"),
        (ASKED, 'order = "when"', "line 13: [query] order: 'when' is not a column of the rows"),
    ],
)
def test_keys_that_do_not_fit_are_refused_at_their_line(asked: str, more: str, message: str, tmp_path: Path) -> None:
    said = complaint(tmp_path, FILE.format(stream="true", asked=asked, more=more))
    assert said.startswith("pipeline.toml") and message in said and "\n" not in said


def test_streams_and_tables_give_the_changes_of_the_definition(spark: SparkSession, tmp_path: Path) -> None:
    case = Fragments(("norm(a, b)", "a - b"), method="pivot")
    table = drifting(5, 4, 3, seed=2, step=0.5)
    for stream in (True, False):
        folder = tmp_path / str(stream)
        folder.mkdir()
        text = FILE.format(stream=str(stream).lower(), asked=ASKED, more='method = "pivot"\nbuckets = 2')
        path = pipeline_file(folder, text)
        half = table.num_rows // 2
        for number, part in enumerate((table.slice(0, half), table.slice(half))):
            write_batch(part, folder / "in", number)
        said: list[str] = []
        assert run(Pipeline.load(str(path)), said.append) == 0
        truth = case.expected(table, whole=not stream)
        assert listed(pq.read_table(folder / "out")) == truth != []
        assert f"{len(truth)} changes, 0 late, 0 bad" in said[-1]
        assert f"of {table.num_rows} rows (" in said[-1] and ") to the driver" in said[-1]
        if stream:
            assert said[0].startswith(f"batch 0: {half} rows in, ") and f"of {half} rows (" in said[0]
