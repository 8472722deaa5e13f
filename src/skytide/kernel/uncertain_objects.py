"""Uncertain objects with several instances, as array code: objects in order of arrival in, moves per threshold out.

`monitors.uncertain.objects` says what is kept and why that is exact. Here an instance has a line of d values and three
chances: its own probability P, `NEWER`, the product over newer objects of one minus the probability that the object is
at an instance dominating it, and `OLDER`, the same over the older ones that are kept. `NEWER` is only ever multiplied.
`OLDER` is never divided: `UNTIL` is the first expiry of an object that is in it, and then it is computed anew.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from skytide.kernel.dominance import dominates_at, relation_at
from skytide.model import Floats, Integers

P, NEWER, OLDER = 0, 1, 2
OWNER, UNTIL = 0, 1
START, STOP, ARRIVAL, EXPIRY, HANDLE, LEVEL, POSSIBLE, TOUCHED = range(8)
"""Of an object: its instances, its life, its name, how many thresholds it was last said to reach, whether it may yet
reach one, and whether its probability may have changed since that was said."""
FIRST, OBJECTS, INSTANCES, LIVE, NEXT_UNTIL, TESTS, MOVES = range(7)
"""Of all: the first object that has not expired, how many objects and instances the arrays hold, how many instances
are not gone, the least `UNTIL`, dominance tests so far, moves so far."""
META = 7
GONE = -1
NEVER = np.iinfo(np.int64).max


@njit(cache=True)
def advance(
    values: Floats,
    chances: Floats,
    places: Integers,
    lives: Integers,
    meta: Integers,
    count: int,
    until: int,
    bars: Floats,
    least: float,
) -> Integers:
    """Make all instants up to `until` final; the moves, as (4, n): instant, sign, handle, threshold.

    `count` new objects lie behind the old ones in all arrays; they are moved down as gaps are closed. `bars` are what a
    probability must reach, falling; an instance whose `NEWER` is below `least` is forgotten. O(d instances) per new
    instance.
    """
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
        _expire(chances, places, lives, meta, at)
        if meta[NEXT_UNTIL] <= at:
            _renew(values, chances, places, lives, meta, at)
        while fresh < last and lives[ARRIVAL, fresh] <= at:
            if lives[EXPIRY, fresh] > at:
                _insert(values, chances, places, lives, meta, fresh, bars[-1], least)
            fresh += 1
        moves = _tell(chances, places, lives, meta, at, bars, moves)
        if meta[INSTANCES] > 2 * meta[LIVE] + 64:
            _compact(values, chances, places, lives, meta)
    _compact(values, chances, places, lives, meta)
    return moves[:, : meta[MOVES]].copy()


@njit(cache=True)
def _expire(chances: Floats, places: Integers, lives: Integers, meta: Integers, at: int) -> None:
    """Take out the objects whose time is over."""
    while meta[FIRST] < meta[OBJECTS] and lives[EXPIRY, meta[FIRST]] <= at:
        one = meta[FIRST]
        for u in range(lives[START, one], lives[STOP, one]):
            if places[OWNER, u] != GONE:
                places[OWNER, u] = GONE
                meta[LIVE] -= 1
        lives[POSSIBLE, one], lives[TOUCHED, one] = 0, 1
        meta[FIRST] += 1


@njit(cache=True)
def _renew(values: Floats, chances: Floats, places: Integers, lives: Integers, meta: Integers, at: int) -> None:
    """Compute `OLDER` anew where something that is in it has expired."""
    least = NEVER
    for one in range(meta[FIRST], meta[OBJECTS]):
        if not lives[POSSIBLE, one]:
            continue
        for u in range(lives[START, one], lives[STOP, one]):
            if places[OWNER, u] == GONE:
                continue
            if places[UNTIL, u] <= at:
                _compute_older(values, chances, places, lives, meta, one, u)
                lives[TOUCHED, one] = 1
            least = min(least, places[UNTIL, u])
    meta[NEXT_UNTIL] = least


@njit(cache=True)
def _compute_older(
    values: Floats, chances: Floats, places: Integers, lives: Integers, meta: Integers, one: int, u: int
) -> None:
    chances[OLDER, u], places[UNTIL, u] = 1.0, NEVER
    for other in range(meta[FIRST], one):
        there = 0.0
        for v in range(lives[START, other], lives[STOP, other]):
            if places[OWNER, v] != GONE:
                meta[TESTS] += 1
                if dominates_at(values, v, values, u):
                    there += chances[P, v]
        if there > 0:
            chances[OLDER, u] *= max(0.0, 1.0 - there)
            places[UNTIL, u] = min(places[UNTIL, u], lives[EXPIRY, other])


@njit(cache=True)
def _insert(
    values: Floats,
    chances: Floats,
    places: Integers,
    lives: Integers,
    meta: Integers,
    fresh: int,
    bar: float,
    least: float,
) -> None:
    """Take the new object at `fresh` to the end of what is kept, and weigh it against that."""
    start, one, row = meta[INSTANCES], meta[OBJECTS], lives[START, fresh]
    size = lives[STOP, fresh] - row
    for k in range(8):
        lives[k, one] = lives[k, fresh]
    lives[START, one], lives[STOP, one] = start, start + size
    total = 0.0
    for k in range(size):
        values[start + k] = values[row + k]
        chances[P, start + k] = chances[P, row + k]
        chances[NEWER, start + k] = chances[OLDER, start + k] = 1.0
        places[OWNER, start + k], places[UNTIL, start + k] = one, NEVER
        total += chances[P, start + k]
    lives[LEVEL, one], lives[POSSIBLE, one], lives[TOUCHED, one] = 0, total >= bar, 1
    there = np.zeros(size)
    for other in range(meta[FIRST], one):
        _weigh(values, chances, places, lives, meta, other, start, there, bar, least)
    for u in range(start, start + size):
        meta[NEXT_UNTIL] = min(meta[NEXT_UNTIL], places[UNTIL, u])
    meta[OBJECTS] += 1
    meta[INSTANCES] += size
    meta[LIVE] += size


@njit(cache=True)
def _weigh(
    values: Floats,
    chances: Floats,
    places: Integers,
    lives: Integers,
    meta: Integers,
    other: int,
    start: int,
    there: Floats,
    bar: float,
    least: float,
) -> None:
    """What an older object does to the new one's instances, from `start` on, and what they do to it."""
    hit = met = False
    for v in range(lives[START, other], lives[STOP, other]):
        if places[OWNER, v] == GONE:
            continue
        here = 0.0
        for k in range(there.shape[0]):
            meta[TESTS] += 1
            side = relation_at(values, start + k, values, v)
            if side < 0:
                here += chances[P, start + k]
            elif side > 0:
                there[k] += chances[P, v]
                met = True
        if here > 0:
            chances[NEWER, v] *= max(0.0, 1.0 - here)
            hit = True
            if chances[NEWER, v] < least:
                places[OWNER, v] = GONE
                meta[LIVE] -= 1
    if met:
        for k in range(there.shape[0]):
            if there[k] > 0:
                chances[OLDER, start + k] *= max(0.0, 1.0 - there[k])
                places[UNTIL, start + k] = min(places[UNTIL, start + k], lives[EXPIRY, other])
                there[k] = 0.0
    if hit and lives[POSSIBLE, other]:
        lives[TOUCHED, other] = 1
        most = 0.0
        for v in range(lives[START, other], lives[STOP, other]):
            if places[OWNER, v] != GONE:
                most += chances[P, v] * chances[NEWER, v]
        if most < bar:
            lives[POSSIBLE, other] = 0


