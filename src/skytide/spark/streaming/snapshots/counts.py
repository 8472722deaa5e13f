"""Frequent skylines of several groups, each with snapshots of its own: one `Frequent` per group."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np

from skytide.model import Booleans, Changes, Integers
from skytide.monitors.frequent.frequent import Frequent
from skytide.monitors.snapshots.objects import Turns


class Counts:
    """Turns changes of the skylines into changes of the frequent skylines. Objects are numbers here."""

    def __init__(self, theta: Fraction, over: int) -> None:
        self._theta, self._over = theta, over
        self.groups: dict[int, Frequent] = {}

    def run(self, turns: Turns, keys: Integers, codes: Integers, home: Integers) -> Turns:
        """The changes over the snapshots of each group: the distinct keys of its rows. `home` is each object's group.

        Cost: that of `Frequent.extend`, once per group with rows.
        """
        order = np.lexsort((keys, codes))
        keys, codes = keys[order], codes[order]
        own = np.argsort(home[turns.numbers], kind="stable")
        turns = Turns(*(column[own] for column in turns))
        whose = home[turns.numbers]
        starts = np.flatnonzero(np.insert(codes[1:] != codes[:-1], 0, True))[: len(codes)]
        parts = [Turns(keys[:0], keys[:0], keys[:0])]
        for start, stop in itertools.pairwise([*starts.tolist(), len(codes)]):
            code = int(codes[start])
            first, last = np.searchsorted(whose, [code, code + 1])
            mine = Turns(*(column[first:last] for column in turns))
            parts.append(self._run_group(code, np.unique(keys[start:stop]), mine))
        return Turns(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def _run_group(self, code: int, snapshots: Integers, turns: Turns) -> Turns:
        monitor = self.groups.get(code)
        if monitor is None:
            monitor = self.groups[code] = Frequent(self._theta, self._over, history=False)
        # Snapshots are told by their number in the group, so that any kind of time will do.
        first = monitor.snapshots + 1
        changes = Changes(
            first + np.searchsorted(snapshots, turns.keys), turns.signs.astype(np.int8), turns.numbers.astype(np.int64)
        )
        found = monitor.extend(changes, snapshots=np.arange(first, first + len(snapshots)))
        return Turns(snapshots[found.times - first], found.signs.astype(np.int64), found.ids.astype(np.int64))

    def known(self, numbers: Integers, home: Integers) -> Booleans:
        """Which objects were in the skyline in one of the snapshots that count."""
        found = np.zeros(len(numbers), bool)
        for place, (number, code) in enumerate(zip(numbers.tolist(), home[numbers].tolist(), strict=True)):
            monitor = self.groups.get(code)
            found[place] = monitor is not None and monitor.count(number) > 0
        return found

    @property
    def queued(self) -> int:
        """How many changes are held."""
        return sum(monitor.stats()["queued"] for monitor in self.groups.values())
