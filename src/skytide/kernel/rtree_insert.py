"""Points into the main-memory R-tree: where they go, and how full nodes split. See `rtree_nodes` for the layout."""

from __future__ import annotations

import numpy as np

from skytide.kernel.rtree_lanes import (
    LANES,
    count_bits,
    lanes_eq,
    lanes_grow,
    lanes_le,
    lanes_lt,
    lanes_min,
    lean,
    lowest_bit,
    part,
)
from skytide.kernel.rtree_nodes import (
    COUNT,
    FAR,
    HEIGHT,
    LEVEL,
    NONE,
    PLACE,
    ROOT,
    SIZE,
    UP,
    Tree,
    attach,
    extent,
    new_inner,
    new_leaf,
    put,
    refresh,
)

_LEAST = LANES // 3
_MOST = LANES + 1
_SHARE = 1e-3
"""What a box's own extent counts beside its growth when a point is placed."""


@part
def _choose(t: Tree, node: int, q: np.ndarray) -> int:
    """The entry whose box grows least by q in scaled margin; among equals the smaller box."""
    d = t.weights.size
    cost = t.work
    for j in range(LANES):
        cost[j] = 0.0
    for k in range(d):
        lanes_grow(t.lo, t.hi, (node * d + k) * LANES, q[k], t.weights[k], _SHARE, FAR, cost)
    least = lanes_min(cost, 0, t.inner[node, SIZE])
    return int(lowest_bit(((1 << t.inner[node, SIZE]) - 1) & lanes_eq(cost, 0, least)))


@part
def rescale(t: Tree) -> None:
    """Let one unit of margin be the extent of the finite values in each coordinate, so that units do not matter."""
    root, d = t.head[ROOT], t.weights.size
    for k in range(d):
        low, high = np.inf, -np.inf
        offset = (root * d + k) * LANES
        for j in range(t.inner[root, SIZE]):
            for x in (t.lo[offset + j], t.hi[offset + j]):
                if np.isfinite(x):
                    low, high = min(low, x), max(high, x)
        half = 0.5 * high - 0.5 * low
        t.weights[k] = min(0.5 / half, 1e300) if half > 0.0 and np.isfinite(half) else 1.0


@lean
def insert(t: Tree, slot: int, q: np.ndarray, key: int) -> None:
    """Add a point; `has_room` must hold. O(d * height), and a split now and then."""
    d, node = t.weights.size, t.head[ROOT]
    t.head[COUNT] += 1
    if t.inner[node, SIZE] == 0:
        attach(t, node, 0, new_leaf(t))
        t.inner[node, SIZE] = 1
        for k in range(d):
            t.lo[(node * d + k) * LANES] = t.hi[(node * d + k) * LANES] = q[k]
        t.largest[node * LANES] = key
    while True:
        j = _choose(t, node, q)
        at = node * d * LANES + j
        for k in range(d):
            t.lo[at] = q[k] if q[k] < t.lo[at] else t.lo[at]
            t.hi[at] = q[k] if q[k] > t.hi[at] else t.hi[at]
            at += LANES
        t.largest[node * LANES + j] = max(t.largest[node * LANES + j], key)
        level, node = t.inner[node, LEVEL], t.kids[node * LANES + j]
        if level == 1:
            break
    size = t.leaf[node, SIZE]
    if size == LANES:
        _split_leaf(t, node, slot, q, key)
        return
    put(t, node, size, slot, q, key)
    t.leaf[node, SIZE] = size + 1


@part
def _rank(t: Tree, column: int) -> None:
    """Order the LANES + 1 numbers at `column` of `work` into pick[_MOST:], equal ones as they come. No branches."""
    last = t.work[column + LANES]
    for e in range(LANES):
        x = t.work[column + e]
        below = lanes_lt(t.work, column, x) | (lanes_eq(t.work, column, x) & ((1 << e) - 1))
        t.pick[_MOST + count_bits(below) + (last < x)] = e
    t.pick[_MOST + count_bits(lanes_le(t.work, column, last))] = LANES


@part
def _cut_points(t: Tree, parent: int, place: int) -> int:
    """Halve the LANES + 1 points in `work` along the widest axis of their box; gives the size of the first part.

    Cut by position, not by value, so that any number of equal points splits. For points this is as good as the choice
    by margins and far cheaper.
    """
    d = t.weights.size
    best, axis = -1.0, 0
    for k in range(d):
        at = (parent * d + k) * LANES + place
        wide = extent(t.weights[k], t.lo[at], t.hi[at])
        if wide > best:
            best, axis = wide, k
    _rank(t, axis * _MOST)
    for e in range(_MOST):
        t.pick[e] = t.pick[_MOST + e]
    return _MOST // 2


