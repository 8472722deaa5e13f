"""A stream of moves on a real Spark: files in, changes out, and what must hold of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from skytide.spark import CurrentTable, ParquetSink, monitor, write
from tests.spark.rounds.moves import Case, expected, listed, moves
from tests.spark.streaming.contract import write_batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "t BIGINT, who STRING, a DOUBLE, b DOUBLE, g STRING"
CASE = Case("auto", grouped=True, clients=25, timestamps=8, step=0.1, seed=5)
BATCHES = 4


def put(folder: Path, numbers: range) -> None:
    """Let some of the micro-batches' files be there."""
    table = moves(CASE)
    size = -(-table.num_rows // BATCHES)
    for number in numbers:
        write_batch(table.slice(number * size, size), folder / "in", number)


def started(spark: SparkSession, folder: Path, sink: Any = None, **changed: Any) -> Any:
    """The query over what is there."""
    rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    asked: dict[str, Any] = {"time": "t", "id": "who", "method": CASE.method, "buckets": 3, **changed}
    return write(
        monitor(rows, CASE.preference, **asked),
        ParquetSink(str(folder / "changes")) if sink is None else sink,
        checkpoint=str(folder / "checkpoint"),
        dead_letters=ParquetSink(str(folder / "dead")),
        current=CurrentTable(str(folder / "current")),
        trigger="once",
    )


def check(folder: Path, batches: int = BATCHES) -> pa.Table:
    """All changes of these micro-batches are there, each once and in order, and the answer is what they lead to."""
    table = moves(CASE)
    truth = expected(CASE, table.slice(0, -(-table.num_rows // BATCHES) * batches), whole=False)
    found = pq.read_table(folder / "changes")
    assert listed(found) == truth != []
    answer: set[Any] = set()
    for _, change, one in truth:
        (answer.add if change == "+" else answer.remove)(one)
    current = CurrentTable(str(folder / "current")).read()
    assert current is not None and set(current[1].column("id").to_pylist()) == answer
    assert not list((folder / "dead").glob("*.parquet"))
    return found
