"""Which rows of a batch a few strong rows outdo: a quick look, before the work that is exact for every row.

Most rows of a stream are dominated by many others, and a few dozen of the strongest find most of these. What is found
here is true; what is not found may be true as well.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from skytide.kernel.dominance import dominates_at
from skytide.kernel.rtree_lanes import LANES, count_bits, keys_gt, lanes_weakly_better, lanes_weakly_worse, lowest_bit
from skytide.model import Booleans, Floats, Integers

NOTHING = np.iinfo(np.int64).min
"""The mark of rows that nothing is found for."""


@njit(cache=True)
def _dominating(pilots: Floats, row: Floats, marks: Integers, k: int, latest: bool) -> tuple[int, int]:
    """How many pilots dominate the row, and the largest mark among all that do; if not wanted, counts up to k only."""
    count = 0
    best = NOTHING
    for base in range(0, pilots.shape[1], LANES):
        bits = lanes_weakly_better(pilots, base, pilots.shape[1], row)
        if bits == 0:
            continue
        bits &= ~lanes_weakly_worse(pilots, base, pilots.shape[1], row)
        count += count_bits(bits)
        if not latest:
            if count >= k:
                break
            continue
        bits &= keys_gt(marks, base, best)
        while bits:
            best = marks[base + lowest_bit(bits)]
            bits &= keys_gt(marks, base, best)
    return count, best


@njit(cache=True)
def cover(
    rows: Floats, marks: Integers, strengths: Floats, first: int, k: int, floor: int, slots: int, latest: bool
) -> tuple[Booleans, Integers]:
    """Which rows at least k strong rows before them dominate, and, if wanted, the largest mark among the strong ones.

    Up to `slots` strong rows (a multiple of 16) are kept at a time: those with the smallest `strengths` of the rows so
    far that have a mark above `floor` and that fewer than k of the others dominate. Leaving some out makes the result
    weaker, never wrong. The rows before `first` are only offered, not tested. O(rows * slots * d), 16 at a time.
    """
    n, d = rows.shape
    pilots = np.full((d, slots), np.nan)
    pilot_marks = np.full(slots, NOTHING)
    weights = np.full(slots, np.inf)
    worst = 0
    covered = np.zeros(n - first, np.bool_)
    best = np.full(n - first, NOTHING)
    for i in range(n):
        offered = strengths[i] < weights[worst] and marks[i] > floor
        if i < first and not offered:
            continue
        count, mark = _dominating(pilots, rows[i], pilot_marks, k, latest)
        if i >= first:
            covered[i - first] = count >= k
            best[i - first] = mark
        if offered and count < k:
            for c in range(d):
                pilots[c, worst] = rows[i, c]
            pilot_marks[worst] = marks[i]
            weights[worst] = strengths[i]
            worst = int(np.argmax(weights))
    return covered, best


@njit(cache=True)
def prolong(
    points: Floats, covers: Integers, ends: Integers, rows: Floats, arrivals: Integers, expiries: Integers, now: int
) -> None:
    """Move each point's cover on, in place, while it does not reach past `now` and some row dominates the point there.

    A point is covered up to (not at) covers[i]; a row that arrived by then, still lives then and dominates the point
    covers it up to the row's expiry. Rows are in order of arrival, expiries never decrease. O(points * rows * d).
    """
    for i in range(len(covers)):
        moved = True
        while moved and covers[i] <= now and covers[i] < ends[i]:
            moved = False
            for j in range(len(arrivals) - 1, -1, -1):
                if expiries[j] <= covers[i]:
                    break
                if arrivals[j] <= covers[i] and dominates_at(rows, j, points, i):
                    covers[i] = expiries[j]
                    moved = True
                    break


@njit(cache=True)
def outdone(
    rows: Floats, begins: Integers, ends: Integers, points: Floats, firsts: Integers, lasts: Integers
) -> Booleans:
    """Which rows a point dominates whose instants [first, last] meet the row's [begin, end]. O(rows * points * d)."""
    found = np.zeros(len(begins), np.bool_)
    for i in range(len(begins)):
        for j in range(len(firsts)):
            if firsts[j] <= ends[i] and begins[i] <= lasts[j] and dominates_at(points, j, rows, i):
                found[i] = True
                break
    return found
