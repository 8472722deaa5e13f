"""The event list: who expires next, who waits for whose end, and what changed since the last closed instant.

Tao and Papadias (Section 3.2) keep EX and SK events in a B-tree on their times. Two facts make every operation O(1):

* Rows come with expiries that never decrease, so the EX events are the rows themselves in order of arrival: a linked
  list, of which the first row is the next event.
* The skyline influence time of a row is the expiry of another retained row, its last dominator. That one stays as long
  as the row does: whoever expunges it comes later, and dominates the row too. So an SK event is the row's place in the
  list of those that wait for that dominator, and there is no event without a row, hence no garbage.

Lazy uses the same lists for the rows that a skyline row keeps out (its witness). Such a list moves to another row as a
whole, in O(1), so lists are rings of which only the first member knows whose they are.

Changes are net: a row is touched when its part in the answer may have changed, and `close` compares what it is with
what it was when the last instant closed. Slots are reused only after that.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from skytide.kernel.rtree_lanes import lean, part
from skytide.model import Integers

# the numbers in `head`
FIRST, LAST, FREE, MADE, COUNT, TOUCHED = range(6)
NONE = -1
# the bits of `state`
SHOWN, KNOWN, MARKED, DEAD = 1, 2, 4, 8


class Events(NamedTuple):
    """The list as arrays over slots. What is read from the narrow ones is widened, lest functions compile twice."""

    head: np.ndarray
    times: np.ndarray
    arrivals: np.ndarray
    handles: np.ndarray
    older: np.ndarray
    newer: np.ndarray
    first: np.ndarray
    after: np.ndarray
    before: np.ndarray
    owner: np.ndarray
    touched: np.ndarray
    state: np.ndarray


@lean
def has_slot(e: Events) -> bool:
    """Whether one more row fits."""
    return bool(e.head[FREE] != NONE or e.head[MADE] < e.times.size)


@lean
def enlist(e: Events, time: int, arrival: int, handle: int) -> int:
    """Take a new row, which expires last so far; gives its slot. O(1)."""
    slot = e.head[FREE]
    if slot == NONE:
        slot = e.head[MADE]
        e.head[MADE] += 1
    else:
        e.head[FREE] = e.newer[slot]
    e.times[slot], e.arrivals[slot], e.handles[slot] = time, arrival, handle
    e.first[slot], e.after[slot], e.before[slot], e.owner[slot], e.state[slot] = NONE, NONE, NONE, NONE, 0
    last = e.head[LAST]
    e.older[slot], e.newer[slot] = last, NONE
    if last == NONE:
        e.head[FIRST] = slot
    else:
        e.newer[last] = slot
    e.head[LAST] = slot
    e.head[COUNT] += 1
    return int(slot)


@lean
def wait_for(e: Events, slot: int, owner: int) -> None:
    """Let a row wait for the end of another. O(1)."""
    head = e.first[owner]
    if head == NONE:
        e.first[owner], e.owner[slot] = slot, owner
        e.after[slot] = e.before[slot] = slot
        return
    tail = e.before[head]
    e.after[tail], e.before[slot], e.after[slot], e.before[head] = slot, tail, head, slot


@lean
def stop_waiting(e: Events, slot: int) -> None:
    """Take a row out of the list in which it waits, if it does. O(1)."""
    following, previous, owner = e.after[slot], e.before[slot], e.owner[slot]
    if following == NONE:
        return
    if owner != NONE:
        e.first[owner] = NONE if following == slot else following
        if following != slot:
            e.owner[following] = owner
    e.after[previous], e.before[following] = following, previous
    e.after[slot] = e.before[slot] = e.owner[slot] = NONE


@lean
def pass_on(e: Events, source: int, target: int) -> None:
    """Let all that wait for one row wait for another. O(1)."""
    head, other = e.first[source], e.first[target]
    if head == NONE:
        return
    e.first[source] = NONE
    if other == NONE:
        e.first[target], e.owner[head] = head, target
        return
    e.owner[head] = NONE
    tail, end = e.before[head], e.before[other]
    e.after[end], e.before[head], e.after[tail], e.before[other] = head, end, other, tail


@part
def _touch(e: Events, slot: int) -> None:
    if e.state[slot] & MARKED == 0:
        e.state[slot] |= MARKED
        e.touched[e.head[TOUCHED]] = slot
        e.head[TOUCHED] += 1


@lean
def show(e: Events, slot: int) -> None:
    """The row is in the answer now. O(1)."""
    e.state[slot] |= SHOWN
    _touch(e, slot)


@lean
def hide(e: Events, slot: int) -> None:
    """The row is not in the answer any more. O(1)."""
    e.state[slot] &= ~SHOWN
    _touch(e, slot)


@lean
def drop(e: Events, slot: int) -> None:
    """Expunge a row; those that wait for it wait for nobody. O(1) and one step for each of them."""
    stop_waiting(e, slot)
    while e.first[slot] != NONE:
        stop_waiting(e, np.int64(e.first[slot]))
    previous, following = e.older[slot], e.newer[slot]
    if previous == NONE:
        e.head[FIRST] = following
    else:
        e.newer[previous] = following
    if following == NONE:
        e.head[LAST] = previous
    else:
        e.older[following] = previous
    e.head[COUNT] -= 1
    e.state[slot] |= DEAD
    hide(e, slot)


@lean
def close(e: Events, time: int, out: np.ndarray, size: int) -> int:
    """End an instant: append its net changes as rows (time, sign, handle), `-` first; gives the new size."""
    touched = e.head[TOUCHED]
    for sign in (-1, 1):
        for i in range(touched):
            slot = e.touched[i]
            state = e.state[slot]
            if (state & SHOWN) - ((state & KNOWN) >> 1) == sign:
                out[size, 0], out[size, 1], out[size, 2] = time, sign, e.handles[slot]
                size += 1
    for i in range(touched):
        slot = e.touched[i]
        state = e.state[slot]
        if state & DEAD != 0:
            e.newer[slot] = e.head[FREE]
            e.head[FREE] = slot
        else:
            e.state[slot] = SHOWN | KNOWN if state & SHOWN != 0 else 0
    e.head[TOUCHED] = 0
    return size


@njit(cache=True)
def in_order(e: Events) -> np.ndarray:
    """The slots in order of arrival. O(n)."""
    out = np.empty(e.head[COUNT], dtype=np.int64)
    slot = e.head[FIRST]
    for i in range(out.size):
        out[i] = slot
        slot = e.newer[slot]
    return out


class EventList:
    """The owner of the arrays: makes room for them and checks them.

    >>> events = EventList()
    >>> events.grow()
    >>> first, second = enlist(events.arrays, 10, 0, 70), enlist(events.arrays, 12, 2, 71)
    >>> wait_for(events.arrays, second, first)
    >>> events.next_time, events.waiting(first)
    (10, [1])
    """

    def __init__(self) -> None:
        self.arrays = _arrays(0)

    def __len__(self) -> int:
        return int(self.arrays.head[COUNT])

    @property
    def room(self) -> int:
        """How many slots there are, in use or not."""
        return len(self.arrays.times)

    @property
    def next_time(self) -> int:
        """The time of the next event; the largest int64 if there is none. O(1)."""
        first = self.arrays.head[FIRST]
        return int(np.iinfo(np.int64).max if first == NONE else self.arrays.times[first])

    @property
    def memory_bytes(self) -> int:
        """Bytes of all arrays held. O(1)."""
        return sum(array.nbytes for array in self.arrays)

    def grow(self) -> None:
        """Make room for one more row at least. Amortised O(1) per row."""
        if not has_slot(self.arrays):
            old, self.arrays = self.arrays, _arrays(self.room + self.room // 3 + 16)
            for source, target in zip(old, self.arrays, strict=True):
                target[: len(source)] = source

    def order(self) -> Integers:
        """The slots in order of arrival. O(n)."""
        return np.asarray(in_order(self.arrays))

    def waiting(self, owner: int) -> list[int]:
        """Who waits for this row. O(answer)."""
        e, members = self.arrays, []
        slot = int(e.first[owner])
        while slot != NONE and slot not in members:
            members.append(slot)
            slot = int(e.after[slot])
        return members

    def _check(self) -> None:
        """State the invariants between instants: order, rings, states, free list, nothing touched. O(n)."""
        e = self.arrays
        order = self.order().tolist()
        assert len(set(order)) == len(order)
        assert (int(e.head[FIRST]), int(e.head[LAST])) == ((order[0], order[-1]) if order else (NONE, NONE))
        assert e.older[order].tolist() == [NONE, *order[:-1]][: len(order)]
        assert (np.diff(e.arrivals[order]) >= 0).all()
        assert all(a <= b for a, b in zip(e.times[order][:-1], e.times[order][1:], strict=True))
        assert e.head[TOUCHED] == 0
        members = []
        for owner in order:
            ring = self.waiting(owner)
            members += ring
            assert [int(e.owner[slot]) for slot in ring] == [owner, *[NONE] * len(ring)][: len(ring)]
            assert all(e.before[e.after[slot]] == slot for slot in ring)
        assert len(set(members)) == len(members)
        assert set(members) == {slot for slot in order if e.after[slot] != NONE}
        assert all(e.state[slot] in (0, SHOWN | KNOWN) for slot in order)
        spare, slot = set(), int(e.head[FREE])
        while slot != NONE:
            assert slot not in spare
            spare.add(slot)
            slot = int(e.newer[slot])
        assert spare.isdisjoint(order)
        assert len(spare) + len(order) == e.head[MADE] <= self.room


def _arrays(slots: int) -> Events:
    head = np.zeros(6, dtype=np.int64)
    head[[FIRST, LAST, FREE]] = NONE
    times, arrivals, handles = (np.empty(slots, dtype=np.int64) for _ in range(3))
    older, newer, first, after, before, owner, touched = (np.empty(slots, dtype=np.int32) for _ in range(7))
    state = np.zeros(slots, dtype=np.uint8)
    return Events(head, times, arrivals, handles, older, newer, first, after, before, owner, touched, state)
