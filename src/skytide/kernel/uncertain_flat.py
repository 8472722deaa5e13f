"""Uncertain rows over flat arrays, row by row: the plain scan of zhang09p, and a scan by cells that sums on demand.

The plain scan is the paper's trivial algorithm (the opening of Section IV): each arrival is compared with all
candidates, by value, and every candidate's total is kept current. A candidate that is dropped is divided out of those
it dominates; the arrival dominates all of these, so that they are found among what it dominates (R_3 and R_4).

The scan by cells does the same with less, and does not follow the paper.
* 64 candidates are compared at once by small codes (`eager_codes`), what is left by value.
* P_old is not kept for everybody. A waiting row has only an instant, WAKE, before which it reaches no threshold: the
  first expiry among newest dominators whose product is too low. Most rows are dropped long before, and the search for
  these dominators, newest first, is short. When a dominator expires after WAKE, the row's total is found anew.
  Only rows in the answer have a total that is kept current.

Why no list of wake-ups is needed. Let a waiting row r come to reach a threshold at instant t. Were a dominator of r
dropped at t, rows that outlive it and dominate it, hence r, would have a product below every threshold. So r's
candidate dominators, whose product decides (Theorems 3 and 4), have only lost rows that expired, and each expiry looks
at what it dominated. The same argument shows that a row in the answer never loses a dominator that is dropped.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from skytide.kernel.dominance import dominates_at, relation_at
from skytide.kernel.eager_codes import cell_of
from skytide.kernel.eager_words import highest_bit, lowest_bit, none_above, none_below
from skytide.kernel.rtree_lanes import lean, part
from skytide.kernel.uncertain_numbers import value
from skytide.kernel.uncertain_state import (
    EXPIRY,
    FRONT,
    KNOWN,
    LIVE,
    MARKED,
    MARKS,
    NEVER,
    OPEN,
    PENDING,
    SORTED,
    TESTS,
    USED,
    VISITS,
    WAKE,
    Arrays,
    Store,
    add,
    append,
    band_of,
    compact,
    first_to_expire,
    forget,
    mark,
    outdone,
    show,
    subtract,
    too_low,
    with_room,
)
from skytide.model import Floats, Integers

ZERO, ONE = np.uint64(0), np.uint64(1)


# -- the plain scan ----------------------------------------------------------------------------------------------------


@part
def _arrive_plainly(store: Store, a: int, below: Integers) -> None:
    """Enter a row that has been appended; `below` is scratch for the slots that it dominates."""
    values, keys = store.values, store.keys
    expiry = keys[EXPIRY, a]
    found = 0
    for c in range(store.meta[FRONT], a):
        who = relation_at(values, a, values, c)
        if who < 0:
            below[found] = c
            found += 1
        elif who > 0:
            add(store.total, a, store.weights, c)
            if keys[EXPIRY, c] >= expiry:
                add(store.lasting, a, store.weights, c)
    store.meta[TESTS] += a - store.meta[FRONT]
    if outdone(store, store.lasting[0, a], store.lasting[1, a]):
        forget(store, a)
        return
    store.flags[a] |= KNOWN
    mark(store, a)
    kept = 0
    for i in range(found):
        c = below[i]
        add(store.total, c, store.weights, a)
        if expiry >= keys[EXPIRY, c]:
            add(store.lasting, c, store.weights, a)
        mark(store, c)
        if not outdone(store, store.lasting[0, c], store.lasting[1, c]):
            below[i] = below[kept]
            below[kept] = c
            kept += 1
    for i in range(kept, found):
        for j in range(kept):
            if dominates_at(values, below[i], values, below[j]):
                subtract(store.total, below[j], store.weights, below[i])
        store.meta[TESTS] += kept
    for i in range(kept, found):
        forget(store, below[i])


@part
def _expire_plainly(store: Store, x: int) -> None:
    values = store.values
    for c in range(store.meta[FRONT], store.meta[USED]):
        if dominates_at(values, x, values, c):
            subtract(store.total, c, store.weights, x)
            mark(store, c)
    store.meta[TESTS] += store.meta[USED] - store.meta[FRONT]
    forget(store, x)


# -- the scan by cells -------------------------------------------------------------------------------------------------


@part
def _query(store: Store, c: int, query: np.ndarray) -> None:
    for k in range(query.size):
        query[k] = store.codes[k, c]


@part
def _notice(store: Store, c: int, a: int, expiry: int) -> None:
    """A new row dominates a candidate: multiply it in, drop the candidate where it can reach nothing any more."""
    if expiry >= store.keys[EXPIRY, c]:
        add(store.lasting, c, store.weights, a)
        high, low = store.lasting[0, c], store.lasting[1, c]
        if outdone(store, high, low):
            forget(store, c)
            return
        if too_low(store, c, high, low):
            store.keys[WAKE, c] = NEVER
    if store.flags[c] & KNOWN:
        add(store.total, c, store.weights, a)
        mark(store, c)
        if too_low(store, c, store.total[0, c], store.total[1, c]):
            store.flags[c] &= ~np.uint8(KNOWN)


@part
def _release(store: Store, c: int, x: int, now: int) -> None:
    """A dominator of a candidate has expired: divide it out, or have the total found anew."""
    if store.flags[c] & KNOWN:
        subtract(store.total, c, store.weights, x)
        mark(store, c)
    elif store.keys[WAKE, c] <= now:
        store.flags[c] |= PENDING
        mark(store, c)


@part
def _spread(store: Store, x: int, end: int, now: int, arriving: bool, query: np.ndarray) -> None:
    """Tell all candidates before slot `end` that x dominates that it has come, or that it has expired."""
    values, codes, alive = store.values, store.codes, store.alive
    expiry = store.keys[EXPIRY, x]
    tests = 0
    first = store.meta[FRONT] >> 6
    for block in range(first, (end + 63) >> 6):
        at = block << 6
        mask = none_below(codes, query, np.uint64(at)) & alive[block]
        while mask != ZERO:
            c: int = at + lowest_bit(mask)
            mask &= mask - ONE
            tests += 1
            if dominates_at(values, x, values, c):
                if arriving:
                    _notice(store, c, x, expiry)
                else:
                    _release(store, c, x, now)
    store.meta[TESTS] += tests
    store.meta[VISITS] += ((end + 63) >> 6) - first


@part
def _sum_lasting(store: Store, a: int, query: np.ndarray) -> None:
    """The lasting sum of a new row: over dominators that expire no earlier. Sorted, these are the newest, or none."""
    values, keys = store.values, store.keys
    expiry = keys[EXPIRY, a]
    block = (a - 1) >> 6
    ordered = store.meta[SORTED] != 0
    while block >= 0 and not (ordered and keys[EXPIRY, min(a - 1, (block << 6) + 63)] < expiry):
        mask = none_above(store.codes, query, np.uint64(block << 6)) & store.alive[block]
        while mask != ZERO:
            c: int = (block << 6) + lowest_bit(mask)
            mask &= mask - ONE
            if keys[EXPIRY, c] >= expiry and dominates_at(values, c, values, a):
                add(store.lasting, a, store.weights, c)
                if outdone(store, store.lasting[0, a], store.lasting[1, a]):
                    return
        block -= 1


@part
def _evaluate(store: Store, c: int, query: np.ndarray) -> None:
    """Sum over a candidate's dominators, newest first, until it is certain to reach nothing before one expires."""
    values, keys = store.values, store.keys
    high, low, wake, tests = 0, 0, NEVER, 0
    _query(store, c, query)
    first = store.meta[FRONT] >> 6
    last = (store.meta[USED] - 1) >> 6
    for block in range(last, first - 1, -1):
        at = block << 6
        mask = none_above(store.codes, query, np.uint64(at)) & store.alive[block]
        while mask != ZERO:
            bit: int = highest_bit(mask)
            mask ^= ONE << np.uint64(bit)
            tests += 1
            if dominates_at(values, at + bit, values, c):
                high += store.weights[0, at + bit]
                low += store.weights[1, at + bit]
                wake = min(wake, keys[EXPIRY, at + bit])
                if too_low(store, c, high, low):
                    keys[WAKE, c] = wake
                    store.meta[TESTS] += tests
                    store.meta[VISITS] += last - block + 1
                    return
    store.total[0, c] = high
    store.total[1, c] = low
    store.flags[c] |= KNOWN
    store.meta[TESTS] += tests
    store.meta[VISITS] += last - first + 1


