"""What comes out of a merge: which rows are taken, and changes in the order of the change stream."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skytide.model import Booleans, Integers
from skytide.spark.streaming.query import Read


def kinds_of(read: Read, closed: int) -> tuple[npt.NDArray[Any], Booleans]:
    """What becomes of rows: `change` where one is taken, `late` or `bad`; and which of the good ones are timely."""
    timely: Booleans = read.keys > closed
    kinds = np.full(len(read.good), "bad", dtype=object)
    kinds[read.good] = np.where(timely, "change", "late")
    return kinds, timely


def changes_in_order(rows: pa.Table, times: Integers, signs: Integers, id: str) -> tuple[pa.Table, Integers, Integers]:
    """Changes by time, `-` before `+`, then id as text, then threshold. O(n log n)."""
    if not len(times):
        return rows, times, signs
    columns = {"time": times, "sign": np.sign(signs), "id": rows.column(id).cast(pa.string()), "size": np.abs(signs)}
    order = pc.sort_indices(pa.table(columns), sort_keys=[(name, "ascending") for name in columns])
    return rows.take(order), times[order], signs[order]


def last_of_odd(stays: Booleans, same: Integers) -> Booleans:
    """Which changes are the last of an identity that has an odd number of them: a row that came and went is neither."""
    kept = np.flatnonzero(stays)
    found = np.zeros(len(stays), dtype=bool)
    if len(kept):
        names, inverse, counts = np.unique(same[kept], return_inverse=True, return_counts=True)
        last = np.zeros(len(names), np.int64)
        last[inverse] = kept  # the last assignment stays: changes are in the order of time
        found[last[counts % 2 == 1]] = True
    return found
