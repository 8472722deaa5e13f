"""Lazy (Tao, Papadias, TKDE 2006, Section 3.1) over flat lists (LL-Lazy) and over R-trees (I-Lazy).

L-PM: a new row that a skyline row dominates goes to the rest; any other joins the skyline and expunges the skyline rows
that it dominates. L-MM: when a skyline row expires, the skyline of what it alone dominated follows it. `run_trees`
finds those in an R-tree of the rest, as the paper does; `run_lists` knows them: every row of the rest waits for one
skyline row that dominates it, its witness, and is looked at again only when that one expires, instead of a scan of the
whole rest for every expiry.

Where we differ: rows of the rest leave when they expire, not at the next L-MM (whose line 4 must read <=), so what is
retained is live. Within one instant rows leave one after the other, each with its own L-MM, and changes are net.
"""

from __future__ import annotations

import numpy as np

from skytide.kernel.events import (
    FIRST,
    NONE,
    Events,
    close,
    drop,
    enlist,
    has_slot,
    hide,
    pass_on,
    show,
    stop_waiting,
    wait_for,
)
from skytide.kernel.rtree_insert import insert
from skytide.kernel.rtree_lanes import LANES, lanes_weakly_better, lanes_weakly_worse, lean, lowest_bit, part
from skytide.kernel.rtree_nodes import Tree, has_room
from skytide.kernel.rtree_remove import remove
from skytide.kernel.rtree_search import any_dominates, dominated, exposed

# the numbers in `state`; the first four are those of all engines
ROW, OPEN, NOW, SIZE, PENDING, FREE_LANE, MADE_LANES, TESTS, HINT = range(9)
STATE_SIZE = 9
DONE, FULL = 0, 1


@part
def _open_instant(e: Events, state: np.ndarray, keys: np.ndarray, until: int) -> bool:
    """Find the next instant, of an arrival or of an expiry; False if there is none up to `until`."""
    i, first = state[ROW], e.head[FIRST]
    due = first != NONE and e.times[first] <= until
    if i < len(keys) and (not due or keys[i, 0] < e.times[first]):
        state[NOW] = keys[i, 0]
    elif due:
        state[NOW] = e.times[first]
    else:
        return False
    state[OPEN] = 1
    return True


# -- over R-trees ------------------------------------------------------------------------------------------------------


