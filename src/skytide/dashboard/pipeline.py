"""Follows a Spark pipeline: the files of its sink, or its live feed, and what its run reports in the checkpoint.

Nothing is asked of Spark: the follower may be in another process, or on another machine that sees the folders. Changes
carry the values of their rows. A micro-batch that is taken back and written again is shown once.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, Self

import pyarrow as pa
from pyarrow import json

from skytide.dashboard.board import Board
from skytide.dashboard.following import Follower
from skytide.dashboard.shown import Shown
from skytide.errors import InputError, OutputError, PreferenceError, StateError
from skytide.spark.pipeline.about import About
from skytide.spark.pipeline.document import Document, is_local
from skytide.spark.pipeline.plan import OUR_SINKS, Pipeline, Target
from skytide.spark.pipeline.reports import Report, read_report
from skytide.spark.rounds.known import known_rows, last_record
from skytide.spark.sinks.feed import Event, Feed
from skytide.spark.sinks.tail import FORMATS, Tail, answer_after, with_times
from skytide.streams.files import read_chunks

_SUFFIXES = {"parquet": ".parquet", "csv": ".csv", "json": ".json", "jsonl": ".json"}
_DONE = "_SUCCESS"


class Reader(Protocol):
    """Gives what is new in a folder."""

    def read(self) -> list[Event]:
        """What came since the last call."""
        ...


def board_of(about: About, *, keyed: bool) -> Board:
    """An empty board for what a pipeline is about."""
    return Board(
        about.preference,
        title=about.title,
        kind=about.kind,
        parameters=about.parameters,
        thresholds=about.thresholds,
        extra=about.extra,
        keyed_by=about.by if keyed else (),
    )


class PipelineFollower(Follower):
    """Feeds a board from where a pipeline's results go."""

    def __init__(self, pipeline: Pipeline, *, fresh: bool = False) -> None:
        self.about = About.of(pipeline)
        if pipeline.kind.rounds:  # changes of rounds have no columns of their rows
            self.about = replace(self.about, extra=())
        super().__init__(board_of(self.about, keyed=not pipeline.kind.rounds))
        self._shown = Shown(self.board, self.about if not pipeline.kind.rounds else replace(self.about, by=()))
        self._reader = reader_of(pipeline, self._shown.keys[1:])
        self._checkpoint = pipeline.run.checkpoint if pipeline.source.stream and pipeline.run.remote is None else None
        self._since = time.time() if fresh else 0.0
        self._reported = 0
        self._rounds = Told(pipeline, self.about) if pipeline.kind.rounds and self._checkpoint else None

    @classmethod
    def of(cls, path: str | Path, *, fresh: bool = False) -> Self:
        """The follower of a pipeline file; an error where there is nothing in its sink that can be followed.

        With `fresh` what an earlier run said of its end does not count: a new one is about to begin.
        """
        return cls(Pipeline.of(Document.read(path)), fresh=fresh)

    def look(self) -> bool:
        """Take micro-batches that are new; where there are none, see whether the run goes on."""
        # What a report tells of is in the sink by then.
        report = read_report(self._checkpoint)
        if report is not None and report.began < self._since:
            report = None
        events = self._reader.read()
        for event in events:
            self._take(event)
        if report is not None:
            self._meters(report)
        if self._rounds is not None:
            self._rounds.show(self.board)
        if events:
            self.go_on()
        else:
            self._say(report)
        return bool(events)

    def passed(self, rows: pa.Table) -> None:
        """Rows of the source, for those who have them: what is outside of the answer is shown, too, and explained."""
        self._shown.passed(rows)

    def _take(self, event: Event) -> None:
        if event.kind == "answer":
            self._shown.answer(event.rows)
        else:
            self._shown.changes(event.rows)

    def _say(self, report: Report | None) -> None:
        if isinstance(self._reader, Whole) and self._reader.done:
            self.end()
        elif report is None or (report.status == "running" and report.alive):
            self.go_on()
        elif report.status == "running":
            self.lose(f"the run is gone without a word (process {report.process})")
        else:
            self.end(report.reason)

    def _meters(self, report: Report) -> None:
        if not report.batches or report.batches[-1]["batch"] == self._reported - 1:
            return
        last = report.batches[-1]
        self._reported = int(last["batch"]) + 1
        numbers = dict(report.totals) | {"batches": last["batch"] + 1, "latency": last["seconds"]}
        numbers.pop("changes", None)  # the board counts those it shows
        numbers |= {name: last[name] for name in ("retained", "lag") if name in last}
        self.board.meter(**numbers)


class Told:
    """What the driver of rounds was told: values, which its changes do not have, and how much that was."""

    def __init__(self, pipeline: Pipeline, about: About) -> None:
        self._checkpoint, self._query, self._about = str(pipeline.run.checkpoint), pipeline.query, about
        self._batch = -1

    def show(self, board: Board) -> None:
        """Show what is known after the last micro-batch, if that is a new one. O(clients)."""
        try:
            record = last_record(self._checkpoint)
        except (StateError, OutputError):
            return  # not of this version, or being written: the answer is shown without
        if record is None or record.batch == self._batch:
            return
        self._batch = record.batch
        with contextlib.suppress(ModuleNotFoundError):  # of fragments they are not known without pyspark
            rows = known_rows(record, self._about.preference, self._query)
            if rows is not None and rows.num_rows:
                board.see(rows, rows.column("id"))
        total = record.total
        kinds = [dict(zip(("way", "kind"), name.split(".", 1), strict=True)) for name in record.messages]
        board.ledger(
            {
                "messages": total.reached + total.sent,
                "naive_messages": total.rows,
                "bytes": total.reached_bytes + total.sent_bytes,
                "naive_bytes": total.row_bytes,
                "kinds": [
                    {**kind, "messages": count, "bytes": None}
                    for kind, count in zip(kinds, record.messages.values(), strict=True)
                ],
            }
        )


