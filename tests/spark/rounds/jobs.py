"""A run that breaks in micro-batch 1. In a process of its own it is killed, Java and all:
`python -m tests.spark.rounds.jobs FOLDER MOMENT`.

The moments: in the middle of its rounds; when all buckets are stored and nothing is written; when its changes are
written and its record is not; when only Spark does not know yet.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from skytide.spark import local_session
from skytide.spark.rounds import operator
from skytide.spark.rounds.batch import SparkGround
from skytide.spark.rounds.engine import Hands
from skytide.spark.rounds.record import Record, Records
from skytide.spark.rounds.tasks import Result, Task, Worker
from skytide.spark.streaming.write import deliver
from tests.spark.rounds.streams import started
from tests.spark.small import SMALL_JVM

MOMENTS = ("round", "stored", "written", "recorded")


def broken_at(moment: str, end: Callable[[], None], patch: Callable[[Any, str, Any], None]) -> None:
    """Let the next run end at a moment."""

    class Ground(SparkGround):
        def hands(self, worker: Worker) -> Hands:
            do, jobs = super().hands(worker), [0]

            def counted(tasks: Sequence[Task]) -> Sequence[Result]:
                jobs[0] += 1
                if worker.run.first > 0 and jobs[0] > 1:
                    end()
                return do(tasks)

            return counted

    class Ending(Records):
        def commit(self, record: Record) -> None:
            if record.batch == 1 and moment == "written":
                end()
            super().commit(record)
            if record.batch == 1:
                end()

    def ending(number: int, *given: Any) -> None:
        if number == 1:
            end()
        deliver(number, *given)

    names = {"round": ("SparkGround", Ground), "stored": ("deliver", ending)}
    patch(operator, *names.get(moment, ("Records", Ending)))


def die() -> None:
    os.killpg(os.getpgid(0), signal.SIGKILL)


if __name__ == "__main__":
    broken_at(sys.argv[2], die, setattr)
    session = local_session("local[2]", **SMALL_JVM)
    started(session, Path(sys.argv[1])).awaitTermination()
    print("survived")
