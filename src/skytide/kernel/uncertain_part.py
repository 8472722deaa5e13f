"""Which uncertain rows of a part can matter: a plain scan of the part in the order of time.

DESIGN's rule: a part may drop a row if at every instant of its life the product of (1 - P) over its live dominators in
the part is below the smallest threshold. In a part whose rows all come within one window length no row expires before
the last one has come. So the product of a row only falls while the part lasts; if it is below the threshold when the
row comes, and the product over the newer dominators alone is below it in the end, the row is dropped. Dominators that
have been outdone themselves are left out of sums, which keeps a few rows more than needed.
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
