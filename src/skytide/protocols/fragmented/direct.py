"""The coordinator of the method DIRECT: pairs of objects that stay in order, with no fixed boundary between them.

The dialogue is that of PIVOT. Every object outside the skyline hangs on one that dominates it, which may hang on
another itself; in the skyline, neighbours on each function stay in their order. As long as all pairs hold, nothing can
change: what hangs cannot come in, and of two members each stays better than the other on some function.

A site sees a pair in order when the left object's bound from above at its drift vector is below the right one's from
below: a convex set of pairs of drift vectors, which therefore holds the pair of global vectors too. The coordinator has
its share of the weight here as well. Where the two objects are not at the same sites, drift is stretched by the number
of sites of both over that of its object's (papa14's scaling, which makes the method weaker there: Theorem 1).

DIRECT cannot watch what is equal, or what has no function value: no pair can hold it; nor objects to whose averages one
site counts differently, as its drift would have to be stretched by itself. It has no way to have single
objects told in full either. As soon as either is needed, the method hands over to PIVOT, once and for all. So it does
above the limits that a caller sets: where pairs can be watched, but not well.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple
from typing import Any, Self

import numpy as np

from skytide.kernel.batch import skyline_mask
from skytide.kernel.fragmented import ALL, broken
from skytide.kernel.functions import bounds, value
from skytide.model import Booleans, Floats, Integers, MissingPolicy, check_missing_policy
from skytide.protocols.arrays import grown, room_for
from skytide.protocols.fragmented.functions import Functions
from skytide.protocols.fragmented.known import Known
from skytide.protocols.fragmented.messages import Arrivals, Centrings, Departures, Order, Pairings, Partings, Report
from skytide.protocols.fragmented.pivot import NONE, UNKNOWN, PivotCoordinator, function_steps
from skytide.protocols.fragmented.tuning import CROWDED, Tuning, reserve_of, tuning_of
from skytide.protocols.fragmented.watched import Pair, PairTable, Terms, comparable
from skytide.protocols.stored import Contents, dump, must, restore

NOBODY = -1
LASTING = 64
"""For so many dialogues in a row a skyline must be crowded, after the first, to be left to PIVOT."""


class _UnwatchableError(Exception):
    """What the method cannot watch is there."""


class DirectCoordinator:
    """Keeps the exact f-skyline of objects whose sites speak only when a pair may be out of order.

    >>> coordinator = DirectCoordinator(Functions(["x"], []))
    >>> sites, objects = np.array([0, 1, 0]), np.array([0, 0, 1])
    >>> orders = coordinator.take(0, [Arrivals(0, sites, objects, np.ones(3), np.array([[1.0], [3.0], [5.0]]))])
    >>> coordinator.skyline().tolist(), [type(order).__name__ for order in orders]
    ([0], ['Centrings', 'Pairings'])
    """

    def __init__(
        self,
        functions: Functions,
        nulls: MissingPolicy = "error",
        tuning: Tuning | None = None,
        widest: float = np.inf,
        most: float = np.inf,
    ) -> None:
        """Pairs whose drift must be stretched by more than `widest` are left to PIVOT.

        So are skylines of more than `most` objects: at the beginning at once, later when they stay so, as a new
        beginning costs as much as the first.
        """
        self._widest, self._most = widest, most
        self._crowd = 0  # dialogues for which the skyline has been larger
        self._functions, self._nulls, self._tuning = functions, nulls, tuning or Tuning()
        self._programs = comparable(functions.programs)
        self._known = Known(functions.d)
        self._pairs = PairTable()
        self._centre: Floats = np.zeros((0, functions.d))
        self._values: Floats = np.zeros((0, functions.k))
        self._steps: Floats = np.zeros((0, functions.k))
        self._shift: Floats = np.zeros((0, functions.d))
        self._here: Booleans = np.zeros(0, np.bool_)
        self._member: Booleans = np.zeros(0, np.bool_)
        self._dominator: Integers = np.zeros(0, np.int64)
        self._versions: Integers = np.zeros(0, np.int64)
        self._time = -1
        self._pivot: PivotCoordinator | None = None

    def _reserve(self, objects: Integers) -> None:
        room = room_for(objects)
        if room > len(self._here):
            self._centre, self._values = grown(self._centre, room), grown(self._values, room)
            self._shift, self._here = grown(self._shift, room), grown(self._here, room)
            self._steps = grown(self._steps, room)
            self._member, self._versions = grown(self._member, room), grown(self._versions, room)
            self._dominator = grown(self._dominator, room, NOBODY)

    def to_bytes(self) -> bytes:
        """The coordinator as it is when nobody has anything to say, versioned and without pickle. O(cells)."""
        return dump(self)

    @classmethod
    def from_bytes(cls, blob: bytes) -> Self:
        """The coordinator that `to_bytes` gave; a `StateError` says what is wrong with any other bytes."""
        return restore(blob, cls)

    def _contents(self) -> Contents:
        meta: dict[str, Any] = {**self._functions.texts(), "nulls": self._nulls, "tuning": list(astuple(self._tuning))}
        meta |= {"objects": len(self._here), "crowd": self._crowd}
        limits = {"widest": self._widest, "most": self._most}
        meta |= {name: one if one < np.inf else None for name, one in limits.items()}
        if self._pivot is not None:
            blob = np.frombuffer(self._pivot.to_bytes(), np.uint8)
            return Contents({**meta, "pivot": True}, {"pivot": blob})
        parts = {"here": self._here, "member": self._member, "versions": self._versions, "centre": self._centre}
        parts |= {"dominator": self._dominator, "values": self._values, "steps": self._steps, "shift": self._shift}
        found = Contents({**meta, "pivot": False}, parts)
        return found.within("known", self._known.contents()).within("pairs", self._pairs.contents())

    @classmethod
    def _restored(cls, contents: Contents) -> Self:
        functions, room, meta = Functions.from_texts(contents.meta), contents.whole("objects"), contents.meta
        widest = np.inf if meta["widest"] is None else float(meta["widest"])
        # What was stored before there was a limit for skylines goes on with the usual one.
        most = meta.get("most", CROWDED if widest < np.inf else None)
        must(most is None or (type(most) in (int, float) and most >= 1), "largest skyline")
        made = cls(
            functions,
            check_missing_policy(meta["nulls"]),
            tuning_of(meta["tuning"]),
            widest,
            np.inf if most is None else most,
        )
        made._crowd = contents.whole("crowd") if "crowd" in meta else 0
        if meta["pivot"] is True:
            made._pivot = PivotCoordinator.from_bytes(contents.blob("pivot"))
            return made
        d, k = functions.d, functions.k
        made._here, made._member = contents.flags("here", room), contents.flags("member", room)
        made._versions = contents.integers("versions", room, 0, 1 << 62)
        made._dominator = contents.integers("dominator", room, NOBODY, room - 1)
        made._centre, made._shift = contents.reals("centre", room, d), contents.reals("shift", room, d)
        made._values, made._steps = contents.reals("values", room, k), contents.reals("steps", room, k)
        made._known = Known.restored(contents.inner("known"), d)
        must(len(made._known.members) <= room, "objects")
        made._pairs = PairTable.restored(contents.inner("pairs"), room, k)
        return made

    # -- the dialogue --------------------------------------------------------------------------------------------------

    @np.errstate(invalid="ignore", over="ignore")  # what is infinite, or not a number, is in no zone
    def take(self, time: int, reports: Sequence[Report]) -> list[Order]:
        """Take what sites say; what they are to do. Empty when there is no more to say about this time."""
        self._time = time
        if self._pivot is not None:
            return self._pivot.take(time, reports)
        touched = np.unique(np.concatenate([NONE, *(self._known.take(report) for report in reports)]))
        self._reserve(touched)
        try:
            return self._orders(touched, reports)
        except _UnwatchableError:
            self._pivot = PivotCoordinator.taking_over(
                self._functions, self._nulls, self._tuning, self._known, self._versions
            )
            return self._pivot.begin(time)

    @property
    def known(self) -> Known:
        """What sites have told."""
        return self._known if self._pivot is None else self._pivot.known

    def skyline(self) -> Integers:
        """The objects in the f-skyline, in order. O(objects)."""
        return np.flatnonzero(self._member) if self._pivot is None else self._pivot.skyline()

    def undefined(self) -> Integers:
        """The objects with sites that do not compete, since a function has no value. O(objects)."""
        return NONE if self._pivot is None else self._pivot.undefined()

    def _orders(self, touched: Integers, reports: Sequence[Report]) -> list[Order]:
        self._pairs.mark()
        first = not self._here.any()
        there = self._known.members[touched] > 0
        gone, new = touched[~there & self._here[touched]], touched[there & ~self._here[touched]]
        membership = any(isinstance(report, Arrivals | Departures) for report in reports)
        if membership:
            self._stretch(touched[there & self._here[touched]])
        moved = self._settle(touched[there & self._here[touched]], new, gone)
        self._crowd = self._crowd + 1 if np.count_nonzero(self._member) > self._most else 0
        if self._crowd > (0 if first else LASTING):
            raise _UnwatchableError
        return self._told(moved, reports)

    # -- order ---------------------------------------------------------------------------------------------------------

    def _settle(self, touched: Integers, new: Integers, gone: Integers) -> set[int]:
        """Bring all pairs in order again; the objects with new centres."""
        for one in touched.tolist():
            self._shift[one] = self._known.mean(one) - self._centre[one]
        moved: set[int] = set()
        self._recentre(new.tolist(), moved)
        self._here[new], self._here[gone] = True, False
        loose = [*new.tolist(), *self._forget(gone)]
        reordered = bool(self._member[gone].any())
        self._member[gone] = False
        if loose or reordered:
            self._hang(loose, anew=reordered)
        fresh_ends = {one for pair in self._pairs.changes()[0] for one in pair[:2]}
        wrong = self._wrong(fresh_ends.union(touched.tolist(), loose))
        while True:
            if not wrong:
                bare = self._bare(touched)
                if not bare:
                    return moved
                self._recentre(bare, moved)
                wrong = self._wrong(bare)
                continue
            drifting = {one for pair in wrong for one in pair[:2] if self._shift[one].any()}
            if drifting:
                self._recentre(drifting, moved)
                others = [pair for pair in wrong if not drifting.intersection(pair[:2])]
                wrong = others + self._wrong(drifting)
                continue
            ends = {pair.right for pair in wrong if pair.column == ALL}
            unordered = any(pair.column != ALL for pair in wrong)
            for one in ends:
                self._unhang(one)
            before = set(self._pairs)
            self._hang(sorted(ends), anew=unordered)
            fresh = set(self._pairs) - before
            # What is not new and was wrong is wrong still, unless it is gone.
            wrong = [pair for pair in self._judged(fresh | {pair for pair in wrong if pair in self._pairs})]
            if any(not self._shift[pair.left].any() and not self._shift[pair.right].any() for pair in wrong):
                raise _UnwatchableError

    def _bare(self, touched: Integers) -> list[int]:
        """Objects that have drifted and are in no pair on some function, so that nothing says that it has a value."""
        parted = {one for pair in self._pairs.changes()[1] for one in pair[:2]}
        drifting = [one for one in {*touched.tolist(), *parted} if self._here[one] and self._shift[one].any()]
        return [one for one in drifting if not self._watched(one)]

    def _watched(self, one: int) -> bool:
        columns = self._pairs.arrays.column[self._pairs.of([one])]
        return ALL in columns or len(np.unique(columns)) == self._functions.k

    def _recentre(self, objects: Iterable[int], moved: set[int]) -> None:
        for one in objects:
            means = self._known.exact_mean(one)
            self._centre[one], self._shift[one] = means, 0.0
            for k in range(self._functions.k):
                self._values[one, k] = value(self._programs, k, means)
                low, high = bounds(self._programs, k, means, means)
                if not (-np.inf < low and high < np.inf):
                    raise _UnwatchableError
            steps = function_steps(self._programs, self._known.step[one], means, self._values[one])
            self._steps[one] = np.where(steps > 0.0, steps, UNKNOWN * np.abs(self._values[one]) + 1e-300)
            moved.add(one)

    def _wrong(self, objects: Iterable[int]) -> list[Pair]:
        """The pairs of objects that are out of order, as the coordinator sees them."""
        return self._out_of_order(self._pairs.of(objects))

    def _judged(self, pairs: set[Pair]) -> list[Pair]:
        """Those of some pairs that are out of order."""
        ends = {one for pair in pairs for one in pair[:2]}
        return [pair for pair in self._wrong(ends) if pair in pairs] if pairs else []

    def _out_of_order(self, places: Integers) -> list[Pair]:
        arrays = self._pairs.arrays
        found = broken(self._programs, self._centre, arrays, places, self._shift, self._pairs.shares)
        return [self._pairs.at(place) for place in places[found].tolist()]

    # -- structure -----------------------------------------------------------------------------------------------------

    def _forget(self, gone: Integers) -> list[int]:
        """Drop the pairs of objects that are gone; what hung on them."""
        loose = []
        for place in self._pairs.of(gone.tolist()).tolist():
            pair = self._pairs.at(place)
            if pair.column == ALL and self._here[pair.right]:
                loose.append(pair.right)
        for pair in [self._pairs.at(place) for place in self._pairs.of(gone.tolist()).tolist()]:
            self._pairs.drop(pair)
        self._dominator[[*gone.tolist(), *loose]] = NOBODY
        return loose

    def _unhang(self, one: int) -> None:
        self._pairs.drop(Pair(int(self._dominator[one]), one, ALL))
        self._dominator[one] = NOBODY

    def _hang(self, loose: Sequence[int], *, anew: bool) -> None:
        """Find dominators for objects; who has none may be in the skyline, which is then ordered anew."""
        members = np.flatnonzero(self._member)
        rising = [one for one in loose if not self._hung(one, members)]
        if rising or anew:
            self._order(np.concatenate((members, np.array(rising, np.int64))))

    def _hung(self, one: int, members: Integers) -> bool:
        """Hang an object on the member that dominates it with the most room, if there is one. O(members)."""
        members = members[members != one]
        gaps = self._values[one] - self._values[members]
        fit = np.flatnonzero((gaps >= 0.0).all(axis=1) & (gaps > 0.0).any(axis=1))
        if not len(fit):
            return False
        holders, gaps = members[fit], gaps[fit]
        best = int(np.argmax((gaps / (self._steps[holders] + self._steps[one])).min(axis=1)))
        holder = int(holders[best])
        self._dominator[one] = holder
        self._put(Pair(holder, one, ALL), int(np.argmax(gaps[best])))
        return True

    def _order(self, pool: Integers) -> None:
        """Of these objects some are the skyline; the others hang on them; neighbours on each function are pairs."""
        pool = np.unique(pool)
        best = skyline_mask(self._values[pool]) if len(pool) else np.zeros(0, np.bool_)
        members = pool[best]
        self._member[pool] = best
        if len(np.unique(self._values[members], axis=0)) < len(members):
            raise _UnwatchableError
        for one in pool[~best].tolist():
            self._hung(one, members)
        wanted = set(self._neighbours(members))
        for pair in [pair for pair in self._pairs if pair.column != ALL and pair not in wanted]:
            self._pairs.drop(pair)
        for pair in wanted:
            if pair not in self._pairs:
                self._put(pair, pair.column)

    def _neighbours(self, members: Integers) -> Iterator[Pair]:
        """The pairs of members with no value between theirs on some function. O(members log members)."""
        for k in range(self._functions.k):
            column = self._values[members, k]
            levels, place = np.unique(column, return_inverse=True)
            groups = [members[place == level].tolist() for level in range(len(levels))]
            for lower, upper in itertools.pairwise(groups):
                yield from (Pair(left, right, k) for left in lower for right in upper)

    def _put(self, pair: Pair, strict: int) -> None:
        self._pairs.put(pair, self._terms(pair, strict))

    def _terms(self, pair: Pair, strict: int) -> Terms:
        both, left, right = self._weights(pair)
        members = int(self._known.members[list(pair[:2])].max())
        share = reserve_of(members) if self._tuning.reserve else 0.0
        return Terms(strict, both / left / (1.0 - share), both / right / (1.0 - share), share)

    def _weights(self, pair: Pair) -> tuple[float, float, float]:
        """The weight of all sites of a pair, and of those of either object, if it can be watched with them."""
        found = self._known.weights(pair.left, pair.right)
        if found is None or found[0] > self._widest * min(found[1:]):
            raise _UnwatchableError
        return found

    def _stretch(self, objects: Integers) -> None:
        """New terms for the pairs of objects whose sites have changed, where they differ."""
        for place in self._pairs.of(objects.tolist()).tolist():
            pair = self._pairs.at(place)
            if not self._known.members[list(pair[:2])].all():
                continue  # one has left at the same time, and the pair goes with it
            old = self._pairs.terms(pair)
            both, left, right = self._weights(pair)
            rest = 1.0 - old.share
            terms = old._replace(left=both / left / rest, right=both / right / rest)
            if terms != old:
                self._pairs.put(pair, terms)

    # -- orders --------------------------------------------------------------------------------------------------------

    def _told(self, moved: set[int], reports: Sequence[Report]) -> list[Order]:
        """What sites must hear: new centres, pairs that are new or have new terms, and pairs that are gone."""
        self._versions[list(moved)] += 1
        centres = _Rows()
        for one in sorted(moved):
            centres.add(self._watching(one), one)
        pairs, parted = _Rows(), _Rows()
        put, gone = self._pairs.changes()
        for pair in put:
            self._introduce(pair, self._known.present(pair.left) | self._known.present(pair.right), pairs, centres)
        for pair in gone:
            parted.add(self._known.present(pair.left) | self._known.present(pair.right), *pair)
        told = set(put)
        for report in reports:
            if isinstance(report, Arrivals):
                for site, one in zip(report.sites.tolist(), report.objects.tolist(), strict=True):
                    if self._here[one]:
                        self._welcome(site, one, told, pairs, centres, centred=one in moved)
        return self._encoded(centres, pairs, parted)

    def _watching(self, one: int) -> Booleans:
        """The sites that watch an object: its own, and those of objects in pairs with it."""
        found = self._known.present(one)
        for place in self._pairs.of([one]).tolist():
            pair = self._pairs.at(place)
            found = found | self._known.present(pair.left) | self._known.present(pair.right)
        return found

    def _introduce(self, pair: Pair, sites: Booleans, pairs: _Rows, centres: _Rows) -> None:
        """Tell sites of a pair, and where they have only one of the objects, of the other's centre."""
        pairs.add(sites, *pair)
        for one in pair[:2]:
            centres.add(sites & ~self._known.present(one), one)

    def _welcome(self, site: int, one: int, told: set[Pair], pairs: _Rows, centres: _Rows, *, centred: bool) -> None:
        """Tell a site that is new to an object of its pairs, and of its centre unless all sites are told."""
        only = np.zeros(self._known.index.table.shape[1], np.bool_)
        only[site] = True
        if not centred:
            centres.add(only, one)
        for place in self._pairs.of([one]).tolist():
            pair = self._pairs.at(place)
            if pair not in told:
                self._introduce(pair, only, pairs, centres)

    def _encoded(self, centres: _Rows, pairs: _Rows, parted: _Rows) -> list[Order]:
        orders: list[Order] = []
        if centres:
            sites, objects = centres.columns()
            orders.append(Centrings(self._time, sites, objects, self._versions[objects], self._centre[objects]))
        if parted:
            orders.append(Partings(self._time, *parted.columns()))
        if pairs:
            sites, left, right, column = pairs.columns()
            terms = [self._pairs.terms(pair) for pair in map(Pair._make, pairs.keys)]
            table = np.repeat(np.array(terms, np.float64).reshape(-1, 4), pairs.counts, axis=0)
            strict = table[:, 0].astype(np.int64)
            orders.append(Pairings(self._time, sites, left, right, column, strict, table[:, 1:3]))
        return orders


class _Rows:
    """Rows of a message: a key for each of some sites, none twice."""

    def __init__(self) -> None:
        self._sites: dict[tuple[int, ...], Booleans] = {}

    def __bool__(self) -> bool:
        return bool(self._sites)

    def add(self, sites: Booleans, *key: int) -> None:
        """Add a key for sites, given by a mask; nothing where there are none."""
        if sites.any():
            before = self._sites.get(key)
            self._sites[key] = sites if before is None else before | sites

    @property
    def keys(self) -> list[tuple[int, ...]]:
        """The keys, in the order in which they came."""
        return list(self._sites)

    @property
    def counts(self) -> list[int]:
        """How many sites each key has."""
        return [int(sites.sum()) for sites in self._sites.values()]

    def columns(self) -> tuple[Any, ...]:
        """The sites, and each part of the keys, as columns."""
        keys = np.repeat(np.array(self.keys, np.int64), self.counts, axis=0)
        sites = np.concatenate([np.flatnonzero(each) for each in self._sites.values()])
        return sites, *(np.ascontiguousarray(column) for column in keys.T)
