"""What Eager keeps between calls, as flat arrays, in the order of arrival; and the moves that a call collects.

`values` has a line of d values per candidate, `times` four lines (arrival, expiry, handle, start of the interval in the
skyline), `codes` d lines of cells with 64 to spare, `flags` whether the candidate waits for its start, is in the
skyline or is dead, and `meta` the bounds of the list. A dead candidate is one that a single row has dominated; it stays
in its place until there are many.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from skytide.kernel.eager_codes import cell_of
from skytide.model import Floats, Integers

ARRIVAL, EXPIRY, HANDLE, START = 0, 1, 2, 3
WAITING, SHOWN, DEAD = 0, 1, 2
COUNT, LOW, DEAD_COUNT, NEXT_START = 0, 1, 2, 3
META = 4
NEVER = np.iinfo(np.int64).max
NONE, GONE = -1, -2
"""Instead of the position of a dominator: there is none; the row never enters."""
SPARE = 64
"""Columns of codes beyond the last candidate, so that they can be read 64 at a time."""


@njit(cache=True)
def room(moves: Integers, count: int) -> Integers:
    """The moves, with room for two more."""
    if count + 2 <= moves.shape[1]:
        return moves
    larger = np.empty((3, 2 * moves.shape[1] + 2), np.int64)
    larger[:, :count] = moves[:, :count]
    return larger


@njit(cache=True)
def note(moves: Integers, count: int, time: int, sign: int, handle: int) -> int:
    """Write a move down; how many there are now."""
    moves[0, count] = time
    moves[1, count] = sign
    moves[2, count] = handle
    return count + 1


@njit(cache=True)
def compact(values: Floats, times: Integers, codes: np.ndarray, flags: np.ndarray, meta: Integers) -> None:
    """Close the gaps that the dead and the expired left. O(d candidates)."""
    kept = 0
    d = values.shape[1]
    for c in range(meta[LOW], meta[COUNT]):
        if flags[c] == DEAD:
            continue
        if kept != c:
            for k in range(d):
                values[kept, k] = values[c, k]
                codes[k, kept] = codes[k, c]
            for k in range(4):
                times[k, kept] = times[k, c]
            flags[kept] = flags[c]
        kept += 1
    meta[COUNT], meta[LOW], meta[DEAD_COUNT] = kept, 0, 0


@njit(cache=True)
def recode(values: Floats, codes: np.ndarray, count: int, edges: Floats) -> None:
    """The candidates' cells under new cuts. O(d candidates)."""
    for k in range(values.shape[1]):
        cuts = edges[k]
        for c in range(count):
            codes[k, c] = cell_of(cuts, values[c, k])
