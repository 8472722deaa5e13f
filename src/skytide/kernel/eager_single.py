"""Eager over flat arrays, row by row: for calls that bring so few rows that building bitmaps does not pay.

This is tao06's E-PM and E-MM (Figs. 7 and 8) with one scan in place of its two searches: 64 candidates at a time by
their cells, what is left by value. The event list is two numbers: the oldest candidate is the next to expire, and the
earliest start of a waiting one is remembered; candidates are searched for starts only when that instant has come.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from skytide.kernel.dominance import dominates_at
from skytide.kernel.eager_codes import cell_of
from skytide.kernel.eager_state import (
    ARRIVAL,
    COUNT,
    DEAD,
    DEAD_COUNT,
    EXPIRY,
    HANDLE,
    LOW,
    NEVER,
    NEXT_START,
    SHOWN,
    START,
    WAITING,
    compact,
    note,
    room,
)
from skytide.kernel.eager_words import highest_bit, lowest_bit, none_above, none_below
from skytide.model import Floats, Integers

ZERO, ONE, ALL = np.uint64(0), np.uint64(1), np.uint64(0xFFFFFFFFFFFFFFFF)
NO_LIMIT = np.iinfo(np.int64).min


@njit(cache=True)
def _block(codes: np.ndarray, query: np.ndarray, coded: bool, at: int, low: int, count: int, above: bool) -> np.uint64:
    """Candidates of the block from `at` on that may dominate the query (or be dominated, with `above`), by cell."""
    mask = ALL
    if coded:
        mask = none_below(codes, query, np.uint64(at)) if above else none_above(codes, query, np.uint64(at))
    if at < low:
        mask &= ALL << np.uint64(low - at)
    if count - at < 64:
        mask &= (ONE << np.uint64(count - at)) - ONE
    return mask


@njit(cache=True)
def _latest_dominator(
    values: Floats, codes: np.ndarray, flags: np.ndarray, meta: Integers, query: np.ndarray, coded: bool, rows: Floats,
    i: int, work: Integers,
) -> int:  # fmt: skip
    for at in range(((meta[COUNT] - 1) >> 6) << 6, ((meta[LOW] >> 6) << 6) - 1, -64):
        mask = _block(codes, query, coded, at, meta[LOW], meta[COUNT], False)
        work[1] += 1
        while mask != ZERO:
            bit: int = highest_bit(mask)
            work[0] += 1
            if flags[at + bit] != DEAD and dominates_at(values, at + bit, rows, i):
                return at + bit
            mask &= ~(ONE << np.uint64(bit))
    return -1


@njit(cache=True)
def _expel(
    values: Floats, times: Integers, codes: np.ndarray, flags: np.ndarray, meta: Integers, query: np.ndarray,
    coded: bool, rows: Floats, i: int, arrival: int, moves: Integers, moved: int, work: Integers,
) -> tuple[Integers, int]:  # fmt: skip
    """The candidates that the row dominates leave when it arrives (Lemma 1); those in the skyline with a move."""
    for at in range((meta[LOW] >> 6) << 6, meta[COUNT], 64):
        mask = _block(codes, query, coded, at, meta[LOW], meta[COUNT], True)
        work[1] += 1
        while mask != ZERO:
            c = at + lowest_bit(mask)
            mask &= mask - ONE
            work[0] += 1
            if flags[c] == DEAD or not dominates_at(rows, i, values, c):
                continue
            end = min(times[EXPIRY, c], arrival)
            if times[START, c] < end:
                moves = room(moves, moved)
                if flags[c] == WAITING:
                    moved = note(moves, moved, times[START, c], 1, times[HANDLE, c])
                moved = note(moves, moved, end, -1, times[HANDLE, c])
            flags[c] = DEAD
            meta[DEAD_COUNT] += 1
    return moves, moved


@njit(cache=True)
def _advance(
    times: Integers, flags: np.ndarray, meta: Integers, final: int, moves: Integers, moved: int
) -> tuple[Integers, int]:
    """E-MM: emit the starts and the expiries up to `final`. O(candidates) where a start is due, else O(expired)."""
    if meta[NEXT_START] <= final:
        ahead = NEVER
        for c in range(meta[LOW], meta[COUNT]):
            if flags[c] != WAITING:
                continue
            if times[START, c] <= final:
                moves = room(moves, moved)
                moved = note(moves, moved, times[START, c], 1, times[HANDLE, c])
                flags[c] = SHOWN
            else:
                ahead = min(ahead, times[START, c])
        meta[NEXT_START] = ahead
    low = meta[LOW]
    while low < meta[COUNT] and (flags[low] == DEAD or times[EXPIRY, low] <= final):
        if flags[low] == DEAD:
            meta[DEAD_COUNT] -= 1
        else:
            moves = room(moves, moved)
            moved = note(moves, moved, times[EXPIRY, low], -1, times[HANDLE, low])
        low += 1
    meta[LOW] = low
    return moves, moved


@njit(cache=True)
def insert(
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
    until: int,
    work: Integers,
) -> Integers:
    """Take all rows, make the instants up to `until` final; the moves, in no order. The list has room for all rows.

    O(d candidates / 64) a row, one comparison of values per candidate that the cells leave.
    """
    n, d = rows.shape
    coded = edges.shape[1] > 0
    query = np.empty(d, np.uint8)
    moves = np.empty((3, 8), np.int64)
    moved = 0
    for i in range(n):
        arrival, expiry = arrivals[i], expiries[i]
        if arrival < expiry:
            if coded:
                for k in range(d):
                    query[k] = cell_of(edges[k], rows[i, k])
            older = _latest_dominator(values, codes, flags, meta, query, coded, rows, i, work)
            begin = arrival if older < 0 else max(arrival, times[EXPIRY, older])
            moves, moved = _expel(values, times, codes, flags, meta, query, coded, rows, i, arrival, moves, moved, work)
            if begin < expiry:
                c = meta[COUNT]
                for k in range(d):
                    values[c, k] = rows[i, k]
                    codes[k, c] = query[k]
                times[ARRIVAL, c], times[EXPIRY, c], times[HANDLE, c] = arrival, expiry, handles[i]
                times[START, c] = begin
                flags[c] = WAITING
                meta[COUNT] = c + 1
                meta[NEXT_START] = min(meta[NEXT_START], begin)
        if i == n - 1:
            moves, moved = _advance(times, flags, meta, until, moves, moved)
        elif arrivals[i + 1] != NO_LIMIT:
            moves, moved = _advance(times, flags, meta, arrivals[i + 1] - 1, moves, moved)
    if n == 0:
        moves, moved = _advance(times, flags, meta, until, moves, moved)
    if meta[DEAD_COUNT] + meta[LOW] > 4 + ((meta[COUNT] - meta[LOW]) >> 3):
        compact(values, times, codes, flags, meta)
    made: Integers = moves[:, :moved].copy()
    return made
