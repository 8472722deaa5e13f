"""Values as cells: each column is cut at a few of its own quantiles, and a value becomes the number of cuts below it.

A row that dominates another has no larger cell in any column, so that cells can rule out nearly all pairs of rows a
byte, or a bit, at a time; what is left is compared by value. Any cuts are right; good ones only save work.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from skytide.model import Floats

CELLS = 256
SAMPLE, FEW = 2_048, 256
"""Values per column that the cuts come from; few where the rows to come are too few to pay for sorting more."""


@njit(cache=True)
def cell_of(cuts: Floats, value: float) -> int:
    """How many of the 255 sorted cuts lie below the value. O(log cells).

    Written out, and without a branch on the values: which way one goes cannot be guessed, and a wrong guess costs more
    than a step.
    """
    cell = 128 if cuts[127] < value else 0
    cell += 64 if cuts[np.uint64(cell + 63)] < value else 0
    cell += 32 if cuts[np.uint64(cell + 31)] < value else 0
    cell += 16 if cuts[np.uint64(cell + 15)] < value else 0
    cell += 8 if cuts[np.uint64(cell + 7)] < value else 0
    cell += 4 if cuts[np.uint64(cell + 3)] < value else 0
    cell += 2 if cuts[np.uint64(cell + 1)] < value else 0
    cell += 1 if cuts[np.uint64(cell)] < value else 0
    return cell


@njit(cache=True)
def cut(rows: Floats, kept: Floats, count: int) -> Floats:
    """Cuts at the quantiles of new rows, and of kept ones where the new ones are few. O(d sample log sample)."""
    n, d = rows.shape
    most = SAMPLE if n >= 2 * SAMPLE else FEW
    from_rows = min(n, most)
    from_kept = min(count, most - from_rows)
    total = from_rows + from_kept
    sample = np.empty(total)
    edges = np.full((d, CELLS - 1), np.inf)
    if total == 0:
        return edges
    for k in range(d):
        for i in range(from_rows):
            sample[i] = rows[i * n // from_rows, k]
        for i in range(from_kept):
            sample[from_rows + i] = kept[i * count // from_kept, k]
        sample.sort()
        for cell in range(CELLS - 1):
            edges[k, cell] = sample[(cell + 1) * total // CELLS]
    return edges


@njit(cache=True)
def encode(edges: Floats, rows: Floats, first: int, last: int, codes: np.ndarray) -> None:
    """The cells of the rows [first, last), one line of codes per row. O(n d)."""
    d = rows.shape[1]
    for k in range(d):
        cuts = edges[k]
        for i in range(first, last):
            codes[i - first, k] = cell_of(cuts, rows[i, k])
