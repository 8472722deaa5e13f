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
def _inside(at: int, low: int, count: int) -> np.uint64:
    """The bits of the block from `at` on that stand for candidates."""
    mask = ALL
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
    low, count = meta[LOW], meta[COUNT]
    for at in range(((count - 1) >> 6) << 6, ((low >> 6) << 6) - 1, -64):
        mask = _inside(at, low, count)
        if coded:
            mask &= none_above(codes, query, np.uint64(at))
        work[1] += 1
        while mask != ZERO:
            bit: int = highest_bit(mask)
            work[0] += 1
            if flags[at + bit] != DEAD and dominates_at(values, at + bit, rows, i):
                return at + bit
            mask &= ~(ONE << np.uint64(bit))
    return -1


@njit(cache=True)
def _next_dominated(
    values: Floats, codes: np.ndarray, flags: np.ndarray, begin: int, count: int, query: np.ndarray, coded: bool,
    rows: Floats, i: int, work: Integers,
) -> int:  # fmt: skip
    """The first candidate from position `begin` on that the row dominates, -1 where there is none.

    One position at a time, because functions that return arrays count references in their innermost loops.
    """
    for at in range((begin >> 6) << 6, count, 64):
        mask = _inside(at, begin, count)
        if coded:
            mask &= none_below(codes, query, np.uint64(at))
        work[1] += 1
        while mask != ZERO:
            bit: int = lowest_bit(mask)
            work[0] += 1
            if flags[at + bit] != DEAD and dominates_at(rows, i, values, at + bit):
                return at + bit
            mask &= mask - ONE
    return -1


@njit(cache=True)
def _next_due(times: Integers, flags: np.ndarray, begin: int, count: int, final: int) -> int:
    """The first waiting candidate from position `begin` on whose start has come, -1 where there is none."""
    for c in range(begin, count):
        if times[START, c] <= final and flags[c] == WAITING:
            return c
    return -1


@njit(cache=True)
def _earliest_start(times: Integers, flags: np.ndarray, begin: int, count: int) -> int:
    starts = times[START]
    earliest = NEVER
    for c in range(begin, count):
        earliest = min(earliest, starts[c] if flags[c] == WAITING else NEVER)
    return earliest


@njit(cache=True)
def _advance(
    times: Integers, flags: np.ndarray, meta: Integers, fresh: int, final: int, moves: Integers, moved: int
) -> tuple[Integers, int]:
    """E-MM: emit the starts and the expiries up to `final`. O(candidates) where a start is due, else O(expired).

    The candidates from `fresh` on are new, and the earliest start does not yet speak of them.
    """
    low, count = meta[LOW], meta[COUNT]
    begin = low if meta[NEXT_START] <= final else max(low, fresh)
    c = _next_due(times, flags, begin, count, final)
    while c >= 0:
        moves = room(moves, moved)
        moved = note(moves, moved, times[START, c], 1, times[HANDLE, c])
        flags[c] = SHOWN
        c = _next_due(times, flags, c + 1, count, final)
    ahead = _earliest_start(times, flags, begin, count)
    meta[NEXT_START] = ahead if begin == low else min(ahead, meta[NEXT_START])
    while low < count and (flags[low] == DEAD or times[EXPIRY, low] <= final):
        if flags[low] == DEAD:
            meta[DEAD_COUNT] -= 1
        else:
            moves = room(moves, moved)
            moved = note(moves, moved, times[EXPIRY, low], -1, times[HANDLE, low])
        low += 1
    meta[LOW] = low
    return moves, moved


@njit(cache=True)
def _append(
    values: Floats, times: Integers, codes: np.ndarray, flags: np.ndarray, meta: Integers, query: np.ndarray,
    rows: Floats, i: int, arrival: int, expiry: int, handle: int, begin: int,
) -> None:  # fmt: skip
    c = meta[COUNT]
    for k in range(rows.shape[1]):
        values[c, k] = rows[i, k]
        codes[k, c] = query[k]
    times[ARRIVAL, c] = arrival
    times[EXPIRY, c] = expiry
    times[HANDLE, c] = handle
    times[START, c] = begin
    flags[c] = WAITING
    meta[COUNT] = c + 1


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
    fresh = meta[COUNT]
    for i in range(n):
        arrival, expiry = arrivals[i], expiries[i]
        if arrival < expiry:
            if coded:
                for k in range(d):
                    query[k] = cell_of(edges[k], rows[i, k])
            older = _latest_dominator(values, codes, flags, meta, query, coded, rows, i, work)
            begin = arrival if older < 0 else max(arrival, times[EXPIRY, older])
            count = meta[COUNT]
            c = _next_dominated(values, codes, flags, meta[LOW], count, query, coded, rows, i, work)
            while c >= 0:  # Lemma 1: what the row dominates leaves when it arrives
                end = min(times[EXPIRY, c], arrival)
                if times[START, c] < end:
                    moves = room(moves, moved)
                    if flags[c] == WAITING:
                        moved = note(moves, moved, times[START, c], 1, times[HANDLE, c])
                    moved = note(moves, moved, end, -1, times[HANDLE, c])
                flags[c] = DEAD
                meta[DEAD_COUNT] += 1
                c = _next_dominated(values, codes, flags, c + 1, count, query, coded, rows, i, work)
            if begin < expiry:
                _append(values, times, codes, flags, meta, query, rows, i, arrival, expiry, handles[i], begin)
        # An instant is final before the next row comes; rows of one instant come one after the other.
        if i < n - 1 and arrivals[i + 1] == NO_LIMIT:
            continue
        final = until if i == n - 1 else arrivals[i + 1] - 1
        moves, moved = _advance(times, flags, meta, fresh, final, moves, moved)
        if meta[DEAD_COUNT] + meta[LOW] > 4 + ((meta[COUNT] - meta[LOW]) >> 3):
            compact(values, times, codes, flags, meta)
        fresh = meta[COUNT]
    if n == 0:
        moves, moved = _advance(times, flags, meta, fresh, until, moves, moved)
    made: Integers = moves[:, :moved].copy()
    return made
