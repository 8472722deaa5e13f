"""Eager over flat arrays, a batch of rows at a time (Tao, Papadias, TKDE 2006, Sections 3.2 and 4.2).

A row is in the skyline for at most one interval (Sec. 1): from s, the latest expiry among its dominators that are not
newer (the paper's skyline influence time), to b, the earliest arrival among its dominators that are not older. The
paper finds s when the row arrives and b when the dominator does, one row after the other. We find both for a whole
batch at once, as joins over bitmaps (`eager_bits`), and simulate nothing:

* each row of the batch asks the batch for its first dominator that is not older (b) and its last older one (s);
* each kept candidate, newest first, asks the batch for its first dominator (b), and offers itself as s to the rows
  of the batch that have found none in it: the first that offers is the newest, so it has the latest expiry.

What has no b and has not expired is kept: by Theorem 2 the skyline in the space extended by time, which on
independent data is a poly-logarithm of the window. There is no event list: the candidates carry the beginning of their
interval, and those that begin or end in the batch are found in the pass that rewrites the list.

Where we differ: equal rows do not dominate each other; a row dominated by an older one that lives as long is not kept.
Of two rows of one instant the first is taken for the older one: if it dominates the other and lives as long, the other
never enters by s; if the other dominates it, it never enters by b.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from skytide.kernel.eager_bits import (
    SETS,
    clear,
    fill,
    first_dominator,
    last_dominator,
    stride_of,
    surrounded,
    take_dominated,
)
from skytide.kernel.eager_codes import CELLS, encode
from skytide.kernel.eager_state import (
    ARRIVAL,
    COUNT,
    DEAD,
    DEAD_COUNT,
    EXPIRY,
    GONE,
    HANDLE,
    LOW,
    NEVER,
    NEXT_START,
    NONE,
    SHOWN,
    START,
    WAITING,
    note,
    room,
)
from skytide.model import Floats, Integers


@njit(cache=True)
def _single_values(codes: np.ndarray, rows: Floats, first: int) -> Floats:
    """For each column and cell the value that all of the batch's rows in it have; NaN where they differ or are none."""
    n, d = codes.shape
    held = np.full((d, CELLS), np.nan)
    seen = np.zeros((d, CELLS), np.bool_)
    for i in range(n):
        for k in range(d):
            cell = codes[i, k]
            if not seen[k, cell]:
                seen[k, cell] = True
                held[k, cell] = rows[first + i, k]
            elif held[k, cell] != rows[first + i, k]:
                held[k, cell] = np.nan
    return held


@njit(cache=True)
def _batch_intervals(
    bits: np.ndarray,
    codes: np.ndarray,
    rows: Floats,
    arrivals: Integers,
    expiries: Integers,
    first: int,
    held: Floats,
    begin: Integers,
    killer: Integers,
    open_rows: np.ndarray,
    work: Integers,
) -> int:
    """For each row of the batch its interval as far as the batch decides it; the number of rows still open for an s.

    `killer` becomes the position of the first dominator that is not older, NONE, or GONE for rows that never enter.
    """
    n, d = codes.shape
    tied = held.shape[0] > 0
    stride = stride_of(n)
    sets = np.empty(d, np.uint64)
    pending = 0
    for i in range(n):
        arrival = arrivals[first + i]
        begin[i] = arrival
        if expiries[first + i] <= arrival:
            killer[i] = GONE
            continue
        for k in range(d):
            sets[k] = np.uint64((k * SETS + codes[i, k]) * stride)
        if surrounded(bits, sets, stride, i, arrivals, expiries, first, n):
            killer[i] = GONE
            continue
        alike = tied
        for k in range(d):
            sets[k] += np.uint64(stride)
            alike = alike and held[k, codes[i, k]] == rows[first + i, k]
        ahead = first_dominator(bits, sets, rows, first, n, i + 1, rows, first + i, alike, work)
        killer[i] = ahead
        behind = last_dominator(bits, sets, rows, first, n, i, rows, first + i, alike, work)
        if behind < 0:
            open_rows[i >> 6] |= np.uint64(1) << np.uint64(i & 63)
            pending += 1
            continue
        begin[i] = max(arrival, expiries[first + behind])
        if begin[i] >= expiries[first + i] or (ahead >= 0 and arrivals[first + ahead] <= begin[i]):
            killer[i] = GONE
    return pending


@njit(cache=True)
def _meet_candidates(
    bits: np.ndarray,
    values: Floats,
    times: Integers,
    codes: np.ndarray,
    flags: np.ndarray,
    low: int,
    count: int,
    rows: Floats,
    first: int,
    n: int,
    held: Floats,
    begin: Integers,
    open_rows: np.ndarray,
    pending: int,
    fate: Integers,
    work: Integers,
) -> None:
    """Each candidate, newest first, against the batch: who ends it (`fate`), and whose s it is."""
    d = values.shape[1]
    tied = held.shape[0] > 0
    stride = stride_of(n)
    sets = np.empty(d, np.uint64)
    taken = np.empty(n, np.int64)
    for c in range(count - 1, low - 1, -1):
        if flags[c] == DEAD:
            continue
        alike = tied
        for k in range(d):
            sets[k] = np.uint64((k * SETS + codes[k, c] + 1) * stride)
            alike = alike and held[k, codes[k, c]] == values[c, k]
        fate[c] = first_dominator(bits, sets, rows, first, n, 0, values, c, alike, work)
        if pending == 0:
            continue
        for k in range(d):
            sets[k] -= np.uint64(stride)
        found = take_dominated(bits, sets, open_rows, rows, first, values, c, alike, taken, work)
        pending -= found
        for j in range(found):
            begin[taken[j]] = max(begin[taken[j]], times[EXPIRY, c])


