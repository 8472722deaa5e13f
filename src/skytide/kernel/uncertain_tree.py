"""SSKY and MSKY of zhang09p over one aggregate R-tree: arrivals, expiries, and who changes bands.

An arrival sums P_noc over what dominates it (Probe of C1 and C12, Algorithms 5 and 8), multiplies 1 - P into what it
dominates (C2 and C12, Algorithms 7 and 8), entry by entry where a whole box is dominated, drops the rows whose P_new
has become too small (UpdateProb, Algorithm 9), and goes into the tree. A dropped row is divided out of what it
dominates as an expired one is (Algorithm 11), one by one, where the paper joins two lists of entries.

Place and Move (Algorithm 10) are one search per instant: it follows the entries whose rows may have left their band,
up or down, from whichever band. The paper has that wrong where it looks on expiry at R_{k+1} alone.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from skytide.kernel.rtree_lanes import LANES, lanes_weakly_better, lanes_weakly_worse, lean, lowest_bit, part
from skytide.kernel.uncertain_nodes import (
    ALL,
    CHANGED,
    FALL,
    HEIGHT,
    LEAST,
    NEW,
    NOBODY,
    RISE,
    ROOT,
    SPARE,
    TOP,
    Tree,
    ascend,
    insert,
    pull_visited,
    push_down,
    remap,
    remove,
    slack_of,
)
from skytide.kernel.uncertain_numbers import BAR, SLACK, value
from skytide.kernel.uncertain_state import (
    ALIVE,
    EXPIRY,
    KNOWN,
    LIVE,
    MARKED,
    MARKS,
    OPEN,
    TESTS,
    USED,
    VISITS,
    Arrays,
    Store,
    append,
    band_of,
    compact,
    first_to_expire,
    forget,
    mark,
    outdone,
    show,
    with_room,
)
from skytide.model import Floats, Integers

_NEAR, _NEAR_SHARE = 4e-13, 1e-14
"""A row that is so near to leaving its band, absolutely and as a share of the multiplier, is looked at: aggregates are
rounded. It is less than the 1e-12 by which an exact tie lies above its threshold."""


@part
def _sum_above(tree: Tree, store: Store, a: int) -> None:
    """The sums of a new row over its dominators in the tree."""
    q, expiry, d = store.values[a], store.keys[EXPIRY, a], tree.scales.size
    stack, entries, weights = tree.stack, tree.entries, store.weights
    stack[0] = tree.state[ROOT]
    waiting = 1
    while waiting:
        waiting -= 1
        n = stack[waiting]
        base = n * d * LANES
        store.meta[VISITS] += 1
        if tree.leaf[n]:
            store.meta[TESTS] += tree.sizes[n]
            bits = lanes_weakly_better(tree.lows, base, LANES, q)
            if bits:
                bits &= ~lanes_weakly_worse(tree.lows, base, LANES, q)
            while bits:
                c = entries[n, lowest_bit(bits)]
                bits &= bits - 1
                for k in range(2):
                    store.total[k, a] += weights[k, c]
                    if store.keys[EXPIRY, c] >= expiry:
                        store.lasting[k, a] += weights[k, c]
            continue
        bits = lanes_weakly_better(tree.lows, base, LANES, q)
        if not bits:
            continue
        whole = lanes_weakly_better(tree.highs, base, LANES, q)
        if whole:
            whole &= ~lanes_weakly_worse(tree.highs, base, LANES, q)
        while bits:
            lane = lowest_bit(bits)
            bits &= bits - 1
            m = entries[n, lane]
            lasting = tree.spans[0, m] >= expiry
            if whole >> lane & 1 and (lasting or tree.spans[1, m] < expiry):
                for k in range(2):
                    store.total[k, a] += tree.noc[k, m]
                    if lasting:
                        store.lasting[k, a] += tree.noc[k, m]
            else:
                stack[waiting] = m
                waiting += 1


@part
def _tell_rows(tree: Tree, store: Store, n: int, bits: int, x: int, sign: int, arriving: bool) -> int:
    """Multiply x into rows of a leaf, or divide it out; whether one must be dropped then."""
    push_down(tree, store, n)
    drop = 0
    while bits:
        c = tree.entries[n, lowest_bit(bits)]
        bits &= bits - 1
        lasting = arriving and store.keys[EXPIRY, x] >= store.keys[EXPIRY, c]
        for k in range(2):
            store.total[k, c] += sign * store.weights[k, x]
            if lasting:
                store.lasting[k, c] += store.weights[k, x]
        if lasting and outdone(store, store.lasting[0, c], store.lasting[1, c]):
            drop = 1
    tree.dirty[n] = 1
    return drop


@part
def _tell_entry(tree: Tree, store: Store, m: int, x: int, sign: int, lasting: bool) -> int:
    """The same for everything below an entry."""
    for k in range(2):
        tree.tags[ALL + k, m] += sign * store.weights[k, x]
        if lasting:
            tree.tags[NEW + k, m] += store.weights[k, x]
    return 1 if lasting and _may_drop(tree, store, m) else 0


@part
def _may_drop(tree: Tree, store: Store, m: int) -> bool:
    """Whether some row below an entry has too small a P_new."""
    bars = store.bars
    sunk = tree.bounds[LEAST, m] + value(tree.tags[NEW, m], tree.tags[NEW + 1, m])
    return bool(sunk < bars[BAR, bars.shape[1] - 1] - SLACK / 2)


@part
def _spread(tree: Tree, store: Store, x: int, sign: int, arriving: bool) -> int:
    """Multiply x into all that it dominates (an arrival), or divide it out; whether some row must be dropped then."""
    q, expiry, d = store.values[x], store.keys[EXPIRY, x], tree.scales.size
    stack = tree.stack
    stack[0] = tree.state[ROOT]
    waiting, seen, drop = 1, 0, 0
    while waiting:
        waiting -= 1
        n = stack[waiting]
        tree.visited[seen] = n
        seen += 1
        base = n * d * LANES
        if tree.leaf[n]:
            store.meta[TESTS] += tree.sizes[n]
            bits = lanes_weakly_worse(tree.lows, base, LANES, q)
            if bits:
                bits &= ~lanes_weakly_better(tree.lows, base, LANES, q)
            if bits:
                drop |= _tell_rows(tree, store, n, bits, x, sign, arriving)
            continue
        bits = lanes_weakly_worse(tree.highs, base, LANES, q)
        if not bits:
            continue
        push_down(tree, store, n)
        whole = lanes_weakly_worse(tree.lows, base, LANES, q)
        if whole:
            whole &= ~lanes_weakly_better(tree.lows, base, LANES, q)
        while bits:
            lane = lowest_bit(bits)
            bits &= bits - 1
            m = tree.entries[n, lane]
            lasting = arriving and tree.spans[1, m] <= expiry
            if whole >> lane & 1 and (lasting or not arriving or tree.spans[0, m] > expiry):
                drop |= _tell_entry(tree, store, m, x, sign, lasting)
                tree.dirty[n] = 1
            else:
                stack[waiting] = m
                waiting += 1
    store.meta[VISITS] += seen
    pull_visited(tree, store, seen)
    return drop


@part
def _find_dropped(tree: Tree, store: Store) -> int:
    """List the rows whose P_new has become too small; how many."""
    stack = tree.stack
    stack[0] = tree.state[ROOT]
    waiting, seen, found = 1, 0, 0
    while waiting:
        waiting -= 1
        n = stack[waiting]
        tree.visited[seen] = n
        seen += 1
        push_down(tree, store, n)
        for i in range(tree.sizes[n]):
            m = tree.entries[n, i]
            if tree.leaf[n]:
                if outdone(store, store.lasting[0, m], store.lasting[1, m]):
                    tree.dropped[found] = m
                    found += 1
            elif _may_drop(tree, store, m):
                stack[waiting] = m
                waiting += 1
    store.meta[VISITS] += seen
    pull_visited(tree, store, seen)
    return found


@part
def _arrive(tree: Tree, store: Store, a: int, order: Integers) -> None:
    _sum_above(tree, store, a)
    if outdone(store, store.lasting[0, a], store.lasting[1, a]):
        forget(store, a)
        return
    store.flags[a] |= KNOWN
    if _spread(tree, store, a, 1, True):
        found = _find_dropped(tree, store)
        for i in range(found):
            remove(tree, store, tree.dropped[i])
        for i in range(found):
            _spread(tree, store, tree.dropped[i], -1, False)
            forget(store, tree.dropped[i])
    insert(tree, store, a, order)
    tree.state[CHANGED] = 1


@part
def _strays(tree: Tree, m: int) -> bool:
    """Whether some row below an entry may have left its band."""
    moved = value(tree.tags[ALL, m], tree.tags[ALL + 1, m])
    near = _NEAR + _NEAR_SHARE * abs(moved)
    return bool(tree.bounds[FALL, m] + moved <= near or tree.bounds[RISE, m] - moved <= near)


@part
def _mark_strays(tree: Tree, store: Store) -> None:
    """Mark every row that may have left its band (Place and Move, Algorithm 10)."""
    stack = tree.stack
    stack[0] = tree.state[ROOT]
    waiting, seen = 1 if _strays(tree, stack[0]) else 0, 0
    while waiting:
        waiting -= 1
        n = stack[waiting]
        tree.visited[seen] = n
        seen += 1
        push_down(tree, store, n)
        for i in range(tree.sizes[n]):
            m = tree.entries[n, i]
            if tree.leaf[n]:
                fall, rise = slack_of(store, m, value(store.total[0, m], store.total[1, m]))
                if fall <= _NEAR or rise <= _NEAR:
                    mark(store, m)
            elif _strays(tree, m):
                stack[waiting] = m
                waiting += 1
    store.meta[VISITS] += seen
    pull_visited(tree, store, seen)


@part
def _settle(tree: Tree, store: Store, out: Integers, count: int) -> int:
    """Write the net moves of the open instant, after `_mark_strays`; how many moves there are then."""
    meta, flags, bands = store.meta, store.flags, store.bars.shape[1]
    for i in range(meta[MARKS]):
        c = store.marked[i]
        flags[c] &= ~np.uint8(MARKED)
        alive = flags[c] & ALIVE
        band = band_of(store, c, value(store.total[0, c], store.total[1, c])) if alive else bands
        if band != store.shown[c]:
            count = show(store, c, band, meta[OPEN], out, count)
            if alive:
                ascend(tree, store, tree.leaf_of[c], False)
    meta[MARKS] = 0
    tree.state[CHANGED] = 0
    return count


@part
def _advance(tree: Tree, store: Store, instant: int) -> bool:
    """Open an instant and let go what has expired by it; False where an earlier instant must be settled first."""
    meta, state = store.meta, tree.state
    if meta[OPEN] == instant:
        return True
    x = first_to_expire(store)
    while x >= 0 and store.keys[EXPIRY, x] <= instant:
        time = store.keys[EXPIRY, x]
        if time != meta[OPEN]:
            if state[CHANGED]:
                return False
            meta[OPEN] = time
        remove(tree, store, x)
        _spread(tree, store, x, -1, False)
        forget(store, x)
        state[CHANGED] = 1
        x = first_to_expire(store)
    if meta[OPEN] != instant:
        if state[CHANGED]:
            return False
        meta[OPEN] = instant
    return True


@njit(cache=True)
def run(
    arrays: Arrays,
    tree_arrays: Arrays,
    rows: Floats,
    chances: Floats,
    arrivals: Integers,
    expiries: Integers,
    handles: Integers,
    start: int,
    until: int,
) -> tuple[int, Integers]:
    """Take the rows from `start` on until they end or the room does; with the last row, settle up to `until`.

    As `uncertain_flat.run`.
    """
    store, tree = Store(*arrays), Tree(*tree_arrays)
    meta, state, bands = store.meta, tree.state, store.bars.shape[1]
    scratch = np.empty(store.flags.size, np.int64)
    order = np.empty(2 * (LANES + 1), np.int64)
    out = np.empty((4, 16), np.int64)
    count = 0
    for i in range(start, rows.shape[0]):
        arrival, expiry = max(arrivals[i], meta[OPEN]), expiries[i]
        if expiry <= arrival:
            continue
        while not _advance(tree, store, arrival):
            _mark_strays(tree, store)
            out = with_room(out, count + meta[MARKS] * bands)
            count = _settle(tree, store, out, count)
        if tree.sizes.size - state[TOP] + state[SPARE] < state[HEIGHT] + 2:
            return i, out[:, :count].copy()
        if meta[USED] == store.flags.size:
            if 4 * meta[LIVE] <= 3 * meta[USED]:
                compact(store, scratch)
                remap(tree, scratch)
            if 8 * meta[USED] > 7 * store.flags.size:
                return i, out[:, :count].copy()
        a = append(store, rows, i, chances[i], arrivals[i], expiry, handles[i])
        _arrive(tree, store, a, order)
    while not _advance(tree, store, until):
        _mark_strays(tree, store)
        out = with_room(out, count + meta[MARKS] * bands)
        count = _settle(tree, store, out, count)
    _mark_strays(tree, store)
    out = with_room(out, count + meta[MARKS] * bands)
    count = _settle(tree, store, out, count)
    return rows.shape[0], out[:, :count].copy()


@lean
def sums_of(tree: Tree, store: Store, c: int, which: int, sums: Integers) -> None:
    """Write a candidate's lasting sum (NEW) or total (ALL), with the multipliers that it has yet to get."""
    own = store.lasting if which == NEW else store.total
    sums[0], sums[1] = own[0, c], own[1, c]
    n = tree.leaf_of[c]
    while n != NOBODY:
        sums[0] += tree.tags[which, n]
        sums[1] += tree.tags[which + 1, n]
        n = tree.parent[n]


@lean
def totals_of(arrays: Arrays, tree_arrays: Arrays, sums: Integers, totals: Floats) -> None:
    """Write the total of each candidate in the answer, by slot; `sums` is scratch for two numbers."""
    store, tree = Store(*arrays), Tree(*tree_arrays)
    for c in range(store.meta[USED]):
        if store.flags[c] & ALIVE and store.shown[c] < store.bars.shape[1]:
            sums_of(tree, store, c, ALL, sums)
            totals[c] = value(sums[0], sums[1])
