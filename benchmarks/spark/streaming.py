"""Streaming windows on Spark beside an identity `mapInArrow` on the same stream: rows per second, in turns, checked.

A stream is a folder of Parquet files, as many rows per micro-batch as asked for in as many files as there are cores,
rows dealt out to the files in turn. The identity passes every row to Python and back, to a sink that does nothing. The
window does its whole work, and writes its changes and the current answer as files; they are compared with those of
`SlidingWindow` on the same rows. The first micro-batches, in which workers start and code is loaded, are not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import skytide as sk
from benchmarks import machine
from benchmarks.scale.job import Change, written
from skytide.spark import CurrentTable, ParquetSink, local_session, window, write
from skytide.spark.streaming.operator import MERGED, PRUNED
from skytide.streams.generators import generate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STREAMS = ("independent:3", "independent:4", "anti-correlated:3")
SKIPPED = 2
"""Micro-batches at the start of a query that are not counted, unless there is but one left."""


@dataclass(frozen=True)
class Stream:
    """What is streamed: rows of a kind, so many per micro-batch."""

    kind: str
    dimensions: int
    rows: int
    batches: int
    files: int = 2

    @property
    def names(self) -> list[str]:
        """The columns that count."""
        return [f"x{k}" for k in range(self.dimensions)]

    def values(self) -> Any:
        """The values of all rows."""
        return generate(self.kind, self.rows * self.batches, self.dimensions, seed=7)

    def write(self, folder: Path, values: Any) -> None:
        """The files of all micro-batches, in the order of their times."""
        for batch in range(self.batches):
            for part in range(self.files):
                mine = np.arange(batch * self.rows + part, (batch + 1) * self.rows, self.files)
                columns = {"id": mine, "t": mine, **{name: values[mine, k] for k, name in enumerate(self.names)}}
                file = folder / f"{batch:04}-{part}.parquet"
                pq.write_table(pa.table(columns), file, compression="none", use_dictionary=False)
                os.utime(file, (1_700_000_000 + batch,) * 2)

    def read(self, spark: SparkSession, folder: Path) -> DataFrame:
        """The stream of the files in a folder."""
        schema = ", ".join(["id BIGINT", "t BIGINT", *(f"{name} DOUBLE" for name in self.names)])
        return spark.readStream.schema(schema).option("maxFilesPerTrigger", self.files).parquet(str(folder))


def identity(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def run_identity(spark: SparkSession, stream: Stream, source: Path, folder: Path) -> list[Any]:
    """The progress of every micro-batch of the identity."""
    rows = stream.read(spark, source)
    passed = rows.mapInArrow(identity, rows.schema)
    query = passed.writeStream.format("noop").option("checkpointLocation", str(folder)).trigger(availableNow=True)
    return finished(query.start())


def run_window(spark: SparkSession, stream: Stream, source: Path, folder: Path, length: int) -> list[Any]:
    """The progress of every micro-batch of the window; its results lie in the folder."""
    checkpoint = str(folder / "checkpoint")
    changes = window(
        stream.read(spark, source),
        sk.Preference(minimize=stream.names),
        time="t",
        id="id",
        duration=length,
        checkpoint=checkpoint,
    )
    sink, current = ParquetSink(str(folder / "changes")), CurrentTable(str(folder / "current"))
    return finished(write(changes, sink, current=current, checkpoint=checkpoint, trigger="once"))


def finished(query: Any) -> list[Any]:
    query.awaitTermination()
    return list(query.recentProgress)


def counted(progress: list[Any]) -> list[Any]:
    """The micro-batches with rows, but the first ones."""
    full = [one for one in progress if one.numInputRows]
    return full[min(SKIPPED, len(full) - 1) :]


def rows_per_second(progress: list[Any]) -> float:
    """The median over the micro-batches that count."""
    full = counted(progress)
    return float(statistics.median(one.numInputRows / one.durationMs["triggerExecution"] * 1000 for one in full))


def expected(stream: Stream, values: Any, length: int) -> Counter[Change]:
    """The changes of the definition's engine on one machine, up to the last instant that the stream closes."""
    kept = sk.SlidingWindow(sk.Preference.columns(stream.dimensions), duration=length, check_ids=False)
    total = stream.rows * stream.batches
    found: Counter[Change] = Counter()
    for start in range(0, total, 1 << 20):
        times = np.arange(start, min(total, start + (1 << 20)))
        found.update(map(tuple, kept.extend(values[times], times=times, ids=times)))
    return found