@part
def _point(t: Tree, slot: int, out: np.ndarray) -> None:
    at = t.where[slot]
    for k in range(out.size):
        out[k] = t.points[(at // LANES * out.size + k) * LANES + at % LANES]


@part
def _promote(
    sky: Tree, rest: Tree, e: Events, slot: int, q: np.ndarray, other: np.ndarray, buffer: np.ndarray, again: bool
) -> int:
    """Move a row from the rest to the skyline; if rows came before it (`again`), those that it dominates go back."""
    _point(rest, slot, q)
    found = buffer.size if again else 0
    while found > buffer.size - LANES:
        found = dominated(sky, q, buffer)
        for i in range(found):
            if not has_room(rest):
                return FULL
            _point(sky, buffer[i], other)
            remove(sky, buffer[i])
            insert(rest, buffer[i], other, e.times[buffer[i]])
            hide(e, buffer[i])
    remove(rest, slot)
    insert(sky, slot, q, e.times[slot])
    show(e, slot)
    return DONE


@part
def _succeed(
    sky: Tree, rest: Tree, e: Events, points: np.ndarray, found: np.ndarray, buffer: np.ndarray, state: np.ndarray
) -> int:
    """L-MM, lines 6 to 8, for the expired point in points[0]."""
    half = buffer.size // 2
    while state[PENDING] != 0:
        size = exposed(rest, sky, points[0], state[NOW], points[1], found, buffer[:half])
        again = state[PENDING] == 2
        if size == half:
            # There may be more, and what comes later may dominate what comes now.
            state[PENDING] = 2
        for i in range(size):
            if (
                not has_room(sky)
                or _promote(sky, rest, e, buffer[i], points[1], points[2], buffer[half:], again) == FULL
            ):
                return FULL
        if size < half:
            state[PENDING] = 0
    return DONE


@part
def _expire_in_trees(
    sky: Tree, rest: Tree, e: Events, points: np.ndarray, found: np.ndarray, buffer: np.ndarray, state: np.ndarray
) -> int:
    while True:
        if state[PENDING] != 0 and _succeed(sky, rest, e, points, found, buffer, state) == FULL:
            return FULL
        slot = e.head[FIRST]
        if slot == NONE or e.times[slot] > state[NOW]:
            return DONE
        if sky.where[slot] == NONE:
            remove(rest, slot)
        else:
            _point(sky, slot, points[0])
            remove(sky, slot)
            state[PENDING] = 1
        drop(e, slot)


@lean
def run_trees(
    sky: Tree,
    rest: Tree,
    e: Events,
    points: np.ndarray,
    found: np.ndarray,
    buffer: np.ndarray,
    state: np.ndarray,
    values: np.ndarray,
    keys: np.ndarray,
    until: int,
    out: np.ndarray,
) -> int:
    """Go through the rows and all instants up to `until`; DONE, or FULL when something must grow before going on.

    `keys` has the columns instant, arrival, expiry, handle; `out` takes rows (time, sign, handle), state[SIZE] of them.
    """
    while state[OPEN] != 0 or _open_instant(e, state, keys, until):
        if _expire_in_trees(sky, rest, e, points, found, buffer, state) == FULL:
            return FULL
        now = state[NOW]
        while state[ROW] < len(values) and keys[state[ROW], 0] == now:
            i = state[ROW]
            q, expiry = values[i], keys[i, 2]
            if expiry > now:
                if not (has_slot(e) and has_room(sky) and has_room(rest)):
                    return FULL
                if any_dominates(sky, q):
                    insert(rest, enlist(e, expiry, keys[i, 1], keys[i, 3]), q, expiry)
                else:
                    size = buffer.size
                    while size > buffer.size - LANES:
                        size = dominated(sky, q, buffer)
                        for j in range(size):
                            remove(sky, buffer[j])
                            drop(e, buffer[j])
                    slot = enlist(e, expiry, keys[i, 1], keys[i, 3])
                    insert(sky, slot, q, expiry)
                    show(e, slot)
            state[ROW] = i + 1
        state[SIZE] = close(e, now, out, state[SIZE])
        state[OPEN] = 0
    return DONE


# -- over flat lists ---------------------------------------------------------------------------------------------------


@part
def _has_lane(lane_slots: np.ndarray, state: np.ndarray) -> bool:
    return bool(state[FREE_LANE] != NONE or state[MADE_LANES] < lane_slots.size)


@part
def _enter_lane(
    lanes: np.ndarray, lane_slots: np.ndarray, sky_at: np.ndarray, slot: int, q: np.ndarray, state: np.ndarray
) -> None:
    d = q.size
    at = state[FREE_LANE]
    if at == NONE:
        at = state[MADE_LANES]
        state[MADE_LANES] += 1
    else:
        state[FREE_LANE] = -2 - lane_slots[at]
    for k in range(d):
        lanes[(at // LANES * d + k) * LANES + at % LANES] = q[k]
    lane_slots[at], sky_at[slot] = slot, at


@part
def _leave_lane(
    lanes: np.ndarray, lane_slots: np.ndarray, sky_at: np.ndarray, slot: int, d: int, state: np.ndarray
) -> None:
    at = sky_at[slot]
    for k in range(d):
        lanes[(at // LANES * d + k) * LANES + at % LANES] = np.nan
    lane_slots[at] = -2 - state[FREE_LANE]
    state[FREE_LANE] = at
    sky_at[slot] = NONE


@part
def _witness(lanes: np.ndarray, lane_slots: np.ndarray, q: np.ndarray, state: np.ndarray) -> int:
    """A skyline row that dominates q; else NONE, or NONE - 1 if q dominates skyline rows itself."""
    d, blocks = q.size, (state[MADE_LANES] + LANES - 1) // LANES
    answer = NONE
    # The block of the last success first: neighbours in a stream are often kept out by the same few rows.
    for step in range(-1, blocks):
        block = state[HINT] if step < 0 else step
        if block >= blocks:
            continue
        state[TESTS] += LANES
        better = lanes_weakly_better(lanes, block * d * LANES, LANES, q)
        worse = lanes_weakly_worse(lanes, block * d * LANES, LANES, q)
        if better & ~worse != 0:
            state[HINT] = block
            return int(lane_slots[block * LANES + lowest_bit(better & ~worse)])
        if worse & ~better != 0:
            answer = NONE - 1
    return answer


@part
def _join(
    lanes: np.ndarray,
    lane_slots: np.ndarray,
    sky_at: np.ndarray,
    e: Events,
    slot: int,
    q: np.ndarray,
    state: np.ndarray,
    dominates: bool,
    newer: bool,
) -> None:
    """Put a row into the skyline. Rows that it dominates there are expunged if it is newer, else they wait for it."""
    d = q.size
    blocks = (state[MADE_LANES] + LANES - 1) // LANES if dominates else 0
    for block in range(blocks):
        bits = lanes_weakly_worse(lanes, block * d * LANES, LANES, q)
        bits &= ~lanes_weakly_better(lanes, block * d * LANES, LANES, q)
        while bits != 0:
            other = lane_slots[block * LANES + lowest_bit(bits)]
            bits &= bits - 1
            _leave_lane(lanes, lane_slots, sky_at, other, d, state)
            pass_on(e, other, slot)
            if newer:
                drop(e, other)
            else:
                hide(e, other)
                wait_for(e, other, slot)
    _enter_lane(lanes, lane_slots, sky_at, slot, q, state)
    show(e, slot)


@part
def _expire_in_lists(
    lanes: np.ndarray, lane_slots: np.ndarray, sky_at: np.ndarray, points: np.ndarray, e: Events, state: np.ndarray
) -> int:
    """Rows whose time has come leave; what waited for one of them finds another skyline row or joins the skyline."""
    now = state[NOW]
    while True:
        slot = e.head[FIRST]
        if slot == NONE or e.times[slot] > now:
            return DONE
        if sky_at[slot] != NONE:
            _leave_lane(lanes, lane_slots, sky_at, slot, points.shape[1], state)
        while e.first[slot] != NONE:
            if not _has_lane(lane_slots, state):
                return FULL
            one = np.int64(e.first[slot])
            stop_waiting(e, one)
            if e.times[one] <= now:
                continue
            witness = _witness(lanes, lane_slots, points[one], state)
            if witness >= 0:
                wait_for(e, one, witness)
            else:
                _join(lanes, lane_slots, sky_at, e, one, points[one], state, witness != NONE, False)
        drop(e, slot)


@lean
def run_lists(
    lanes: np.ndarray,
    lane_slots: np.ndarray,
    sky_at: np.ndarray,
    points: np.ndarray,
    e: Events,
    state: np.ndarray,
    values: np.ndarray,
    keys: np.ndarray,
    until: int,
    out: np.ndarray,
) -> int:
    """Like `run_trees`; the skyline lies in `lanes`, laid out like leaves, all rows in `points`, row by row."""
    d = points.shape[1]
    while state[OPEN] != 0 or _open_instant(e, state, keys, until):
        if _expire_in_lists(lanes, lane_slots, sky_at, points, e, state) == FULL:
            return FULL
        now = state[NOW]
        while state[ROW] < len(values) and keys[state[ROW], 0] == now:
            i = state[ROW]
            q, expiry = values[i], keys[i, 2]
            if expiry > now:
                if not (has_slot(e) and _has_lane(lane_slots, state)):
                    return FULL
                witness = _witness(lanes, lane_slots, q, state)
                slot = enlist(e, expiry, keys[i, 1], keys[i, 3])
                sky_at[slot] = NONE
                for k in range(d):
                    points[slot, k] = q[k]
                if witness >= 0:
                    wait_for(e, slot, witness)
                else:
                    _join(lanes, lane_slots, sky_at, e, slot, q, state, witness != NONE, True)
            state[ROW] = i + 1
        state[SIZE] = close(e, now, out, state[SIZE])
        state[OPEN] = 0
    return DONE
