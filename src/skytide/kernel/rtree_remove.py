"""Points out of the main-memory R-tree, and what that does to the nodes above. See `rtree_nodes` for the layout."""

from __future__ import annotations

import numpy as np

from skytide.kernel.rtree_lanes import LANES, lean, part
from skytide.kernel.rtree_nodes import (
    COUNT,
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
    refresh,
    release,
)

LOW = LANES // 4
"""A node with fewer entries looks for a neighbour to join."""


@lean
def remove(t: Tree, slot: int) -> None:
    """Take a point out by its slot. O(d), and up the tree only where a box or a largest key was its own."""
    d = t.weights.size
    at = np.int64(t.where[slot])
    t.where[slot] = NONE
    t.head[COUNT] -= 1
    leaf, lane = at // LANES, at % LANES
    last = t.leaf[leaf, SIZE] - 1
    t.leaf[leaf, SIZE] = last
    parent, place = t.leaf[leaf, UP], t.leaf[leaf, PLACE]
    bound = t.keys[at] == t.largest[parent * LANES + place]
    for k in range(d):
        offset, box = (leaf * d + k) * LANES, (parent * d + k) * LANES + place
        x = t.points[offset + lane]
        bound |= (x == t.lo[box]) | (x == t.hi[box])
        t.points[offset + lane] = t.points[offset + last]
    if lane != last:
        moved = t.slots[leaf * LANES + last]
        t.keys[at], t.slots[at], t.where[moved] = t.keys[leaf * LANES + last], moved, at
    if bound or last < LOW:
        _settle(t, leaf)


@part
def _settle(t: Tree, leaf: int) -> None:
    """From a leaf that lost a point upwards: shrink boxes, join nodes that run low, drop empty ones."""
    # A plain 0 would be a constant to the compiler, which then makes every callee twice.
    level, node = np.int64(0), leaf
    parent, place, size = t.leaf[leaf, UP], t.leaf[leaf, PLACE], t.leaf[leaf, SIZE]
    while parent != NONE:
        changed = size == 0
        if size == 0:
            release(t, level, node)
            _drop_entry(t, parent, place)
        else:
            changed = refresh(t, parent, place)
            if size < LOW:
                _join(t, level, node, parent, place)
        node, level = parent, level + 1
        size, parent, place = t.inner[node, SIZE], t.inner[node, UP], t.inner[node, PLACE]
        if not changed and size >= LOW:
            return
    while t.head[HEIGHT] > 1 and t.inner[t.head[ROOT], SIZE] <= 1:
        root = t.head[ROOT]
        if t.inner[root, SIZE] == 0:
            t.inner[root, LEVEL] = t.head[HEIGHT] = 1
            return
        t.head[ROOT] = t.kids[root * LANES]
        t.head[HEIGHT] -= 1
        t.inner[t.head[ROOT], UP] = t.inner[t.head[ROOT], PLACE] = NONE
        release(t, t.head[HEIGHT] + 1, root)


@part
def _drop_entry(t: Tree, parent: int, place: int) -> None:
    """Close the gap of an entry with the last one."""
    d, last = t.weights.size, t.inner[parent, SIZE] - 1
    t.inner[parent, SIZE] = last
    if place == last:
        return
    for k in range(d):
        offset = (parent * d + k) * LANES
        t.lo[offset + place], t.hi[offset + place] = t.lo[offset + last], t.hi[offset + last]
    t.largest[parent * LANES + place] = t.largest[parent * LANES + last]
    attach(t, parent, place, t.kids[parent * LANES + last])


@part
def _join(t: Tree, level: int, node: int, parent: int, place: int) -> None:
    """Move the few entries of a node into the neighbour whose box grows least, if one has room to spare."""
    d = t.weights.size
    size = t.leaf[node, SIZE] if level == 0 else t.inner[node, SIZE]
    best, least = NONE, np.inf
    for j in range(t.inner[parent, SIZE]):
        child = t.kids[parent * LANES + j]
        other = t.leaf[child, SIZE] if level == 0 else t.inner[child, SIZE]
        if j == place or other + size > LANES - LOW:
            continue
        cost = 0.0
        for k in range(d):
            offset = (parent * d + k) * LANES
            low, high = min(t.lo[offset + j], t.lo[offset + place]), max(t.hi[offset + j], t.hi[offset + place])
            cost += extent(t.weights[k], low, high)
        if cost < least:
            best, least = j, cost
    if best == NONE:
        return
    target = t.kids[parent * LANES + best]
    for j in range(size):
        _move_entry(t, level, node, j, target)
    refresh(t, parent, best)
    release(t, level, node)
    _drop_entry(t, parent, place)


@part
def _move_entry(t: Tree, level: int, node: int, lane: int, target: int) -> None:
    d = t.weights.size
    source, to = node * LANES + lane, target * LANES
    if level == 0:
        to += t.leaf[target, SIZE]
        t.leaf[target, SIZE] += 1
        for k in range(d):
            t.points[(target * d + k) * LANES + to % LANES] = t.points[(node * d + k) * LANES + lane]
        t.keys[to], t.slots[to] = t.keys[source], t.slots[source]
        t.where[t.slots[to]] = to
        return
    to += t.inner[target, SIZE]
    t.inner[target, SIZE] += 1
    for k in range(d):
        t.lo[(target * d + k) * LANES + to % LANES] = t.lo[(node * d + k) * LANES + lane]
        t.hi[(target * d + k) * LANES + to % LANES] = t.hi[(node * d + k) * LANES + lane]
    t.largest[to] = t.largest[source]
    attach(t, target, to % LANES, t.kids[source])
