"""Filters of many clients, compiled: who is in the skyline, whom to ask, and which boxes keep everybody quiet.

After Zhang, Cheng, Papadias, Tung, "Minimizing the Communication Cost for Continuous Skyline Maintenance" (SIGMOD 2009,
zhang09c). The server knows a box for every record, and for some the point. The boxes are robust when every two records
of the skyline are apart in both directions (each ends below where the other begins, on some column), and every other
record hangs on a dominator whose upper corner dominates its lower corner. Then nothing changes as long as every record
stays in its box. Records with equal points cannot be apart: they get boxes of no extent, which is as good.

Where we differ: the paper sets every record of the skyline apart from every record. That is not needed: what is apart
from a dominator is apart from all that hangs on it, on the same column. So only the skyline is compared in pairs, and a
record that still hangs on its dominator is never looked at. And the paper takes a client's largest step over the
distance to a boundary for the probability of a failure; here it is the share of the client's recent reach that lies
beyond the boundary, which also tells a client that wanders from one that trembles.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from skytide.kernel.dominance import dominates_at, weakly_dominates_at
from skytide.kernel.filtering_clients import FADING
from skytide.model import Booleans, Floats, Integers

NOBODY = -1
OPEN, INSIDE, BELOW = 0, 1, 2
"""Verdicts: not known yet; in the skyline; certainly dominated."""
PROBE = 1.5
"""A probe costs c_u + 2 c_d and a failure c_u + c_d; with equal prices this is their ratio."""
NEAR = 0.05
"""A boundary at the end of a reach still costs something: this share of its width halves the cost."""
HOLDER = 4.0
"""How much dearer the failure of a dominator is than that of a record which hangs on it: others are asked then."""


class Records(NamedTuple):
    """What the server knows, a row for each record.

    `points` are the last ones told, `low` and `high` the corners of the boxes, `floor` and `roof` the recent reach.
    While boxes are made, `fresh` are the records whose boxes may still shrink; the points of others may be unknown.
    """

    points: Floats
    low: Floats
    high: Floats
    floor: Floats
    roof: Floats
    fresh: Booleans


@njit(cache=True)
def recall(points: Floats, floor: Floats, roof: Floats) -> None:
    """Let another timestamp enter the recent reach: what is past fades, what is new widens. O(n d).

    An end that is infinitely far is forgotten at once, or it would stay for ever.
    """
    for i in range(points.shape[0]):
        for k in range(points.shape[1]):
            point = points[i, k]
            down, up = (point - floor[i, k]) * FADING, (roof[i, k] - point) * FADING
            floor[i, k] = floor[i, k] + down if 0.0 <= down < np.inf else point
            roof[i, k] = roof[i, k] - up if 0.0 <= up < np.inf else point
            floor[i, k], roof[i, k] = min(floor[i, k], point), max(roof[i, k], point)


# -- the skyline (Algorithm 2) -----------------------------------------------------------------------------------------


@njit(cache=True)
def judge(
    low: Floats,
    high: Floats,
    known: Booleans,
    settled: Booleans,
    candidates: Integers,
    verdicts: np.ndarray,
    witness: Integers,
    asked: Booleans,
) -> None:
    """One round: settle the candidates that can be, and mark whom to ask about the others.

    `candidates` are the records that may be in the skyline; `known` are those whose points are, their boxes have no
    extent. A candidate that some other's upper corner dominates is BELOW it; one that no other's lower corner dominates
    is INSIDE. About the rest: the candidate itself is asked first, and once its point is known, one of those that may
    dominate it. `settled` are candidates whose boxes were apart before: two of them cannot dominate each other.
    O(candidates^2 d) at most, far less if those that dominate many come first.
    """
    # Who is below a candidate decides nothing: that candidate does.
    standing = np.flatnonzero(verdicts != BELOW)
    for a in range(candidates.shape[0]):
        if verdicts[a] == OPEN:
            other = _rival(high, low, settled, candidates, verdicts, standing, a, known, False)
            if other != NOBODY:
                verdicts[a], witness[a] = BELOW, other
    standing = np.flatnonzero(verdicts != BELOW)
    for place in standing:
        if verdicts[place] != OPEN:
            continue
        one = candidates[place]
        other = _rival(low, high, settled, candidates, verdicts, standing, place, known, known[one])
        if other == NOBODY:
            verdicts[place] = INSIDE
        else:
            asked[other if known[one] else one] = True


@njit(cache=True, _nrt=False)
def _rival(
    corner: Floats, own: Floats, settled: Booleans, candidates: Integers, verdicts: np.ndarray, standing: Integers,
    a: int, known: Booleans, unknown_only: bool,
) -> int:  # fmt: skip
    """The first standing candidate one of whose corners dominates the opposite corner of candidate `a`."""
    one = candidates[a]
    for b in standing:
        other = candidates[b]
        if a == b or verdicts[b] == BELOW or (settled[a] and settled[b]) or (unknown_only and known[other]):
            continue
        if dominates_at(corner, other, own, one):
            return int(other)
    return NOBODY


# -- boxes (Algorithms 3 to 5) -----------------------------------------------------------------------------------------


@njit(cache=True)
def best_dominators(records: Records, members: Integers, below: Integers, found: Integers) -> None:
    """For each record `below`, the member of the skyline that dominates it with the most room. O(below members d).

    Room is the distance from where the member goes at most to where the record comes at least, over the width of both
    reaches, on the column where it is least. A member with a box of its own dominates with its upper corner, one
    without by its point.
    """
    points, high, floor, roof = records.points, records.high, records.floor, records.roof
    for r in range(below.shape[0]):
        one = below[r]
        best, best_room = NOBODY, -np.inf
        for m in range(members.shape[0]):
            other = members[m]
            fresh = records.fresh[other]
            room, better = np.inf, False
            for k in range(points.shape[1]):
                edge = points[other, k] if fresh else high[other, k]
                if not edge <= points[one, k]:
                    room = -np.inf
                    break
                better |= edge < points[one, k]
                top = roof[other, k] if fresh else edge
                wide = (roof[other, k] - floor[other, k]) + (roof[one, k] - floor[one, k])
                if wide > 0.0:  # else neither moves there
                    room = min(room, max((floor[one, k] - top) / wide, -1e300))
            if better and room > best_room:
                best, best_room = other, room
        found[r] = best


@njit(cache=True)
def keep_below(records: Records, dominator: Integers, hanging: Integers) -> None:
    """Shrink fresh boxes from above until they dominate what hangs on them and has a box. O(hanging d)."""
    points, low, high = records.points, records.low, records.high
    for r in range(hanging.shape[0]):
        one = hanging[r]
        holder = dominator[one]
        if not records.fresh[holder]:
            continue
        strict, widest = False, -1
        for k in range(points.shape[1]):
            high[holder, k] = min(high[holder, k], low[one, k])
            strict |= high[holder, k] < low[one, k]
            gap = low[one, k] - points[holder, k]
            if gap > 0.0 and (widest < 0 or gap > low[one, widest] - points[holder, widest]):
                widest = k
        if not strict:
            high[holder, widest] = np.nextafter(low[one, widest], -np.inf)


@njit(cache=True)
def set_apart(records: Records, members: Integers, log: Floats, middle: bool = False) -> None:
    """Shrink fresh boxes until every two members of the skyline are apart. O(fresh members * members * d * log^2).

    `middle` puts every boundary midway between the two points, on the column where they are farthest apart, whatever it
    costs.
    """
    fresh = records.fresh
    for x in range(members.shape[0]):
        one = members[x]
        if not fresh[one]:
            continue
        for y in range(members.shape[0]):
            other = members[y]
            if other != one and not (fresh[other] and y < x):
                _end_below(records, one, other, log, middle)
                _end_below(records, other, one, log, middle)


@njit(cache=True)
def stand_apart(records: Records, newcomers: Integers, members: Integers, log: Floats) -> None:
    """Shrink the boxes of fresh newcomers until each is apart from every member, or ends below where it comes.

    O(newcomers members d log^2).
    """
    points, high = records.points, records.high
    for one in newcomers:
        for other in members:
            if dominates_at(points, one, points, other):
                for k in range(points.shape[1]):
                    high[one, k] = min(high[one, k], max(points[one, k], records.floor[other, k]))
            else:
                _end_below(records, one, other, log, False)
                _end_below(records, other, one, log, False)


@njit(cache=True)
def fitting(low: Floats, high: Floats, boxes: Integers, members: Integers) -> Booleans:
    """Which boxes a member dominates, or else are apart from all members or below them. O(boxes members d)."""
    found = np.zeros(boxes.shape[0], np.bool_)
    for b in range(boxes.shape[0]):
        one, apart = boxes[b], True
        for other in members:
            if dominates_at(high, other, low, one):
                found[b] = True
                break
            ends, begins = False, False
            for k in range(low.shape[1]):
                ends |= high[one, k] < low[other, k]
                begins |= high[other, k] < low[one, k]
            apart &= (ends and begins) or weakly_dominates_at(high, one, low, other)
        found[b] |= apart
    return found


@njit(cache=True, _nrt=False)
def _end_below(records: Records, one: int, other: int, log: Floats, middle: bool) -> None:
    """See to it that `one` ends below where `other` begins on some column, the cheapest: SelectDimension."""
    points, low, high, fresh = records.points, records.low, records.high, records.fresh
    best_k, best_cut, best_cost = -1, 0.0, np.inf
    for k in range(points.shape[1]):
        end = points[one, k] if fresh[one] else high[one, k]
        begin = points[other, k] if fresh[other] else low[other, k]
        if not end < begin:
            continue
        if high[one, k] < low[other, k]:
            return  # apart already
        cut, cost = _cut(records, one, other, k, end, begin, log, middle)
        if middle:
            cost = end - begin
        if best_k < 0 or cost < best_cost:
            best_k, best_cut, best_cost = k, cut, cost
    cut_apart(records, one, other, best_k, best_cut)


@njit(cache=True, _nrt=False)
def cut_apart(records: Records, one: int, other: int, column: int, cut: float) -> None:
    """Let the fresh ones of two boxes end and begin at a cut on a column; there is none where points are equal."""
    points, low, high, fresh = records.points, records.low, records.high, records.fresh
    if column < 0:  # only boxes of no extent will do
        for k in range(points.shape[1]):
            if fresh[one]:
                low[one, k] = high[one, k] = points[one, k]
            if fresh[other]:
                low[other, k] = high[other, k] = points[other, k]
        return
    if fresh[one]:
        high[one, column] = min(high[one, column], cut)
    if fresh[other]:
        low[other, column] = max(low[other, column], np.nextafter(cut, np.inf))


@njit(cache=True, _nrt=False)
def _cut(
    records: Records, one: int, other: int, k: int, end: float, begin: float, log: Floats, middle: bool
) -> tuple[float, float]:
    """Where `one` ends on a column so that `other` can begin above, and what that costs more: SelectBoundary.

    Between two fresh records the cost is convex between the places where a reach ends or a probe came from, so that its
    least value is at one of them, or midway between the reaches where they do not meet.
    """
    floor, roof = records.floor, records.roof
    if not records.fresh[other]:
        cut = np.nextafter(begin, -np.inf)
        return cut, _extra_above(records, one, k, cut)
    if not records.fresh[one]:
        return end, _extra_below(records, other, k, end)
    best, best_cost = 0.5 * end + 0.5 * begin, np.inf
    if not end <= best < begin:
        best = end
    for choice in range(1 if middle else 4 + log.shape[0]):
        if choice == 0:
            cut = best
        elif choice == 1:
            cut = 0.5 * roof[one, k] + 0.5 * floor[other, k]
        elif choice == 2:
            cut = roof[one, k]
        elif choice == 3:
            cut = floor[other, k]
        else:
            cut = np.nextafter(log[choice - 4, k], -np.inf)
        if not end <= cut < begin:
            continue
        cost = _extra_above(records, one, k, cut) + _extra_below(records, other, k, cut)
        if cost < best_cost:
            cost += PROBE * _probed(log, k, end, cut)
        if cost < best_cost:
            best, best_cost = cut, cost
    return best, best_cost


@njit(cache=True, _nrt=False)
def _extra_above(records: Records, one: int, k: int, cut: float) -> float:
    """What an upper boundary costs a fresh record; nothing where its box ends below already."""
    if records.high[one, k] <= cut:
        return 0.0
    return float(_failure(cut, records.points[one, k], records.floor[one, k], records.roof[one, k]))


@njit(cache=True, _nrt=False)
def _extra_below(records: Records, one: int, k: int, cut: float) -> float:
    """What a lower boundary costs a fresh record; nothing where its box begins above already."""
    if records.low[one, k] > cut:
        return 0.0
    return float(_failure(-cut, -records.points[one, k], -records.roof[one, k], -records.floor[one, k]))


@njit(cache=True, _nrt=False)
def _failure(cut: float, point: float, floor: float, roof: float) -> float:
    """P_f of an upper boundary: the share of the record's reach beyond it, and a little for being near."""
    wide = roof - floor
    if wide <= 0.0:
        return 0.0
    beyond = max(0.0, (roof - cut) / wide)
    return beyond + NEAR / (NEAR + max(0.0, (cut - point) / wide))


