"""A merge of updates as a log of tables, and back.

A compacted log begins with the objects: the last row of each with its number, whether it is there, its values; and in
one row of each group, where snapshots are counted, what the group's `Frequent` holds. The other rows are updates: those
whose instant is closed have been applied since, and are applied again when the log is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from skytide.model import Integers
from skytide.monitors.frequent.frequent import Frequent
from skytide.spark.streaming.snapshots.merge import UpdateMerge
from skytide.spark.streaming.snapshots.query import UpdateQuery

NUMBER, PRESENT, VALUES, COUNTS = "number", "present", "values", "counts"


def compacted(merge: UpdateMerge) -> pa.Table | None:
    """The log anew, if that is much shorter; objects that no longer matter are forgotten then."""
    known = np.flatnonzero(merge.last >= 0)
    held = merge.objects.present[known]
    held[~held] = merge.counted(known[~held])
    kept, gone = known[held], known[~held]
    waiting = merge.waiting.all()
    needed = np.unique(np.concatenate((merge.last[kept], waiting.handles)))
    merge.worth = 2 * len(needed) + merge.few + (0 if merge.counts is None else merge.counts.queued)
    if merge.log is None or len(merge.handles) <= merge.worth:
        return None
    merge.last[gone] = -1
    merge.log = merge.rows(needed).combine_chunks()
    merge.handles = needed
    queued = np.unique(waiting.codes >> 2)
    merge.identities.forget(np.setdiff1d(gone, queued).tolist())
    used = {*merge.identities.groups[kept].tolist(), *merge.identities.groups[queued].tolist()}
    for code in [code for code in merge.groups.keys if code not in used]:
        merge.groups.forget(code)
    return _with_objects(merge, kept)


def _with_objects(merge: UpdateMerge, kept: Integers) -> pa.Table:
    """The log with the columns that say what the objects are."""
    assert merge.log is not None
    kept = kept[np.argsort(merge.last[kept])]
    places = np.searchsorted(merge.handles, merge.last[kept])
    n, d = len(merge.handles), merge.query.preference.dimensions
    numbers, present, values = np.full(n, -1, np.int64), np.zeros(n, bool), np.full((n, d), np.nan)
    numbers[places], present[places] = kept, merge.objects.present[kept]
    values[places] = merge.objects.values[kept]
    counts: list[bytes | None] = [None] * n
    if merge.counts is not None:
        codes = merge.identities.groups[kept]
        groups, first = np.unique(codes, return_index=True)
        # A group without objects that count has nothing to remember.
        merge.counts.groups = {code: merge.counts.groups[code] for code in groups.tolist()}
        for code, carrier in zip(groups.tolist(), places[first].tolist(), strict=True):
            counts[carrier] = merge.counts.groups[code].to_bytes()
    columns = {
        NUMBER: pa.array(numbers, mask=numbers < 0),
        PRESENT: pa.array(present),
        VALUES: pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), d),
        COUNTS: pa.array(counts, pa.binary()),
    }
    # Own columns have names of their own kind, so these do not clash.
    return pa.table({**{name: merge.log.column(name) for name in merge.query.columns}, **columns})


def restored(query: UpdateQuery, closed: int, stored: Sequence[pa.Table]) -> UpdateMerge:
    """The merge whose log was stored in these pieces."""
    merge = UpdateMerge(query)
    tables = [table for table in stored if table.num_rows]
    if tables:
        log = pa.concat_tables(tables, promote_options="default").combine_chunks()
        objects = np.zeros(log.num_rows, bool)
        if NUMBER in log.column_names:
            objects = log.column(NUMBER).is_valid().to_numpy()
            _restore_objects(merge, log.filter(pa.array(objects)))
        updates = log.filter(pa.array(~objects)).select(query.columns)
        read = query.read(updates)
        merge.append(updates, read.values, read.keys)
    merge.close(closed)
    merge.closed = closed
    return merge


def _restore_objects(merge: UpdateMerge, table: pa.Table) -> None:
    """Start afresh with objects, without telling changes."""
    rows = table.select(merge.query.columns).combine_chunks()
    numbers = table.column(NUMBER).to_numpy()
    codes = merge.groups.of(rows)
    merge.identities.restore(numbers.tolist(), codes.tolist(), rows.column(merge.query.id).to_pylist())
    merge.log, merge.handles = rows, np.arange(rows.num_rows, dtype=np.int64)
    merge.reserve()
    merge.last[numbers] = merge.handles
    room, d = len(merge.objects.present), merge.query.preference.dimensions
    values, present, home = np.zeros((room, d)), np.zeros(room, bool), np.full(room, -1, np.int64)
    held = table.column(PRESENT).to_numpy()
    values[numbers] = table.column(VALUES).combine_chunks().flatten().to_numpy().reshape(-1, d)
    present[numbers] = held
    home[numbers[held]] = codes[held]
    merge.objects.fill(values, present, home)
    if merge.counts is not None:
        blobs = table.column(COUNTS).to_pylist()
        for code, blob in zip(codes.tolist(), blobs, strict=True):
            if blob is not None:
                merge.counts.groups[code] = Frequent.from_bytes(blob)
