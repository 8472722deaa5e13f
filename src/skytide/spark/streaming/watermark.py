"""The watermark of the running micro-batch, learned by a task that has no state.

Spark tells a task the number of its micro-batch, and writes the watermark of every micro-batch into the checkpoint's
offset log before it starts; a task that is tried again reads the same. A checkpoint that tasks cannot read only costs
speed: the tasks then pass all rows on.
"""

from __future__ import annotations

import json
from pathlib import Path

from skytide.spark.streaming.clock import EventClock


def address(checkpoint: str) -> str:
    """A checkpoint as an address that means the same in every task; a plain path is one of this machine.

    >>> address("hdfs://name/checkpoint")
    'hdfs://name/checkpoint'
    """
    if "://" in checkpoint:
        return checkpoint
    return Path(checkpoint.removeprefix("file:")).absolute().as_uri()


def closed_instant(checkpoint: str | None, clock: EventClock) -> int | None:
    """The key of the last instant that is closed in this task's micro-batch, or None where it cannot be known."""
    watermark = batch_watermark(checkpoint)
    return None if watermark is None else clock.closed_by(watermark)


def batch_watermark(checkpoint: str | None) -> int | None:
    """The watermark of this task's micro-batch in milliseconds, or None."""
    from pyspark import TaskContext

    task = TaskContext.get()
    number = None if task is None else task.getLocalProperty("streaming.sql.batchId")
    if checkpoint is None or number is None:
        return None
    from pyarrow import ArrowException, fs

    try:
        system, path = fs.FileSystem.from_uri(checkpoint)
        with system.open_input_stream(f"{path}/offsets/{number}") as log:
            lines = log.read().decode().split("\n")
        found = json.loads(lines[1])["batchWatermarkMs"]
    except (OSError, ValueError, LookupError, TypeError, ArrowException):
        return None
    return found if isinstance(found, int) else None