@njit(cache=True, _nrt=False)
def _probed(log: Floats, k: int, start: float, end: float) -> float:
    """P_r2: the share of logged probe sources between two values of a column."""
    found = 0
    for m in range(log.shape[0]):
        if start < log[m, k] <= end:
            found += 1
    return float(found / max(1, log.shape[0]))


@njit(cache=True)
def share_room(records: Records, holders: Integers, starts: Integers, below: Integers, middle: bool = False) -> None:
    """Divide the room between each holder and the fresh records on it; those of holders[i] are below[starts[i]:...].

    On every column a fresh holder's box ends at one value for all of them, where the sum of what that costs the holder
    (P_f) and each record (P_r1) is least, or with `middle` midway to the nearest. A record's box begins where the
    holder's ends. O(below d).
    """
    points, high = records.points, records.high
    for h in range(holders.shape[0]):
        holder = holders[h]
        own = below[starts[h] : starts[h + 1]]
        if records.fresh[holder]:
            for k in range(points.shape[1]):
                high[holder, k] = min(high[holder, k], _best_end(records, holder, k, own, middle))
            for one in own:
                stay_strict(points, high, holder, one)
        for one in own:
            begin_above(records, holder, one)


@njit(cache=True, _nrt=False)
def _best_end(records: Records, holder: int, k: int, own: Integers, middle: bool) -> float:
    """The end of a holder's box on a column: a few places up to the nearest record, and the end of its reach."""
    points, floor, roof = records.points, records.floor, records.roof
    start, nearest = points[holder, k], records.high[holder, k]
    for one in own:
        nearest = min(nearest, points[one, k])
    best, best_cost = start, np.inf
    if middle:
        half = 0.5 * start + 0.5 * nearest
        return float(half if start <= half <= nearest else start)
    for choice in range(6):
        end = min(roof[holder, k], nearest) if choice == 5 else start + (nearest - start) * choice / 4
        if not start <= end <= nearest:
            continue
        cost = HOLDER * _failure(end, start, floor[holder, k], roof[holder, k])
        for one in own:
            if floor[one, k] < end:
                cost += _failure(-end, -points[one, k], -roof[one, k], -floor[one, k])
        if cost < best_cost:
            best, best_cost = end, cost
    return float(best)


