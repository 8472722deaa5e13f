"""What the coordinator knows of objects: the base of every cell, and from them each object's known mean.

The global vector of an object is its known mean plus the mean of what its sites have not told. Sites may have weights:
the mean is then the sum of weight times value over the sum of weights. Sums are kept in twice the precision of a float;
where that might not do, and where the last bit counts, the bases are summed anew, correctly rounded, as the definition
has it.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from skytide.kernel.fragmented import NOWHERE, add_to
from skytide.model import Booleans, Floats, Integers
from skytide.protocols.filtering.arrays import grown, room_for
from skytide.protocols.fragmented.messages import Arrivals, Departures, Report, Updates
from skytide.protocols.fragmented.site import Index

FADING = 0.9
"""What is left of an object's statistics when a report comes, in which it counts as much as its updates."""


class Known:
    """Bases, sums and statistics.

    >>> known = Known(components=1)
    >>> sites, objects = np.array([0, 1]), np.array([7, 7])
    >>> known.take(Arrivals(0, sites, objects, np.ones(2), np.array([[1.0], [4.0]]))).tolist()
    [7]
    >>> known.mean(7).tolist(), int(known.members[7])
    ([2.5], 2)
    """

    def __init__(self, components: int) -> None:
        self.index = Index()
        self.members: Integers = np.zeros(0, np.int64)
        self.step: Floats = np.zeros((0, components))
        """The mean size of an update of the object, by component; 0 where none was heard of."""
        self._base: Floats = np.zeros((0, components))
        self._alive: Booleans = np.zeros(0, np.bool_)
        self._weights: Floats = np.zeros(0)  # of cells
        self._sum: Floats = np.zeros(0)  # of the weights of an object's cells
        self._spoke: Integers = np.zeros(0, np.int64)
        self._total, self._rest, self._largest = (np.zeros((0, components)) for _ in range(3))
        self._heard: Floats = np.zeros(0)
        self._reports = 0

    def _reserve(self, sites: Integers, objects: Integers) -> Integers:
        cells = self.index.cells(sites, objects)
        if self.index.count > len(self._alive):
            room = self.index.count
            self._base, self._alive = grown(self._base, room), grown(self._alive, room)
            self._spoke, self._weights = grown(self._spoke, room), grown(self._weights, room)
        if room_for(objects) > len(self.members):
            room = room_for(objects)
            self.members, self.step = grown(self.members, room), grown(self.step, room)
            self._total, self._rest = grown(self._total, room), grown(self._rest, room)
            self._largest, self._sum = grown(self._largest, room), grown(self._sum, room)
            self._heard = grown(self._heard, room)
        return cells

    def take(self, report: Report) -> Integers:
        """Take what sites say, each of an object once; the objects concerned. O(rows)."""
        objects, cells = report.objects, self._reserve(report.sites, report.objects)
        self._reports += 1
        self._spoke[cells] = self._reports
        before, there = self._base[cells], self._alive[cells]
        with np.errstate(invalid="ignore", over="ignore"):
            self._count(objects[there], cells[there], -1)
            if isinstance(report, Departures):
                self._alive[cells] = False
                return np.unique(objects)
            if isinstance(report, Arrivals):
                self._weights[cells] = report.weights
            self._alive[cells], self._base[cells] = True, report.vectors
            np.maximum.at(self._largest, objects, np.abs(self._base[cells] * self._weights[cells, None]))
            self._count(objects, cells, 1)
            if isinstance(report, Updates):
                self._learn(objects, np.ones(len(objects)), np.abs(report.vectors - before))
            elif not isinstance(report, Arrivals):
                self._learn(objects, report.updates, report.moved)
        return np.unique(objects)

    def _count(self, objects: Integers, cells: Integers, sign: int) -> None:
        """Add cells to the sums of objects, or take them off."""
        weights = self._weights[cells]
        add_to(self._total, self._rest, objects, self._base[cells] * weights[:, None], float(sign))
        np.add.at(self.members, objects, sign)
        np.add.at(self._sum, objects, sign * weights)

    def _learn(self, objects: Integers, updates: Floats | Integers, moved: Floats) -> None:
        sensible = (updates > 0) & np.isfinite(moved).all(axis=1)
        for one in np.unique(objects[sensible]).tolist():
            mine = sensible & (objects == one)
            count, size = float(updates[mine].sum()), moved[mine].sum(axis=0)
            weight = self._heard[one] * FADING
            self.step[one] = (self.step[one] * weight + size) / (weight + count)
            self._heard[one] = weight + count

    def mean(self, one: int) -> Floats:
        """The known mean of an object with sites, to a few units in the last place. O(1), seldom O(sites)."""
        with np.errstate(invalid="ignore", over="ignore"):
            total = self._total[one] + self._rest[one]
            found: Floats = total / self._sum[one]
        # Twice the precision is not enough where large values cancel.
        if not (np.abs(total) >= self._largest[one] * 2.0**-40).all() or not np.isfinite(found).all():
            return self.exact_mean(one)
        return found

    def exact_mean(self, one: int) -> Floats:
        """The known mean as the definition has it: correctly rounded sums, divided. O(sites); sums start anew."""
        cells = self.cells(one)[1]
        parts = (self._base[cells] * self._weights[cells, None]).T.tolist()
        sums = [_rounded_sum(column) for column in parts]
        self._total[one], self._rest[one] = sums, 0.0
        self._sum[one] = math.fsum(self._weights[cells].tolist())
        if np.isfinite(sums).all():
            self._rest[one] = [_rounded_sum([*column, -total]) for column, total in zip(parts, sums, strict=True)]
            self._largest[one] = [max(map(abs, column)) for column in parts]
        found: Floats = np.array(sums) / self._sum[one]
        return found

    def cells(self, one: int) -> tuple[Integers, Integers]:
        """The sites that an object has, and its cells there. O(sites)."""
        sites, cells = self.index.of(one)
        here = self._alive[cells]
        return sites[here], cells[here]

    def present(self, one: int) -> Booleans:
        """At which sites an object is. O(sites)."""
        cells = self.index.table[one]
        found: Booleans = (cells != NOWHERE) & self._alive[cells]
        return found

    def weights(self, one: int, other: int) -> tuple[float, float, float]:
        """The weight of all sites of two objects, and of those of either. O(sites)."""
        mine, mine_cells = self.cells(one)
        theirs, their_cells = self.cells(other)
        first, second = math.fsum(self._weights[mine_cells].tolist()), math.fsum(self._weights[their_cells].tolist())
        if len(mine) == len(theirs) and (mine == theirs).all():
            return first, first, first
        only = their_cells[~np.isin(theirs, mine)]
        return math.fsum([first, *self._weights[only].tolist()]), first, second

    def recent(self, one: int, count: int) -> Integers:
        """So many sites of an object, those first that spoke last: their drift has hardly begun. O(sites)."""
        sites, cells = self.cells(one)
        return sites[np.argsort(-self._spoke[cells], kind="stable")[:count]]

    def shift(self, one: int, sites: Integers, surplus: Floats) -> Floats:
        """Take a surplus, weighted, off the bases of some sites of an object; how much off each. O(sites)."""
        cells = self.index.table[one, sites].astype(np.int64)
        objects = np.full(len(sites), one)
        amount: Floats = surplus * (self._sum[one] / self._weights[cells].sum())
        self._count(objects, cells, -1)
        self._base[cells] -= amount
        self._count(objects, cells, 1)
        return amount


def _rounded_sum(values: list[float]) -> float:
    """The sum as if computed exactly and rounded once; infinite beyond the largest float, NaN where infinities meet."""
    try:
        return math.fsum(values)
    except (OverflowError, ValueError):  # a sum on the way is too large, or infinities meet
        endless = [value for value in values if not math.isfinite(value)]
        if endless:
            return sum(endless)
        total = sum(map(Fraction, values))
        try:
            return float(total)
        except OverflowError:
            return math.inf if total > 0 else -math.inf
