"""Boundaries between objects in fragments, compiled: where the boxes of PIVOT meet.

papa14 puts a pivot midway between two objects. Here a boundary costs each object as often as its sites' random walks
cross it: (step / room)^2, with the size of an update for the step. Between two objects the sum is least where the rooms
are as the steps to the power of 2/3; between an object and all that hang on it, where a convex sum is.

The paper groups: all that hang on an object begin where it ends, at one composite pivot. That gives them the most room,
but the object none: whenever it leaves its box, all of them need new ones. So they begin a part of the way beyond it,
towards the boundary that each would have with the object alone.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from skytide.kernel.filtering import Records, begin_above, cut_apart, stay_strict
from skytide.model import Floats, Integers

STEPS = 40
"""So often the interval is cut down by a third when the least cost is searched for."""


@njit(cache=True, _nrt=False)
def _walk(step: float, room: float) -> float:
    """How often a walk crosses a boundary; nothing where it does not move."""
    if step <= 0.0:
        return 0.0
    return float((step / room) ** 2) if room > 0.0 else np.inf


@njit(cache=True)
def part_members(records: Records, steps: Floats, members: Integers) -> None:
    """Shrink fresh boxes until every two members of the skyline are apart. O(fresh members * members * d)."""
    fresh = records.fresh
    for x in range(members.shape[0]):
        one = members[x]
        if not fresh[one]:
            continue
        for y in range(members.shape[0]):
            other = members[y]
            if other != one and not (fresh[other] and y < x):
                _part(records, steps, one, other)
                _part(records, steps, other, one)


@njit(cache=True, _nrt=False)
def _part(records: Records, steps: Floats, one: int, other: int) -> None:
    """See to it that `one` ends below where `other` begins, on the column where that costs least."""
    points, low, high, fresh = records.points, records.low, records.high, records.fresh
    best_k, best_cut, best_cost = -1, 0.0, np.inf
    for k in range(points.shape[1]):
        end = points[one, k] if fresh[one] else high[one, k]
        begin = points[other, k] if fresh[other] else low[other, k]
        if not end < begin:
            continue
        if high[one, k] < low[other, k]:
            return  # apart already
        if not fresh[other]:
            cut = np.nextafter(begin, -np.inf)
        elif not fresh[one]:
            cut = end
        else:
            cut = _between(end, begin, steps[one, k], steps[other, k])
        cost = 0.0
        if high[one, k] > cut:
            cost += _walk(steps[one, k], cut - points[one, k])
        if low[other, k] <= cut:
            cost += _walk(steps[other, k], points[other, k] - cut)
        if best_k < 0 or cost < best_cost:
            best_k, best_cut, best_cost = k, cut, cost
    cut_apart(records, one, other, best_k, best_cut)


@njit(cache=True, _nrt=False)
def _between(end: float, begin: float, first: float, second: float) -> float:
    """A value from `end` on and below `begin` that divides the room as the walks need it."""
    a, b = first ** (2.0 / 3.0), second ** (2.0 / 3.0)
    share = a / (a + b) if a + b > 0.0 else 0.5
    cut = end + (begin - end) * share
    if not end <= cut < begin:  # also where the difference is infinite
        cut = 0.5 * end + 0.5 * begin
    return cut if end <= cut < begin else end


@njit(cache=True)
def part_holders(
    records: Records, steps: Floats, holders: Integers, starts: Integers, below: Integers, apart: float
) -> None:
    """Divide the room between each holder and the fresh objects on it; those of holders[i] are below[starts[i]:...].

    On every column a fresh holder's box ends at one value for all of them. Theirs begin there (`apart` 0), at their own
    boundaries with the holder (1), or in between. O(below d).
    """
    points, low, high = records.points, records.low, records.high
    for h in range(holders.shape[0]):
        holder = holders[h]
        own = below[starts[h] : starts[h + 1]]
        if records.fresh[holder]:
            for k in range(points.shape[1]):
                high[holder, k] = min(high[holder, k], _shared_end(records, steps, holder, k, own))
            for one in own:
                stay_strict(points, high, holder, one)
        for one in own:
            begin_above(records, holder, one)
            for k in range(points.shape[1]):
                low[one, k] = max(low[one, k], _begin(records, steps, holder, k, one, apart))


@njit(cache=True, _nrt=False)
def _shared_end(records: Records, steps: Floats, holder: int, k: int, own: Integers) -> float:
    """The end of a holder's box on a column: the cost is convex, so that a search by thirds finds the least."""
    points = records.points
    start, nearest = points[holder, k], records.high[holder, k]
    for one in own:
        nearest = min(nearest, points[one, k])
    if not nearest - start < np.inf:
        return float(nearest if start > -np.inf else start)
    left, right = start, nearest
    for _ in range(STEPS):
        third = (right - left) / 3.0
        one_third, two_thirds = left + third, right - third
        if _holding(records, steps, holder, k, own, one_third) < _holding(records, steps, holder, k, own, two_thirds):
            right = two_thirds
        else:
            left = one_third
    return float(min(max(0.5 * left + 0.5 * right, start), nearest))


@njit(cache=True, _nrt=False)
def _begin(records: Records, steps: Floats, holder: int, k: int, one: int, apart: float) -> float:
    """Where an object's box begins on a column, so far from the end of the holder's; never beyond its point."""
    end, start, point = records.high[holder, k], records.points[holder, k], records.points[one, k]
    if not start < point:
        return float(end)
    begin = end + apart * (_between(start, point, steps[holder, k], steps[one, k]) - end)
    return float(begin if begin <= point else end)  # else also where the difference is infinite


@njit(cache=True, _nrt=False)
def _holding(records: Records, steps: Floats, holder: int, k: int, own: Integers, end: float) -> float:
    """What it costs that a holder ends here on a column and all on it begin."""
    points = records.points
    cost = _walk(steps[holder, k], end - points[holder, k])
    for one in own:
        cost += _walk(steps[one, k], points[one, k] - end)
    return float(cost)
