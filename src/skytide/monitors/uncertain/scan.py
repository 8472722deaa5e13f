"""The plain scan of the candidates: zhang09p's trivial algorithm, compiled (kernel.uncertain_flat)."""

from __future__ import annotations

import numpy as np

from skytide.kernel import uncertain_flat as kernel
from skytide.model import Integers
from skytide.monitors.uncertain.compiled import CompiledEngine, columns
from skytide.monitors.uncertain.engine import UncertainRows


class ScanEngine(CompiledEngine):
    """Compares each arrival and each expiry with all candidates, by value: O(d candidates) each.

    >>> engine = ScanEngine(1, [0.6, 0.4])
    >>> rows = UncertainRows(
    ...     np.array([[2.0], [1.0]]), np.array([0.9, 0.5]), np.array([1, 2]), np.array([9, 9]), np.array([7, 8])
    ... )
    >>> moves = engine.run(rows, until=2)
    >>> sorted(tuple(int(number) for number in move) for move in zip(*vars(moves).values()))
    [(1, 1, 7, 0), (1, 1, 7, 1), (2, -1, 7, 0), (2, 1, 8, 1)]
    >>> [part.tolist() for part in engine.answer(0.45)]
    [[7, 8], [0.45, 0.5]]
    """

    def _take(self, rows: UncertainRows, start: int, until: int) -> tuple[int, Integers]:
        edges = np.empty((self.dimensions, 0))
        taken, moves = kernel.run(tuple(self._store), edges, *columns(rows), start, len(rows), until)
        return int(taken), moves
