"""Where the rows lie: drop those that can never be in the answer nor decide about another row.

In one part of the rows, let s(r) be the latest expiry among rows that dominate r and are not newer, and b(r) the
earliest arrival among rows that dominate r and are not older. A row with b(r) <= s(r) is never in the answer, and
whatever it dominates is dominated by others at all times. That is what Eager finds: run it over the part in the order
of time, and keep the rows that entered its skyline or are retained at the end. Any subset of the rows is a part, so a
task works in chunks and prunes what is left of them once more at the end.

Rows that are too late must not take part: they will be turned away, and what they dominate must not be missing then.
So a task needs the watermark of its micro-batch (`watermark.py`); where it cannot have it, it passes all rows on.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from skytide.model import Booleans, Floats, Integers
from skytide.monitors.sliding.choice import maker
from skytide.monitors.sliding.clock import LOWEST
from skytide.monitors.sliding.engine import Engine, Rows
from skytide.monitors.sliding.groups import Groups
from skytide.monitors.sliding.waiting import Arrivals
from skytide.spark.streaming.packing import packed
from skytide.spark.streaming.query import BUCKET, Query, WindowQuery

CHUNK_ROWS = 1 << 17
CHUNK_BYTES = 64 << 20
"""A task compares so many rows at a time, or as many as take so much memory."""

PACKED = "bucket INT, packed BINARY, input BIGINT, sent BIGINT, tick TIMESTAMP"
"""What a task gives Spark: packed rows for a share of the groups, how many rows it has read and sent, and its tick."""


def _by_bucket(table: pa.Table | None, read: int = 0, tick: int = 0) -> Iterator[pa.RecordBatch]:
    if table is None or not table.num_rows:
        if read:
            yield packed_row(0, b"", read, 0, tick)  # the numbers must not be lost
        return
    grouped = BUCKET in table.column_names
    buckets = table.column(BUCKET).to_numpy() if grouped else np.zeros(1, np.int32)
    table = table.drop_columns([BUCKET]) if grouped else table
    several = len(buckets) and (buckets != buckets[0]).any()
    for bucket in np.unique(buckets).tolist():
        mine = table.filter(pa.array(buckets == bucket)) if several else table
        left = mine.num_rows
        for piece in packed(mine):
            yield packed_row(bucket, piece, read, left, tick)
            read = left = 0


def packed_row(bucket: int, piece: bytes | None, read: int, sent: int, tick: int) -> pa.RecordBatch:
    """One row of what a task gives Spark; a tick is in milliseconds."""
    columns = [
        pa.array([bucket], pa.int32()),
        pa.array([piece], pa.binary()),
        pa.array([read], pa.int64()),
        pa.array([sent], pa.int64()),
        pa.array([tick * 1000], pa.int64()).cast(pa.timestamp("us", "UTC")),
    ]
    return pa.RecordBatch.from_arrays(columns, ["bucket", "packed", "input", "sent", "tick"])


def run_of(query: Query) -> _Run | _UncertainRun:
    """What compares the rows of a query that come in the order of time."""
    assert isinstance(query, WindowQuery), "rows of other queries are not compared where they lie"
    return _Run(query) if query.probability is None else _UncertainRun(query)


class Pruning:
    """The rows of one task: packs those that matter, by bucket.

    `closed` is the last closed instant, whose rows and older ones are too late; without it all rows are passed on. A
    task holds a chunk of rows and the survivors so far.
    """

    def __init__(self, query: Query, closed: int | None) -> None:
        self._query = query
        self._closed = closed
        self._run = None if closed is None else run_of(query)
        self._done: list[pa.Table | None] = []
        self.latest = LOWEST
        """The latest instant among the rows that can be used."""

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read the rows of the task, and give what is to be sent."""
        pending: list[pa.RecordBatch] = []
        rows = size = total = 0
        for batch in batches:
            pending.append(batch)
            rows += batch.num_rows
            size += batch.nbytes
            if rows >= CHUNK_ROWS or size >= CHUNK_BYTES:
                total += rows
                yield from _by_bucket(self._take(pa.Table.from_batches(pending)))
                pending, rows, size = [], 0, 0
        if pending:
            total += rows
            yield from _by_bucket(self._take(pa.Table.from_batches(pending)))
        tick = 0 if self.latest == LOWEST else self._query.clock.tick(self.latest)
        yield from _by_bucket(self._finish(), total, tick)

    def _take(self, table: pa.Table) -> pa.Table | None:
        """Take a chunk of rows; those that pass untouched come back: bad ones, late ones, or all."""
        read = self._query.read(table)
        self.latest = max(self.latest, int(read.keys.max(initial=LOWEST)))
        if self._closed is None or self._run is None:
            return table
        timely = read.keys > self._closed
        if timely.all() and read.good.all():
            aside, rest, values, keys = None, table, read.values, read.keys
        else:
            mask = read.good.copy()
            mask[read.good] = timely
            aside, rest = table.filter(pa.array(~mask)), table.filter(pa.array(mask))
            values, keys = read.values[timely], read.keys[timely]
        if len(keys):
            if not (keys[1:] >= keys[:-1]).all():
                order = np.argsort(keys, kind="stable")
                rest, values, keys = rest.take(pa.array(order)), values[order], keys[order]
            if keys[0] <= self._run.now:
                self._done.append(self._run.survivors())
                self._run = run_of(self._query)
            self._run.take(rest, values, keys)
        return aside

    def _finish(self) -> pa.Table | None:
        """What is left of all rows taken."""
        if self._run is None:
            return None
        left, certain = self._run.survivors(), isinstance(self._run, _Run)
        if not self._done and certain:
            return left
        tables = [table for table in (*self._done, left) if table is not None]
        self._done = []
        if len(tables) < 2 and certain:
            return tables[0] if tables else None
        if not tables:
            return None
        table = pa.concat_tables(tables).combine_chunks()
        read = self._query.read(table)
        order = np.argsort(read.keys, kind="stable")
        again = run_of(self._query)
        again.take(table.take(pa.array(order)), read.values[order], read.keys[order])
        return again.survivors()


