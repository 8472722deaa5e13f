"""What the engines for uncertain rows keep, as flat arrays in the order of arrival, and how an instant is settled.

A candidate carries two sums of weights (see `uncertain_numbers`): `lasting`, over the rows that dominate it and expire
no earlier than it does (P_new of zhang09p: it never rises again), and `total`, over all candidates that dominate it
(P_new * P_old). What happens to a candidate within an instant only marks it; `settle`, once per instant, compares
the band that each marked row has reached with the one that was last shown, and writes the net moves.

A dropped or expired row leaves a hole of NaN, which neither dominates nor is dominated; `compact` closes the holes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from skytide.kernel.dominance import dominates_at
from skytide.kernel.rtree_lanes import lean, part
from skytide.kernel.uncertain_numbers import (
    BAR,
    LEVEL,
    MARGIN,
    SLACK,
    complement,
    product_reaches,
    times,
    value,
    weight,
)
from skytide.model import Floats, Integers

NEVER = np.iinfo(np.int64).max
LONG_AGO = np.iinfo(np.int64).min
ARRIVAL, EXPIRY, HANDLE, WAKE = range(4)
"""Lines of `keys`. A waiting row reaches no threshold before WAKE; NEVER where it cannot any more."""
CHANCE, LOG = range(2)
"""Lines of `chances`: the row's probability and its logarithm."""
ALIVE, KNOWN, PENDING, MARKED = 1, 2, 4, 8
"""Bits of `flags`: a candidate; its total is kept; its total must be found when the instant is settled; it is in the
list of the rows to settle."""
USED, LIVE, FRONT, OPEN, MARKS, SORTED, LATEST, TESTS, VISITS, ASIDE, META = range(11)
"""Entries of `meta`: slots in use, candidates, the first slot that may hold one, the open instant, how many rows are
marked, whether expiries have never decreased, the latest of them, two work counters, and whether a row's own
probability is left aside where thresholds are compared with."""


Arrays = tuple[np.ndarray, ...]
"""A `Store` as a plain tuple: numba takes a tenth of a millisecond to see what is in a named one."""


class Store(NamedTuple):
    """The candidates: values (slots, d), chances (2, slots), weights, lasting and total (2, slots), keys (4, slots),
    the band last shown, flags, the marked slots, codes (d, slots + 64) and a bit per candidate for those who use them,
    the bars of the thresholds, and meta."""

    values: Floats
    chances: Floats
    weights: Integers
    lasting: Integers
    total: Integers
    keys: Integers
    shown: Integers
    flags: np.ndarray
    marked: Integers
    codes: np.ndarray
    alive: np.ndarray
    bars: Floats
    meta: Integers


