"""The plain scan of a part of uncertain rows for those that can matter; `monitors.uncertain.part` has the rule.

Dominators that have been outdone themselves are left out of sums, which changes no decision.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from skytide.model import Booleans, Floats


@njit(cache=True)
def survivors(values: Floats, weights: Floats, bar: float) -> Booleans:
    """Which rows may matter; `weights` are -log(1 - P), `bar` is -log of the threshold. O(d n candidates)."""
    n, d = values.shape
    kept = np.zeros(n, dtype=np.bool_)
    held = np.empty(n, dtype=np.int64)
    newer = np.zeros(n)
    count = 0
    for i in range(n):
        older = 0.0
        left = 0
        for place in range(count):
            c = held[place]
            better = worse = False
            for k in range(d):
                if values[c, k] < values[i, k]:
                    better = True
                elif values[c, k] > values[i, k]:
                    worse = True
                if better and worse:
                    break
            if better and not worse:
                older += weights[c]
            elif worse and not better:
                newer[c] += weights[i]
            if newer[c] <= bar:
                held[left] = c
                left += 1
        held[left] = i
        count = left + 1
        kept[i] = older <= bar
    for place in range(count):
        kept[held[place]] = True
    return kept
