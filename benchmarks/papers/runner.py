"""Runs tasks on Spark: each is one row of a job, so that a cluster shortens a sweep, and Spark Connect is enough.

A job holds one task, or many where they are tiny; as many jobs run at once as there are places. What a task measures it
measures in one thread. A task that fails tells its error, and the others go on. Each outcome is a file of its own, at
once, and a task whose file is there is not run again.
"""

from __future__ import annotations

import atexit
import hashlib
import io
import json
import re
import shutil
import tempfile
import time
import traceback
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import benchmarks
from benchmarks import machine
from benchmarks.papers.registry import Place, Task

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Outcome = dict[str, Any]
TOLD = ("moocore", "pyspark", "pyarrow")
_SENT = "spark.skytide.benchmarks"


def measured(task: Task, place: Place) -> Outcome:
    """Run a task here: its rows, or its error, the seconds and the machine."""
    start = time.perf_counter()
    found: Outcome = {"experiment": task.experiment, "parameters": task.parameters, "rows": [], "error": None}
    try:
        found["rows"] = task.run(place)
    except Exception as problem:
        # Whatever goes wrong in one task is told, and is no reason to lose the others.
        found["error"] = f"{type(problem).__name__}: {problem}"
        found["trace"] = traceback.format_exc(limit=-4)
    found["seconds"] = round(time.perf_counter() - start, 3)
    found["machine"] = machine.describe(*TOLD)
    found["busy"] = round(machine.busy(), 2)
    return found


def run_all(
    spark: SparkSession,
    tasks: list[Task],
    place: Place,
    *,
    jobs: int,
    together: int,
    ended: Callable[[Task, Outcome], None],
) -> None:
    """Run the tasks, so many to a job and so many jobs at once; `ended` is told of each outcome as it comes."""
    send(spark)
    pieces = [tasks[first : first + together] for first in range(0, len(tasks), together)]
    pool = ThreadPoolExecutor(max(1, jobs))
    try:
        waiting = {pool.submit(_job, spark, piece, place): piece for piece in pieces}
        for future in as_completed(waiting):
            problem = future.exception()
            piece = waiting[future]
            outcomes = [_lost(task, problem) for task in piece] if problem else future.result()
            for task, outcome in zip(piece, outcomes, strict=True):
                ended(task, outcome)
    finally:
        pool.shutdown(cancel_futures=True)


def _lost(task: Task, problem: BaseException) -> Outcome:
    """The outcome of a task whose job failed as a whole: a worker that died, a cluster that is gone."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    # The line that says why is deep in what Spark prints.
    causes = [line for line in lines if re.match(r"Caused by: |(\w+\.)*\w+(Error|Exception): ", line)]
    reason = (causes or lines or [type(problem).__name__])[-1]
    return {"experiment": task.experiment, "parameters": task.parameters, "rows": [], "error": reason, "seconds": 0.0}


def _job(spark: SparkSession, tasks: list[Task], place: Place) -> list[Outcome]:
    """The outcomes of the tasks, in their order."""
    rows = [(at, json.dumps([task.experiment, task.parameters])) for at, task in enumerate(tasks)]
    frame = spark.createDataFrame(rows, "place INT, task STRING").coalesce(1)
    data = None if place.data is None else str(place.data)

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        there = Place(None if data is None else Path(data))
        for batch in batches:
            for row in batch.to_pylist():
                outcome = json.dumps(measured(Task(*json.loads(row["task"])), there))
                yield pa.RecordBatch.from_pydict({"place": pa.array([row["place"]], pa.int32()), "outcome": [outcome]})

    found = frame.mapInArrow(work, "place INT, outcome STRING").collect()
    return [json.loads(row["outcome"]) for row in sorted(found, key=lambda row: int(row["place"]))]


def send(spark: SparkSession) -> None:
    """Send the benchmarks to whoever runs tasks: they are not part of the package."""
    root = Path(next(iter(benchmarks.__path__)))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for path in sorted(root.rglob("*.py")):
            file.writestr(zipfile.ZipInfo(f"benchmarks/{path.relative_to(root).as_posix()}"), path.read_bytes())
    name = f"benchmarks-{hashlib.sha256(buffer.getvalue()).hexdigest()[:12]}.zip"
    if spark.conf.get(_SENT, None) != name:
        archive = _folder() / name
        archive.write_bytes(buffer.getvalue())
        spark.addArtifacts(str(archive), pyfile=True)
        spark.conf.set(_SENT, name)


@cache
def _folder() -> Path:
    """A folder as long as this process is: Spark fetches what is sent when a task first needs it."""
    folder = Path(tempfile.mkdtemp(prefix="skytide-benchmarks-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


class Kept:
    """The outcomes of a folder that this code had, one file each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "tasks" / machine.code()
        self._folder.mkdir(parents=True, exist_ok=True)

    def get(self, task: Task) -> Outcome | None:
        """What is known of a task that ended well, with the right answers."""
        path = self._path(task)
        if not path.exists():
            return None
        found: Outcome = json.loads(path.read_text(encoding="utf-8"))
        return None if found["error"] or not all(row["equal"] for row in found["rows"]) else found

    def put(self, task: Task, outcome: Outcome) -> None:
        """Keep an outcome; whole or not at all."""
        path = self._path(task)
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(outcome, indent=1), encoding="utf-8")
        fresh.replace(path)

    def _path(self, task: Task) -> Path:
        paper = task.experiment.split(".")[2]
        return self._folder / f"{paper}-{task.experiment.rpartition(':')[2]}-{task.key}.json"
