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

from skytide.kernel.rtree_lanes import lean, part
from skytide.model import Integers

USED, TAIL, HEAP, MEMBERS, SLOPES, CROSSINGS, STEPS = range(7)
"""What `meta` says: changes in the queue, those that have come to pass, sizes of the heap and of the skyline. And what
was done: slopes changed, bars crossed, moves in the heap."""
META = 7
NEVER = np.iinfo(np.int64).max
NONE = -1
FINE, WRONG, TWICE = 0, 1, 2
"""What is wrong with a change: nothing; it enters what is in or takes out what is not; it is the id's second one in a
snapshot."""


class State(NamedTuple):
    """All that is known. What is read from the narrow arrays is widened, lest functions compile twice."""

    meta: np.ndarray
    # by pair: its window and its bar, and the first change of the queue that has not left its window
    overs: np.ndarray
    needs: np.ndarray
    heads: np.ndarray
    # the queue: number of the snapshot, slot, +1 or -1
    numbers: np.ndarray
    slots: np.ndarray
    signs: np.ndarray
    # by node: the line that the count follows, whether the id is in the pair's answer, its place in the heap
    bases: np.ndarray
    slopes: np.ndarray
    shown: np.ndarray
    places: np.ndarray
    # the heap: when, and which node
    dues: np.ndarray
    nodes: np.ndarray
    # by slot: its place among the members; the last snapshot that changed it; how often queue and history name it;
    # the number and time of its last entry
    seats: np.ndarray
    touched: np.ndarray
    uses: np.ndarray
    entries: np.ndarray
    entry_keys: np.ndarray
    # the slots that are in the skyline, in any order
    members: np.ndarray


# -- the heap of crossings ---------------------------------------------------------------------------------------------


@part
def _put(s: State, place: int, due: int, node: int) -> None:
    s.dues[place], s.nodes[place], s.places[node] = due, node, place
    s.meta[STEPS] += 1


@part
def _rise(s: State, place: int, due: int, node: int) -> None:
    """Put a crossing where it belongs, at this place or above."""
    while place > 0:
        above = (place - 1) >> 1
        if s.dues[above] <= due:
            break
        _put(s, place, np.int64(s.dues[above]), np.int64(s.nodes[above]))
        place = above
    _put(s, place, due, node)


@part
def _sink(s: State, place: int, due: int, node: int) -> None:
    """Put a crossing where it belongs, at this place or below."""
    size = s.meta[HEAP]
    while True:
        below = 2 * place + 1
        if below >= size:
            break
        if below + 1 < size and s.dues[below + 1] < s.dues[below]:
            below += 1
        if s.dues[below] >= due:
            break
        _put(s, place, np.int64(s.dues[below]), np.int64(s.nodes[below]))
        place = below
    _put(s, place, due, node)


@part
def _place(s: State, place: int, due: int, node: int) -> None:
    if place > 0 and s.dues[(place - 1) >> 1] > due:
        _rise(s, place, due, node)
    else:
        _sink(s, place, due, node)


@part
def _cancel(s: State, node: int) -> None:
    """Take a node's crossing out of the heap."""
    place = np.int64(s.places[node])
    s.places[node] = NONE
    s.meta[HEAP] -= 1
    last = s.meta[HEAP]
    if place != last:
        _place(s, place, np.int64(s.dues[last]), np.int64(s.nodes[last]))


@part
def _foresee(s: State, node: int, need: int) -> None:
    """See to it that the heap holds the crossing that lies ahead of a node, if one does. O(log nodes)."""
    due = NEVER
    if s.slopes[node] == 1 and s.shown[node] == 0:
        due = need - s.bases[node]
    elif s.slopes[node] == -1 and s.shown[node] == 1:
        due = s.bases[node] - need + 1
    place = np.int64(s.places[node])
    if due == NEVER:
        if place != NONE:
            _cancel(s, node)
    elif place != NONE:
        _place(s, place, due, node)
    else:
        s.meta[HEAP] += 1
        _rise(s, s.meta[HEAP] - 1, due, node)


# -- a run of snapshots ------------------------------------------------------------------------------------------------


@part
def _bend(s: State, node: int, by: int, number: int, need: int) -> None:
    """From this snapshot on the count grows faster by so much than before."""
    s.bases[node] -= by * (number - 1)
    s.slopes[node] += by
    s.meta[SLOPES] += 1
    _foresee(s, node, need)


@part
def _next_event(s: State) -> int:
    """The number of the next snapshot at which something happens."""
    tail = s.meta[TAIL]
    number = NEVER
    if tail < s.meta[USED]:
        number = s.numbers[tail]
    for pair in range(s.heads.size):
        head = s.heads[pair]
        if head < tail:
            number = min(number, s.numbers[head] + s.overs[pair])
    if s.meta[HEAP] > 0:
        number = min(number, s.dues[0])
    return number


@part
def _change_slopes(s: State, number: int) -> None:
    """Let what changed `over` snapshots ago leave the windows, and what changes now enter them."""
    pairs = s.heads.size
    tail = s.meta[TAIL]
    for pair in range(pairs):
        head = s.heads[pair]
        while head < tail and s.numbers[head] + s.overs[pair] == number:
            _bend(s, np.int64(s.slots[head]) * pairs + pair, -np.int64(s.signs[head]), number, s.needs[pair])
            head += 1
        s.heads[pair] = head
    while tail < s.meta[USED] and s.numbers[tail] == number:
        node, sign = np.int64(s.slots[tail]) * pairs, np.int64(s.signs[tail])
        for pair in range(pairs):
            _bend(s, node + pair, sign, number, s.needs[pair])
        tail += 1
    s.meta[TAIL] = tail


