"""Jobs that are broken on purpose, and what must hold after them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from skytide.spark import CurrentTable
from tests.spark.streaming.contract import Case, differences, expected, rows_of, write_batch
from tests.spark.streaming.jobs import parsed, work

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASE = Case(batches=4)


def put_stream(folder: Path) -> None:
    """The files of the stream that the jobs read."""
    table = rows_of(CASE)
    size = -(-table.num_rows // CASE.batches)
    for number in range(CASE.batches):
        write_batch(table.slice(number * size, size), folder / "in", number)


def job(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The job in a process group of its own, which a crash ends as a whole."""
    command = [sys.executable, "-m", "tests.spark.streaming.jobs", str(folder), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, start_new_session=True, env=environment()
    )


def again(spark: SparkSession, folder: Path, *arguments: str) -> None:
    """The job in this process."""
    work(spark, parsed([str(folder), *arguments]))


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(part for part in sys.path if part)}


def check(folder: Path) -> None:
    """All changes are there, each once, and the current answer is what they lead to."""
    table = rows_of(CASE)
    out = pq.read_table(folder / "changes")
    assert differences(CASE, table, out.append_column("kind", pa.array(["change"] * out.num_rows))) == []
    answer: set[Any] = set()
    for changes in expected(CASE, table).values():
        for _, change, one in sorted(changes, key=lambda change: (change[0], change[1] == "+")):
            (answer.add if change == "+" else answer.remove)(one)
    current = CurrentTable(str(folder / "current")).read()
    assert current is not None and set(current[1].column("id").to_pylist()) == answer
    assert not (folder / "dead").exists() or not list((folder / "dead").glob("*.parquet"))
