"""I-Eager (Tao, Papadias, TKDE 2006, Section 5): one R-tree over all candidates, and the event list.

A new row expunges what it dominates (E-PM, lines 2 to 5), finds its last dominator by the largest expiry in the tree
(lines 7 to 11) and waits for its end, or is in the answer at once. The run loop takes a whole batch; it stops only when
an array is full, and goes on where it stopped.

Where we differ: the newest rows lie in a short flat list before they go to the tree. Most rows of most streams are
dominated by one of the next hundred and never reach the tree; and a dominator found there is newer than all in the
tree, so the tree need not be asked for it. A row that expires no later than an older dominator can never be in the
answer and is not kept at all. Changes are net per instant.
"""

from __future__ import annotations

import numpy as np

from skytide.kernel.events import FIRST, NONE, Events, close, drop, enlist, has_slot, show, stop_waiting, wait_for
from skytide.kernel.rtree_insert import insert
from skytide.kernel.rtree_lanes import LANES, highest_bit, lanes_weakly_better, lanes_weakly_worse, lean, part
from skytide.kernel.rtree_nodes import TESTS, Tree, has_room
from skytide.kernel.rtree_remove import remove
from skytide.kernel.rtree_search import dominated, last_dominator

NURSERY = 8 * LANES
"""Rows that wait in the flat list before the tree takes them."""
# the numbers in `state`
ROW, OPEN, NOW, SIZE, YOUNG = range(5)
STATE_SIZE = 5
DONE, FULL = 0, 1


@part
def _leave_nursery(young: np.ndarray, young_slots: np.ndarray, at: int, d: int) -> None:
    young_slots[at] = NONE
    for k in range(d):
        young[(at // LANES * d + k) * LANES + at % LANES] = np.nan


@part
def _to_tree(t: Tree, e: Events, young: np.ndarray, young_slots: np.ndarray, q: np.ndarray, state: np.ndarray) -> int:
    """Move the nursery's survivors to the tree; FULL if the tree has to grow first."""
    d = q.size
    for at in range(state[YOUNG]):
        slot = young_slots[at]
        if slot == NONE:
            continue
        if not has_room(t):
            return FULL
        for k in range(d):
            q[k] = young[(at // LANES * d + k) * LANES + at % LANES]
        insert(t, slot, q, e.times[slot])
        _leave_nursery(young, young_slots, at, d)
    state[YOUNG] = 0
    return DONE


@part
def _expunge_dominated(
    t: Tree, e: Events, young: np.ndarray, young_slots: np.ndarray, q: np.ndarray, buffer: np.ndarray, used: int
) -> None:
    d = q.size
    for block in range((used + LANES - 1) // LANES):
        bits = lanes_weakly_worse(young, block * d * LANES, LANES, q)
        if bits != 0:
            bits &= ~lanes_weakly_better(young, block * d * LANES, LANES, q)
        while bits != 0:
            at = highest_bit(bits)
            bits ^= 1 << at
            at += block * LANES
            drop(e, young_slots[at])
            _leave_nursery(young, young_slots, at, d)
    found = buffer.size
    while found > buffer.size - LANES:
        found = dominated(t, q, buffer)
        for i in range(found):
            remove(t, buffer[i])
            drop(e, buffer[i])


@part
def _last_dominator(t: Tree, young: np.ndarray, young_slots: np.ndarray, q: np.ndarray, used: int, now: int) -> int:
    d = q.size
    for block in range((used - 1) // LANES, -1, -1):
        bits = lanes_weakly_better(young, block * d * LANES, LANES, q)
        if bits != 0:
            bits &= ~lanes_weakly_worse(young, block * d * LANES, LANES, q)
            if bits != 0:
                return int(young_slots[block * LANES + highest_bit(bits)])
    return int(last_dominator(t, q, now))


@part
def _expire(t: Tree, e: Events, young: np.ndarray, young_slots: np.ndarray, d: int, now: int) -> None:
    """E-MM: rows whose time has come leave, and those that waited for them enter."""
    slot = e.head[FIRST]
    while slot != NONE and e.times[slot] <= now:
        while e.first[slot] != NONE:
            entering = np.int64(e.first[slot])
            stop_waiting(e, entering)
            show(e, entering)
        if t.where[slot] >= 0:
            remove(t, slot)
        else:
            _leave_nursery(young, young_slots, -2 - np.int64(t.where[slot]), d)
        drop(e, slot)
        slot = e.head[FIRST]


@lean
def run(
    t: Tree,
    e: Events,
    young: np.ndarray,
    young_slots: np.ndarray,
    scratch: np.ndarray,
    buffer: np.ndarray,
    state: np.ndarray,
    values: np.ndarray,
    keys: np.ndarray,
    until: int,
    out: np.ndarray,
) -> int:
    """Go through the rows and all instants up to `until`; DONE, or FULL when tree or list must grow before going on.

    `keys` has the columns instant, arrival, expiry, handle; `out` takes rows (time, sign, handle), state[SIZE] of them.
    """
    d = scratch.size
    while True:
        i = state[ROW]
        if state[OPEN] == 0:
            first = e.head[FIRST]
            due = first != NONE and e.times[first] <= until
            if i < len(values) and (not due or keys[i, 0] < e.times[first]):
                state[NOW] = keys[i, 0]
            elif due:
                state[NOW] = e.times[first]
            else:
                return DONE
            state[OPEN] = 1
        now = state[NOW]
        _expire(t, e, young, young_slots, d, now)
        while i < len(values) and keys[i, 0] == now:
            expiry = keys[i, 2]
            if expiry > now:
                if state[YOUNG] == young_slots.size and _to_tree(t, e, young, young_slots, scratch, state) == FULL:
                    return FULL
                if not has_slot(e):
                    return FULL
                q = values[i]
                used = state[YOUNG]
                t.head[TESTS] += used
                _expunge_dominated(t, e, young, young_slots, q, buffer, used)
                last = _last_dominator(t, young, young_slots, q, used, now)
                if last == NONE or e.times[last] < expiry:
                    slot = enlist(e, expiry, keys[i, 1], keys[i, 3])
                    for k in range(d):
                        young[(used // LANES * d + k) * LANES + used % LANES] = q[k]
                    young_slots[used] = slot
                    t.where[slot] = -2 - used
                    state[YOUNG] = used + 1
                    if last == NONE:
                        show(e, slot)
                    else:
                        wait_for(e, slot, last)
            i += 1
            state[ROW] = i
        state[SIZE] = close(e, now, out, state[SIZE])
        state[OPEN] = 0


@lean
def values_of(t: Tree, young: np.ndarray, slots: np.ndarray, out: np.ndarray) -> None:
    """Copy the coordinates of these slots, wherever they lie."""
    d = out.shape[1]
    for i in range(slots.size):
        at = t.where[slots[i]]
        for k in range(d):
            if at >= 0:
                out[i, k] = t.points[(at // LANES * d + k) * LANES + at % LANES]
            else:
                out[i, k] = young[((-2 - at) // LANES * d + k) * LANES + (-2 - at) % LANES]
