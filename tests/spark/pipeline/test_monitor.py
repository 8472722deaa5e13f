"""`kind = "monitor"` in a pipeline file: its keys, a run over a stream and one over a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from skytide.spark.pipeline import Pipeline, run
from tests.spark.pipeline.files import complaint, pipeline_file
from tests.spark.rounds.moves import Case, expected, listed, moves
from tests.spark.streaming.contract import write_batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE = """\
[source]
format = "parquet"
path = "in"
stream = {stream}
schema = "t BIGINT, who STRING, a DOUBLE, b DOUBLE, g STRING"
options = {{ maxFilesPerTrigger = 1 }}
[query]
kind = "monitor"
min = ["a"]
max = ["b"]
id = "who"
time = "t"
{more}
[sink]
format = "{format}"
path = "out"
dead_letters = "dead"
[run]
trigger = "once"
checkpoint = "checkpoint"
"""


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('method = "fast"', "method: 'fast' is not allowed; use one of: naive, filter, auto, sampling, hybrid"),
        ("theta = 0.5", "theta: goes together with over; give over, too, or leave both out"),
        ("over = 5", "over: goes together with theta"),
        ("theta = 1.5\nover = 5", "theta: 1.5 is not a share"),
        ("epsilon = 1.0", "epsilon: 1.0 is not a usable epsilon; give a number between 0 and 1"),
        ("delta = 0", "delta: 0 is not a usable delta"),
        ("seed = -1", "seed: -1 is too small; give 0 or more"),
        ("buckets = 20000", "buckets: 20000 is too large; give at most 10000"),
        ("lateness = -1", "lateness: -1 is not a lateness"),
        ("duration = 5", "duration: there is no such key of the kind monitor"),
        ('by = "h"', "by: 'h' is not a column of the rows"),
    ],
)
def test_keys_that_do_not_fit_are_refused_at_their_line(more: str, message: str, tmp_path: Path) -> None:
    said = complaint(tmp_path, FILE.format(stream="true", more=more, format="parquet"))
    assert said.startswith("pipeline.toml") and f"[query] {message}" in said


def test_a_stream_goes_to_sinks_of_ours_only(tmp_path: Path) -> None:
    text = FILE.format(stream="true", more="", format="orc").replace('dead_letters = "dead"\n', "")
    said = complaint(tmp_path, text)
    assert "[sink] format: 'orc' the kind monitor does not write a stream in this format" in said
    Pipeline.load(pipeline_file(tmp_path, text.replace("stream = true", "stream = false")))


def test_streams_and_tables_give_the_changes_of_the_command(spark: SparkSession, tmp_path: Path) -> None:
    case = Case("auto", pair=("0.5", 4), clients=20, timestamps=7, step=0.1, seed=5)
    table = moves(case)
    for stream in (True, False):
        folder = tmp_path / str(stream)
        folder.mkdir()
        more = 'method = "auto"\ntheta = 0.5\nover = 4\nbuckets = 2'
        path = pipeline_file(folder, FILE.format(stream=str(stream).lower(), more=more, format="parquet"))
        half = table.num_rows // 2
        for number, part in enumerate((table.slice(0, half), table.slice(half))):
            write_batch(part, folder / "in", number)
        said: list[str] = []
        assert run(Pipeline.load(str(path)), said.append) == 0
        truth = expected(case, table, whole=not stream)
        assert listed(pq.read_table(folder / "out")) == truth != []
        assert f"{len(truth)} changes, 0 late, 0 bad" in said[-1]
        assert f"of {table.num_rows} rows (" in said[-1] and ") to the driver" in said[-1]
        if stream:
            assert said[0].startswith(f"batch 0: {half} rows in, ") and f"of {half} rows (" in said[0]
