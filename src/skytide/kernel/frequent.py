"""How often each id was in the last `over` skylines, compiled: work for changes and crossings, none for quiet ids.

The count of an id over a window of snapshots is piecewise linear in the snapshot's number: it grows by one with each
snapshot that the id is in, and shrinks by one with each snapshot that it was in and that leaves the window. So

    count(n) = base + slope * n,    slope = in(n) - in(n - over),

until the id enters or leaves, or a time at which it did so leaves the window. Both are known: what changes now changes
the slope again `over` snapshots later, in the same order. So one queue of changes serves all pairs (theta, over): each
pair reads it a second time, `over` snapshots behind, with a head of its own. And where the slope is not 0 it is known
when the count will cross the pair's bar: that crossing waits in a heap until it is due, or the slope changes. Between
such events nothing is done, however many snapshots pass and however many ids are in.

zhang09c (Algorithms 1 and 6) counts each member of the skyline up and down at every snapshot; this is the same answer.

An id is a slot; a slot and a pair are a node, `slot * pairs + pair`. Arrays are made outside.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from skytide.kernel.rtree_lanes import lean
from skytide.model import Integers

USED, TAIL, HEAP, MEMBERS, NEXT, SLOPES, CROSSINGS, STEPS = range(8)
"""What `meta` says: changes in the queue, those that have come to pass, sizes of the heap and of the skyline, the next
snapshot at which something happens. And what was done: slopes changed, bars crossed, moves in the heap."""
META = 8
NEVER = np.iinfo(np.int64).max
NONE = -1
FINE, WRONG, TWICE = 0, 1, 2
"""What is wrong with a change: nothing; it enters what is in or takes out what is not; it is the id's second one in a
snapshot."""

_inline = njit(
    cache=True, _nrt=False, error_model="numpy", forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True
)
"""For parts of one loop: a dozen arrays as arguments cost more than what is done with them."""


class Queue(NamedTuple):
    """The changes in the largest window, in order: number of the snapshot, slot, +1 or -1.

    And by pair: its window, its bar, and the first change that has not left its window.
    """

    numbers: np.ndarray
    slots: np.ndarray
    signs: np.ndarray
    overs: np.ndarray
    needs: np.ndarray
    heads: np.ndarray


class Lines(NamedTuple):
    """By node: the line that its count follows, and whether the id is in the pair's answer."""

    bases: np.ndarray
    slopes: np.ndarray
    shown: np.ndarray


class Heap(NamedTuple):
    """The crossings ahead, the next one first: when, and of which node. And by node its place here, or NONE."""

    dues: np.ndarray
    nodes: np.ndarray
    places: np.ndarray


class Skyline(NamedTuple):
    """The slots that are in, in any order.

    And by slot: its place there, or NONE; the last snapshot that changed it; how often queue and history name it.
    """

    members: np.ndarray
    seats: np.ndarray
    touched: np.ndarray
    uses: np.ndarray


# -- a run of snapshots ------------------------------------------------------------------------------------------------


@_inline
def _settle(meta: Integers, h: Heap, place: int, due: int, node: int) -> None:
    """Put a crossing where it belongs, beginning at a place that is free: towards the first, or away from it."""
    size, free = meta[HEAP], place
    while place > 0 and h.dues[(place - 1) >> 1] > due:
        above = (place - 1) >> 1
        h.dues[place], h.nodes[place] = h.dues[above], h.nodes[above]
        h.places[h.nodes[place]] = place
        place = above
        meta[STEPS] += 1
    while place == free:
        below = 2 * place + 1
        if below + 1 < size and h.dues[below + 1] < h.dues[below]:
            below += 1
        if below >= size or h.dues[below] >= due:
            break
        h.dues[place], h.nodes[place] = h.dues[below], h.nodes[below]
        h.places[h.nodes[place]] = place
        place = free = below
        meta[STEPS] += 1
    h.dues[place], h.nodes[place], h.places[node] = due, node, place
    meta[STEPS] += 1


@_inline
def _schedule(meta: Integers, h: Heap, node: int, due: int) -> None:
    """A node's next crossing is due then; NEVER: it has none. O(log crossings)."""
    place = np.int64(h.places[node])
    if due == NEVER:
        if place == NONE:
            return
        h.places[node] = NONE
        meta[HEAP] -= 1
        if place == meta[HEAP]:
            return
        due, node = int(h.dues[meta[HEAP]]), int(h.nodes[meta[HEAP]])  # the last one takes the place that is free
    elif place == NONE:
        place = meta[HEAP]
        meta[HEAP] += 1
    _settle(meta, h, place, due, node)


@_inline
def _bend(line: Lines, node: int, by: int, number: int, need: int) -> int:
    """From this snapshot on the count grows faster by so much; when it crosses the bar then."""
    base, slope = line.bases[node] - by * (number - 1), line.slopes[node] + by
    line.bases[node], line.slopes[node] = base, slope
    if slope == 1 and line.shown[node] == 0:
        return int(need - base)
    if slope == -1 and line.shown[node] == 1:
        return int(base - need + 1)
    return int(NEVER)


