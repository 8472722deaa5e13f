"""The nodes of the main-memory R-tree: where everything lies, and how points come in and go out.

After Guttman's R-tree with the splits of the R*-tree (by margin), as Tao and Papadias use it (Section 5), laid out for
caches: a tree is a handful of flat arrays. Leaves hold points, inner nodes hold boxes; node x has entry j of coordinate
k at (x * d + k) * LANES + j, so that one coordinate of a whole node is one vector. Every inner entry also carries the
largest key below it (`E.t_exp^max` in the paper). Boxes and largest keys are exact at all times: the emptiness test
relies on a point lying on every face of a box.

The owner numbers the points (slots); `where` leads from a slot to its leaf and lane, and every node knows its place in
its parent, so that a deletion needs no search. Nodes that run low are merged into a neighbour, which never needs room.
The arrays never grow here: the owner asks `has_room` before an insertion.

Where we differ: no forced reinsertion, and choices by scaled margins rather than volumes and overlaps, because volumes
vanish on ties and overflow with infinities.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skytide.kernel.rtree_lanes import (
    LANES,
    keys_max,
    lanes_max,
    lanes_min,
    lean,
    part,
)

# the numbers in `head`
ROOT, HEIGHT, COUNT, LEAVES, FREE_LEAF, USED_LEAVES, INNERS, FREE_INNER, USED_INNERS, TESTS, VISITS = range(11)
HEAD_SIZE = 12
# the columns of `leaf` and `inner`
SIZE, UP, PLACE, LEVEL = range(4)
NONE = -1

FAR = 64.0
"""What an extent counts at most, in units of the tree's own: keeps infinities comparable."""


class Tree(NamedTuple):
    """A tree as arrays: `leaf` rows are (size, parent, place in parent), `inner` rows also the level, from 1 up."""

    head: np.ndarray
    points: np.ndarray
    keys: np.ndarray
    slots: np.ndarray
    leaf: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    largest: np.ndarray
    kids: np.ndarray
    inner: np.ndarray
    where: np.ndarray
    weights: np.ndarray
    work: np.ndarray
    pick: np.ndarray
    stack: np.ndarray


@lean
def has_room(t: Tree) -> bool:
    """Whether one more insertion fits, whatever it splits."""
    leaves = t.leaf.shape[0] - t.head[USED_LEAVES]
    inners = t.inner.shape[0] - t.head[USED_INNERS]
    return bool(leaves >= 2 and inners >= t.head[HEIGHT] + 2)


@lean
def clear(t: Tree) -> None:
    """Forget all points; one empty inner node is the root."""
    t.head[ROOT], t.head[HEIGHT], t.head[COUNT] = 0, 1, 0
    t.head[LEAVES], t.head[FREE_LEAF], t.head[USED_LEAVES] = 0, NONE, 0
    t.head[INNERS], t.head[FREE_INNER], t.head[USED_INNERS] = 1, NONE, 1
    t.inner[0, SIZE], t.inner[0, UP], t.inner[0, PLACE], t.inner[0, LEVEL] = 0, NONE, NONE, 1


@part
def new_leaf(t: Tree) -> int:
    """An empty leaf without a parent."""
    node = t.head[FREE_LEAF]
    if node == NONE:
        node = t.head[LEAVES]
        t.head[LEAVES] += 1
    else:
        t.head[FREE_LEAF] = t.leaf[node, UP]
    t.head[USED_LEAVES] += 1
    t.leaf[node, SIZE], t.leaf[node, UP], t.leaf[node, PLACE] = 0, NONE, NONE
    return int(node)


@part
def new_inner(t: Tree, level: int) -> int:
    """An empty inner node without a parent."""
    node = t.head[FREE_INNER]
    if node == NONE:
        node = t.head[INNERS]
        t.head[INNERS] += 1
    else:
        t.head[FREE_INNER] = t.inner[node, UP]
    t.head[USED_INNERS] += 1
    t.inner[node, SIZE], t.inner[node, UP], t.inner[node, PLACE], t.inner[node, LEVEL] = 0, NONE, NONE, level
    return int(node)


@part
def release(t: Tree, level: int, node: int) -> None:
    """Put a node on its free list."""
    if level == 0:
        t.leaf[node, SIZE], t.leaf[node, UP] = NONE, t.head[FREE_LEAF]
        t.head[FREE_LEAF] = node
        t.head[USED_LEAVES] -= 1
    else:
        t.inner[node, SIZE], t.inner[node, UP] = NONE, t.head[FREE_INNER]
        t.head[FREE_INNER] = node
        t.head[USED_INNERS] -= 1


@part
def attach(t: Tree, parent: int, place: int, child: int) -> None:
    """Note the child at this place of the parent, and the place at the child."""
    t.kids[parent * LANES + place] = child
    if t.inner[parent, LEVEL] == 1:
        t.leaf[child, UP], t.leaf[child, PLACE] = parent, place
    else:
        t.inner[child, UP], t.inner[child, PLACE] = parent, place


@part
def refresh(t: Tree, parent: int, place: int) -> bool:
    """Make the box and largest key of an entry exact again; tells whether anything changed. O(d)."""
    d = t.weights.size
    child = t.kids[parent * LANES + place]
    at = parent * d * LANES + place
    changed = False
    below_is_leaf = t.inner[parent, LEVEL] == 1
    size = t.leaf[child, SIZE] if below_is_leaf else t.inner[child, SIZE]
    for k in range(d):
        offset = (child * d + k) * LANES
        if below_is_leaf:
            low, high = lanes_min(t.points, offset, size), lanes_max(t.points, offset, size)
        else:
            low, high = lanes_min(t.lo, offset, size), lanes_max(t.hi, offset, size)
        changed |= (low != t.lo[at]) | (high != t.hi[at])
        t.lo[at], t.hi[at] = low, high
        at += LANES
    keys = keys_max(t.keys, child * LANES, size) if below_is_leaf else keys_max(t.largest, child * LANES, size)
    changed |= keys != t.largest[parent * LANES + place]
    t.largest[parent * LANES + place] = keys
    return bool(changed)


@part
def extent(weight: float, low: float, high: float) -> float:
    """An extent in the tree's own units, FAR at most: infinities stay comparable."""
    if not high > low:
        return 0.0
    scaled = weight * (high - low)
    return scaled if scaled < FAR else FAR


@part
def put(t: Tree, leaf: int, lane: int, slot: int, q: np.ndarray, key: int) -> None:
    """Write a point into a lane of a leaf."""
    d = t.weights.size
    for k in range(d):
        t.points[(leaf * d + k) * LANES + lane] = q[k]
    t.keys[leaf * LANES + lane], t.slots[leaf * LANES + lane] = key, slot
    t.where[slot] = leaf * LANES + lane
