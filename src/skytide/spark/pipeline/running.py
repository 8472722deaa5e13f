"""Runs a pipeline: session, rows, query, sink; says how it goes, and stops when it is told to."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skytide.errors import SkytideError
from skytide.spark.faults import need_pyspark
from skytide.spark.pipeline.faults import failures
from skytide.spark.pipeline.kinds import Context
from skytide.spark.pipeline.plan import OUR_SINKS, Pipeline
from skytide.spark.pipeline.progress import INPUT, Tally
from skytide.spark.pipeline.quiet import quiet_loggers, stopping
from skytide.spark.pipeline.reading import read
from skytide.spark.pipeline.reports import Reports
from skytide.spark.pipeline.session import start
from skytide.spark.pipeline.stopping import Signals, Stopped
from skytide.spark.pipeline.writing import start_stream, write_changes, write_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from skytide.spark.rounds.operator import Rounds
    from skytide.spark.rounds.traffic import Traffic

POLL_SECONDS = 0.2
Say = Callable[[str], None]


def run(pipeline: Pipeline, say: Say, *, enough: Callable[[], bool] = lambda: False) -> int:
    """Run a pipeline to its end, or until a signal; the exit status. `say` gets each line of progress.

    A stream without an end also stops when it is `enough`, which is asked some times a second, after a micro-batch.
    0: all is done. 130 and 143: stopped by SIGINT or SIGTERM, with the checkpoint as after a finished micro-batch. A
    SkytideError says what is wrong with the file or the data, a RunFailedError why the job failed.
    """
    need_pyspark()
    with quiet_loggers(), Signals() as signals:
        try:
            with failures():
                spark, started = start(pipeline.run)
            try:
                signals.take()
                with failures():
                    return _job(spark, pipeline, signals, say, enough)
            finally:
                # A second signal now would leave a JVM behind.
                signals.patient, signals.received, signals.urgent = True, None, False
                if started:
                    with contextlib.suppress(Exception):
                        spark.stop()
        except Stopped as stopped:
            say("stopped")
            return stopped.status


def _job(spark: SparkSession, pipeline: Pipeline, signals: Signals, say: Say, enough: Callable[[], bool]) -> int:
    began = time.monotonic()
    rows = read(spark, pipeline)
    if not pipeline.source.stream:
        line = _batch(rows, pipeline)
        say(f"{line} in {time.monotonic() - began:.1f} s; {', '.join(places(pipeline))}")
        return 0
    answer = _built(_watched(rows, pipeline), pipeline)
    counted = pipeline.run.remote is None or pipeline.sink.format not in OUR_SINKS
    tally = Tally(counted, _traffic(pipeline) if pipeline.kind.rounds else None)
    query = start_stream(answer, pipeline)
    with Reports(pipeline.run.checkpoint if pipeline.run.remote is None else None).kept() as reports:
        status = _Following(query, tally, signals, say, reports).until(enough)
        reports.put("ended", "" if status == 0 else "stopped")
    say(tally.summary(time.monotonic() - began, places(pipeline)))
    return status


def _built(rows: DataFrame, pipeline: Pipeline) -> DataFrame | Rounds:
    """The answer, or the complaint at the key that names the column which is at fault."""
    context = Context(pipeline.run.checkpoint if pipeline.source.stream else None)
    try:
        return pipeline.kind.build(rows, pipeline.query, context)
    except SkytideError as problem:
        raise pipeline.document.about(pipeline.way_to(problem.column), problem) from None


def _batch(rows: DataFrame, pipeline: Pipeline) -> str:
    from pyspark.sql import Observation
    from pyspark.sql import functions as F  # noqa: N812

    from skytide.spark.rounds.operator import Rounds

    seen, out = Observation(), Observation()
    answer = _built(rows.observe(seen, F.count(F.lit(1)).alias("rows")), pipeline)
    if pipeline.kind.changes:
        found = write_changes(answer, pipeline)
        return ", ".join([f"{seen.get['rows']} rows in", *found])
    if isinstance(answer, Rounds):
        raise AssertionError("rounds give changes")
    write_rows(answer.observe(out, F.count(F.lit(1)).alias("rows")), pipeline)
    return f"{seen.get['rows']} rows in, {out.get['rows']} rows out"


def _traffic(pipeline: Pipeline) -> Callable[[int], Traffic | None]:
    """What a micro-batch of rounds sent to the driver, as its record says where this machine can read it."""
    from skytide.spark.rounds.known import last_record

    def of(number: int) -> Traffic | None:
        with contextlib.suppress(SkytideError, OSError):
            record = last_record(str(pipeline.run.checkpoint))
            return None if record is None else record.recent.get(number)
        return None

    return of


def _watched(rows: DataFrame, pipeline: Pipeline) -> DataFrame:
    """The rows, observed for the time of the latest of them, where it is a time of day."""
    from pyspark.sql import functions as F  # noqa: N812

    name = pipeline.query.get("time")
    if name is None or not rows.schema[name].dataType.simpleString().startswith("timestamp"):
        return rows
    return rows.observe(INPUT, F.max(rows[f"`{name}`"]).cast("string").alias("latest"))


@dataclass
class _Following:
    """Reports micro-batches while a query lasts."""

    query: StreamingQuery
    tally: Tally
    signals: Signals
    say: Say
    reports: Reports

    def until(self, enough: Callable[[], bool]) -> int:
        """Until the query ends by itself, or a signal has come, or it is enough, and the one under way is done."""
        self.signals.patient = True
        ended = False
        waiting_since: int | None = None
        try:
            while not ended:
                ended = bool(self.query.awaitTermination(POLL_SECONDS))  # type: ignore[arg-type]
                self._report()
                told = self.signals.received is not None
                if ended or not (told or waiting_since is not None or enough()):
                    continue
                if waiting_since is None:
                    waiting_since = self.tally.batches
                    if told:
                        self.say("stopping after this micro-batch; the same signal again stops at once")
                done = self.tally.batches > waiting_since or not self.query.status["isTriggerActive"]
                if done or self.signals.urgent:
                    break
        except Stopped:
            pass
        finally:
            if not ended:
                _stop(self.query)
        self._report()
        return 0 if self.signals.received is None else Stopped(self.signals.received).status

    def _report(self) -> None:
        before = self.tally.batches
        for report in self.query.recentProgress:
            line = self.tally.add(_plain(report))
            if line is not None:
                self.reports.add(self.tally.latest)
                self.say(line)
        if self.tally.batches > before:
            self.reports.put()


def _stop(query: StreamingQuery) -> None:
    stopping.set()
    with contextlib.suppress(Exception):
        query.stop()


def _plain(report: Any) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(report.json)
    return plain


def places(pipeline: Pipeline) -> list[str]:
    """Where the results lie."""
    named = [("results" if not pipeline.kind.changes else "changes", pipeline.sink)]
    named += [
        (name, target)
        for name, target in (
            ("dead letters", pipeline.dead_letters),
            ("current", pipeline.current),
            ("feed", pipeline.feed),
        )
        if target
    ]
    return [f"{name}: {target.label}" for name, target in named]