@njit(cache=True)
def _settle_candidates(
    values: Floats,
    times: Integers,
    codes: np.ndarray,
    flags: np.ndarray,
    low: int,
    count: int,
    fate: Integers,
    arrivals: Integers,
    first: int,
    final: int,
    any_final: bool,
    moves: Integers,
) -> tuple[int, int, Integers]:
    """Emit what begins or ends, close the gaps in the list; how many stay, how many moves, and the moves."""
    d = values.shape[1]
    kept = 0
    moved = 0
    for c in range(low, count):
        if flags[c] == DEAD:
            continue
        killed = fate[c] >= 0
        end = times[EXPIRY, c]
        if killed:
            end = min(end, arrivals[first + fate[c]])
        leaves = killed or (any_final and end <= final)
        begin = times[START, c]
        shown = flags[c]
        if begin < end and (leaves or (any_final and begin <= final)):
            moves = room(moves, moved)
            if shown == WAITING:
                moved = note(moves, moved, begin, 1, times[HANDLE, c])
                shown = SHOWN
            if leaves:
                moved = note(moves, moved, end, -1, times[HANDLE, c])
        if leaves:
            continue
        if kept != c:
            for k in range(d):
                values[kept, k] = values[c, k]
                codes[k, kept] = codes[k, c]
            for k in range(4):
                times[k, kept] = times[k, c]
        flags[kept] = shown
        kept += 1
    return kept, moved, moves


@njit(cache=True)
def absorb(
    values: Floats,
    times: Integers,
    codes: np.ndarray,
    flags: np.ndarray,
    meta: Integers,
    edges: Floats,
    rows: Floats,
    arrivals: Integers,
    expiries: Integers,
    handles: Integers,
    first: int,
    last: int,
    final: int,
    any_final: bool,
    tied: bool,
    bits: np.ndarray,
    work: Integers,
) -> Integers:
    """Take the rows [first, last), make the instants up to `final` final; the moves, in no order.

    The list has room for all of them. With any_final False no instant becomes final (more rows of this one follow).
    O(d (rows + candidates) rows / 512) where nothing is dominated soon. `tied` says that many rows are equal.
    """
    n = last - first
    d = values.shape[1]
    low, count = meta[LOW], meta[COUNT]
    row_codes = np.empty((n, d), np.uint8)
    encode(edges, rows, first, last, row_codes)
    fill(bits, row_codes, n, d)
    for i in range(n):
        if expiries[first + i] <= arrivals[first + i]:
            clear(bits, i, n, d)
    held = _single_values(row_codes, rows, first) if tied else np.empty((0, 0))
    begin = np.empty(n, np.int64)
    killer = np.empty(n, np.int64)
    open_rows = np.zeros(stride_of(n), np.uint64)
    pending = _batch_intervals(bits, row_codes, rows, arrivals, expiries, first, held, begin, killer, open_rows, work)
    fate = np.full(count, NONE, np.int64)
    _meet_candidates(
        bits, values, times, codes, flags, low, count, rows, first, n, held, begin, open_rows, pending, fate, work
    )
    moves = np.empty((3, 64), np.int64)
    kept, moved, moves = _settle_candidates(
        values, times, codes, flags, low, count, fate, arrivals, first, final, any_final, moves
    )
    for i in range(n):
        killed = killer[i] >= 0
        end = expiries[first + i]
        if killed:
            end = min(end, arrivals[first + killer[i]])
        if killer[i] == GONE or begin[i] >= end:  # also those that a row of the same instant dominates
            continue
        leaves = killed or (any_final and end <= final)
        shown = WAITING
        if leaves or (any_final and begin[i] <= final):
            moves = room(moves, moved)
            moved = note(moves, moved, begin[i], 1, handles[first + i])
            shown = SHOWN
            if leaves:
                moved = note(moves, moved, end, -1, handles[first + i])
        if leaves:
            continue
        for k in range(d):
            values[kept, k] = rows[first + i, k]
            codes[k, kept] = row_codes[i, k]
        times[ARRIVAL, kept] = arrivals[first + i]
        times[EXPIRY, kept] = expiries[first + i]
        times[HANDLE, kept] = handles[first + i]
        times[START, kept] = begin[i]
        flags[kept] = shown
        kept += 1
    next_start = NEVER
    for c in range(kept):
        if flags[c] == WAITING:
            next_start = min(next_start, times[START, c])
    meta[COUNT], meta[LOW], meta[DEAD_COUNT], meta[NEXT_START] = kept, 0, 0, next_start
    made: Integers = moves[:, :moved].copy()
    return made