@_inline
def _next_event(meta: Integers, q: Queue, h: Heap) -> int:
    """The number of the next snapshot at which something happens."""
    tail = meta[TAIL]
    number = q.numbers[tail] if tail < meta[USED] else np.int64(NEVER)
    for pair in range(q.heads.size):
        if q.heads[pair] < tail:
            number = min(number, q.numbers[q.heads[pair]] + q.overs[pair])
    return int(min(number, h.dues[0]) if meta[HEAP] > 0 else number)


@lean
def run(meta: Integers, q: Queue, line: Lines, h: Heap, until: int, moves: Integers) -> int:
    """Let the snapshots up to this number pass, with the queued changes that fall on them.

    Writes the crossings down as columns: numbers of snapshots, nodes, +1 or -1; in the order of the numbers. How many:
    where there is no room for more, the rest comes with the next call.
    O((changes that come or leave a window and crossings) * log crossings): quiet snapshots and ids cost nothing.
    """
    pairs = q.heads.size
    count = 0
    while True:
        number = _next_event(meta, q, h)
        if number > until:
            break
        tail = meta[TAIL]
        for pair in range(pairs):
            # First what changed `over` snapshots ago and leaves the window, then what changes now and enters it.
            for turn in range(2):
                at, end, delay = (q.heads[pair], tail, q.overs[pair]) if turn == 0 else (tail, meta[USED], 0)
                while at < end and q.numbers[at] + delay == number:
                    node, by = np.int64(q.slots[at]) * pairs + pair, (2 * turn - 1) * np.int64(q.signs[at])
                    _schedule(meta, h, node, _bend(line, node, by, number, q.needs[pair]))
                    meta[SLOPES] += 1
                    at += 1
                if turn == 0:
                    q.heads[pair] = at
                else:
                    meta[TAIL] = at
        while meta[HEAP] > 0 and h.dues[0] == number and count < moves.shape[1]:
            first = np.int64(h.nodes[0])
            _schedule(meta, h, first, NEVER)
            line.shown[first] ^= 1
            moves[0, count], moves[1, count], moves[2, count] = number, first, 2 * np.int64(line.shown[first]) - 1
            count += 1
        if count == moves.shape[1]:
            break
    meta[NEXT] = number
    meta[CROSSINGS] += count
    return count


# -- who is in ---------------------------------------------------------------------------------------------------------


@_inline
def _toggle(meta: Integers, s: Skyline, slot: int) -> None:
    """Let an id into the skyline that is not in it, or out."""
    seat = np.int64(s.seats[slot])
    if seat == NONE:
        s.members[meta[MEMBERS]], s.seats[slot] = slot, meta[MEMBERS]
        meta[MEMBERS] += 1
        return
    meta[MEMBERS] -= 1
    last = np.int64(s.members[meta[MEMBERS]])
    s.members[seat], s.seats[last] = last, seat
    s.seats[slot] = NONE


@lean
def admit(meta: Integers, q: Queue, s: Skyline, count: int) -> tuple[int, int]:
    """Take so many changes that lie behind the queue, in order of snapshots, into it; or none of them.

    Gives how many could be taken before one that cannot be, and what is wrong with that one. O(count).
    """
    first = meta[USED]
    taken, wrong = 0, FINE
    while taken < count:
        slot, number = np.int64(q.slots[first + taken]), q.numbers[first + taken]
        if s.touched[slot] == number:
            wrong = TWICE
            break
        if (s.seats[slot] == NONE) != (q.signs[first + taken] > 0):
            wrong = WRONG
            break
        _toggle(meta, s, slot)
        s.touched[slot] = number
        s.uses[slot] += 1
        taken += 1
    if wrong == FINE:
        meta[USED] += count
        if count > 0:
            meta[NEXT] = min(meta[NEXT], q.numbers[first])
        return taken, wrong
    for back in range(taken - 1, -1, -1):
        slot = np.int64(q.slots[first + back])
        _toggle(meta, s, slot)
        s.touched[slot] = NONE
        s.uses[slot] -= 1
    return taken, wrong


@lean
def stays(
    slots: np.ndarray,
    signs: np.ndarray,
    numbers: Integers,
    times: Integers,
    uses: Integers,
    entries: Integers,
    log: Integers,
) -> int:
    """Note the entries among changes, given in order with their times, and write down the stays that end; how many."""
    count = 0
    for at in range(slots.size):
        slot = np.int64(slots[at])
        if signs[at] > 0:
            entries[0, slot], entries[1, slot] = numbers[at], times[at]
        else:
            log[0, count], log[1, count] = entries[0, slot], numbers[at]
            log[2, count], log[3, count] = entries[1, slot], times[at]
            uses[slot] += 1
            count += 1
    return count


@lean
def release(s: Skyline, slots: np.ndarray, free: Integers) -> int:
    """One use less for each slot named; write down those that nothing needs any more, how many. O(slots)."""
    count = 0
    for at in range(slots.size):
        slot = np.int64(slots[at])
        s.uses[slot] -= 1
        if s.uses[slot] == 0 and s.seats[slot] == NONE:
            free[count] = slot
            count += 1
    return count