class FeedFollower(Follower):
    """Feeds a board from a live feed, whose folder is all that is known."""

    def __init__(self, path: str, about: About) -> None:
        super().__init__(board_of(about, keyed=True))
        self.about, self._reader = about, Live(path, about)
        self._shown = Shown(self.board, about)

    @classmethod
    def of(
        cls, path: str, *, minimize: Sequence[str] = (), maximize: Sequence[str] = (), by: Sequence[str] = ()
    ) -> Self:
        """The follower of a folder; columns are asked for where the feed does not say what it is of."""
        said = Feed(path).about()
        if said is not None:
            return cls(path, About.from_json(said))
        if not minimize and not maximize:
            raise PreferenceError(
                "the feed does not say what is minimised and maximised", remedy="name columns with --min and --max"
            )
        return cls(path, About(Path(path).name, "window", tuple(minimize), tuple(maximize), tuple(by)))

    def look(self) -> bool:
        """Take micro-batches that are new."""
        events = self._reader.read()
        for event in events:
            (self._shown.answer if event.kind == "answer" else self._shown.changes)(event.rows)
        self.go_on()
        return bool(events)


# -- readers -----------------------------------------------------------------------------------------------------------


def reader_of(pipeline: Pipeline, by: Sequence[str]) -> Reader:
    """What reads the results of a pipeline, or the complaint that says what can be followed."""
    sink, feed = pipeline.sink, pipeline.feed
    place = sink.path or sink.options.get("path")
    if not pipeline.source.stream:
        return _batch_reader(pipeline, place, tuple(by))
    if sink.format in FORMATS and place is not None:
        return Tail(place, sink.format, tuple(by))
    if sink.format == "feed" and place is not None:
        return Live(place, About.of(pipeline))
    if feed is not None and feed.path is not None:
        return Live(feed.path, About.of(pipeline))
    remedy = 'add feed = "feed/" to [sink]: a live feed beside it'
    if sink.format not in OUR_SINKS:
        remedy = f'use {", ".join(FORMATS)} or feed; or console or kafka with feed = "feed/" beside it'
    raise pipeline.document.problem(
        ("sink", "format"), "cannot be followed by a page", value=sink.format, remedy=remedy
    )


def _batch_reader(pipeline: Pipeline, place: str | None, by: tuple[str, ...]) -> Reader:
    sink: Target = pipeline.sink
    feed = place if sink.format == "feed" else None if pipeline.feed is None else pipeline.feed.path
    headless = sink.format == "csv" and sink.options.get("header") != "true"
    if place is not None and is_local(place) and sink.format in _SUFFIXES and not headless:
        return Whole(Path(place), _SUFFIXES[sink.format], pipeline.kind.changes, by)
    if feed is not None:
        return Live(feed, About.of(pipeline))
    reason = "a page cannot read the results of this batch job"
    remedy = "write parquet or jsonl, or csv with options.header = true, into a folder of this machine"
    raise pipeline.document.problem(("sink", "format"), reason, value=sink.format, remedy=remedy)


@dataclass
class Live:
    """Reads a live feed from micro-batch to micro-batch."""

    path: str
    about: About
    _after: int | None = None

    def read(self) -> list[Event]:
        """What is new."""
        by = tuple(map(self.about.column, self.about.by)) + (("threshold",) if self.about.thresholds else ())
        events = Feed(self.path, by or None).read(self._after)
        if events:
            self._after = events[-1].batch
        return events


@dataclass
class Whole:
    """Reads what a batch job wrote, when it is all there: the changes, or the rows that are the answer."""

    path: Path
    suffix: str
    changes: bool
    by: tuple[str, ...] = ()
    done: bool = field(default=False, init=False)
    _read: object = field(default=None, init=False)

    def read(self) -> list[Event]:
        """Everything, once it is there; again where a later job has replaced it."""
        mark = self.path / _DONE
        try:
            written = mark.stat().st_mtime_ns
        except OSError:
            return []
        if written == self._read:
            self.done = True
            return []
        files = sorted(one for one in self.path.iterdir() if one.suffix == self.suffix and not one.name.startswith("."))
        tables = [self._table(one) for one in files]
        tables = [one for one in tables if one.num_rows]
        again, self._read, self.done = self._read is not None, written, False
        if self.changes and again:
            return [Event("answer", 0, answer_after(tables, self.by), behind=True)]
        if not tables:
            return []
        rows = pa.concat_tables(tables, promote_options="permissive")
        if self.changes:
            return [Event("changes", 0, rows)]
        rows = (
            rows.append_column("id", pa.array(map(str, range(1, rows.num_rows + 1))))
            if "id" not in rows.column_names
            else rows
        )
        return [Event("answer", 0, rows.append_column("time", pa.array([0] * rows.num_rows)))]

    def _table(self, file: Path) -> pa.Table:
        try:
            if file.stat().st_size == 0:
                return pa.table({})
            table = json.read_json(file) if self.suffix == ".json" else pa.concat_tables(read_chunks(str(file)))
            return with_times(table, file) if self.changes else table
        except (OSError, pa.ArrowException) as problem:
            said = " ".join(str(problem).split())[:200]
            raise InputError(f"cannot be read: {said}", file=str(file), remedy="see that the job wrote it") from None