@njit(cache=True)
def probabilities(chances: Floats, places: Integers, lives: Integers) -> Floats:
    """The skyline probabilities of all objects; 0 for those that reach no threshold any more. O(instances)."""
    found = np.empty(lives.shape[1])
    for one in range(lives.shape[1]):
        found[one] = _probability(chances, places, lives, one)
    return found


@njit(cache=True)
def _probability(chances: Floats, places: Integers, lives: Integers, one: int) -> float:
    total = 0.0
    if lives[POSSIBLE, one]:
        for u in range(lives[START, one], lives[STOP, one]):
            if places[OWNER, u] != GONE:
                total += chances[P, u] * chances[NEWER, u] * chances[OLDER, u]
    return total


@njit(cache=True)
def _tell(
    chances: Floats, places: Integers, lives: Integers, meta: Integers, at: int, bars: Floats, moves: Integers
) -> Integers:
    """Write down what the instant changed, and forget the objects that have expired since the last one."""
    for one in range(meta[OBJECTS]):
        if not lives[TOUCHED, one]:
            continue
        lives[TOUCHED, one] = 0
        chance = _probability(chances, places, lives, one)
        level = 0
        for k in range(bars.shape[0]):
            level += chance >= bars[k]
        before = lives[LEVEL, one]
        lives[LEVEL, one] = level
        sign = 1 if level > before else -1
        for reached in range(min(level, before), max(level, before)):
            count = meta[MOVES]
            if count == moves.shape[1]:
                larger = np.empty((4, 2 * count), np.int64)
                larger[:, :count] = moves
                moves = larger
            moves[0, count], moves[1, count], moves[2, count] = at, sign, lives[HANDLE, one]
            moves[3, count] = bars.shape[0] - 1 - reached
            meta[MOVES] += 1
    return moves


@njit(cache=True)
def _compact(values: Floats, chances: Floats, places: Integers, lives: Integers, meta: Integers) -> None:
    """Close the gaps that the expired and the forgotten left. O(d instances)."""
    objects = instances = 0
    for one in range(meta[FIRST], meta[OBJECTS]):
        start = instances
        for u in range(lives[START, one], lives[STOP, one]):
            if places[OWNER, u] == GONE:
                continue
            values[instances] = values[u]
            for k in range(3):
                chances[k, instances] = chances[k, u]
            places[OWNER, instances], places[UNTIL, instances] = objects, places[UNTIL, u]
            instances += 1
        if instances > start:
            for k in range(8):
                lives[k, objects] = lives[k, one]
            lives[START, objects], lives[STOP, objects] = start, instances
            objects += 1
    meta[FIRST], meta[OBJECTS], meta[INSTANCES] = 0, objects, instances
