"""The k-skyband of a sliding window as array code: rows in order of arrival in, net changes out.

Eager of Tao and Papadias (TKDE 2006, Section 3.2) generalised from "no live row dominates me" to "fewer than k do".
A candidate carries the k latest expiries of its dominators instead of one skyline influence time, in a ring: expiries
never decrease in order of arrival, so a new dominator takes the place of the one that expires first. The paper's event
list, a B-tree, is one lower bound per block of candidates here.

Candidates lie in order of arrival, column by column, in blocks of 16; an empty slot holds NaN, which neither dominates
nor is dominated. Each block has its lowest and highest corner, and the same 16-wide comparison serves both levels.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from skytide.kernel.rtree_lanes import LANES, highest_bit, lanes_weakly_better, lanes_weakly_worse, lowest_bit
from skytide.model import Floats, Integers

Store = tuple[Floats, Integers, Integers, np.ndarray, np.ndarray, Floats, Floats, Integers, Integers]
"""Columns (d, slots), rings (slots, k), keys (4, slots), where each ring begins, who is in the band, the lowest and the
highest corner of each block (d, blocks), the earliest event of each block, and the state."""

BLOCK = LANES
NEVER = np.iinfo(np.int64).max
LONG_AGO = np.iinfo(np.int64).min
ARRIVAL, EXPIRY, HANDLE, EVENT = range(4)
"""Rows of the array `keys`; EVENT is when the candidate's membership may change next."""
USED, LIVE, NEXT, TESTS, VISITS = range(5)
"""Entries of the array `state`: slots in use, candidates, earliest event (a lower bound), and two work counters."""


@njit(cache=True)
def _differs(columns: Floats, slot: int, row: Floats) -> bool:
    different = False
    for i in range(row.shape[0]):
        different |= columns[i, slot] != row[i]
    return different


