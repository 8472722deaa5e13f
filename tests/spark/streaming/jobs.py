"""A streaming job that tests start in a process of its own and break: `python -m tests.spark.streaming.jobs FOLDER`.

It reads the files of FOLDER/in as a stream, one per micro-batch, and writes changes, dead letters and the current
answer beside them. `--crash 2:before` kills the driver, Java and all, in micro-batch 2 before its changes are written;
`2:after` when they are, but Spark does not know it yet. `--room COMMAND` does what makes room once the job has failed,
and does the job again in a new session.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from skytide.spark import CurrentTable, ParquetSink, local_session, plain_errors, window, write
from tests.spark.small import SMALL_JVM
from tests.spark.streaming.contract import PREFERENCE, Case

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Deadly:
    """A sink that ends the whole process group in one micro-batch."""

    sink: Any
    batch: int
    when: str

    def write(self, batch: int, rows: pa.Table) -> None:
        if batch == self.batch and self.when == "before":
            os.killpg(os.getpgid(0), signal.SIGKILL)
        self.sink.write(batch, rows)
        if batch == self.batch:
            os.killpg(os.getpgid(0), signal.SIGKILL)

    def last(self) -> int | None:
        last: int | None = self.sink.last()
        return last


def stream(spark: SparkSession, folder: Path, case: Case) -> DataFrame:
    schema = f"t {case.times}, key STRING, g BIGINT, a DOUBLE, b DOUBLE, tags ARRAY<STRING>"
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "in")).repartition(2)


def parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--checkpoint", type=Path)
    parser.add_argument("--crash", default="")
    parser.add_argument("--duration", type=int, default=12)
    parser.add_argument("--room", default="")
    return parser.parse_args(arguments)


def work(spark: SparkSession, asked: argparse.Namespace) -> None:
    """The job on a session, until it ends."""
    case = Case(duration=asked.duration)
    checkpoint = str(asked.checkpoint or asked.folder / "checkpoint")
    changes = window(
        stream(spark, asked.folder, case),
        PREFERENCE,
        time="t",
        id="key",
        duration=case.duration,
        lateness=case.lateness,
        checkpoint=checkpoint,
        parts=2,
    )
    sink: Any = ParquetSink(str(asked.folder / "changes"))
    if asked.crash:
        batch, _, when = asked.crash.partition(":")
        sink = Deadly(sink, int(batch), when)
    with plain_errors():
        query = write(
            changes,
            sink,
            checkpoint=checkpoint,
            dead_letters=ParquetSink(str(asked.folder / "dead")),
            current=CurrentTable(str(asked.folder / "current")),
            trigger="once",
        )
        query.awaitTermination()


def main(arguments: list[str]) -> int:
    asked = parsed(arguments)
    for command in (asked.room, ""):
        spark = local_session("local[2]", **SMALL_JVM)
        try:
            work(spark, asked)
        except Exception as problem:
            if not command:
                raise
            print(f"failed: {problem}")
            subprocess.run(shlex.split(command), check=True)
        else:
            break
        finally:
            spark.stop()
    print("done")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
