"""I-Eager: candidates in an R-tree, events in a list (Tao and Papadias, Sections 3.2 and 5)."""

from __future__ import annotations

import numpy as np

from skytide.kernel.eager_rtree import DONE, NURSERY, STATE_SIZE, run, values_of
from skytide.kernel.rtree import RTree
from skytide.kernel.rtree_lanes import LANES
from skytide.model import Floats, Integers
from skytide.monitors.sliding.compiled import CompiledEngine


class EagerRtree(CompiledEngine):
    """Keeps exactly the rows that are or may come into the answer; every row costs a few searches in their R-tree.

    >>> import numpy as np
    >>> from skytide.monitors.sliding.engine import Rows
    >>> engine = EagerRtree(2)
    >>> times = np.array([1, 2])
    >>> moves = engine.run(Rows(np.array([[1.0, 1.0], [2.0, 2.0]]), times, times + 5, np.array([7, 8])), until=9)
    >>> list(zip(moves.times.tolist(), moves.signs.tolist(), moves.handles.tolist()))
    [(1, 1, 7), (6, -1, 7), (6, 1, 8), (7, -1, 8)]
    """

    state_size = STATE_SIZE

    def _reset(self) -> None:
        super()._reset()
        self.tree = RTree(self.dimensions)
        self._young = np.full(NURSERY * self.dimensions, np.nan)
        self._young_slots = np.full(NURSERY, -1, dtype=np.int64)
        self._point = np.empty(self.dimensions)
        self._found = np.empty(8 * LANES, dtype=np.int64)

    def _advance(self, values: Floats, keys: Integers, until: int, out: Integers) -> bool:
        young = (self._young, self._young_slots, self._point, self._found)
        code = run(self.tree.arrays, self.events.arrays, *young, self._state, values, keys, until, out)
        return bool(code == DONE)

    def _grow(self) -> None:
        self.events.grow()
        self.tree.grow(self.events.room)

    def _values(self, slots: Integers) -> Floats:
        values = np.empty((len(slots), self.dimensions))
        values_of(self.tree.arrays, self._young, slots, values)
        return values

    def _work(self) -> tuple[int, int, int]:
        held = self._young.nbytes + self._young_slots.nbytes + self._point.nbytes + self._found.nbytes
        return self.tree.tests, self.tree.visits, self.tree.memory_bytes + held