@njit(cache=True, _nrt=False)
def stay_strict(points: Floats, high: Floats, holder: int, one: int) -> None:
    """A holder's corner must be better than a record's point somewhere."""
    widest = -1
    for k in range(points.shape[1]):
        if high[holder, k] < points[one, k]:
            return
        gap = points[one, k] - points[holder, k]
        if gap > 0.0 and (widest < 0 or gap > points[one, widest] - points[holder, widest]):
            widest = k
    high[holder, widest] = np.nextafter(points[one, widest], -np.inf)


@njit(cache=True, _nrt=False)
def begin_above(records: Records, holder: int, one: int) -> None:
    """A record's box begins where the holder's ends, and on one column strictly above."""
    points, low, high = records.points, records.low, records.high
    widest = -1
    for k in range(points.shape[1]):
        low[one, k] = max(low[one, k], high[holder, k])
        gap = points[one, k] - high[holder, k]
        if gap > 0.0 and (widest < 0 or gap > points[one, widest] - high[holder, widest]):
            widest = k
    low[one, widest] = max(low[one, widest], np.nextafter(high[holder, widest], np.inf))


# -- boxes that records offer (not in the paper) -----------------------------------------------------------------------


@njit(cache=True)
def accept_below(
    records: Records, dominator: Integers, members: Integers, offered: Integers, low: Floats, high: Floats
) -> Booleans:
    """Give records outside the skyline the boxes they offer, where one member dominates all of it; which get them.

    `low` and `high` have a row for each record offered. Of several members the one with the most room is taken, at best
    without narrowing its own box if that is fresh; else `keep_below` will. O(offered members d), and O(all records d)
    once.
    """
    found: Booleans = _holding(records, dominator, offered, high)
    for r in range(offered.shape[0]):
        if not found[r]:
            continue
        one = offered[r]
        holder = _roomiest(records, members, one, low, r, False)
        if holder == NOBODY:
            holder = _roomiest(records, members, one, low, r, True)
        found[r] = holder != NOBODY
        if found[r]:
            dominator[one], records.fresh[one] = holder, False
            for k in range(low.shape[1]):
                records.low[one, k], records.high[one, k] = low[r, k], high[r, k]
    return found


