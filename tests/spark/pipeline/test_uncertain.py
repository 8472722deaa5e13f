"""`kind = "uncertain"` in a pipeline file: its keys, and a run over a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from skytide.errors import SkytideError
from skytide.spark.pipeline import Pipeline, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE = """\
[source]
format = "skytide"
options = {{ kind = "uncertain", rows = 200, dimensions = 2 }}
[query]
kind = "uncertain"
min = ["x1", "x2"]
id = "id"
time = "time"
duration = 50
prob = "prob"
threshold = {threshold}
[sink]
format = "parquet"
path = "changes"
[run]
master = "local[2]"
"""


@pytest.mark.parametrize("threshold", ["0", "[0.5, 2]", '"half"', "[]", "true"])
def test_thresholds_that_are_none_are_refused_at_their_line(threshold: str, tmp_path: Path) -> None:
    file = tmp_path / "u.toml"
    file.write_text(FILE.format(threshold=threshold), encoding="utf-8")
    with pytest.raises(SkytideError, match=r"u\.toml, line 11: \[query\] threshold: "):
        Pipeline.load(str(file))


def test_a_table_of_uncertain_rows_gives_changes_per_threshold(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "u.toml"
    file.write_text(FILE.format(threshold="[0.3, 0.7]"), encoding="utf-8")
    said: list[str] = []
    assert run(Pipeline.load(str(file)), said.append) == 0
    found = pq.read_table(tmp_path / "changes")
    assert set(found.column("threshold").to_pylist()) == {0.3, 0.7} and "200 rows in" in said[-1]