@njit(cache=True)
def run(s: State, until: int) -> np.ndarray:
    """Let the snapshots up to this number pass, with the queued changes that fall on them.

    Gives the crossings as rows: numbers of snapshots, nodes, +1 or -1; in the order of the numbers.
    O((changes that come or leave a window and crossings) * log nodes): quiet snapshots and ids cost nothing.
    """
    moves = np.empty((3, 64), np.int64)
    count = 0
    while True:
        number = _next_event(s)
        if number > until:
            break
        _change_slopes(s, number)
        while s.meta[HEAP] > 0 and s.dues[0] == number:
            node = np.int64(s.nodes[0])
            _cancel(s, node)
            s.shown[node] ^= 1
            s.meta[CROSSINGS] += 1
            if count == moves.shape[1]:
                larger = np.empty((3, 2 * count), np.int64)
                larger[:, :count] = moves
                moves = larger
            moves[0, count], moves[1, count], moves[2, count] = number, node, 2 * np.int64(s.shown[node]) - 1
            count += 1
    return moves[:, :count].copy()


@lean
def load(s: State, now: int) -> None:
    """Find lines, answers and crossings anew, from the members and a queue that has come to pass up to `now`.

    in(m) is in(now) less the signs of the changes after m; summed over the window this gives the count. O(queue pairs).
    """
    pairs = s.heads.size
    for pair in range(pairs):
        start = max(now - s.overs[pair], 0)
        head = 0
        while head < s.meta[USED] and s.numbers[head] + s.overs[pair] <= now:
            head += 1
        s.heads[pair] = head
        for at in range(head, s.meta[USED]):
            node, sign = np.int64(s.slots[at]) * pairs + pair, np.int64(s.signs[at])
            s.bases[node] -= sign * (s.numbers[at] - 1 - start)
            s.slopes[node] += sign
        for at in range(s.meta[MEMBERS]):
            s.bases[np.int64(s.members[at]) * pairs + pair] += now - start
    for slot in range(s.seats.size):
        for pair in range(pairs):
            one = slot * pairs + pair
            s.shown[one] = s.bases[one] >= s.needs[pair]
            s.bases[one] -= s.slopes[one] * now
            _foresee(s, one, s.needs[pair])
    s.meta[TAIL] = s.meta[USED]


# -- who is in ---------------------------------------------------------------------------------------------------------


@part
def _toggle(s: State, slot: int) -> None:
    """Let an id into the skyline that is not in it, or out."""
    seat = np.int64(s.seats[slot])
    if seat == NONE:
        s.members[s.meta[MEMBERS]], s.seats[slot] = slot, s.meta[MEMBERS]
        s.meta[MEMBERS] += 1
        return
    s.meta[MEMBERS] -= 1
    last = np.int64(s.members[s.meta[MEMBERS]])
    s.members[seat], s.seats[last] = last, seat
    s.seats[slot] = NONE


@lean
def admit(s: State, count: int) -> tuple[int, int]:
    """Take so many changes that lie behind the queue, in order of snapshots, into it; or none of them.

    Gives how many could be taken before one that cannot be, and what is wrong with that one. O(count).
    """
    first = s.meta[USED]
    taken, wrong = 0, FINE
    while taken < count:
        at = first + taken
        slot = np.int64(s.slots[at])
        if s.touched[slot] == s.numbers[at]:
            wrong = TWICE
            break
        if (s.seats[slot] == NONE) != (s.signs[at] > 0):
            wrong = WRONG
            break
        _toggle(s, slot)
        s.touched[slot] = s.numbers[at]
        s.uses[slot] += 1
        taken += 1
    if wrong == FINE:
        s.meta[USED] += count
        return taken, wrong
    for back in range(taken - 1, -1, -1):
        slot = np.int64(s.slots[first + back])
        _toggle(s, slot)
        s.touched[slot] = NONE
        s.uses[slot] -= 1
    return taken, wrong


@lean
def compare(s: State, given: Integers, slots: np.ndarray, signs: np.ndarray) -> int:
    """Who enters and who leaves when the given ids, and no others, are in; how many. O(given and members)."""
    mark = NEVER
    count = 0
    for at in range(given.size):
        slot = given[at]
        if s.touched[slot] == mark:
            continue
        s.touched[slot] = mark
        if s.seats[slot] == NONE:
            slots[count], signs[count] = slot, 1
            count += 1
    for at in range(s.meta[MEMBERS]):
        slot = np.int64(s.members[at])
        if s.touched[slot] != mark:
            slots[count], signs[count] = slot, -1
            count += 1
    for at in range(given.size):
        s.touched[given[at]] = NONE
    return count


@lean
def stays(s: State, first: int, keys: Integers, before: int, log: np.ndarray, names: np.ndarray) -> int:
    """Note the entries among the changes of the queue from `first` on, and write down the stays that end; how many.

    `keys` are the times of the snapshots after number `before`. A stay is a line of `log` (number and time of entry and
    of leaving) and a slot in `names`.
    """
    count = 0
    for at in range(first, s.meta[USED]):
        slot, number = np.int64(s.slots[at]), s.numbers[at]
        key = keys[number - before - 1]
        if s.signs[at] > 0:
            s.entries[slot], s.entry_keys[slot] = number, key
        else:
            log[0, count], log[1, count] = s.entries[slot], number
            log[2, count], log[3, count] = s.entry_keys[slot], key
            names[count] = slot
            s.uses[slot] += 1
            count += 1
    return count


@lean
def release(s: State, slots: np.ndarray, free: np.ndarray) -> int:
    """One use less for each slot named; write down those that nothing needs any more, how many. O(slots)."""
    count = 0
    for at in range(slots.size):
        slot = np.int64(slots[at])
        s.uses[slot] -= 1
        if s.uses[slot] == 0 and s.seats[slot] == NONE:
            free[count] = slot
            count += 1
    return count