@part
def _cut_boxes(t: Tree) -> int:
    """Order the LANES + 1 boxes in `work` along the best axis (into `pick`); gives the size of the first part.

    The R*-tree's choice: of all axes and cuts the one with the smallest sum of margins.
    """
    d = t.weights.size
    high, sums, order = d * _MOST, 2 * d * _MOST, _MOST
    best, cut = np.inf, _MOST // 2
    for axis in range(d):
        _rank(t, axis * _MOST)
        for e in range(_MOST):
            t.work[sums + e] = 0.0
        for k in range(d):
            base = k * _MOST
            a, b = np.inf, -np.inf
            for e in range(_MOST - _LEAST):
                one = t.pick[order + e]
                a, b = min(a, t.work[base + one]), max(b, t.work[high + base + one])
                t.work[sums + e + 1] += extent(t.weights[k], a, b)
            a, b = np.inf, -np.inf
            for e in range(_MOST - 1, _LEAST - 1, -1):
                one = t.pick[order + e]
                a, b = min(a, t.work[base + one]), max(b, t.work[high + base + one])
                t.work[sums + e] += extent(t.weights[k], a, b)
        for e in range(_LEAST, _MOST - _LEAST + 1):
            if t.work[sums + e] < best:
                best, cut = t.work[sums + e], e
                for one in range(_MOST):
                    t.pick[one] = t.pick[order + one]
    return cut


@part
def _split_leaf(t: Tree, node: int, slot: int, q: np.ndarray, key: int) -> None:
    d, other = t.weights.size, new_leaf(t)
    if t.head[HEIGHT] == 1:
        rescale(t)
    for k in range(d):
        for j in range(LANES):
            t.work[k * _MOST + j] = t.points[(node * d + k) * LANES + j]
        t.work[k * _MOST + LANES] = q[k]
    cut = _cut_points(t, t.leaf[node, UP], t.leaf[node, PLACE])
    slots, keys = t.pick[2 * _MOST : 3 * _MOST], t.pick[3 * _MOST :]
    for j in range(LANES):
        slots[j], keys[j] = t.slots[node * LANES + j], t.keys[node * LANES + j]
    slots[LANES], keys[LANES] = slot, key
    for e in range(_MOST):
        leaf, lane = (node, e) if e < cut else (other, e - cut)
        one = t.pick[e]
        for k in range(d):
            t.points[(leaf * d + k) * LANES + lane] = t.work[k * _MOST + one]
        t.keys[leaf * LANES + lane], t.slots[leaf * LANES + lane] = keys[one], slots[one]
        t.where[slots[one]] = leaf * LANES + lane
    t.leaf[node, SIZE], t.leaf[other, SIZE] = cut, _MOST - cut
    refresh(t, t.leaf[node, UP], t.leaf[node, PLACE])
    _adopt(t, t.leaf[node, UP], other)


@part
def _adopt(t: Tree, parent: int, child: int) -> None:
    """Give a parent one more child; full parents split, up to a new root."""
    d = t.weights.size
    while t.inner[parent, SIZE] == LANES:
        other = new_inner(t, t.inner[parent, LEVEL])
        # The newcomer's box is taken from a lane of the new node, which is free as yet.
        attach(t, other, 0, child)
        refresh(t, other, 0)
        for k in range(d):
            for j in range(LANES):
                t.work[k * _MOST + j] = t.lo[(parent * d + k) * LANES + j]
                t.work[(d + k) * _MOST + j] = t.hi[(parent * d + k) * LANES + j]
            t.work[k * _MOST + LANES] = t.lo[(other * d + k) * LANES]
            t.work[(d + k) * _MOST + LANES] = t.hi[(other * d + k) * LANES]
        cut = _cut_boxes(t)
        kids, largest = t.pick[2 * _MOST : 3 * _MOST], t.pick[3 * _MOST :]
        for j in range(LANES):
            kids[j], largest[j] = t.kids[parent * LANES + j], t.largest[parent * LANES + j]
        kids[LANES], largest[LANES] = child, t.largest[other * LANES]
        for e in range(_MOST):
            node, lane = (parent, e) if e < cut else (other, e - cut)
            one = t.pick[e]
            for k in range(d):
                t.lo[(node * d + k) * LANES + lane] = t.work[k * _MOST + one]
                t.hi[(node * d + k) * LANES + lane] = t.work[(d + k) * _MOST + one]
            t.largest[node * LANES + lane] = largest[one]
            attach(t, node, lane, kids[one])
        t.inner[parent, SIZE], t.inner[other, SIZE] = cut, _MOST - cut
        above = t.inner[parent, UP]
        if above == NONE:
            above = new_inner(t, t.inner[parent, LEVEL] + 1)
            attach(t, above, 0, parent)
            t.inner[above, SIZE] = 1
            t.head[ROOT] = above
            t.head[HEIGHT] += 1
        refresh(t, above, t.inner[parent, PLACE])
        parent, child = above, other
    lane = t.inner[parent, SIZE]
    attach(t, parent, lane, child)
    t.inner[parent, SIZE] = lane + 1
    refresh(t, parent, lane)
    if t.inner[parent, LEVEL] > 1:
        rescale(t)
