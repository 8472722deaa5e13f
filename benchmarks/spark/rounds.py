"""The filtering protocol in rounds on Spark: the rows and bytes that reach the driver, against shipping everything.

A stream is a folder of Parquet files, some timestamps in each, one file per micro-batch: the moves of zhang09c (every
client moves at every timestamp, within its cube) and of udom14 (a few do). Changes are compared with those of `skytide
monitor` on the same rows. Counts do not depend on the machine; seconds do, and are mostly those of Spark's jobs.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

import skytide as sk
from benchmarks import machine
from skytide.runtime.monitored import Monitored
from skytide.spark import ParquetSink, local_session, monitor, traffic, write
from skytide.streams.walks import jitter, random_walk

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from skytide.model import Changes
    from skytide.spark.rounds.operator import Rounds

Say = Callable[[str], None]
STREAMS = ("independent:2:0.08", "independent:3:0.01", "walk:3")


@dataclass(frozen=True)
class Stream(ABC):
    """Rows in micro-batches, and what a protocol makes of them."""

    text: str

    @property
    @abstractmethod
    def schema(self) -> str:
        """The columns, as Spark reads them."""

    @abstractmethod
    def tables(self) -> Iterator[pa.Table]:
        """The rows of one micro-batch after the other."""

    @abstractmethod
    def watched(self, rows: DataFrame, method: str, buckets: int) -> Rounds:
        """The protocol on Spark."""

    @abstractmethod
    def truth(self, table: pa.Table, method: str) -> Changes:
        """What it gives on one machine."""

    def write(self, folder: Path) -> pa.Table:
        """A file for each micro-batch; all rows."""
        tables = list(self.tables())
        for number, table in enumerate(tables):
            file = folder / f"{number:04}.parquet"
            pq.write_table(table, file, compression="none", use_dictionary=False)
            os.utime(file, (1_700_000_000 + number,) * 2)
        return pa.concat_tables(tables)


@dataclass(frozen=True)
class Moves(Stream):
    """Moves of clients: `KIND:D:U` as in zhang09c, or `walk:D` as in udom14."""

    clients: int
    timestamps: int
    per_batch: int

    @property
    def dimensions(self) -> int:
        """How many numbers a client has."""
        return int(self.text.split(":")[1])

    @property
    def preference(self) -> sk.Preference:
        """All are minimised."""
        return sk.Preference(minimize=[f"x{k}" for k in range(self.dimensions)])

    def tables(self) -> Iterator[pa.Table]:
        """The rows of one micro-batch after the other."""
        kind, *more = self.text.split(":")
        shape = (self.clients, self.dimensions, self.timestamps)
        runs = random_walk(*shape, seed=7) if kind == "walk" else jitter(kind, *shape, seed=7, extent=float(more[1]))
        held = []
        for number, run in enumerate(runs, 1):
            columns = {f"x{k}": run.values[:, k] for k in range(self.dimensions)}
            held.append(pa.table({"t": run.times, "client": run.ids, **columns}))
            if number % self.per_batch == 0 or number == self.timestamps:
                yield pa.concat_tables(held)
                held = []

    @property
    def schema(self) -> str:
        """The columns, as Spark reads them."""
        return ", ".join(["t BIGINT", "client BIGINT", *(f"x{k} DOUBLE" for k in range(self.dimensions))])

    def watched(self, rows: DataFrame, method: str, buckets: int) -> Rounds:
        """The protocol on Spark."""
        return monitor(rows, self.preference, time="t", id="client", method=method, buckets=buckets)

    def truth(self, table: pa.Table, method: str) -> Changes:
        """What it gives on one machine."""
        monitored = Monitored(self.preference, method)
        return monitored.extend(table, times=table.column("t"), ids=table.column("client"))


def measure(spark: SparkSession, moves: Stream, method: str, buckets: int, say: Say) -> dict[str, Any]:
    """One stream by one method: what reached the driver, and whether the changes are right."""
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        (home / "in").mkdir()
        table = moves.write(home / "in")
        rows = spark.readStream.schema(moves.schema).option("maxFilesPerTrigger", 1).parquet(str(home / "in"))
        watched = moves.watched(rows, method, buckets)
        began = time.perf_counter()
        query = write(watched, ParquetSink(str(home / "out")), checkpoint=str(home / "checkpoint"), trigger="once")
        query.awaitTermination()
        seconds = time.perf_counter() - began
        passed = traffic(str(home / "checkpoint"))
        found = pq.read_table(home / "out").to_pylist()
    truth = moves.truth(table, method)
    equal = [(row["time"], row["change"], row["id"]) for row in found] == [tuple(change) for change in truth]
    share, size = passed.reached / passed.rows, passed.reached_bytes / passed.row_bytes
    say(
        f"{moves.text} {method}: {passed.described()}, {share:.1%} and {size:.1%}; {passed.timestamps} timestamps, "
        f"{passed.jobs} jobs, {passed.changes} changes, {'equal' if equal else 'DIFFERENT'}, {seconds:.0f} s"
    )
    return {"stream": moves.text, "method": method, **passed.counts(), "seconds": seconds, "equal": equal}


def main(argv: list[str]) -> int:
    """Run the benchmark; 0 when all changes are those expected."""
    parser = argparse.ArgumentParser(prog="skytide bench spark --parts rounds", description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one small stream only")
    parser.add_argument("--clients", type=int, default=20_000)
    parser.add_argument("--timestamps", type=int, default=100)
    parser.add_argument("--per-batch", type=int, default=10, help="timestamps in a micro-batch (10)")
    parser.add_argument("--methods", nargs="+", default=["filter"])
    parser.add_argument("--buckets", type=int, default=4)
    parser.add_argument("--streams", nargs="+", default=list(STREAMS), help="KIND:D:U, or walk:D")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything measured")
    chosen = parser.parse_args(argv)
    if chosen.quick:
        chosen.clients, chosen.timestamps, chosen.per_batch, chosen.streams = 500, 6, 3, ["walk:3"]
    return measured(
        [Moves(text, chosen.clients, chosen.timestamps, chosen.per_batch) for text in chosen.streams], chosen
    )


def measured(streams: Sequence[Stream], chosen: argparse.Namespace) -> int:
    """Measure streams by all chosen methods; 0 when all changes are those expected."""
    found = machine.describe("pyspark", "pyarrow")
    print(machine.sentence(found), flush=True)
    spark = local_session(chosen.master, **{"spark.driver.memory": "1g"})
    lines = [
        measure(spark, stream, method, chosen.buckets, lambda line: print(line, flush=True))
        for stream in streams
        for method in chosen.methods
    ]
    if chosen.json:
        chosen.json.write_text(json.dumps({"streams": lines, "machine": found}, indent=1))
    return 0 if all(line["equal"] for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
