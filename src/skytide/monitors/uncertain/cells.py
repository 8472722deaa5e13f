"""The fast engine for uncertain rows: candidates compared 64 at a time, totals found on demand (kernel.uncertain_flat).

It is not in zhang09p; the kernel's docstring says how it differs from the paper's trees, and why it is exact.
"""

from __future__ import annotations

import numpy as np

from skytide.kernel import uncertain_flat as kernel
from skytide.kernel import uncertain_state as state
from skytide.kernel.eager_codes import cut
from skytide.model import Floats, Integers
from skytide.monitors.uncertain.compiled import CompiledEngine, columns
from skytide.monitors.uncertain.engine import UncertainRows

_RECUT = 1 << 14
"""Rows after which the cuts are made anew, to follow the values; later where there are more candidates than this."""
_SAMPLE = 256
"""Candidates that are enough to cut by; with fewer, the rows to come are looked at too."""


class CellsEngine(CompiledEngine):
    """A row costs O(d candidates / 64) and a comparison by value for each candidate that the cells leave.

    >>> engine = CellsEngine(1, [0.4])
    >>> times = np.array([1, 2])
    >>> rows = UncertainRows(np.array([[1.0], [2.0]]), np.array([0.7, 0.5]), times, times + 3, np.array([7, 8]))
    >>> moves = engine.run(rows, until=5)
    >>> sorted(zip(moves.times.tolist(), moves.signs.tolist(), moves.handles.tolist()))
    [(1, 1, 7), (4, -1, 7), (4, 1, 8), (5, -1, 8)]
    """

    coded = True

    def _reset(self) -> None:
        super()._reset()
        self._edges: Floats = np.empty((self.dimensions, 0))
        self._age = 0

    def _take(self, rows: UncertainRows, start: int, until: int) -> tuple[int, Integers]:
        if not self._edges.size or self._age > max(_RECUT, self._live):
            self._cut(rows.values[start:])
        end = min(len(rows), start + max(_RECUT, self._live))
        taken, moves = kernel.run(tuple(self._store), self._edges, *columns(rows), start, end, until)
        self._age += int(taken) - start
        return int(taken), moves

    def _cut(self, rows: Floats) -> None:
        self._compact()
        kept = self._store.values[: int(self._store.meta[state.USED])]
        kept = kept[~np.isnan(kept[:, 0])]
        self._edges = cut(kept, kept, 0) if len(kept) >= _SAMPLE else cut(rows, kept, len(kept))
        kernel.recode(self._store, self._edges)
        self._age = 0

    def _check(self) -> None:
        super()._check()
        store = self._store
        alive = np.unpackbits(store.alive.view(np.uint8), bitorder="little")[: self._slots]
        assert (alive == (store.flags & state.ALIVE)).all()
        for c in np.flatnonzero(alive):
            for k in range(self.dimensions):
                assert store.codes[k, c] == (self._edges[k] < store.values[c, k]).sum()
