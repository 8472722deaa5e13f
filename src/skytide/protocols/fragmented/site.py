"""The sites' side: a block of sites as arrays; one site alone is a block of one.

A site tells the vector of an object when the object comes, and every update until it hears from the coordinator. A zone
keeps it quiet as long as its drift vector stays inside. Whenever it tells a vector, that vector becomes its base, and
its drift begins anew at the centre: the coordinator reckons with what it was told.
"""

from __future__ import annotations

import copy
from dataclasses import fields, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from skytide.kernel.fragmented import (
    FREE,
    NOWHERE,
    PAIRED,
    ZONED,
    Cells,
    absorb,
    speaking,
    spoken,
    unsettled,
)
from skytide.kernel.functions import values
from skytide.model import Booleans, Floats, Integers
from skytide.protocols.arrays import grown, room_for
from skytide.protocols.fragmented.functions import Functions
from skytide.protocols.fragmented.messages import (
    Arrivals,
    Centrings,
    Departures,
    Kind,
    Order,
    Pairings,
    Partings,
    Report,
    Shifts,
    Updates,
    Violations,
    Zonings,
    merged,
)
from skytide.protocols.fragmented.watched import (
    Pair,
    PairTable,
    Terms,
    comparable,
    more_zones,
    no_zones,
    restored_zones,
    zone_parts,
)
from skytide.protocols.stored import Contents, dump, must, restore


class Index:
    """Which cell is that of an object at a site: a table, objects times sites, whose room doubles as they come.

    >>> index = Index()
    >>> index.cells(np.array([2, 0, 2]), np.array([1, 1, 1])).tolist(), index.count
    ([1, 0, 1], 2)
    """

    def __init__(self) -> None:
        self.table: npt.NDArray[np.int32] = np.full((0, 0), NOWHERE, np.int32)
        self.count = 0

    def reserve(self, sites: Integers, objects: Integers) -> None:
        """Make room for these sites and objects. Amortised O(1) for each entry of the table."""
        rows, columns = room_for(objects), room_for(sites)
        if columns > self.table.shape[1]:
            self.table = np.ascontiguousarray(grown(self.table.T, columns, NOWHERE).T)
        self.table = grown(self.table, rows, NOWHERE)

    def cells(self, sites: Integers, objects: Integers) -> Integers:
        """The cells of pairs, new ones where there are none yet. O(pairs)."""
        self.reserve(sites, objects)
        new = self.table[objects, sites] == NOWHERE
        if new.any():
            pairs = np.sort(objects[new] * self.table.shape[1] + sites[new])
            pairs = pairs[np.diff(pairs, prepend=-1) > 0]
            self.table.reshape(-1)[pairs] = np.arange(self.count, self.count + len(pairs))
            self.count += len(pairs)
        found: Integers = self.table[objects, sites].astype(np.int64)
        return found

    def copy(self) -> Index:
        """The same again. O(table)."""
        other = copy.copy(self)
        other.table = self.table.copy()
        return other

    def pairs(self) -> tuple[Integers, Integers]:
        """The site and the object of each cell. O(table)."""
        objects, sites = np.nonzero(self.table != NOWHERE)
        order = np.argsort(self.table[objects, sites])
        return sites[order], objects[order]

    def put(self, sites: Integers, objects: Integers) -> None:
        """Give pairs, of which none has a cell, the cells from 0 on in this order. O(pairs)."""
        self.reserve(sites, objects)
        self.table[objects, sites] = np.arange(len(sites))
        self.count = len(sites)

    def of(self, one: int) -> tuple[Integers, Integers]:
        """The sites where an object is or was, and its cells there. O(sites)."""
        if one >= len(self.table):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        sites = np.flatnonzero(self.table[one] != NOWHERE)
        return sites, self.table[one, sites].astype(np.int64)


def _layout(components: int) -> np.dtype[Any]:
    """All of a cell side by side: an update then waits for memory once."""
    wide = [(name, np.float64, (components,)) for name in ("vector", "base", "moved")]
    return np.dtype([*wide, ("updates", np.int64), ("alive", np.bool_)], align=True)


def _columns(rows: npt.NDArray[Any]) -> Cells:
    return Cells._make(rows[name] for name in Cells._fields)


def restored_pairs(contents: Contents, room: int) -> tuple[Integers, Integers]:
    """The sites and objects of cells, as they were stored; each pair is there once."""
    sites = contents.integers("site", -1, 0, (1 << 32) - 1)
    objects = contents.integers("object", len(sites), 0, room - 1)
    must(len(np.unique(objects * (1 << 32) + sites)) == len(sites), "cells")
    return sites, objects


