"""LL-Lazy and I-Lazy: all live rows are kept, and the work waits until a skyline row expires (Tao and Papadias)."""

from __future__ import annotations

import numpy as np

from skytide.kernel.lazy import DONE, FREE_LANE, MADE_LANES, STATE_SIZE, TESTS, run_lists, run_trees
from skytide.kernel.rtree import RTree
from skytide.kernel.rtree_lanes import LANES
from skytide.model import Floats, Integers
from skytide.monitors.sliding.compiled import CompiledEngine


class LazyList(CompiledEngine):
    """Keeps about the whole window; a row costs a scan of the skyline, and another when its witness there expires.

    >>> import numpy as np
    >>> from skytide.monitors.sliding.engine import Rows
    >>> engine = LazyList(2)
    >>> times = np.array([1, 2])
    >>> moves = engine.run(Rows(np.array([[1.0, 1.0], [2.0, 2.0]]), times, times + 5, np.array([7, 8])), until=6)
    >>> list(zip(moves.times.tolist(), moves.signs.tolist(), moves.handles.tolist()))
    [(1, 1, 7), (6, -1, 7), (6, 1, 8)]
    """

    state_size = STATE_SIZE

    def _reset(self) -> None:
        super()._reset()
        self._state[FREE_LANE] = -1
        self._lanes = np.zeros(0)
        self._lane_slots = np.zeros(0, dtype=np.int64)
        self._sky_at = np.zeros(0, dtype=np.int32)
        self._points = np.zeros((0, self.dimensions))

    def _advance(self, values: Floats, keys: Integers, until: int, out: Integers) -> bool:
        lists = (self._lanes, self._lane_slots, self._sky_at, self._points)
        return bool(run_lists(*lists, self.events.arrays, self._state, values, keys, until, out) == DONE)

    def _grow(self) -> None:
        self.events.grow()
        more = self.events.room - len(self._points)
        if more:
            self._points = np.concatenate([self._points, np.empty((more, self.dimensions))])
            self._sky_at = np.concatenate([self._sky_at, np.full(more, -1, dtype=np.int32)])
        lanes = len(self._lane_slots)
        if self._state[FREE_LANE] == -1 and self._state[MADE_LANES] == lanes:
            more = (lanes // 3 // LANES + 1) * LANES
            self._lanes = np.concatenate([self._lanes, np.full(more * self.dimensions, np.nan)])
            self._lane_slots = np.concatenate([self._lane_slots, np.full(more, -1, dtype=np.int64)])

    def _values(self, slots: Integers) -> Floats:
        return self._points[slots]

    def _work(self) -> tuple[int, int, int]:
        held = self._lanes.nbytes + self._lane_slots.nbytes + self._sky_at.nbytes + self._points.nbytes
        return int(self._state[TESTS]), 0, held


class LazyRtree(CompiledEngine):
    """Keeps about the whole window, skyline and rest in an R-tree each; an expiry searches both.

    >>> import numpy as np
    >>> from skytide.monitors.sliding.engine import Rows
    >>> engine = LazyRtree(2)
    >>> times = np.array([1, 2])
    >>> moves = engine.run(Rows(np.array([[1.0, 1.0], [2.0, 2.0]]), times, times + 5, np.array([7, 8])), until=6)
    >>> list(zip(moves.times.tolist(), moves.signs.tolist(), moves.handles.tolist()))
    [(1, 1, 7), (6, -1, 7), (6, 1, 8)]
    """

    state_size = STATE_SIZE

    def _reset(self) -> None:
        super()._reset()
        self.sky, self.rest = RTree(self.dimensions), RTree(self.dimensions)
        self._scratch = np.empty((3, self.dimensions))
        self._buffer = np.empty(8 * LANES, dtype=np.int64)
        self._found = np.empty(4 * LANES * self.dimensions)

    def _advance(self, values: Floats, keys: Integers, until: int, out: Integers) -> bool:
        trees = (self.sky.arrays, self.rest.arrays, self.events.arrays)
        work = (self._scratch, self._found, self._buffer, self._state)
        return bool(run_trees(*trees, *work, values, keys, until, out) == DONE)

    def _grow(self) -> None:
        self.events.grow()
        self.sky.grow(self.events.room)
        self.rest.grow(self.events.room)

    def _values(self, slots: Integers) -> Floats:
        values = np.empty((len(slots), self.dimensions))
        shown = self.sky.arrays.where[slots] >= 0
        values[shown] = self.sky.values(slots[shown])
        values[~shown] = self.rest.values(slots[~shown])
        return values

    def _work(self) -> tuple[int, int, int]:
        held = self._scratch.nbytes + self._buffer.nbytes + self._found.nbytes
        tests, visits = self.sky.tests + self.rest.tests, self.sky.visits + self.rest.visits
        return tests, visits, self.sky.memory_bytes + self.rest.memory_bytes + held
