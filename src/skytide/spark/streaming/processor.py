"""A merge in Spark's state: one key per bucket of groups, a log of packed rows, and one timer at the next event.

Spark keeps the state; a worker that has the merge of a bucket in memory from the micro-batch before uses that, and
knows by a stamp in the state that it is the same one. State says what wrote it: a query that has been changed, and a
state of another version, are refused.
"""

from __future__ import annotations

import json
import uuid
from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from skytide.errors import SkytideError, StateError
from skytide.monitors.sliding.clock import HIGHEST
from skytide.spark.streaming.packing import one, packed, unpacked
from skytide.spark.streaming.query import Output, Query, State

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, StatefulProcessorHandle, TimerValues

VERSION = 1
"""Of what is stored. A change that cannot read what was stored before must raise it."""
MERGED = "packed BINARY, retained BIGINT, changes BIGINT, late BIGINT, bad BIGINT"
"""What a merge gives Spark: packed output rows, and what it holds and gives as numbers."""
_CACHED = 64

_META = "version INT, query STRING, closed BIGINT, first INT, next INT, timer BIGINT, stamp STRING"
_merges: OrderedDict[str, State] = OrderedDict()
"""The merges that this worker has in memory, by the stamp of the state that they equal."""


class Merging(StatefulProcessor):
    """Keeps the merge of each bucket; emits one packed row per bucket and micro-batch that has something to say."""

    def __init__(self, query: Query) -> None:
        self._query = query

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Name the state."""
        self._handle = handle
        self._meta = handle.getValueState("meta", _META)
        self._log = handle.getMapState("log", "number INT", "packed BINARY")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: TimerValues) -> Iterator[Row]:  # noqa: N802
        """Rows of a bucket: close what the watermark closes, then take them."""
        merge, meta = self._load()
        changes = merge.close(self._query.clock.closed_by(timerValues.getCurrentWatermarkInMs()))
        table = unpacked(bytes(row.packed) for row in rows)
        accepted, rejected = (None, None) if table is None else merge.take(table)
        self._store(merge, meta, accepted, timerValues)
        yield self._row(merge, changes, rejected)

    def handleExpiredTimer(  # noqa: N802
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[Row]:
        """A bucket without new rows whose next event has come."""
        merge, meta = self._load()
        meta["timer"] = -1
        changes = merge.close(self._query.clock.closed_by(timerValues.getCurrentWatermarkInMs()))
        self._store(merge, meta, None, timerValues)
        if len(changes):
            yield self._row(merge, changes)

    def close(self) -> None:
        """Nothing to give back."""

    # -- state ---------------------------------------------------------------------------------------------------------

    def _load(self) -> tuple[State, dict[str, Any]]:
        found = self._meta.get()
        if found is None:
            fingerprint = json.dumps(self._query.fingerprint, sort_keys=True)
            blank = {"version": VERSION, "query": fingerprint, "first": 0, "next": 0, "timer": -1, "stamp": ""}
            return self._query.state(), blank
        names = [field.split()[0] for field in _META.split(", ")]
        meta = dict(zip(names, found, strict=True))
        check_state(self._query, meta["version"], meta["query"])
        merge = _merges.pop(meta["stamp"], None)
        if merge is None:
            pieces = [self._log.getValue((number,)) for number in range(meta["first"], meta["next"])]
            merge = restored(self._query, meta["closed"], pieces)
        return merge, meta

    def _store(self, merge: State, meta: dict[str, Any], accepted: pa.Table | None, now: TimerValues) -> None:
        anew = merge.compacted()
        if anew is not None:
            for number in range(meta["first"], meta["next"]):
                self._log.removeKey((number,))
            meta["first"] = meta["next"]
        fresh = accepted if anew is None else anew
        for piece in packed(fresh) if fresh is not None else ():
            self._log.updateValue((meta["next"],), (piece,))
            meta["next"] += 1
        self._set_timer(merge, meta, now.getCurrentWatermarkInMs())
        meta |= {"closed": merge.closed, "stamp": uuid.uuid4().hex}
        self._meta.update(tuple(meta[field.split()[0]] for field in _META.split(", ")))
        _merges[meta["stamp"]] = merge
        while len(_merges) > _CACHED:
            _merges.popitem(last=False)

    def _set_timer(self, merge: State, meta: dict[str, Any], watermark: int) -> None:
        event = merge.next_event()
        wanted = -1 if event == HIGHEST else max(self._query.clock.tick_that_closes(event), watermark + 1)
        if wanted != meta["timer"]:
            if meta["timer"] >= 0:
                self._handle.deleteTimer(meta["timer"])
            if wanted >= 0:
                self._handle.registerTimer(wanted)
            meta["timer"] = wanted

    def _row(self, merge: State, *out: Output | None) -> Row:
        parts = [part for part in out if part is not None and len(part)]
        body = one(pa.concat_tables([output_table(part, self._query) for part in parts])) if parts else b""
        changes, late, bad = (sum(part.kinds.count(kind) for part in parts) for kind in ("change", "late", "bad"))
        return Row(packed=body, retained=len(merge), changes=changes, late=late, bad=bad)


def check_state(query: Query, version: int, stored: str) -> None:
    """Refuse state that this version or this query cannot go on from, with what is different."""
    if version != VERSION:
        raise StateError(
            f"is the version of the state in the checkpoint, and this one reads {VERSION}",
            value=version,
            remedy="go on with the Skytide that wrote it, or start anew with a new checkpoint",
        )
    before, now = (
        {"kind": "window"} | known for known in (json.loads(stored), json.loads(json.dumps(query.fingerprint)))
    )
    different = [name for name in {**now, **before} if before.get(name) != now.get(name)]
    if different:
        name = different[0]
        raise StateError(
            f"the checkpoint was made with {name} = {json.dumps(before.get(name))}, "
            f"and the query has {json.dumps(now.get(name))}",
            remedy="undo the change, or start anew with a new checkpoint",
        )


def restored(query: Query, closed: int, pieces: list[Any]) -> State:
    """A merge from the packed pieces of its log; an error where one is missing or damaged."""
    try:
        tables = [pa.ipc.open_stream(bytes(piece[0])).read_all() for piece in pieces]
        return query.restored(closed, tables)
    except SkytideError:
        raise
    except (pa.ArrowException, TypeError, LookupError, ValueError) as problem:
        raise StateError(
            f"the state in the checkpoint is damaged ({problem!r:.120})", remedy="start anew with a new checkpoint"
        ) from None


def output_table(output: Output, query: Query) -> pa.Table:
    """Output rows as the columns that leave: kind, time, change, then the row's own columns under their inner names."""
    changed = np.array(output.kinds, dtype=object) == "change"
    kind = query.time_type(output.rows.schema.field(query.time).type)
    if query.counted:
        times = pa.array(output.times, mask=~changed)
    else:
        numbers = query.clock.keys.times(output.times) if query.kind == "real" else output.times
        times = pa.array(numbers).cast(kind)
        if not changed.all():
            times = pc.if_else(pa.array(changed), times, output.rows.column(query.time).cast(kind))
    symbols = pa.array(np.where(output.signs > 0, "+", "-"), mask=~changed)
    columns = {"kind": pa.array(output.kinds, pa.string()), "time": times, "change": symbols}
    if query.thresholds:
        places = np.where(changed, np.abs(output.signs) - 1, 0)
        columns["threshold"] = pa.array(np.array(query.thresholds)[places], mask=~changed)
    own = {name: output.rows.column(name) for name in query.columns}
    own |= {name: own[name].cast(pa.float64(), safe=False) for name in query.recast}
    return pa.table({**columns, **own})