@part
def _arrive_by_cells(store: Store, a: int, edges: Floats, query: np.ndarray) -> None:
    for k in range(query.size):
        query[k] = cell_of(edges[k], store.values[a, k])
        store.codes[k, a] = query[k]
    _sum_lasting(store, a, query)
    if outdone(store, store.lasting[0, a], store.lasting[1, a]):
        forget(store, a)
        return
    store.alive[a >> 6] |= ONE << np.uint64(a & 63)
    if too_low(store, a, store.lasting[0, a], store.lasting[1, a]):
        store.keys[WAKE, a] = NEVER
    else:
        store.flags[a] |= PENDING
        mark(store, a)
    _spread(store, a, a, 0, True, query)


@part
def _expire_by_cells(store: Store, x: int, now: int, query: np.ndarray) -> None:
    _query(store, x, query)
    _spread(store, x, store.meta[USED], now, False, query)
    forget(store, x)


# -- both --------------------------------------------------------------------------------------------------------------


@part
def _settle(store: Store, query: np.ndarray, out: Integers, count: int) -> int:
    """Write the net moves of the open instant: of the marked rows, who has come to another band; how many moves."""
    meta, flags, bands = store.meta, store.flags, store.bars.shape[1]
    for i in range(meta[MARKS]):
        c = store.marked[i]
        if flags[c] & PENDING:
            flags[c] &= ~np.uint8(PENDING)
            if not flags[c] & KNOWN and store.keys[WAKE, c] < NEVER:
                _evaluate(store, c, query)
        flags[c] &= ~np.uint8(MARKED)
        band = band_of(store, c, value(store.total[0, c], store.total[1, c])) if flags[c] & KNOWN else bands
        if band != store.shown[c]:
            count = show(store, c, band, meta[OPEN], out, count)
    meta[MARKS] = 0
    return count


