"""The objects of a monitor: their ids, values and groups, and an engine per group that keeps its skyline.

Rows come here in order, instants closed. What they make of the objects is found first (`kernel.updates`), then the
engines of the groups get the new values. An object that goes from one group to another leaves the one and enters the
other at the same instant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from skytide.kernel.updates import BAD, GONE, PLACED, commit, outcome
from skytide.missing import with_worst
from skytide.model import Booleans, Floats, Integers
from skytide.monitors.snapshots.engine import Engine, Updates

MakeEngine = Callable[[], Engine]
NOWHERE = -1
COUNTED = ("pre_tests", "sky_tests", "post_tests", "candidates", "candidates_seen", "memory_bytes")
"""What is counted whatever the method, also before the first object."""


class Effect(NamedTuple):
    """What rows would make of the objects: the values after each row, what each row does, and how many are bad."""

    values: Floats
    verdicts: Integers
    bad: int


class Turns(NamedTuple):
    """Net changes as columns: the time key, +1 or -1, the object's number."""

    keys: Integers
    signs: Integers
    numbers: Integers


class Group:
    """The objects of one group in the slots of its engine; slots of objects that have left are used again later."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.slots: dict[int, int] = {}
        self.members: list[int] = []
        self._free: list[int] = []

    def take(self, numbers: Integers) -> Integers:
        """The slots of objects; those without one get one."""
        distinct, places = np.unique(numbers, return_inverse=True)
        found = np.empty(len(distinct), np.int64)
        for place, number in enumerate(distinct.tolist()):
            slot = self.slots.get(number)
            if slot is None:
                if self._free:
                    slot = self._free.pop()
                    self.members[slot] = number
                else:
                    slot = len(self.members)
                    self.members.append(number)
                self.slots[number] = slot
            found[place] = slot
        return found[places]

    def leave(self, numbers: Integers, present: Booleans) -> None:
        """Give back the slots of those of these objects that are not in the group any more."""
        for number in np.unique(numbers[~present]).tolist():
            self._free.append(self.slots.pop(number))


class Objects:
    """All objects by number, and their groups."""

    def __init__(self, dimensions: int, signs: Floats, worst: bool, make: MakeEngine, grouped: bool) -> None:
        self._d, self._signs, self._worst = dimensions, signs, worst
        self._make, self._grouped = make, grouped
        self.groups: dict[int, Group] = {}
        self.work: dict[str, int] = {}
        self.reset(0)

    def reset(self, room: int) -> None:
        """No objects, room for some."""
        self.values: Floats = np.zeros((room, self._d))
        self.present: Booleans = np.zeros(room, bool)
        self.home: Integers = np.full(room, NOWHERE, np.int64)
        self._last: Integers = np.full(room, -1, np.int64)
        self.groups = {}

    def reserve(self, room: int) -> None:
        """Make room for so many objects."""
        have = len(self.present)
        if room > have:
            more = max(room, 2 * have) - have
            self.values = np.concatenate((self.values, np.zeros((more, self._d))))
            self.present = np.concatenate((self.present, np.zeros(more, bool)))
            self.home = np.concatenate((self.home, np.full(more, NOWHERE, np.int64)))
            self._last = np.concatenate((self._last, np.full(more, -1, np.int64)))

    def effect(self, numbers: Integers, rows: Floats, operations: Integers) -> Effect:
        """What rows would make of the objects; nothing is changed. O(n d)."""
        results, verdicts = np.empty(rows.shape), np.empty(len(rows), np.int64)
        rows = np.ascontiguousarray(rows)
        bad = outcome(
            self.values, self.present, numbers, rows, operations, self._signs, self._worst, self._last, results,
            verdicts,
        )  # fmt: skip
        return Effect(results, verdicts, int(bad))

    def settle(self, numbers: Integers, groups: Integers, effect: Effect) -> Integers:
        """Change the objects as the rows do; the group in which each row finds its object."""
        before = self._homes_before(numbers, groups, effect.verdicts) if self._grouped else self.home[:0]
        commit(self.values, self.present, self.home, numbers, groups, effect.values, effect.verdicts)
        return before

    def after(self, numbers: Integers, groups: Integers, effect: Effect) -> tuple[Floats, Booleans, Integers]:
        """The values, presences and groups as they would be after rows; nothing is changed. O(objects)."""
        kept = self.values, self.present, self.home
        self.values, self.present, self.home = kept[0].copy(), kept[1].copy(), kept[2].copy()
        try:
            self.settle(numbers, groups, effect)
            return self.values, self.present, self.home
        finally:
            self.values, self.present, self.home = kept

    def _homes_before(self, numbers: Integers, groups: Integers, verdicts: Integers) -> Integers:
        before = self.home[numbers]
        works = np.flatnonzero(verdicts != BAD)
        order = works[np.argsort(numbers[works], kind="stable")]
        same = numbers[order][1:] == numbers[order][:-1]
        after = np.where(verdicts == PLACED, groups, NOWHERE)
        before[order[1:][same]] = after[order[:-1][same]]
        return before

    # -- the engines ---------------------------------------------------------------------------------------------------

    def play(self, numbers: Integers, keys: Integers, groups: Integers, effect: Effect) -> Turns:
        """Take rows in the order of their keys; who enters and leaves the skylines, in no order."""
        before = self.settle(numbers, groups, effect)
        points = with_worst(effect.values) if self._worst else effect.values
        if not self._grouped:
            works = effect.verdicts <= GONE
            if not works.all():
                numbers, keys, points = numbers[works], keys[works], points[works]
            return self._run_all(numbers, keys, points, effect.verdicts[works] == GONE)
        # A row moves its object out of the group where it was, or within it, or into another.
        placed = effect.verdicts == PLACED
        leaves = (before != NOWHERE) & np.where(placed, before != groups, effect.verdicts == GONE)
        rows = np.concatenate((np.flatnonzero(leaves), np.flatnonzero(placed)))
        where = np.concatenate((before[leaves], groups[placed]))
        gone = np.repeat([True, False], [np.count_nonzero(leaves), np.count_nonzero(placed)])
        order = np.lexsort((~gone, rows, where))
        rows, where, gone = rows[order], where[order], gone[order]
        parts = [Turns(rows[:0], rows[:0], rows[:0])]
        for part in np.split(np.arange(len(rows)), np.flatnonzero(np.diff(where)) + 1):
            if len(part):
                mine = rows[part]
                parts.append(self._run_group(int(where[part[0]]), numbers[mine], keys[mine], points[mine], gone[part]))
        return Turns(*(np.concatenate(lines) for lines in zip(*parts, strict=True)))

    def _run_all(self, numbers: Integers, keys: Integers, points: Floats, gone: Booleans) -> Turns:
        engine = self.group(0).engine
        times, cuts = _cuts(keys)
        flips = engine.run(Updates(numbers, np.ascontiguousarray(points), gone.view(np.uint8), cuts))
        return Turns(times[flips.snapshots], flips.signs, flips.slots)

    def _run_group(self, code: int, numbers: Integers, keys: Integers, points: Floats, gone: Booleans) -> Turns:
        group = self.group(code)
        slots = group.take(numbers)
        times, cuts = _cuts(keys)
        flips = group.engine.run(Updates(slots, np.ascontiguousarray(points), gone.view(np.uint8), cuts))
        turns = Turns(times[flips.snapshots], flips.signs, np.array(group.members, np.int64)[flips.slots])
        group.leave(numbers, self.home[numbers] == code)
        if not group.slots:
            self._retire(code)
        return turns

    def group(self, code: int) -> Group:
        """A group, made when its first object comes."""
        if code not in self.groups:
            self.groups[code] = Group(self._make())
        return self.groups[code]

    def _retire(self, code: int) -> None:
        for name, amount in self.groups.pop(code).engine.counters().items():
            if name not in ("memory_bytes", "candidates"):
                self.work[name] = self.work.get(name, 0) + amount

    def counters(self) -> dict[str, int]:
        """Work of all groups since the start; candidates and memory as of now."""
        total = {**dict.fromkeys(COUNTED, 0), **self.work}
        for group in self.groups.values():
            for name, amount in group.engine.counters().items():
                total[name] = total.get(name, 0) + amount
        return total

    # -- anew ----------------------------------------------------------------------------------------------------------

    def fill(self, values: Floats, present: Booleans, home: Integers) -> None:
        """Start afresh with these objects, without telling changes."""
        for code in list(self.groups):
            self._retire(code)
        self.reset(len(present))
        self.values[:], self.present[:], self.home[:] = values, present, home
        points = with_worst(values) if self._worst else values
        if not self._grouped:
            if len(present):
                self.group(0).engine.load(points, present)
            return
        order = np.flatnonzero(present)
        order = order[np.argsort(home[order], kind="stable")]
        for part in np.split(order, np.flatnonzero(np.diff(home[order])) + 1):
            if len(part):
                group = self.group(int(home[part[0]]))
                group.take(part)
                group.engine.load(points[part], np.ones(len(part), bool))

    def skyline(self) -> Integers:
        """The numbers of the objects in the skylines."""
        found = [np.zeros(0, np.int64)]
        for group in self.groups.values():
            slots = group.engine.skyline()
            found.append(np.array(group.members, np.int64)[slots] if self._grouped else slots)
        return np.concatenate(found)


def _cuts(keys: Integers) -> tuple[Integers, Integers]:
    """The distinct keys of sorted ones, and where each begins, and the end."""
    begins = np.flatnonzero(np.concatenate((np.ones(min(1, len(keys)), bool), keys[1:] != keys[:-1])))
    return keys[begins], np.append(begins, len(keys))
