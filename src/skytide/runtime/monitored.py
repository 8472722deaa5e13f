"""The protocol in simulation over tables: rows that name clients, times and points in, changes out.

What `skytide monitor` runs. Of several rows of a client for one timestamp the last one counts. `by` columns split
clients into groups that do not compete: a group's number and its negative become two more columns, so that no client of
one group dominates one of another, and the protocol needs not know of groups.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skytide.missing import with_worst
from skytide.model import Changes, MissingPolicy, Preference
from skytide.monitors.snapshots.snapshots import Standing
from skytide.runtime.instants import Instants, Moves
from skytide.runtime.simulate import Simulation
from skytide.tables import Table, restored


class Monitored(Instants):
    """A simulation whose clients have names and whose timestamps have times.

    >>> monitor = Monitored(Preference(minimize=["a"]), "filter")
    >>> rows = {"a": [3.0, 2.0, 4.0]}
    >>> for change in monitor.extend(rows, times=[10, 10, 20], ids=["x", "y", "y"]):
    ...     print(*change)
    10 + y
    >>> for change in monitor.advance(20):
    ...     print(*change)
    20 - y
    20 + x
    """

    def __init__(
        self, preference: Preference, method: str = "filter", *, nulls: MissingPolicy = "error", **options: Any
    ) -> None:
        super().__init__(preference, nulls, "id")
        more = 2 if preference.by else 0
        self._simulation = Simulation(preference.dimensions + more, method, **options)

    def extend(self, rows: Table, times: Any, ids: Any) -> Changes:
        """Take rows; the changes of the timestamps that they complete, and the positions of rows not taken."""
        return self._extended(rows, times, ids)

    def _instants(self, moves: Moves) -> Changes:
        pieces = np.split(np.arange(len(moves.keys)), np.flatnonzero(np.diff(moves.keys)) + 1)
        return Changes.concatenate([self._timestamp(moves.pick(piece)) for piece in pieces])

    def _timestamp(self, moves: Moves) -> Changes:
        # Of several rows the last counts; counted from the end, it is the first of its client.
        _, first = np.unique(moves.who[::-1, 0], return_index=True)
        last = moves.pick(len(moves.keys) - 1 - first)
        placed = last.pick(~last.gone)
        points = with_worst(placed.values) if self.nulls == "worst" else placed.values
        if self.preference.by:
            points = np.column_stack((points, placed.groups, -placed.groups))
        found = self._simulation.step(placed.who[:, 0], points, last.who[last.gone, 0])
        return self._changes(np.repeat(moves.keys[:1], len(found)), found.signs, found.ids)

    def standing(self, ids: Any = None) -> Standing:
        """Those of these clients, or of all, that are there after the last timestamp that is over. O(ids)."""
        names = self._names[0]
        given = range(len(names)) if ids is None else [one for one in map(names.number, ids) if one is not None]
        numbers, points = self._simulation.points(np.array(given, np.int64))
        dimensions = self.preference.dimensions
        codes = points[:, dimensions].astype(np.int64).tolist() if self.preference.by else [0] * len(numbers)
        values = restored(points[:, :dimensions], self.preference, self.nulls)
        return Standing(names.ids(numbers), values, [self._groups.keys.get(code, ()) for code in codes])

    def ledger(self) -> dict[str, Any]:
        """What was sent so far, as a board shows it: see `Simulation.ledger`."""
        return self._simulation.ledger()

    def cost(self) -> dict[str, Any]:
        """What was sent: see `Simulation.cost`."""
        return self._simulation.cost()