@njit(cache=True, _nrt=False)
def _roomiest(records: Records, members: Integers, one: int, low: Floats, r: int, yielding: bool) -> int:
    """The member that dominates a lower corner with the most room; with `yielding` fresh ones do so by their points."""
    floor, roof = records.floor, records.roof
    best, best_room = NOBODY, -np.inf
    for other in members:
        room, better = np.inf, False
        for k in range(low.shape[1]):
            edge = records.points[other, k] if yielding and records.fresh[other] else records.high[other, k]
            if not edge <= low[r, k]:
                room = -np.inf
                break
            better |= edge < low[r, k]
            wide = (roof[other, k] - floor[other, k]) + (roof[one, k] - floor[one, k])
            if wide > 0.0:  # else neither moves there
                room = min(room, (low[r, k] - edge) / wide)
        if better and room > best_room:
            best, best_room = other, room
    return int(best)


@njit(cache=True)
def accept_members(
    records: Records, dominator: Integers, members: Integers, offered: Integers, low: Floats, high: Floats
) -> Booleans:
    """Give members of the skyline the boxes they offer, where boxes stay robust; which get them.

    O(offered members d), and O(all records d) once.
    """
    found: Booleans = _holding(records, dominator, offered, high)
    for r in range(offered.shape[0]):
        one = offered[r]
        for other in members:
            if not found[r]:
                break
            ends, begins = False, False
            for k in range(low.shape[1]):
                ends |= high[r, k] < records.low[other, k]
                begins |= records.high[other, k] < low[r, k]
            found[r] = other == one or (ends and begins)
        if found[r]:
            for k in range(low.shape[1]):
                records.low[one, k], records.high[one, k] = low[r, k], high[r, k]
    return found


@njit(cache=True)
def _holding(records: Records, dominator: Integers, offered: Integers, high: Floats) -> Booleans:
    """Which of the boxes offered dominate all that hangs on their records."""
    found = np.ones(offered.shape[0], np.bool_)
    row = np.full(dominator.shape[0], NOBODY, np.int64)
    for r in range(offered.shape[0]):
        row[offered[r]] = r
    for one in range(dominator.shape[0]):
        if dominator[one] >= 0 and row[dominator[one]] >= 0:
            r = row[dominator[one]]
            found[r] &= dominates_at(high, r, records.low, one)
    return found