def allocate(dimensions: int, slots: int, bars: Floats, coded: bool) -> Store:
    """An empty store with room for so many candidates."""
    meta = np.zeros(META, np.int64)
    meta[OPEN], meta[LATEST], meta[SORTED] = LONG_AGO, LONG_AGO, 1
    return Store(
        np.full((slots, dimensions), np.nan),
        np.zeros((2, slots)),
        np.zeros((2, slots), np.int64),
        np.zeros((2, slots), np.int64),
        np.zeros((2, slots), np.int64),
        np.zeros((4, slots), np.int64),
        np.zeros(slots, np.int64),
        np.zeros(slots, np.uint8),
        np.zeros(slots, np.int64),
        np.zeros((dimensions, slots + 64 if coded else 0), np.uint8),
        np.zeros(slots // 64 + 1 if coded else 0, np.uint64),
        bars,
        meta,
    )


@part
def mark(store: Store, c: int) -> None:
    """Have a candidate looked at when the instant is settled."""
    if not store.flags[c] & MARKED:
        store.flags[c] |= MARKED
        store.marked[store.meta[MARKS]] = c
        store.meta[MARKS] += 1


@part
def add(sums: Integers, c: int, weights: Integers, x: int) -> None:
    """Multiply the non-occurrence of x into a product of c."""
    sums[0, c] += weights[0, x]
    sums[1, c] += weights[1, x]


@part
def subtract(sums: Integers, c: int, weights: Integers, x: int) -> None:
    """Divide it out again."""
    sums[0, c] -= weights[0, x]
    sums[1, c] -= weights[1, x]


@part
def too_low(store: Store, c: int, high: int, low: int) -> bool:
    """Whether the row, with these dominators, reaches no threshold for certain."""
    bars = store.bars
    return bool(store.chances[LOG, c] + value(high, low) < bars[BAR, bars.shape[1] - 1] - SLACK)


@part
def outdone(store: Store, high: int, low: int) -> bool:
    """Whether any row with these dominators reaches no threshold for certain (outside S_{N,q})."""
    bars = store.bars
    return bool(value(high, low) < bars[BAR, bars.shape[1] - 1] - SLACK)


@part
def append(store: Store, rows: Floats, i: int, chance: float, arrival: int, expiry: int, handle: int) -> int:
    """Put row i of `rows` behind the candidates, without dominators as yet; its slot. There must be room."""
    meta = store.meta
    c = meta[USED]
    for k in range(rows.shape[1]):
        store.values[c, k] = rows[i, k]
    store.chances[CHANCE, c] = chance
    store.chances[LOG, c] = 0.0 if meta[ASIDE] else np.log(chance)
    store.weights[0, c], store.weights[1, c] = weight(chance)
    for k in range(2):
        store.lasting[k, c] = 0
        store.total[k, c] = 0
    store.keys[ARRIVAL, c] = arrival
    store.keys[EXPIRY, c] = expiry
    store.keys[HANDLE, c] = handle
    store.keys[WAKE, c] = LONG_AGO
    store.shown[c] = store.bars.shape[1]
    store.flags[c] = ALIVE
    if expiry < meta[LATEST]:
        meta[SORTED] = 0
    meta[LATEST] = max(meta[LATEST], expiry)
    meta[USED] += 1
    meta[LIVE] += 1
    return int(c)


@part
def forget(store: Store, c: int) -> None:
    """Leave a hole where a candidate was; what was shown of it is taken back when the instant is settled."""
    if store.shown[c] < store.bars.shape[1]:
        mark(store, c)
    store.flags[c] &= MARKED
    for k in range(store.values.shape[1]):
        store.values[c, k] = np.nan
    if store.alive.size:
        store.alive[c >> 6] &= ~(np.uint64(1) << np.uint64(c & 63))
    store.meta[LIVE] -= 1


@lean
def first_to_expire(store: Store) -> int:
    """The slot of a candidate that expires first, -1 where there is none. O(1), amortised, if expiries are sorted."""
    meta, flags = store.meta, store.flags
    front, used = meta[FRONT], meta[USED]
    while front < used and not flags[front] & ALIVE:
        front += 1
    meta[FRONT] = front
    if front == used:
        return -1
    first = front
    if not meta[SORTED]:
        for c in range(front, used):
            if flags[c] & ALIVE and store.keys[EXPIRY, c] < store.keys[EXPIRY, first]:
                first = c
    return int(first)


@lean
def _reaches_exactly(store: Store, c: int, threshold: float) -> bool:
    """Whether a candidate reaches the threshold, by the product itself over its dominators. O(d slots)."""
    high, low = store.chances[CHANCE, c], 0.0
    for x in range(store.meta[FRONT], store.meta[USED]):
        if dominates_at(store.values, x, store.values, c):
            other_high, other_low = complement(store.chances[CHANCE, x])
            high, low = times(high, low, other_high, other_low)
    return bool(product_reaches(high, low, threshold))


@part
def reaches(store: Store, c: int, total: float, bar: float, margin: float, level: float) -> bool:
    """Whether a candidate, with dominators of this total, reaches a threshold."""
    above = store.chances[LOG, c] + total - bar
    if abs(above) <= margin:
        return bool(_reaches_exactly(store, c, level))
    return bool(above > 0)


@part
def band_of(store: Store, c: int, total: float) -> int:
    """The number of the highest threshold that a candidate reaches; how many there are where it reaches none."""
    bars = store.bars
    k = bars.shape[1]
    for j in range(k):
        if reaches(store, c, total, bars[BAR, j], bars[MARGIN, j], bars[LEVEL, j]):
            return j
    return int(k)


@njit(cache=True)
def with_room(out: Integers, needed: int) -> Integers:
    """The moves, with room for so many."""
    if needed <= out.shape[1]:
        return out
    larger = np.empty((4, max(needed, 2 * out.shape[1])), np.int64)
    for k in range(4):
        for i in range(out.shape[1]):  # one by one: to assign a slice compiles the text of its error, for seconds
            larger[k, i] = out[k, i]
    return larger


@part
def show(store: Store, c: int, band: int, time: int, out: Integers, count: int) -> int:
    """Write the moves that take a row from the band last shown to another; how many moves there are then."""
    before = store.shown[c]
    sign = 1 if band < before else -1
    for j in range(min(band, before), max(band, before)):
        out[0, count] = time
        out[1, count] = sign
        out[2, count] = store.keys[HANDLE, c]
        out[3, count] = j
        count += 1
    store.shown[c] = band
    return count


@lean
def compact(store: Store, moved: Integers) -> None:
    """Close the holes, in order; `moved` says for each old slot which it is now, or -1. O(d slots).

    Rows that are gone but must still be taken back from the answer keep a slot.
    """
    meta, flags, d = store.meta, store.flags, store.values.shape[1]
    used = 0
    meta[MARKS] = 0
    store.alive[:] = 0
    for c in range(meta[USED]):
        if not flags[c]:
            moved[c] = -1
            continue
        moved[c] = used
        for k in range(d):
            store.values[used, k] = store.values[c, k]
        for k in range(2):
            store.chances[k, used] = store.chances[k, c]
            store.weights[k, used] = store.weights[k, c]
            store.lasting[k, used] = store.lasting[k, c]
            store.total[k, used] = store.total[k, c]
        for k in range(4):
            store.keys[k, used] = store.keys[k, c]
        store.shown[used] = store.shown[c]
        flags[used] = flags[c]
        if flags[c] & MARKED:
            store.marked[meta[MARKS]] = used
            meta[MARKS] += 1
        if store.alive.size:
            for k in range(d):
                store.codes[k, used] = store.codes[k, c]
            if flags[c] & ALIVE:
                store.alive[used >> 6] |= np.uint64(1) << np.uint64(used & 63)
        used += 1
    for c in range(used, meta[USED]):
        flags[c] = 0
        for k in range(d):
            store.values[c, k] = np.nan
    meta[USED], meta[FRONT] = used, 0


@lean
def next_expiry(arrays: Arrays) -> int:
    """When the next candidate expires, NEVER where there is none."""
    store = Store(*arrays)
    first = first_to_expire(store)
    return NEVER if first < 0 else int(store.keys[EXPIRY, first])


@lean
def members(
    arrays: Arrays, totals: Floats, bar: float, margin: float, level: float, slots: Integers, chances: Floats
) -> int:
    """Write the slots and probabilities of the candidates that reach a threshold not below the smallest; how many.

    `totals` holds each shown candidate's total as a float. As of a settled instant. O(slots).
    """
    store = Store(*arrays)
    count = 0
    none = store.bars.shape[1]
    for c in range(store.meta[FRONT], store.meta[USED]):
        if store.flags[c] & ALIVE and store.shown[c] < none and reaches(store, c, totals[c], bar, margin, level):
            slots[count] = c
            chances[count] = store.chances[CHANCE, c] * np.exp(totals[c])
            count += 1
    return count
