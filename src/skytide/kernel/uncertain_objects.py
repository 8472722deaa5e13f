"""Uncertain objects with several instances, as array code: objects in order of arrival in, moves per threshold out.

`monitors.uncertain.objects` says what is kept and why that is exact. Here an instance has a line of d values and three
chances: its own probability P, `NEWER`, the product over newer objects of one minus the probability that the object is
at an instance dominating it, and `OLDER`, the same over the older ones. `NEWER` is only ever multiplied. `OLDER` is
never divided: `UNTIL` is the first expiry of an object that is in it, and then it is computed anew. It is multiplied
from the newest older object on and left alone when it is too small to matter: until one of its factors expires, it is.

Most pairs of objects are told apart by the corners of the boxes around their instances.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from skytide.kernel.dominance import dominates, dominates_at, weakly_dominates
from skytide.kernel.rtree_lanes import lean, part
from skytide.kernel.uncertain_state import with_room
from skytide.model import Floats, Integers

P, NEWER, OLDER = 0, 1, 2
LOW, HIGH = 0, 1
START, STOP, ARRIVAL, EXPIRY, HANDLE, LEVEL, POSSIBLE, TOUCHED = range(8)
"""Of an object: its instances, its life, its name, how many thresholds it was last said to reach, whether it may yet
reach one, and whether its probability may have changed since that was said."""
FIRST, OBJECTS, INSTANCES, LIVE, NEXT_UNTIL, TESTS, MOVES = range(7)
"""Of all: the first object that has not expired, how many objects and instances the arrays hold, how many instances
are not gone, the least `UNTIL`, comparisons of two lines of values so far, moves so far."""
META = 7
GONE = np.iinfo(np.int64).min
"""Instead of `UNTIL`: the instance is forgotten."""
NEVER = np.iinfo(np.int64).max


class Store(NamedTuple):
    """Objects in order of arrival, instances of one object side by side.

    `values` (n, d), `chances` (3, n) and `until` (n) are of instances; `lives` (8, m), `boxes` (2, m, d) and `nowhere`
    (m), the probability to be at none of the instances that are kept, of objects; `meta` of all.
    """

    values: Floats
    chances: Floats
    until: Integers
    lives: Integers
    boxes: Floats
    nowhere: Floats
    meta: Integers


@njit(cache=True)
def advance(store: Store, count: int, until: int, bars: Floats, least: float) -> Integers:
    """Make all instants up to `until` final; the moves, as (4, n): instant, sign, handle, threshold.

    `count` new objects lie behind the old ones; they are moved down as gaps are closed. `bars` are what a probability
    must reach, falling; an instance whose `NEWER` is below `least` is forgotten. O(d instances) per new instance.
    """
    lives, meta = store.lives, store.meta
    moves = np.empty((4, 64), np.int64)
    meta[MOVES] = 0
    fresh = meta[OBJECTS]  # where the next new object lies
    last = fresh + count
    while True:
        at = lives[ARRIVAL, fresh] if fresh < last else NEVER
        if meta[FIRST] < meta[OBJECTS]:
            at = min(at, lives[EXPIRY, meta[FIRST]])
        if at > until:
            break
        _expire(store, at)
        if meta[NEXT_UNTIL] <= at:
            _renew(store, at, least)
        while fresh < last and lives[ARRIVAL, fresh] <= at:
            if lives[EXPIRY, fresh] > at:
                _insert(store, fresh, bars[-1], least)
            fresh += 1
        moves = _tell(store, at, bars, moves)
        if meta[INSTANCES] > 2 * meta[LIVE] + 64:
            _compact(store)
    _compact(store)
    return moves[:, : meta[MOVES]].copy()


@lean
def probabilities(store: Store, found: Floats) -> None:
    """The skyline probabilities of all objects; 0 for those that reach no threshold any more. O(instances)."""
    for one in range(found.shape[0]):
        found[one] = _probability(store, one)


@part
def _probability(store: Store, one: int) -> float:
    chances, total, rest = store.chances, 0.0, 0.0
    if store.lives[POSSIBLE, one]:
        for u in range(store.lives[START, one], store.lives[STOP, one]):
            if store.until[u] != GONE:
                total, rest = _less(total, rest, -chances[P, u] * chances[NEWER, u] * chances[OLDER, u])
    return min(1.0, total + rest)


# -- instants ----------------------------------------------------------------------------------------------------------


@part
def _expire(store: Store, at: int) -> None:
    """Take out the objects whose time is over."""
    lives, meta = store.lives, store.meta
    while meta[FIRST] < meta[OBJECTS] and lives[EXPIRY, meta[FIRST]] <= at:
        one = meta[FIRST]
        for u in range(lives[START, one], lives[STOP, one]):
            if store.until[u] != GONE:
                store.until[u] = GONE
                meta[LIVE] -= 1
        lives[POSSIBLE, one], lives[TOUCHED, one] = 0, 1
        meta[FIRST] += 1


@part
def _renew(store: Store, at: int, least: float) -> None:
    """Compute `OLDER` anew where something that is in it has expired."""
    lives, meta = store.lives, store.meta
    meta[NEXT_UNTIL] = NEVER
    for one in range(meta[FIRST], meta[OBJECTS]):
        if not lives[POSSIBLE, one]:
            continue
        for u in range(lives[START, one], lives[STOP, one]):
            if store.until[u] == GONE:
                continue
            if store.until[u] <= at:
                _weigh_older(store, one, u, least)
                lives[TOUCHED, one] = 1
            meta[NEXT_UNTIL] = min(meta[NEXT_UNTIL], store.until[u])


@njit(cache=True)
def _tell(store: Store, at: int, bars: Floats, moves: Integers) -> Integers:
    """Write down what the instant changed."""
    lives, meta = store.lives, store.meta
    for one in range(meta[OBJECTS]):
        if not lives[TOUCHED, one]:
            continue
        lives[TOUCHED, one] = 0
        chance = _probability(store, one)
        level = 0
        for k in range(bars.shape[0]):
            level += chance >= bars[k]
        before = lives[LEVEL, one]
        lives[LEVEL, one] = level
        sign = 1 if level > before else -1
        for reached in range(min(level, before), max(level, before)):
            count = meta[MOVES]
            moves = with_room(moves, count + 1)
            moves[0, count], moves[1, count], moves[2, count] = at, sign, lives[HANDLE, one]
            moves[3, count] = bars.shape[0] - 1 - reached
            meta[MOVES] += 1
    return moves


@part
def _compact(store: Store) -> None:
    """Close the gaps that the expired and the forgotten left. O(d instances)."""
    lives, until, meta = store.lives, store.until, store.meta
    objects = instances = 0
    for one in range(meta[FIRST], meta[OBJECTS]):
        start = instances
        for u in range(lives[START, one], lives[STOP, one]):
            if until[u] != GONE:
                _copy_line(store.values, u, instances)
                for k in range(3):
                    store.chances[k, instances] = store.chances[k, u]
                until[instances] = until[u]
                instances += 1
        if instances > start:
            for k in range(8):
                lives[k, objects] = lives[k, one]
            lives[START, objects], lives[STOP, objects] = start, instances
            _copy_line(store.boxes[LOW], one, objects)
            _copy_line(store.boxes[HIGH], one, objects)
            store.nowhere[objects] = store.nowhere[one]
            objects += 1
    meta[FIRST], meta[OBJECTS], meta[INSTANCES] = 0, objects, instances


@part
def _copy_line(matrix: Floats, source: int, target: int) -> None:
    for k in range(matrix.shape[1]):
        matrix[target, k] = matrix[source, k]


# -- one object --------------------------------------------------------------------------------------------------------


@part
def _insert(store: Store, fresh: int, bar: float, least: float) -> None:
    """Take the new object at `fresh` to the end of what is kept, and weigh the two against each other."""
    lives, chances, meta = store.lives, store.chances, store.meta
    start, one, row = meta[INSTANCES], meta[OBJECTS], lives[START, fresh]
    size = lives[STOP, fresh] - row
    for k in range(8):
        lives[k, one] = lives[k, fresh]
    lives[START, one], lives[STOP, one] = start, start + size
    for k in range(size):
        _copy_line(store.values, row + k, start + k)
        chances[P, start + k] = chances[P, row + k]
        chances[NEWER, start + k] = chances[OLDER, start + k] = 1.0
        store.until[start + k] = NEVER
    meta[OBJECTS] += 1
    meta[INSTANCES] += size
    meta[LIVE] += size
    _measure(store, one)
    lives[LEVEL, one], lives[POSSIBLE, one], lives[TOUCHED, one] = 0, 1, 1
    lives[POSSIBLE, one] = _probability(store, one) >= bar
    for other in range(meta[FIRST], one):
        meta[TESTS] += 1
        if weakly_dominates(store.boxes[LOW, one], store.boxes[HIGH, other]):
            _weigh_newer(store, other, one, bar, least)
    if lives[POSSIBLE, one]:
        for u in range(start, start + size):
            _weigh_older(store, one, u, least)
            meta[NEXT_UNTIL] = min(meta[NEXT_UNTIL], store.until[u])


@part
def _measure(store: Store, one: int) -> None:
    """The box around an object's instances, and the probability to be at none of them."""
    low, high = store.boxes[LOW, one], store.boxes[HIGH, one]
    for k in range(low.shape[0]):
        low[k], high[k] = np.inf, -np.inf
    left, rest = 1.0, 0.0
    for u in range(store.lives[START, one], store.lives[STOP, one]):
        if store.until[u] != GONE:
            left, rest = _less(left, rest, store.chances[P, u])
            for k in range(low.shape[0]):
                low[k] = min(low[k], store.values[u, k])
                high[k] = max(high[k], store.values[u, k])
    store.nowhere[one] = max(0.0, left + rest)


