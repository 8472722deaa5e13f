"""File sinks: repeats change nothing, readers see whole micro-batches, the current answer is the last one."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.spark.sinks import CsvSink, CurrentTable, JsonLinesSink, ParquetSink, Sink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = [ParquetSink, CsvSink, JsonLinesSink]


def rows(*ids: int) -> pa.Table:
    return pa.table({"time": [0.5] * len(ids), "change": ["+"] * len(ids), "id": pa.array(ids, pa.int64())})


def contents(folder: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


@settings(max_examples=25)
@given(
    kind=st.sampled_from(FILES),
    sizes=st.lists(st.integers(0, 3), min_size=1, max_size=6),
    repeats=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4)), max_size=4),
)
def test_batches_done_again_leave_what_one_pass_leaves(
    kind: type[ParquetSink], sizes: list[int], repeats: list[tuple[int, int]]
) -> None:
    once, again = tempfile.TemporaryDirectory(), tempfile.TemporaryDirectory()
    with once, again:
        for batch, size in enumerate(sizes):
            kind(once.name).write(batch, rows(*range(size)))
            # An attempt that came out otherwise, and one that did not.
            for place, other in repeats:
                if place == batch:
                    kind(again.name).write(batch, rows(*range(10, 10 + other)))
            kind(again.name).write(batch, rows(*range(size)))
            kind(again.name).write(batch, rows(*range(size)))
        assert contents(again.name) == contents(once.name)
        written = [batch for batch, size in enumerate(sizes) if size]
        assert kind(again.name).last() == (written[-1] if written else None)


def test_the_folder_is_a_table_for_any_reader(tmp_path: Path, spark: SparkSession) -> None:
    sink = ParquetSink(str(tmp_path))
    for batch in range(3):
        sink.write(batch, rows(batch, 10 + batch))
    (tmp_path / ".batch-0000000000000000009.parquet.12").write_bytes(b"half a file")
    expected = [0, 1, 2, 10, 11, 12]
    assert sorted(pq.read_table(tmp_path)["id"].to_pylist()) == expected
    assert sorted(ds.dataset(tmp_path).to_table()["id"].to_pylist()) == expected
    assert sorted(row.id for row in spark.read.parquet(str(tmp_path)).collect()) == expected


def test_text_files_hold_the_rows(tmp_path: Path) -> None:
    CsvSink(str(tmp_path)).write(4, rows(7))
    JsonLinesSink(str(tmp_path)).write(4, rows(7))
    assert contents(str(tmp_path)) == {
        "batch-0000000000000000004.csv": b"time,change,id\n0.5,+,7\n",
        "batch-0000000000000000004.jsonl": b'{"time": 0.5, "change": "+", "id": 7}\n',
    }


def test_the_current_answer_is_that_of_the_last_batch_and_may_be_empty(tmp_path: Path) -> None:
    table = CurrentTable(str(tmp_path))
    assert table.read() is None and table.last() is None
    for batch, ids in enumerate([(1,), (1, 2), (), (3,)]):
        table.write(batch, rows(*ids))
        table.write(batch, rows(*ids))
        found = table.read()
        assert found == (batch, rows(*ids)) and table.last() == batch
        assert len(list(tmp_path.iterdir())) == min(2, batch + 1)
    # A query that goes back to an older checkpoint.
    table.write(1, rows(9))
    assert table.read() == (1, rows(9))


@pytest.mark.parametrize("sink", [ParquetSink("x"), CsvSink("x"), JsonLinesSink("x"), CurrentTable("x")])
def test_sinks_are_plain_values_that_travel(sink: Sink) -> None:
    assert isinstance(sink, Sink)
    assert pickle.loads(pickle.dumps(sink)) == sink  # noqa: S301, as Spark sends them
