"""Sites of objects in fragments, compiled: updates that nobody needs to hear of are absorbed up to the first that must.

After Papapetrou, Garofalakis, "Continuous Fragmented Skylines over Distributed Streams" (ICDE 2014, papa14). A cell is
one object at one site. It knows its local vector and its base: the vector that the coordinator reckons with. All that
an object's sites know together is the object's centre and zone. A cell is quiet while its drift vector, the centre plus
the stretched difference of vector and base, is in the zone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from skytide.kernel.compiled import entrance, inline, lean, njit, row_of
from skytide.kernel.functions import Programs, bounds
from skytide.model import Booleans, Floats, Integers

NOWHERE = -1
"""In an index of cells: the object is not at the site."""
ZONED, FREE, PAIRED = 0, 1, 2
"""How sites watch an object: by a zone, by telling everything, by pairs with others."""
ALL = -1
"""In a pair: all columns."""
FAR = 2.3
"""Objects of a pair may be so many times as far apart as their centres are before a site tells of them."""


class Cells(NamedTuple):
    """A row for each cell: vector, base, whether it counts, updates and their extent since it last spoke."""

    vector: Floats
    base: Floats
    alive: Booleans
    updates: Integers
    moved: Floats


class Zones(NamedTuple):
    """A row for each object: how it is watched, its centre, the box of its function values, the stretch of drifts."""

    mode: npt.NDArray[np.int8]
    centre: Floats
    low: Floats
    high: Floats
    stretch: Floats


class Pairs(NamedTuple):
    """A row for each pair of objects of which one is to stay better than the other.

    On one column (`column`), strictly; or on all of them (`ALL`), strictly on the column `strict`. `stretch` has the
    stretch of the drift of either object. The pairs of an object are entries[starts[object]:starts[object + 1]].
    """

    left: Integers
    right: Integers
    column: Integers
    strict: Integers
    stretch: Floats
    starts: Integers
    entries: Integers


@lean
def inside(programs: Programs, zones: Zones, one: int, drift: Floats) -> bool:
    """Whether a drift vector of an object is in its zone. O(length of the programs)."""
    return bool(_inside(programs, zones, one, drift))


@inline
def _inside(programs: Programs, zones: Zones, one: int, drift: Floats) -> bool:
    """`inside`. A bound that is not finite says that a function may be undefined."""
    centre = row_of(zones.centre, one)
    for k in range(zones.low.shape[1]):
        bottom, top = bounds(programs, k, centre, drift)
        if not (zones.low[one, k] <= bottom and top <= zones.high[one, k] and -np.inf < bottom and top < np.inf):
            return False
    return True


@inline
def ordered(programs: Programs, centre: Floats, pairs: Pairs, pair: int, drifts: Floats, levels: Floats) -> bool:
    """Whether the drift vectors of a pair's objects, at one site or the coordinator, keep its order.

    With `levels`, the function values at the centres, also whether they are not much farther apart than those: nothing
    is wrong then, but if sites told only of the one direction, the coordinator's share would be used up soon.
    """
    left, right, column = pairs.left[pair], pairs.right[pair], pairs.column[pair]
    centres, drifting = (row_of(centre, left), row_of(centre, right)), (row_of(drifts, 0), row_of(drifts, 1))
    for k in range(programs.sign.shape[0]):
        if column in (ALL, k):
            low, top = bounds(programs, k, centres[0], drifting[0])
            bottom, high = bounds(programs, k, centres[1], drifting[1])
            if not (-np.inf < low and top < np.inf and -np.inf < bottom and high < np.inf and top <= bottom):
                return False
            if top == bottom and (column == k or pairs.strict[pair] == k):
                return False
            if levels.shape[0] > 0 and high - low > FAR * (levels[right, k] - levels[left, k]):
                return False
    return True


@inline
def _drift(cells: Cells, centre: Floats, one: int, cell: int, stretch: float, room: Floats, side: int) -> None:
    """Put a drift vector into a row of `room`."""
    for j in range(room.shape[1]):
        room[side, j] = centre[one, j]
        if cell != NOWHERE and cells.alive[cell]:
            room[side, j] += (cells.vector[cell, j] - cells.base[cell, j]) * stretch


@inline
def _kept(
    programs: Programs, zones: Zones, cells: Cells, pairs: Pairs, index: Integers, pair: int, site: int, room: Floats
) -> bool:
    """Whether a site sees a pair in order."""
    for side in range(2):
        one = pairs.left[pair] if side == 0 else pairs.right[pair]
        _drift(cells, zones.centre, one, index[one, site], pairs.stretch[pair, side], room, side)
    return bool(ordered(programs, zones.centre, pairs, pair, room, zones.low))


@inline
def _quiet(
    programs: Programs, zones: Zones, cells: Cells, pairs: Pairs, index: Integers, one: int, site: int, room: Floats
) -> bool:
    """Whether a site need not speak of an object."""
    if zones.mode[one] == FREE:
        return False
    _drift(cells, zones.centre, one, index[one, site], zones.stretch[one], room, 0)
    if zones.mode[one] == ZONED:
        return bool(_inside(programs, zones, one, row_of(room, 0)))
    covered = False
    for place in range(pairs.starts[one], pairs.starts[one + 1]):
        pair = pairs.entries[place]
        if not _kept(programs, zones, cells, pairs, index, pair, site, room):
            return False
        covered |= pairs.column[pair] == ALL
    if not covered:  # no pair has looked at all functions: they must have values
        _drift(cells, zones.centre, one, index[one, site], zones.stretch[one], room, 0)
        centre, drift = row_of(zones.centre, one), row_of(room, 0)
        for k in range(zones.low.shape[1]):
            bottom, top = bounds(programs, k, centre, drift)
            if not (-np.inf < bottom and top < np.inf):
                return False
    return True


@entrance
@lean
def absorb(
    programs: Programs,
    zones: Zones,
    cells: Cells,
    pairs: Pairs,
    index: Integers,
    sites: Integers,
    objects: Integers,
    vectors: Floats,
    gone: Booleans,
    start: int,
    room: Floats,
) -> int:
    """Take updates from `start` on, up to and with the first of which the coordinator must hear; its row, or the end.

    A site that comes to an object or leaves it is not taken, only found. O(rows) evaluations of the functions, of an
    object in pairs as many as it has pairs. `room` is for two vectors.
    """
    d = vectors.shape[1]
    for row in range(start, sites.shape[0]):
        one, site = objects[row], sites[row]
        cell = index[one, site]
        if gone[row] or cell == NOWHERE or not cells.alive[cell]:
            return row
        changed = False
        for j in range(d):
            before, now = cells.vector[cell, j], vectors[row, j]
            if now != before:
                changed = True
                step = abs(now - before)
                cells.moved[cell, j] += step if step >= 0.0 else np.inf  # not a number: a value is missing
                cells.vector[cell, j] = now
        if changed:
            cells.updates[cell] += 1
            if not _quiet(programs, zones, cells, pairs, index, one, site, room):
                return row
    return int(sites.shape[0])


@inline
def _same(cells: Cells, cell: int) -> bool:
    """Whether a cell is at its base."""
    same = True
    for j in range(cells.vector.shape[1]):
        same &= cells.vector[cell, j] == cells.base[cell, j]
    return same


@entrance
@njit(cache=True)
def speaking(
    programs: Programs, zones: Zones, cells: Cells, pairs: Pairs, index: Integers, one: int, sites: Integers,
    room: Floats,
) -> Booleans:  # fmt: skip
    """Which sites have to speak of an object that they have: it differs from its base there, and is not quiet."""
    found = np.zeros(sites.shape[0], np.bool_)
    for place in range(sites.shape[0]):
        if not _same(cells, index[one, sites[place]]):
            found[place] = not _quiet(programs, zones, cells, pairs, index, one, sites[place], room)
    return found


@entrance
@lean
def spoken(
    programs: Programs, zones: Zones, cells: Cells, pairs: Pairs, index: Integers, one: int, site: int, told: Integers,
    room: Floats,
) -> int:  # fmt: skip
    """Begin anew with an object at a site, and with those whose pairs are out of order then; how many, in `told`.

    What is at its base, or not at the site, has nothing to tell.
    """
    told[0] = one
    found, place = 1, 0
    while place < found:
        mine = told[place]
        place += 1
        cell = index[mine, site]
        if cell != NOWHERE:
            for j in range(room.shape[1]):
                cells.base[cell, j] = cells.vector[cell, j]
        for entry in range(pairs.starts[mine], pairs.starts[mine + 1]):
            pair = pairs.entries[entry]
            other = pairs.right[pair] if pairs.left[pair] == mine else pairs.left[pair]
            cell = index[other, site]
            known = cell == NOWHERE or not cells.alive[cell] or _same(cells, cell)
            for earlier in range(found):
                known |= told[earlier] == other
            if not known and not _kept(programs, zones, cells, pairs, index, pair, site, room):
                told[found] = other
                found += 1
    return found


@entrance
@njit(cache=True)
def unsettled(
    programs: Programs, zones: Zones, cells: Cells, pairs: Pairs, index: Integers, one: int, sites: Integers,
    room: Floats,
) -> Booleans:  # fmt: skip
    """Which sites do not see all pairs of an object in order."""
    found = np.zeros(sites.shape[0], np.bool_)
    for place in range(sites.shape[0]):
        for entry in range(pairs.starts[one], pairs.starts[one + 1]):
            if not _kept(programs, zones, cells, pairs, index, pairs.entries[entry], sites[place], room):
                found[place] = True
                break
    return found


@njit(cache=True)
def broken(
    programs: Programs, centre: Floats, pairs: Pairs, which: Integers, shifts: Floats, shares: Floats
) -> Booleans:
    """Which pairs the coordinator does not see in order: at its own drifts, the shifts over its share of weight, or at
    the centres, where sites are that have nothing to tell.
    """
    found = np.zeros(which.shape[0], np.bool_)
    room = np.empty((2, centre.shape[1]))
    for place in range(which.shape[0]):
        pair = which[place]
        share = shares[pair]
        for drifting in range(2):
            for side in range(2):
                one = pairs.left[pair] if side == 0 else pairs.right[pair]
                for j in range(centre.shape[1]):
                    room[side, j] = centre[one, j]
                    if drifting == 1 and shifts[one, j] != 0.0:
                        room[side, j] += shifts[one, j] / share if share > 0.0 else np.nan
            if not ordered(programs, centre, pairs, pair, room, centre[:0]):
                found[place] = True
                break
    return found


@njit(cache=True)
def reserved(programs: Programs, zones: Zones, one: int, shift: Floats, reserve: float) -> bool:
    """Whether the coordinator's own drift vector is in the zone: the centre plus the shift over its share of weight."""
    drift = np.empty(shift.shape[0])
    for j in range(shift.shape[0]):
        if shift[j] == 0.0:
            drift[j] = zones.centre[one, j]
        elif reserve > 0.0:
            drift[j] = zones.centre[one, j] + shift[j] / reserve
        else:
            return False
    return bool(_inside(programs, zones, one, drift))