@part
def _weigh_newer(store: Store, other: int, one: int, bar: float, least: float) -> None:
    """What a new object does to an older one: its instances are dominated, forgotten, or hopeless together."""
    lives, chances, meta = store.lives, store.chances, store.meta
    meta[TESTS] += 1
    all_of_it = dominates(store.boxes[HIGH, one], store.boxes[LOW, other])
    hit = lost = False
    most, rest = 0.0, 0.0
    for v in range(lives[START, other], lives[STOP, other]):
        if store.until[v] == GONE:
            continue
        elsewhere = store.nowhere[one] if all_of_it else _not_dominating(store, one, v)
        if elsewhere < 1:
            hit = True
            chances[NEWER, v] *= elsewhere
            if chances[NEWER, v] < least:
                store.until[v] = GONE
                meta[LIVE] -= 1
                lost = True
                continue
        most, rest = _less(most, rest, -chances[P, v] * chances[NEWER, v])
    if hit and lives[POSSIBLE, other]:
        lives[TOUCHED, other] = 1
        if most + rest < bar:
            lives[POSSIBLE, other] = 0
    if lost:
        _measure(store, other)


@part
def _weigh_older(store: Store, one: int, u: int, least: float) -> None:
    """`OLDER` of an instance of an object, from the objects that are kept, and until when it holds."""
    chances, meta, point = store.chances, store.meta, store.values[u]
    chances[OLDER, u], store.until[u] = 1.0, NEVER
    for other in range(one - 1, meta[FIRST] - 1, -1):
        if chances[OLDER, u] < least:
            return
        meta[TESTS] += 1
        if not weakly_dominates(store.boxes[LOW, other], point):
            continue
        meta[TESTS] += 1
        all_of_it = dominates(store.boxes[HIGH, other], point)
        elsewhere = store.nowhere[other] if all_of_it else _not_dominating(store, other, u)
        if elsewhere < 1:
            chances[OLDER, u] *= elsewhere
            store.until[u] = min(store.until[u], store.lives[EXPIRY, other])


@part
def _not_dominating(store: Store, one: int, v: int) -> float:
    """The probability that an object is at no instance that dominates another object's."""
    left, rest = 1.0, 0.0
    for u in range(store.lives[START, one], store.lives[STOP, one]):
        if store.until[u] != GONE:
            store.meta[TESTS] += 1
            if dominates_at(store.values, u, store.values, v):
                left, rest = _less(left, rest, store.chances[P, u])
    return max(0.0, left + rest)


@part
def _less(left: float, rest: float, p: float) -> tuple[float, float]:
    """A number less p, as the sum of two floats (Knuth), so that what is left of an object's certainty is exact."""
    total = left - p
    taken = total - left
    return total, rest + ((left - (total - taken)) - (p + taken))
