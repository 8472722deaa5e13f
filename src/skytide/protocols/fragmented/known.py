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

from skytide.kernel.fragmented import NOWHERE
from skytide.kernel.means import ARRIVAL, DEPARTURE, REPORT, UPDATE, Means, hear, mean, shift
from skytide.model import Booleans, Floats, Integers
from skytide.protocols.arrays import grown, room_for
from skytide.protocols.fragmented.messages import Arrivals, Departures, Kind, Report, Violations
from skytide.protocols.fragmented.site import Index, restored_pairs
from skytide.protocols.stored import Contents, must

_KINDS = {
    Kind.JOIN: ARRIVAL,
    Kind.LEAVE: DEPARTURE,
    Kind.UPDATE: UPDATE,
    Kind.VIOLATION: REPORT,
}


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
        flags, whole, real = np.zeros(0, np.bool_), np.zeros(0, np.int64), np.zeros(0)
        table: Floats = np.zeros((0, components))
        self._means = Means(table, flags, real, whole, whole, real, table, table, table, table, real)
        self._reports = 0

    def contents(self) -> Contents:
        """All of it as it is stored."""
        sites, objects = self.index.pairs()
        cells, rows = self.index.count, len(self.members)
        parts = {"site": sites, "object": objects}
        for place, (name, column) in enumerate(self._means._asdict().items()):
            parts[name] = column[: cells if place < 4 else rows]
        return Contents({"reports": self._reports, "objects": rows}, parts)

    @classmethod
    def restored(cls, contents: Contents, components: int) -> Known:
        """What was stored."""
        made, room = cls(components), contents.whole("objects")
        sites, objects = restored_pairs(contents, room)
        made.index.put(sites, objects)
        made._reports, count, d = contents.whole("reports"), len(sites), components
        most = 1 << 62
        made._means = Means(
            contents.reals("base", count, d),
            contents.flags("alive", count),
            contents.floats("weight", count),
            contents.integers("spoke", count, 0, most),
            contents.integers("members", room, 0, most),
            contents.floats("weights", room),
            contents.reals("total", room, d),
            contents.reals("rest", room, d),
            contents.reals("largest", room, d),
            contents.reals("step", room, d),
            contents.floats("heard", room),
        )
        alive = np.bincount(objects[made._means.alive], minlength=room)
        must(bool((alive == made.members).all()), "members")
        return made

    @property
    def members(self) -> Integers:
        """How many sites each object has."""
        return self._means.members

    @property
    def step(self) -> Floats:
        """The mean size of an update of each object, by component; 0 where none was heard of."""
        return self._means.step

    def _cells(self, sites: Integers, objects: Integers) -> Integers:
        """The cells of pairs, with room for them."""
        cells, means = self.index.cells(sites, objects), self._means
        if self.index.count > len(means.alive) or room_for(objects) > len(means.members):
            rooms = [self.index.count] * 4 + [room_for(objects)] * 7
            self._means = Means._make(grown(column, room) for column, room in zip(means, rooms, strict=True))
        return cells

    def take(self, report: Report) -> Integers:
        """Take what sites say, each of an object once; the objects concerned. O(rows)."""
        objects, cells = report.objects, self._cells(report.sites, report.objects)
        none = self._means.base[:0]
        vectors = none if isinstance(report, Departures) else report.vectors
        weights = report.weights if isinstance(report, Arrivals) else none[:, 0]
        updates, moved = objects[:0], none
        if isinstance(report, Violations):
            updates, moved = report.updates, report.moved
        self._reports += 1
        hear(self._means, _KINDS[report.kind], self._reports, objects, cells, vectors, weights, updates, moved)
        return objects if len(objects) == 1 else np.unique(objects)

    def mean(self, one: int) -> Floats:
        """The known mean of an object with sites, to a few units in the last place. O(1), seldom O(sites)."""
        found: Floats = np.empty(self._means.base.shape[1])
        # Twice the precision is not enough where large values cancel.
        return found if mean(self._means, one, found) else self.exact_mean(one)

    def exact_mean(self, one: int) -> Floats:
        """The known mean as the definition has it: correctly rounded sums, divided. O(sites); sums start anew."""
        cells, means = self.cells(one)[1], self._means
        with np.errstate(over="ignore"):
            parts = (means.base[cells] * means.weight[cells, None]).T.tolist()
        sums = [_rounded_sum(column) for column in parts]
        means.total[one], means.rest[one] = sums, 0.0
        means.weights[one] = math.fsum(means.weight[cells].tolist())
        if np.isfinite(sums).all():
            means.rest[one] = [_rounded_sum([*column, -total]) for column, total in zip(parts, sums, strict=True)]
            means.largest[one] = [max(map(abs, column)) for column in parts]
        found: Floats = np.array(sums) / means.weights[one]
        return found

    def means(self, objects: Integers) -> Floats:
        """The known means of objects with sites, for those who look on: nothing is summed anew. O(their sites)."""
        means, found = self._means, np.empty((len(objects), self._means.base.shape[1]))
        with np.errstate(over="ignore", invalid="ignore"):
            for place, one in enumerate(objects.tolist()):
                cells = self.cells(one)[1]
                weights = means.weight[cells]
                found[place] = weights @ means.base[cells] / weights.sum()
        return found

    def cells(self, one: int) -> tuple[Integers, Integers]:
        """The sites that an object has, and its cells there. O(sites)."""
        sites, cells = self.index.of(one)
        here = self._means.alive[cells]
        return sites[here], cells[here]

    def there(self, sites: Integers, objects: Integers) -> Booleans:
        """Which of some pairs there are. O(pairs)."""
        table, found = self.index.table, np.zeros(len(sites), np.bool_)
        inside = np.flatnonzero((objects < table.shape[0]) & (sites < table.shape[1]))
        cells = table[objects[inside], sites[inside]]
        found[inside] = (cells != NOWHERE) & self._means.alive[cells]
        return found

    def at(self, site: int) -> Integers:
        """The objects at a site, in order. O(objects)."""
        objects = np.arange(len(self.index.table))
        return objects[self.there(np.full(len(objects), site), objects)]

    def present(self, one: int) -> Booleans:
        """At which sites an object is. O(sites)."""
        cells = self.index.table[one]
        found: Booleans = (cells != NOWHERE) & self._means.alive[cells]
        return found

    def weights(self, one: int, other: int) -> tuple[float, float, float] | None:
        """The weight of all sites of two objects, and of those of either. O(sites).

        None where a site counts for one of them other than for the other.
        """
        mine, mine_cells = self.cells(one)
        theirs, their_cells = self.cells(other)
        weight = self._means.weight
        _, here, there = np.intersect1d(mine, theirs, assume_unique=True, return_indices=True)
        if (weight[mine_cells[here]] != weight[their_cells[there]]).any():
            return None
        first, second = (math.fsum(weight[cells].tolist()) for cells in (mine_cells, their_cells))
        if len(here) == len(mine) == len(theirs):
            return first, first, first
        only = np.delete(their_cells, there)
        return math.fsum([first, *weight[only].tolist()]), first, second

    def scattered(self, one: int) -> bool:
        """Whether an object's sites differ from each other by more than their mean on some component. O(sites).

        Counts that have hardly begun are like that: most sites have none yet, and the next update is as large as all.
        """
        bases = self._means.base[self.cells(one)[1]]
        with np.errstate(invalid="ignore", over="ignore"):
            return bool((bases.std(axis=0) > np.abs(bases.mean(axis=0))).any())

    def recent(self, one: int, count: int) -> Integers:
        """So many sites of an object, those first that spoke last: their drift has hardly begun. O(sites)."""
        sites, cells = self.cells(one)
        return sites[np.argsort(-self._means.spoke[cells], kind="stable")[:count]]

    def shift(self, one: int, sites: Integers, surplus: Floats) -> Floats:
        """Take a surplus, weighted, off the bases of some sites of an object; how much off each. O(sites)."""
        cells, means = self.index.table[one, sites].astype(np.int64), self._means
        amount: Floats = surplus * (means.weights[one] / means.weight[cells].sum())
        shift(means, one, cells, amount)
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