@part
def _advance(store: Store, coded: bool, query: np.ndarray, instant: int) -> bool:
    """Open an instant and let go what has expired by it; False where an earlier instant must be settled first."""
    meta = store.meta
    if meta[OPEN] == instant:
        return True
    x = first_to_expire(store)
    while x >= 0 and store.keys[EXPIRY, x] <= instant:
        time = store.keys[EXPIRY, x]
        if time != meta[OPEN]:
            if meta[MARKS]:
                return False
            meta[OPEN] = time
        if coded:
            _expire_by_cells(store, x, time, query)
        else:
            _expire_plainly(store, x)
        x = first_to_expire(store)
    if meta[OPEN] != instant:
        if meta[MARKS]:
            return False
        meta[OPEN] = instant
    return True


@njit(cache=True)
def run(
    arrays: Arrays,
    edges: Floats,
    rows: Floats,
    chances: Floats,
    arrivals: Integers,
    expiries: Integers,
    handles: Integers,
    start: int,
    end: int,
    until: int,
) -> tuple[int, Integers]:
    """Take the rows from `start` up to `end` or until the slots are full; with the last row, settle up to `until`.

    Gives how many rows are taken, and the moves (instants, signs, handles, thresholds). Where rows are left over, the
    caller sees to room and calls again; the last instant is open till then. Without `edges` this is the plain scan.
    """
    store = Store(*arrays)
    meta, bands = store.meta, store.bars.shape[1]
    coded = edges.shape[1] > 0
    query = np.empty(rows.shape[1], np.uint8)
    scratch = np.empty(store.flags.size, np.int64)
    out = np.empty((4, 16), np.int64)
    count = 0
    for i in range(start, end):
        arrival, expiry = max(arrivals[i], meta[OPEN]), expiries[i]
        if expiry <= arrival:
            continue
        while not _advance(store, coded, query, arrival):
            out = with_room(out, count + meta[MARKS] * bands)
            count = _settle(store, query, out, count)
        if meta[USED] == store.flags.size:
            if 4 * meta[LIVE] <= 3 * meta[USED]:
                compact(store, scratch)
            if 8 * meta[USED] > 7 * store.flags.size:
                return i, out[:, :count].copy()
        a = append(store, rows, i, chances[i], arrivals[i], expiry, handles[i])
        if coded:
            _arrive_by_cells(store, a, edges, query)
        else:
            _arrive_plainly(store, a, scratch)
    if end == rows.shape[0]:
        while not _advance(store, coded, query, until):
            out = with_room(out, count + meta[MARKS] * bands)
            count = _settle(store, query, out, count)
        out = with_room(out, count + meta[MARKS] * bands)
        count = _settle(store, query, out, count)
    return end, out[:, :count].copy()


@lean
def recode(store: Store, edges: Floats) -> None:
    """The candidates' cells under new cuts. O(d slots)."""
    for k in range(edges.shape[0]):
        cuts = edges[k]
        for c in range(store.meta[USED]):
            store.codes[k, c] = cell_of(cuts, store.values[c, k])
