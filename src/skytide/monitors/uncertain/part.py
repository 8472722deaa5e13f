"""Which uncertain rows of a part can matter, for those who hold a part of a stream and pass on what the rest may need.

DESIGN's rule: a part may drop a row if at every instant of its life the product of (1 - P) over its live dominators in
the part is below the smallest threshold. In a part whose rows all come within one window length no row expires before
the last one has come. So the product of a row only falls while the part lasts; if it is below the threshold when the
row comes, and the product over the newer dominators alone is below it in the end, the row is dropped.

The first is whether the row enters the answer of a window where its own P is left aside, the second whether it is still
a candidate there: so the fast engine decides. A short part is scanned, which takes less than to make an engine.
"""

from __future__ import annotations

import numpy as np

from skytide.kernel import uncertain_state as state
from skytide.kernel.uncertain_numbers import BAR, MARGIN
from skytide.kernel.uncertain_part import survivors as survivors_of_scan
from skytide.model import Booleans, Floats
from skytide.monitors.uncertain.cells import CellsEngine
from skytide.monitors.uncertain.engine import UncertainRows

SHORT = 1_000
"""Rows that are scanned faster than an engine takes them."""
_ROUNDING = 1e-9
"""So far below the threshold, relatively, a product must be: rounding keeps a row too many rather than one too few."""


def survivors(values: Floats, probabilities: Floats, threshold: float) -> Booleans:
    """Which rows of a part, in the order of time, may matter. O(d candidates / 64) per row.

    >>> survivors(np.array([[1.0], [2.0], [3.0]]), np.array([0.9, 0.5, 0.5]), 0.3).tolist()
    [True, True, True]
    >>> survivors(np.array([[1.0], [2.0], [0.0]]), np.array([0.9, 0.5, 0.9]), 0.3).tolist()
    [True, False, True]
    """
    n, dimensions = values.shape
    if n < SHORT:
        with np.errstate(divide="ignore"):
            weights = -np.log1p(-probabilities)
        found: Booleans = survivors_of_scan(values, weights, -float(np.log(threshold)) + _ROUNDING)
        return found
    engine, numbers = _Part(dimensions, threshold), np.arange(n)
    moves = engine.run(UncertainRows(values, probabilities, numbers, numbers + n, numbers), n - 1)
    kept = np.zeros(n, dtype=bool)
    kept[moves.handles] = kept[engine.retained().handles] = True
    return kept


class _Part(CellsEngine):
    """Rows compete with their own probabilities left aside."""

    def __init__(self, dimensions: int, threshold: float) -> None:
        super().__init__(dimensions, [threshold])
        self._bars[BAR] -= _ROUNDING
        self._bars[MARGIN] = -1.0  # nothing is so near that the product itself, own probability included, decides

    def _reset(self) -> None:
        super()._reset()
        self._store.meta[state.ASIDE] = 1