def measure(spark: SparkSession, stream: Stream, lengths: list[int], say: Any) -> list[dict[str, Any]]:
    """One line per window length: rows per second beside the identity of the same turn."""
    lines = []
    with tempfile.TemporaryDirectory() as name:
        source = Path(name, "in")
        source.mkdir()
        values = stream.values()
        stream.write(source, values)
        # The first query over rows of a new shape waits for compilers, Spark's and ours: a whole window goes before.
        run_identity(spark, stream, source, Path(name, "warm"))
        run_window(spark, stream, source, Path(name, "warmer"), lengths[0])
        for length in lengths:
            before = rows_per_second(run_identity(spark, stream, source, Path(name, f"i{length}")))
            folder = Path(name, f"w{length}")
            progress = run_window(spark, stream, source, folder, length)
            after = rows_per_second(run_identity(spark, stream, source, Path(name, f"j{length}")))
            ours = rows_per_second(progress)
            full = counted(progress)
            sent = sum(one.observedMetrics[PRUNED].sent for one in full)
            line = {
                "kind": stream.kind,
                "dimensions": stream.dimensions,
                "window": length,
                "rows_per_batch": stream.rows,
                "identity": [before, after],
                "ours": ours,
                "share": ours / ((before + after) / 2),
                "sent_per_million": sent / sum(one.numInputRows for one in full) * 1e6,
                "retained": progress[-1].observedMetrics[MERGED].retained,
                "changes": sum(one.observedMetrics[MERGED].changes or 0 for one in progress),
                "equal": written(folder / "changes") == expected(stream, values, length),
            }
            lines.append(line)
            say(
                f"{line['kind']:>16} d={line['dimensions']} W={length:>9,}: {ours / 1e6:5.2f} M rows/s, identity "
                f"{before / 1e6:.2f} and {after / 1e6:.2f}: {line['share']:4.0%}; {line['sent_per_million']:,.0f} rows "
                f"per million reach the merge; {'equal' if line['equal'] else 'NOT EQUAL'}"
            )
            shutil.rmtree(folder)
    return lines


def idle(spark: SparkSession, batches: int = 12) -> dict[str, float]:
    """Seconds per micro-batch that brings one row: what a micro-batch costs before any work."""
    with tempfile.TemporaryDirectory() as name:
        stream = Stream("independent", 3, 1, batches, 1)
        source = Path(name, "in")
        source.mkdir()
        stream.write(source, stream.values())
        ours = run_window(spark, stream, source, Path(name, "w"), 10)
        plain = run_identity(spark, stream, source, Path(name, "i"))

    def middle(progress: list[Any]) -> float:
        return float(statistics.median(one.durationMs["triggerExecution"] for one in progress[3:])) / 1000

    return {"window": middle(ours), "identity": middle(plain)}


def main(argv: list[str]) -> int:
    """Run the benchmark; 0 when all changes are those expected."""
    parser = argparse.ArgumentParser(
        prog="skytide bench spark --parts streaming", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--quick", action="store_true", help="one small stream only")
    parser.add_argument("--rows", type=float, default=4e6, help="rows per micro-batch (4e6)")
    parser.add_argument(
        "--batches", type=int, default=6, help="micro-batches, of which the first two are not counted (6)"
    )
    parser.add_argument("--windows", type=float, nargs="+", default=[1e6, 1e7], help="lengths, in rows' worth of time")
    parser.add_argument("--streams", nargs="+", metavar="KIND:D", default=list(STREAMS), help=", ".join(STREAMS))
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything measured")
    chosen = parser.parse_args(argv)
    if chosen.quick:
        chosen.rows, chosen.batches, chosen.windows, chosen.streams = 20_000, 2, [10_000], ["independent:3"]
    found = machine.describe("pyspark", "pyarrow")
    print(machine.sentence(found), flush=True)
    spark = local_session(chosen.master, **{"spark.driver.memory": "1g" if chosen.quick else "3g"})
    lines = []
    for text in chosen.streams:
        kind, _, dimensions = text.partition(":")
        stream = Stream(kind, int(dimensions), int(chosen.rows), chosen.batches)
        lines += measure(
            spark, stream, [int(length) for length in chosen.windows], lambda line: print(line, flush=True)
        )
    floor = idle(spark, 5 if chosen.quick else 15)
    print(f"a micro-batch of one row: window {floor['window']:.2f} s, identity {floor['identity']:.2f} s", flush=True)
    if chosen.json:
        chosen.json.write_text(json.dumps({"streams": lines, "idle": floor, "machine": found}, indent=1))
    return 0 if all(line["equal"] for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
