"""Sinks in a process that is killed in the middle: what is there is whole, and the next process goes on."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from skytide.spark.sinks import CurrentTable, Feed, FeedSink, ParquetSink

SIZE = 20_000

WRITER = """
import sys
from pathlib import Path
from tests.spark.sinks.test_killed import write_from
write_from(Path(sys.argv[1]), int(sys.argv[2]), 10**6)
"""


def answer(batch: int) -> pa.Table:
    return pa.table({"time": pa.repeat(batch, SIZE), "id": pa.array(range(SIZE), pa.int64())})


def write_from(folder: Path, first: int, last: int) -> None:
    for batch in range(first, last):
        sign = pa.array(["+" if batch % 2 == 0 else "-"] * SIZE)
        rows = answer(batch).add_column(1, "change", sign)
        ParquetSink(str(folder / "changes")).write(batch, rows)
        FeedSink(str(folder / "feed"), keep=4, snapshot_every=2).write(batch, rows)
        CurrentTable(str(folder / "current")).write(batch, answer(batch))
        print(batch, flush=True)


def check(folder: Path) -> int:
    """Everything that a reader finds is whole; the last micro-batch of the feed."""
    for path in sorted((folder / "changes").glob("batch-*.parquet")):
        assert pq.read_table(path).num_rows == SIZE
    current = CurrentTable(str(folder / "current")).read()
    assert current is None or current[1] == answer(current[0])
    events = Feed(str(folder / "feed")).read()
    if not events:
        return -1
    assert events[0].rows.num_rows == (SIZE if events[0].batch % 2 == 0 else 0)
    return events[0].batch


def test_a_killed_process_leaves_whole_batches_and_the_next_one_goes_on(tmp_path: Path) -> None:
    reached = 0
    for round_ in range(2):
        command = [sys.executable, "-c", WRITER, str(tmp_path), str(reached)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[3]) as writer:
            assert writer.stdout is not None
            for _ in range(4):
                assert writer.stdout.readline()
                check(tmp_path)
            time.sleep(0.003 + 0.02 * round_)
            writer.kill()
        reached = check(tmp_path)
        assert reached >= 3
    write_from(tmp_path, reached, reached + 3)
    assert check(tmp_path) == reached + 2
    batches = pq.read_table(tmp_path / "changes")["time"].unique().to_pylist()
    assert sorted(batches) == list(range(reached + 3))
