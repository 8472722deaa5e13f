"""Of several rows of one owner at one time the last counts, in an order that the rows themselves say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skytide.spark.rounds.protocol import KEY
from skytide.spark.streaming.snapshots.objects import ranks


def last_of_each(rows: pa.Table, owner: Sequence[str], order: str | None) -> pa.Table:
    """By key, then owner; of several rows of an owner at one time the last by the column `order`, then by all others.

    The same for the same rows in any order. O(n log n).

    >>> rows = pa.table({"key": [2, 1, 1], "id": ["a", "a", "a"], "x": [5.0, 7.0, None]})
    >>> last_of_each(rows, ["id"], None).to_pylist()
    [{'key': 1, 'id': 'a', 'x': 7.0}, {'key': 2, 'id': 'a', 'x': 5.0}]
    """
    names = [KEY, *owner]
    rows = rows.combine_chunks()
    rows = rows.take(pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in names]))
    if rows.num_rows < 2:
        return rows
    same = np.diff(rows.column(KEY).to_numpy()) == 0
    for name in owner:
        column = rows.column(name)
        same &= np.asarray(pc.equal(column.slice(1), column.slice(0, rows.num_rows - 1)))
    if not same.any():
        return rows
    first = ~np.concatenate(([False], same))
    tied = np.flatnonzero(~first | ~np.append(first[1:], True))
    place = np.zeros(rows.num_rows, np.int64)
    place[tied] = ranks(rows.take(pa.array(tied)).drop_columns(names), order)
    by_place = np.lexsort((place, np.cumsum(first)))
    last = np.append(np.flatnonzero(first)[1:], rows.num_rows) - 1
    return rows.take(pa.array(by_place[last]))