class SiteBlock:
    """Sites that see updates in one order; sites and objects are numbers from 0.

    >>> block = SiteBlock(Functions(["x"], []))
    >>> one, row = np.array([0]), lambda x: block.take(0, np.array([0]), np.array([3]), np.array([[x]]))
    >>> [type(report).__name__ for report in row(1.0)[1]]
    ['Arrivals']
    >>> _ = block.obey(Zonings(0, one, one + 3, one + 1, one + 1.0, one[None] + 1.0, one[None] + 0.0, one[None] + 2.0))
    >>> [type(report).__name__ for x in (1.5, 2.5) for report in row(x)[1]]
    ['Violations']
    """

    def __init__(self, functions: Functions, *, paired: bool = False) -> None:
        """`paired`: the coordinator's method watches objects in pairs."""
        d, k = functions.d, functions.k
        self._functions, self._paired = functions, paired
        self._programs = comparable(functions.programs) if paired else functions.programs
        self._index = Index()
        self._rows: npt.NDArray[Any] = np.zeros(0, _layout(d))
        self._cells = _columns(self._rows)
        self._room: Floats = np.empty((2, d))
        self._zones = no_zones(d, k)
        self._pairs = PairTable()
        self._versions: Integers = np.zeros(0, np.int64)
        self._present: Integers = np.zeros(0, np.int64)  # how many sites have the object

    def _reserve(self, sites: Integers, objects: Integers) -> None:
        self._index.reserve(sites, objects)
        room = room_for(objects)
        if room > len(self._versions):
            self._zones = more_zones(self._zones, room)
            self._versions, self._present = grown(self._versions, room), grown(self._present, room)
            self._pairs.reserve(len(self._versions))

    # -- updates -------------------------------------------------------------------------------------------------------

    def take(
        self,
        time: int,
        sites: Integers,
        objects: Integers,
        vectors: Floats,
        gone: Booleans | None = None,
        start: int = 0,
        weights: Floats | None = None,
    ) -> tuple[int, list[Report]]:
        """Take updates from a row on, up to and with the first that must be told: the next row, and what is told.

        Where `gone`, the object leaves the site. `weights` count where it comes. O(rows) evaluations of the functions.
        """
        if gone is None:
            gone = np.zeros(len(sites), np.bool_)
        if start == 0:
            self._reserve(sites, objects)
        row = absorb(*self._watched(), sites, objects, vectors, gone, start, self._room)
        if row == len(sites):
            return row, []
        which = slice(row, row + 1)
        if gone[row]:
            return row + 1, self.leave(time, sites[which], objects[which])
        cell = self._index.table[objects[row], sites[row]]
        if cell == NOWHERE or not self._cells.alive[cell]:
            weight = None if weights is None else weights[which]
            return row + 1, self.join(time, sites[which], objects[which], vectors[which], weight)
        return row + 1, [self._told(time, int(sites[row]), int(objects[row]))]

    def absorb(self, sites: Integers, objects: Integers, vectors: Floats) -> bool:
        """Take updates, each of another pair, if none of them must be told; else nothing happens. O(rows)."""
        self._reserve(sites, objects)
        cells = self._index.table[objects, sites]
        if (cells == NOWHERE).any() or not self._cells.alive[cells].all():
            return False
        before = self._rows[cells]
        gone = np.zeros(len(sites), np.bool_)
        if absorb(*self._watched(), sites, objects, vectors, gone, 0, self._room) == len(sites):
            return True
        self._rows[cells] = before
        return False

    def tell(self, time: int) -> list[Report]:
        """Tell of all objects at all sites. O(objects times sites)."""
        sites, objects = self._index.pairs()
        here = self._cells.alive[self._index.table[objects, sites]]
        free = self._zones.mode[objects] == FREE
        parts = [(sites[which], objects[which]) for which in (here & free, here & ~free)]
        return [self._report(time, *part) for part in parts if len(part[0])]

    def instant(
        self, times: Integers, sites: Integers, objects: Integers, vectors: Floats, gone: Booleans, start: int = 0
    ) -> tuple[int, list[Report]]:
        """Take updates from a row on, up to and with all of the first time of which something must be told.

        Times do not fall. The next row, and what is told, of one time. O(rows) evaluations of the functions.
        """
        row, said = self.take(0, sites, objects, vectors, gone, start)
        if not said:
            return row, []
        time = int(times[row - 1])
        end = int(np.searchsorted(times, time, side="right"))
        while row < end:
            row, more = self.take(0, sites[:end], objects[:end], vectors[:end], gone[:end], row)
            said += more
        return end, [replace(self._standing(report), time=time) for report in merged(said)]

    def _standing(self, report: Report) -> Report:
        """What of a report still holds at the end of its instant: not what tells of an object that has left since."""
        there = self._cells.alive[self._index.table[report.objects, report.sites]]
        if isinstance(report, Departures) or there.all():
            return report
        columns = {field.name: getattr(report, field.name) for field in fields(report) if field.name != "time"}
        return replace(report, **{name: column[there] for name, column in columns.items()})

    def join(
        self, time: int, sites: Integers, objects: Integers, vectors: Floats, weights: Floats | None = None
    ) -> list[Report]:
        """Objects come to sites where they are not; each pair is named once. O(pairs)."""
        self._reserve(sites, objects)
        cells = self._index.cells(sites, objects)
        if self._index.count > len(self._rows):
            rows: npt.NDArray[Any] = np.zeros(max(self._index.count, 2 * len(self._rows)), self._rows.dtype)
            rows[: len(self._rows)] = self._rows
            self._rows, self._cells = rows, _columns(rows)
        kept = self._cells
        self._zones.mode[objects[self._present[objects] == 0]] = FREE  # who has been away hears of zones again
        np.add.at(self._present, objects, 1)
        kept.vector[cells] = kept.base[cells] = vectors
        kept.alive[cells], kept.updates[cells], kept.moved[cells] = True, 0, 0.0
        return [Arrivals(time, sites, objects, np.ones(len(sites)) if weights is None else weights, vectors)]

    def leave(self, time: int, sites: Integers, objects: Integers) -> list[Report]:
        """Objects leave sites; nothing is said where they are not. O(pairs)."""
        cells = self._index.table[objects, sites]
        there = cells != NOWHERE
        there[there] = self._cells.alive[cells[there]]
        if not there.any():
            return []
        self._cells.alive[cells[there]] = False
        np.subtract.at(self._present, objects[there], 1)
        return [Departures(time, sites[there], objects[there])]

    def _told(self, time: int, site: int, one: int) -> Report:
        """Tell of an object at a site, and of what else that makes necessary."""
        objects = self._anew(site, one) if self._zones.mode[one] == PAIRED else np.array([one])
        return self._report(time, np.full(len(objects), site), objects)

    def _anew(self, site: int, one: int) -> Integers:
        """Put the bases of an object, and of others with it, to where they are at a site; whose."""
        told: Integers = np.empty(len(self._versions), np.int64)
        found = told[: spoken(*self._watched(), one, site, told, self._room)]
        cells = self._index.table[found, site]
        here: Integers = found[(cells != NOWHERE) & self._cells.alive[cells]]
        return here

    def mean(self, one: int) -> Floats | None:
        """The average of an object's vectors over the sites that have it; None where none has. O(sites)."""
        _, cells = self._index.of(one)
        cells = cells[self._cells.alive[cells]]
        return np.asarray(self._cells.vector[cells].mean(axis=0)) if len(cells) else None

    def copy(self) -> Self:
        """The same sites again, to look ahead with. O(objects times sites)."""
        other = copy.copy(self)
        other._index, other._pairs = self._index.copy(), self._pairs.copy()
        other._rows = self._rows.copy()
        other._cells = _columns(other._rows)
        other._zones = copy.deepcopy(self._zones)
        other._versions, other._present = self._versions.copy(), self._present.copy()
        return other

    def to_bytes(self) -> bytes:
        """The sites as they are when nobody has anything to say, versioned and without pickle. O(cells)."""
        return dump(self)

    @classmethod
    def from_bytes(cls, blob: bytes) -> Self:
        """The sites that `to_bytes` gave; a `StateError` says what is wrong with any other bytes."""
        return restore(blob, cls)

    def _contents(self) -> Contents:
        count, objects = self._index.count, len(self._versions)
        sites_of, objects_of = self._index.pairs()
        parts = {"site": sites_of, "object": objects_of, "versions": self._versions}
        parts |= {f"cell.{name}": np.ascontiguousarray(self._rows[name][:count]) for name in Cells._fields}
        parts |= zone_parts(self._zones)
        meta = {**self._functions.texts(), "objects": objects, "paired": self._paired}
        return Contents(meta, parts).within("pairs", self._pairs.contents())

    @classmethod
    def _restored(cls, contents: Contents) -> Self:
        made = cls(Functions.from_texts(contents.meta), paired=contents.meta["paired"] is True)
        d, k = made._functions.d, made._functions.k
        room = contents.whole("objects")
        sites, objects = restored_pairs(contents, room)
        if len(sites):
            made._reserve(sites, np.append(objects, room - 1))
            made._index.put(sites, objects)
        count = len(sites)
        cell = contents.inner_parts("cell")
        made._rows = np.zeros(count, made._rows.dtype)
        made._rows["vector"], made._rows["base"] = cell.reals("vector", count, d), cell.reals("base", count, d)
        made._rows["moved"], made._rows["alive"] = cell.reals("moved", count, d), cell.flags("alive", count)
        made._rows["updates"] = cell.integers("updates", count, 0, 1 << 62)
        made._cells = _columns(made._rows)
        made._zones = restored_zones(contents, room, d, k)
        made._versions = contents.integers("versions", room, 0, 1 << 62)
        made._present = np.bincount(objects[made._cells.alive], minlength=room)
        made._pairs = PairTable.restored(contents.inner("pairs"), room, k)
        return made

    def _watched(self) -> tuple[Any, ...]:
        return self._programs, self._zones, self._cells, self._pairs.arrays, self._index.table

    def _report(self, time: int, sites: Integers, objects: Integers) -> Report:
        """Tell vectors, of objects that are all told or none of which is."""
        cells, kept = self._index.table[objects, sites], self._cells
        vectors, updates, moved = kept.vector[cells], kept.updates[cells], kept.moved[cells]
        kept.base[cells], kept.updates[cells], kept.moved[cells] = vectors, 0, 0.0
        if self._zones.mode[objects[0]] == FREE:
            return Updates(time, sites, objects, vectors)
        return Violations(time, sites, objects, vectors, updates, moved)

    # -- orders --------------------------------------------------------------------------------------------------------

    def obey(self, *orders: Order) -> list[Report]:
        """Follow orders of one time; what sites say to them. O(rows) evaluations."""
        said: list[Report] = []
        concerned: dict[int, list[Integers]] = {}
        for order in orders:
            self._follow(order)
            by_object = np.argsort(order.objects, kind="stable")
            runs = np.split(by_object, np.flatnonzero(np.diff(order.objects[by_object])) + 1)
            for run in runs:
                concerned.setdefault(int(order.objects[run[0]]), []).append(order.sites[run])
        for one, sites in concerned.items():
            said += self._checked(orders[0].time, one, np.unique(np.concatenate(sites)))
        return said

    def _follow(self, order: Order) -> None:
        self._reserve(order.sites, order.objects)
        objects, zones = order.objects, self._zones
        if isinstance(order, Pairings | Partings):
            self._follow_pairs(order)
        elif isinstance(order, Shifts):
            cells = self._index.table[objects, order.sites]
            current = (order.versions == self._versions[objects]) & (cells != NOWHERE)
            self._cells.base[cells[current]] -= order.amounts[current]
        else:
            before = self._versions[objects]
            # Who has been away has the version already, and forgot what it says.
            newer = (order.versions > before) | ((order.versions == before) & (zones.mode[objects] == FREE))
            objects = objects[newer]
            self._versions[objects] = order.versions[newer]
            modes = {Kind.ZONE: ZONED, Kind.RELEASE: FREE, Kind.CENTRE: PAIRED}
            zones.mode[objects] = modes[order.kind]
            if isinstance(order, Zonings | Centrings):
                zones.centre[objects] = order.centre[newer]
            if isinstance(order, Centrings):
                zones.low[objects] = zones.high[objects] = values(self._programs, zones.centre[objects])
            if isinstance(order, Zonings):
                zones.stretch[objects] = order.stretch[newer]
                zones.low[objects], zones.high[objects] = order.low[newer], order.high[newer]

    def _follow_pairs(self, order: Pairings | Partings) -> None:
        columns = [order.objects, order.others, order.columns]
        _, first = np.unique(np.stack(columns), axis=1, return_index=True)
        for row in first.tolist():
            pair = Pair(*(int(column[row]) for column in columns))
            if isinstance(order, Partings):
                self._pairs.drop(pair)
            else:
                self._pairs.put(pair, Terms(int(order.strict[row]), *order.stretches[row].tolist()))

    def _checked(self, time: int, one: int, sites: Integers) -> list[Report]:
        """What sites that have an object must tell of it after an order."""
        if self._zones.mode[one] != PAIRED:
            cells = self._index.table[one, sites]
            there = cells != NOWHERE
            there[there] = self._cells.alive[cells[there]]
            sites = sites[there]
            sites = sites[speaking(*self._watched(), one, sites, self._room)]
            return [self._report(time, sites, np.full(len(sites), one))] if len(sites) else []
        sites = sites[unsettled(*self._watched(), one, sites, self._room)]
        said = [(site, self._anew(site, one)) for site in sites.tolist()]
        return [self._report(time, np.full(len(told), site), told) for site, told in said if len(told)]