@njit(cache=True)
def _latest_dominators(
    columns: Floats, keys: Integers, lows: Floats, state: Integers, row: Floats, latest: Integers
) -> int:
    """Write the expiries of the k newest dominators of the row, newest first; how many there are."""
    k = latest.shape[0]
    found = 0
    zones = (state[USED] + BLOCK - 1) // BLOCK
    for group in range((zones + BLOCK - 1) // BLOCK - 1, -1, -1):
        state[VISITS] += BLOCK
        outer = lanes_weakly_better(lows, group * BLOCK, lows.shape[1], row)
        while outer:
            zone = highest_bit(outer)
            outer ^= 1 << zone
            base = (group * BLOCK + zone) * BLOCK
            state[TESTS] += BLOCK
            inner = lanes_weakly_better(columns, base, columns.shape[1], row)
            while inner:
                lane = highest_bit(inner)
                inner ^= 1 << lane
                if _differs(columns, base + lane, row):
                    latest[found] = keys[EXPIRY, base + lane]
                    found += 1
                    if found == k:
                        return found
    return found


@njit(cache=True)
def _empty_slot(columns: Floats, keys: Integers, inside: np.ndarray, state: Integers, slot: int) -> None:
    for i in range(columns.shape[0]):
        columns[i, slot] = np.nan
    keys[EVENT, slot] = NEVER
    inside[slot] = 0
    state[LIVE] -= 1


@njit(cache=True)
def _note_dominator(
    columns: Floats,
    ring: Integers,
    keys: Integers,
    heads: np.ndarray,
    inside: np.ndarray,
    due: Integers,
    state: Integers,
    slot: int,
    expiry: int,
    t: int,
    out: Integers,
    count: int,
) -> int:
    """Enter a new dominator's expiry into one candidate's ring; expunge the candidate if k dominators outlive it."""
    head = heads[slot]
    ring[slot, head] = expiry
    head += 1
    if head == ring.shape[1]:
        head = 0
    heads[slot] = head
    reach = ring[slot, head]
    if reach >= keys[EXPIRY, slot]:
        if inside[slot]:
            out[0, count] = t
            out[1, count] = -1
            out[2, count] = keys[HANDLE, slot]
            count += 1
        _empty_slot(columns, keys, inside, state, slot)
    elif not inside[slot]:
        keys[EVENT, slot] = max(reach, t)  # a row of this very instant may still enter at it
    elif reach > t:
        keys[EVENT, slot] = t
        zone = slot // BLOCK
        due[zone] = min(due[zone], t)
        state[NEXT] = min(state[NEXT], t)
    return count


@njit(cache=True)
def _note_all(
    columns: Floats,
    ring: Integers,
    keys: Integers,
    heads: np.ndarray,
    inside: np.ndarray,
    highs: Floats,
    due: Integers,
    state: Integers,
    row: Floats,
    expiry: int,
    t: int,
    out: Integers,
    count: int,
) -> int:
    """Enter the row's expiry into the rings of all candidates it dominates."""
    zones = (state[USED] + BLOCK - 1) // BLOCK
    for group in range((zones + BLOCK - 1) // BLOCK):
        state[VISITS] += BLOCK
        outer = lanes_weakly_worse(highs, group * BLOCK, highs.shape[1], row)
        while outer:
            zone = lowest_bit(outer)
            outer ^= 1 << zone
            base = (group * BLOCK + zone) * BLOCK
            state[TESTS] += BLOCK
            inner = lanes_weakly_worse(columns, base, columns.shape[1], row)
            while inner:
                lane = lowest_bit(inner)
                inner ^= 1 << lane
                if _differs(columns, base + lane, row):
                    count = _note_dominator(
                        columns, ring, keys, heads, inside, due, state, base + lane, expiry, t, out, count
                    )
    return count


@njit(cache=True)
def _append(
    columns: Floats,
    ring: Integers,
    keys: Integers,
    heads: np.ndarray,
    inside: np.ndarray,
    lows: Floats,
    highs: Floats,
    due: Integers,
    state: Integers,
    row: Floats,
    arrival: int,
    expiry: int,
    handle: int,
    t: int,
    latest: Integers,
    found: int,
) -> None:
    """Put a row that the k newest dominators do not outlive behind the candidates."""
    k = ring.shape[1]
    slot = state[USED]
    zone = slot // BLOCK
    first = slot % BLOCK == 0
    for i in range(row.shape[0]):
        columns[i, slot] = row[i]
        lows[i, zone] = row[i] if first else min(lows[i, zone], row[i])
        highs[i, zone] = row[i] if first else max(highs[i, zone], row[i])
    for i in range(k - found):
        ring[slot, i] = LONG_AGO
    for i in range(found):
        ring[slot, k - 1 - i] = latest[i]
    heads[slot] = 0
    inside[slot] = 0
    event = max(t, ring[slot, 0])
    keys[ARRIVAL, slot] = arrival
    keys[EXPIRY, slot] = expiry
    keys[HANDLE, slot] = handle
    keys[EVENT, slot] = event
    due[zone] = event if first else min(due[zone], event)
    state[NEXT] = min(state[NEXT], event)
    state[USED] += 1
    state[LIVE] += 1


@njit(cache=True)
def compact(store: Store) -> None:
    """Close the gaps, in place and in order, and draw the blocks' corners tight. O(slots)."""
    columns, ring, keys, heads, inside, lows, highs, due, state = store
    used = 0
    for slot in range(state[USED]):
        if np.isnan(columns[0, slot]):
            continue
        if used != slot:
            for i in range(columns.shape[0]):
                columns[i, used] = columns[i, slot]
            for i in range(ring.shape[1]):
                ring[used, i] = ring[slot, i]
            for i in range(keys.shape[0]):
                keys[i, used] = keys[i, slot]
            heads[used] = heads[slot]
            inside[used] = inside[slot]
        used += 1
    for slot in range(used, state[USED]):
        for i in range(columns.shape[0]):
            columns[i, slot] = np.nan
        keys[EVENT, slot] = NEVER
        inside[slot] = 0
    state[USED] = used
    lows[:] = np.nan
    highs[:] = np.nan
    due[:] = NEVER
    for slot in range(used):
        zone = slot // BLOCK
        due[zone] = min(due[zone], keys[EVENT, slot])
        for i in range(columns.shape[0]):
            # A corner that is still NaN compares false and takes the value.
            if not lows[i, zone] <= columns[i, slot]:
                lows[i, zone] = columns[i, slot]
            if not highs[i, zone] >= columns[i, slot]:
                highs[i, zone] = columns[i, slot]
    state[NEXT] = due.min()


@njit(cache=True)
def _settle(
    columns: Floats,
    ring: Integers,
    keys: Integers,
    heads: np.ndarray,
    inside: np.ndarray,
    due: Integers,
    state: Integers,
    instant: int,
    out: Integers,
    count: int,
) -> int:
    """Bring the membership of every candidate with an event up to `instant` to what it is at that instant."""
    earliest = NEVER
    for zone in range((state[USED] + BLOCK - 1) // BLOCK):
        if due[zone] <= instant:
            soonest = NEVER
            for slot in range(zone * BLOCK, zone * BLOCK + BLOCK):
                if keys[EVENT, slot] <= instant:
                    reach = ring[slot, heads[slot]]
                    gone = keys[EXPIRY, slot] <= instant
                    entered = not gone and reach <= instant
                    if entered != (inside[slot] != 0):
                        out[0, count] = instant
                        out[1, count] = 1 if entered else -1
                        out[2, count] = keys[HANDLE, slot]
                        count += 1
                        inside[slot] = entered
                    if gone:
                        _empty_slot(columns, keys, inside, state, slot)
                    else:
                        keys[EVENT, slot] = keys[EXPIRY, slot] if entered else reach
                soonest = min(soonest, keys[EVENT, slot])
            due[zone] = soonest
        earliest = min(earliest, due[zone])
    state[NEXT] = earliest
    return count


@njit(cache=True)
def _room(out: Integers, needed: int) -> Integers:
    if needed <= out.shape[1]:
        return out
    larger = np.empty((3, max(needed, 2 * out.shape[1])), np.int64)
    larger[:, : out.shape[1]] = out
    return larger


@njit(cache=True)
def run(
    store: Store,
    values: Floats,
    arrivals: Integers,
    expiries: Integers,
    handles: Integers,
    start: int,
    now: int,
    until: int,
) -> tuple[int, Integers]:
    """Take rows from `start` on until they end or the slots do, and then, at the end only, settle up to `until`.

    Gives how many rows are taken, and the moves as (instants, signs, handles). Where rows are left over, the caller
    makes the store larger and calls again: nothing is lost, since the events of the last instant are still due.
    """
    columns, ring, keys, heads, inside, lows, highs, due, state = store
    out = np.empty((3, 16), np.int64)
    count = 0
    latest = np.empty(ring.shape[1], np.int64)
    n = len(handles)
    for i in range(start, n):
        t = max(arrivals[i], now)
        if expiries[i] <= t:
            continue
        while state[NEXT] < t:
            out = _room(out, count + state[LIVE])
            count = _settle(columns, ring, keys, heads, inside, due, state, state[NEXT], out, count)
        if state[USED] == columns.shape[1]:
            if 4 * state[LIVE] > 3 * state[USED]:
                return i, out[:, :count].copy()
            compact(store)
        row = values[i]
        found = _latest_dominators(columns, keys, lows, state, row, latest)
        if found == ring.shape[1] and latest[found - 1] >= expiries[i]:
            continue
        out = _room(out, count + state[LIVE])
        count = _note_all(columns, ring, keys, heads, inside, highs, due, state, row, expiries[i], t, out, count)
        _append(
            columns,
            ring,
            keys,
            heads,
            inside,
            lows,
            highs,
            due,
            state,
            row,
            arrivals[i],
            expiries[i],
            handles[i],
            t,
            latest,
            found,
        )
    while state[NEXT] <= until and state[NEXT] != NEVER:
        out = _room(out, count + state[LIVE])
        count = _settle(columns, ring, keys, heads, inside, due, state, state[NEXT], out, count)
    return n, out[:, :count].copy()
