"""What a bucket does in one job: take up what it was told since its state was stored, speak, answer, be stored.

The driver keeps a log of what it told each bucket. State as stored, rows and log give the bucket as it is now, whatever
machine does it. A worker that did it before still has the bucket in memory and takes up the rest of the log only.

Ahead of the last settled timestamp a bucket goes with a copy, up to the first timestamp at which somebody speaks. If
the driver then tells it something of an earlier timestamp, that was in vain and is done again; else it is kept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from skytide.spark.rounds.files import read_rows, read_state, write_state
from skytide.spark.rounds.protocol import Bucket, Rules, Run

TASK = pa.schema(
    [
        ("bucket", pa.int32()),
        ("state", pa.string()),
        ("rows", pa.string()),
        ("since", pa.int64()),
        ("start", pa.int64()),
        ("times", pa.list_(pa.int64())),
        ("told", pa.list_(pa.binary())),
        ("fresh", pa.int64()),
        ("after", pa.int64()),
        ("until", pa.int64()),
        ("store", pa.bool_()),
    ]
)
RESULT = pa.schema(
    [
        ("bucket", pa.int32()),
        ("time", pa.int64()),
        ("said", pa.list_(pa.binary())),
        ("state", pa.string()),
        ("size", pa.int64()),
    ]
)
RESULT_DDL = "bucket INT, time BIGINT, said ARRAY<BINARY>, state STRING, size BIGINT"
MOST_KEPT = 256
"""So many buckets a worker keeps in memory."""


@dataclass(frozen=True)
class Task:
    """What one bucket is to do."""

    bucket: int
    state: str | None
    """The file with its state, after the timestamp `since` and the log's entries before `start`."""
    rows: str | None
    """The file with its rows."""
    since: int
    start: int
    log: Sequence[tuple[int, bytes]]
    """What it was told since, with the timestamps; entries are counted from the beginning of the run."""
    fresh: int
    """The entries from this one on are to be answered."""
    after: int
    """All timestamps up to this one are to come, and what is said in them is known."""
    until: int
    """Then it looks ahead up to this one, where it is later."""
    store: bool = False
    """Whether its state is to be stored, after `after`."""


@dataclass(frozen=True)
class Result:
    """What a bucket says: in answer, or ahead at a timestamp; and name and size of its state, where it was stored.

    Where it keeps quiet up to the end, the timestamp is the one after it.
    """

    bucket: int
    time: int
    said: list[bytes]
    state: str | None = None
    size: int = 0


@dataclass
class _Live:
    """A bucket in memory: after which timestamp, and how much of the log it knows."""

    token: str
    bucket: Bucket
    time: int
    known: int

    def advance(self, time: int) -> None:
        """Let all timestamps up to this one come; what is said in them is known."""
        while self.time < time:
            self.time = min(time, self.bucket.advance(self.time + 1, time)[0])


@dataclass(frozen=True)
class Worker:
    """Does tasks of one run; a plain value that travels."""

    rules: Rules
    folder: str
    token: str
    """A name that no other attempt at this or another run has."""
    run: Run

    def do(self, task: Task) -> Result:
        """Do one task. O(what it was told, and its clients and rows from there to where it stops)."""
        live = self._taken_up(task)
        said: list[bytes] = []
        for place, (time, message) in enumerate(task.log, task.start):
            if place >= live.known:
                live.advance(time)
                answers = live.bucket.tell(message)
                live.known = place + 1
                if place >= task.fresh:
                    said += answers
        live.advance(task.after)
        state = live.bucket.to_bytes() if task.store else None
        name = None if state is None else write_state(self.folder, task.bucket, state)
        size = 0 if state is None else len(state)
        _remember((self.folder, task.bucket), live)
        if task.until <= task.after:
            return Result(task.bucket, task.after, said, name, size)
        time, said = live.bucket.copy().advance(task.after + 1, task.until)
        return Result(task.bucket, time, said, name, size)

    def _taken_up(self, task: Task) -> _Live:
        """The bucket from memory, if it is not ahead of what is asked; else as it was stored."""
        live = _kept.pop((self.folder, task.bucket), None)
        if live is not None and live.token == self.token and task.start <= live.known <= task.fresh:
            ahead_of = [task.after, *(time for time, _ in task.log[live.known - task.start :])]
            if live.time <= min(ahead_of):
                return live
        state = None if task.state is None else read_state(self.folder, task.state)
        rows = None if task.rows is None else read_rows(self.folder, task.rows)
        bucket = self.rules.bucket(task.bucket, state, rows, self.run)
        return _Live(self.token, bucket, task.since, task.start)

    def tasks(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For mapInArrow: tasks as rows in, results as rows out."""
        for batch in batches:
            for task in batch.to_pylist():
                yield result_rows([self.do(_task(task))])


_kept: OrderedDict[tuple[str, int], _Live] = OrderedDict()
"""In a worker's memory. Popped while it is worked on: a task that fails in the middle leaves nothing wrong behind."""


def _remember(key: tuple[str, int], live: _Live) -> None:
    _kept[key] = live
    if len(_kept) > MOST_KEPT:
        _kept.popitem(last=False)


# -- as rows -----------------------------------------------------------------------------------------------------------


def task_rows(tasks: Sequence[Task]) -> pa.Table:
    """Tasks as a table, a row for each."""
    rows = [
        {
            **{name: getattr(task, name) for name in TASK.names if name not in ("times", "told")},
            "times": [time for time, _ in task.log],
            "told": [message for _, message in task.log],
        }
        for task in tasks
    ]
    return pa.Table.from_pylist(rows, TASK)


def _task(row: dict[str, Any]) -> Task:
    log = list(zip(row.pop("times"), row.pop("told"), strict=True))
    return Task(**row, log=log)


def result_rows(results: Sequence[Result]) -> pa.RecordBatch:
    """Results as rows."""
    return pa.RecordBatch.from_pylist([vars(result) for result in results], RESULT)


def results_of(table: pa.Table) -> list[Result]:
    """And back."""
    return [Result(**row) for row in table.to_pylist()]
