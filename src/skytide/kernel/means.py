"""What a coordinator knows of objects in fragments, compiled: bases of cells, and sums of them for objects.

Sums are kept as a sum and the rest that it cannot hold (Knuth's two-sum), twice the precision of a float.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from skytide.model import Booleans, Floats, Integers

ARRIVAL, DEPARTURE, UPDATE, REPORT = range(4)
"""What is heard of a cell: that it is new, that it is gone, an update, or what updates came to."""
FADING = 0.9
"""What is left of an object's statistics when a report comes, in which that counts as much as it has updates."""


class Means(NamedTuple):
    """Of each cell the base, whether it counts, its weight, and when it spoke; of each object how many cells count,
    their weight, the sum of weight times base and its rest, the largest term in it, the mean size of an update, and of
    how many updates that is the mean.
    """

    base: Floats
    alive: Booleans
    weight: Floats
    spoke: Integers
    members: Integers
    weights: Floats
    total: Floats
    rest: Floats
    largest: Floats
    step: Floats
    heard: Floats


@njit(cache=True, _nrt=False)
def _count(means: Means, one: int, cell: int, sign: int) -> None:
    """Add a cell to the sums of its object, or take it off."""
    weight = means.weight[cell]
    means.members[one] += sign
    means.weights[one] += sign * weight
    for j in range(means.base.shape[1]):
        term = weight * means.base[cell, j]
        a, b = means.total[one, j], sign * term
        s = a + b
        shadow = s - a
        means.total[one, j] = s
        means.rest[one, j] += (a - (s - shadow)) + (b - shadow)
        if sign > 0:
            means.largest[one, j] = max(means.largest[one, j], abs(term))


@njit(cache=True)
def hear(
    means: Means,
    kind: int,
    now: int,
    objects: Integers,
    cells: Integers,
    vectors: Floats,
    weights: Floats,
    updates: Integers,
    moved: Floats,
) -> None:
    """Take what is said of cells, of each once. O(rows)."""
    d = means.base.shape[1]
    for row in range(objects.shape[0]):
        one, cell = objects[row], cells[row]
        means.spoke[cell] = now
        if means.alive[cell]:
            _count(means, one, cell, -1)
        means.alive[cell] = kind != DEPARTURE
        if kind == DEPARTURE:
            continue
        if kind == ARRIVAL:
            means.weight[cell] = weights[row]
        else:
            count = 1 if kind == UPDATE else updates[row]
            size = 0.0
            for j in range(d):
                size += abs(vectors[row, j] - means.base[cell, j]) if kind == UPDATE else moved[row, j]
            if count > 0 and size < np.inf:
                before = means.heard[one] * FADING
                means.heard[one] = before + count
                for j in range(d):
                    part = abs(vectors[row, j] - means.base[cell, j]) if kind == UPDATE else moved[row, j]
                    means.step[one, j] = (means.step[one, j] * before + part) / (before + count)
        for j in range(d):
            means.base[cell, j] = vectors[row, j]
        _count(means, one, cell, 1)


@njit(cache=True)
def shift(means: Means, one: int, cells: Integers, amount: Floats) -> None:
    """Take an amount off the bases of some cells of an object. O(cells)."""
    for cell in cells:
        _count(means, one, cell, -1)
        for j in range(amount.shape[0]):
            means.base[cell, j] -= amount[j]
        _count(means, one, cell, 1)


@njit(cache=True)
def mean(means: Means, one: int, found: Floats) -> bool:
    """Put the mean of an object into `found`; False where sums of twice the precision may not be enough. O(d)."""
    good = True
    for j in range(found.shape[0]):
        total = means.total[one, j] + means.rest[one, j]
        found[j] = total / means.weights[one]
        good &= abs(total) >= means.largest[one, j] * 2.0**-40 and abs(found[j]) < np.inf
    return good