class _UncertainRun:
    """Uncertain rows that come in the order of time: pieces of less than a window's length, each by itself."""

    def __init__(self, query: WindowQuery) -> None:
        self._query = query
        self._kept: list[pa.Table] = []
        self.now = LOWEST

    def take(self, table: pa.Table, values: Floats, keys: Integers) -> None:
        """Take rows in order, all later than those before; keep those that may matter."""
        from skytide.monitors.uncertain.part import survivors

        self.now = int(keys[-1])
        codes = Groups(tuple(self._query.preference.by)).of(table)
        matters = np.zeros(len(keys), dtype=bool)
        places = np.arange(len(keys), dtype=np.int64)
        threshold = self._query.thresholds[-1]
        for _, mine in Arrivals(values, codes, places, keys).by_group():
            expiries = self._query.clock.keys.expiries(mine.keys)
            start = 0
            while start < len(mine.keys):
                stop = max(start + 1, int(np.searchsorted(mine.keys, expiries[start], side="left")))
                piece = np.ascontiguousarray(mine.values[start:stop, :-1])
                kept = survivors(piece, np.ascontiguousarray(mine.values[start:stop, -1]), threshold)
                matters[mine.handles[start:stop][kept]] = True
                start = stop
        self._kept.append(table.filter(pa.array(matters)))

    def survivors(self) -> pa.Table | None:
        """The rows that may matter."""
        return pa.concat_tables(self._kept).combine_chunks() if self._kept else None


class _Run:
    """Eager over rows that come in the order of time, one engine per group."""

    def __init__(self, query: WindowQuery) -> None:
        self._query = query
        self._make = maker("auto", "auto", query.preference.dimensions)
        self._groups = Groups(tuple(query.preference.by))
        self._engines: dict[int, Engine] = {}
        self._tables: list[pa.Table] = []
        self._handles: list[Integers] = []
        self._entered: list[Integers] = []
        self._next = 0
        self.now = LOWEST

    def take(self, table: pa.Table, values: Floats, keys: Integers) -> None:
        """Take rows in order, all later than those before; remember the columns of those that may matter."""
        first, self._next = self._next, self._next + len(keys)
        handles = np.arange(first, self._next, dtype=np.int64)
        codes = self._groups.of(table)
        expiries = self._query.clock.keys.expiries(keys)
        self.now = int(keys[-1])
        matters = np.zeros(len(keys), dtype=bool)
        for code, mine in Arrivals(values, codes, handles, keys).by_group():
            engine = self._engines.get(code)
            if engine is None:
                engine = self._engines[code] = self._make()
            moves = engine.run(Rows(mine.values, mine.keys, expiries[mine.handles - first], mine.handles), self.now)
            entered = moves.handles[moves.signs > 0]
            self._entered.append(entered)
            for found in (entered, engine.retained().handles):
                matters[found[found >= first] - first] = True
        self._tables.append(table.filter(pa.array(matters)))
        self._handles.append(handles[matters])

    def survivors(self) -> pa.Table | None:
        """The rows that entered the skyline of the run or are retained at its end."""
        if not self._tables:
            return None
        table, handles = pa.concat_tables(self._tables), np.concatenate(self._handles)
        found = np.zeros(self._next, dtype=bool)
        for entered in self._entered:
            found[entered] = True
        for engine in self._engines.values():
            found[engine.retained().handles] = True
        mask: Booleans = found[handles]
        return (table if mask.all() else table.filter(pa.array(mask))).combine_chunks()
