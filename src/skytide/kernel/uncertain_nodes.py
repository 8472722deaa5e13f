"""The aggregate R-tree of zhang09p (Section IV-A) over the candidates of a `Store`, as flat arrays.

An entry, that is a node as its parent sees it, has what the paper gives it: P_noc, the smallest and largest P_new, and
multipliers for P_new and for P_new * P_old that everything below it has yet to get; here all are sums of weights, so
multipliers are added and taken away exactly. Aggregates leave the node's own multipliers out, as in the paper.

Where we differ. The paper has a tree per band between neighbouring thresholds, each with the smallest and largest
P_sky. Here one tree holds all candidates, and an entry knows by how much P_sky may fall, or rise, before the first row
below it leaves the band that it was last shown in: the same test, for any number of thresholds, and no row ever moves
from tree to tree. An entry also knows the first and the last expiry below it, so that rows may outlive later ones.

A node has up to 16 entries, whose boxes lie coordinate by coordinate (`rtree_lanes`); NaN fills unused lanes. In a leaf
an entry is a slot of the store. Nodes that rows leave are not merged; an empty one is given back.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skytide.kernel.rtree_lanes import LANES, lean, part
from skytide.kernel.uncertain_numbers import BAR, MARGIN, value
from skytide.kernel.uncertain_state import EXPIRY, LOG, NEVER, Store
from skytide.model import Floats, Integers

NEW, ALL = 0, 2
"""Lines of `tags`: P_new's multiplier is lines 0 and 1, that of P_new * P_old is lines 2 and 3."""
LEAST, MOST, FALL, RISE = range(4)
"""Lines of `bounds`: the smallest and largest lasting sum, and how far P_sky may fall or rise."""
ROOT, TOP, SPARE, HEIGHT, CHANGED, STATE = range(6)
"""Entries of `state`: the root, nodes ever used, nodes given back, the levels of the tree, and whether anything has
happened since it was last settled. (A row on a threshold strays for ever: strays alone are no reason to settle.)"""
NOBODY = -1
_SHARE = 1e-14
"""How much of a multiplier rounding may cost a bound. Those of many certain rows are large, and a bound that has lost
its last digits to one must not hide a row when it is taken away again: so it is drawn in by as much."""


class Tree(NamedTuple):
    """Boxes (lowest and highest corners, nodes * d * 16), entries (nodes, 16), and per node: how many, whether it is a
    leaf, its parent, whether its aggregates are out of date, multipliers (4, nodes), the sum of weights (2, nodes),
    bounds (4, nodes), first and last expiry (2, nodes); the leaf of each slot; nodes given back; three lists to work
    with, an overfull node (2, 17, d), the scale of each coordinate, and state."""

    lows: Floats
    highs: Floats
    entries: Integers
    sizes: Integers
    leaf: np.ndarray
    parent: Integers
    dirty: np.ndarray
    tags: Integers
    noc: Integers
    bounds: Floats
    spans: Integers
    leaf_of: Integers
    spare: Integers
    stack: Integers
    visited: Integers
    dropped: Integers
    overfull: Floats
    scales: Floats
    state: Integers


def allocate(dimensions: int, nodes: int, slots: int) -> Tree:
    """An empty tree, which is an empty leaf, with room for so many nodes over so many slots."""
    state = np.zeros(STATE, np.int64)
    state[TOP] = state[HEIGHT] = 1
    tree = Tree(
        np.full(nodes * dimensions * LANES, np.nan),
        np.full(nodes * dimensions * LANES, np.nan),
        np.full((nodes, LANES), NOBODY, np.int64),
        np.zeros(nodes, np.int64),
        np.ones(nodes, np.uint8),
        np.full(nodes, NOBODY, np.int64),
        np.zeros(nodes, np.uint8),
        np.zeros((4, nodes), np.int64),
        np.zeros((2, nodes), np.int64),
        np.zeros((4, nodes)),
        np.zeros((2, nodes), np.int64),
        np.full(slots, NOBODY, np.int64),
        np.zeros(nodes, np.int64),
        np.zeros(nodes, np.int64),
        np.zeros(nodes, np.int64),
        np.zeros(slots, np.int64),
        np.zeros((2, LANES + 1, dimensions)),
        np.ones(dimensions),
        state,
    )
    tree.bounds[LEAST] = tree.bounds[FALL] = tree.bounds[RISE] = np.inf
    tree.bounds[MOST] = -np.inf
    tree.spans[0] = NEVER
    return tree


# -- multipliers and aggregates ----------------------------------------------------------------------------------------


@part
def push_down(tree: Tree, store: Store, n: int) -> None:
    """Hand a node's multipliers on to its entries (UpdateOldNew, Algorithm 3)."""
    tags = tree.tags
    if tags[0, n] == 0 and tags[1, n] == 0 and tags[2, n] == 0 and tags[3, n] == 0:
        return
    for i in range(tree.sizes[n]):
        m = tree.entries[n, i]
        if tree.leaf[n]:
            for k in range(2):
                store.lasting[k, m] += tags[NEW + k, n]
                store.total[k, m] += tags[ALL + k, n]
        else:
            for k in range(4):
                tags[k, m] += tags[k, n]
    for k in range(4):
        tags[k, n] = 0
    tree.dirty[n] = 1


@lean
def slack_of(store: Store, c: int, total: float) -> tuple[float, float]:
    """By how much a row's P_sky may fall and rise, as a logarithm, before it leaves the band it was last shown in."""
    bars, band = store.bars, store.shown[c]
    now = store.chances[LOG, c] + total
    fall = now - bars[BAR, band] - bars[MARGIN, band] if band < bars.shape[1] else np.inf
    rise = bars[BAR, band - 1] - bars[MARGIN, band - 1] - now if band > 0 else np.inf
    return fall, rise


@part
def pull(tree: Tree, store: Store, n: int) -> None:
    """A node's aggregates from its entries (CalProb, Algorithm 2)."""
    high, low, soonest, latest = 0, 0, NEVER, -NEVER - 1
    least, most, least_fall, least_rise = np.inf, -np.inf, np.inf, np.inf
    tags, bounds = tree.tags, tree.bounds
    for i in range(tree.sizes[n]):
        m = tree.entries[n, i]
        if tree.leaf[n]:
            lasting = value(store.lasting[0, m], store.lasting[1, m])
            least, most = min(least, lasting), max(most, lasting)
            fall, rise = slack_of(store, m, value(store.total[0, m], store.total[1, m]))
            high += store.weights[0, m]
            low += store.weights[1, m]
            soonest, latest = min(soonest, store.keys[EXPIRY, m]), max(latest, store.keys[EXPIRY, m])
        else:
            lasting = value(tags[NEW, m], tags[NEW + 1, m])
            total = value(tags[ALL, m], tags[ALL + 1, m])
            least, most = min(least, bounds[LEAST, m] + lasting), max(most, bounds[MOST, m] + lasting)
            fall, rise = bounds[FALL, m] + total, bounds[RISE, m] - total - _SHARE * abs(total)
            high += tree.noc[0, m]
            low += tree.noc[1, m]
            soonest, latest = min(soonest, tree.spans[0, m]), max(latest, tree.spans[1, m])
        least_fall, least_rise = min(least_fall, fall), min(least_rise, rise)
    tree.noc[0, n], tree.noc[1, n] = high, low
    tree.spans[0, n], tree.spans[1, n] = soonest, latest
    bounds[LEAST, n], bounds[MOST, n] = least, most
    bounds[FALL, n], bounds[RISE, n] = least_fall, least_rise
    tree.dirty[n] = 0


@part
def pull_visited(tree: Tree, store: Store, count: int) -> None:
    """Bring the aggregates up to date of the visited nodes, each listed after its parent."""
    for i in range(count - 1, -1, -1):
        n = tree.visited[i]
        if tree.dirty[n]:
            pull(tree, store, n)
            if tree.parent[n] != NOBODY:
                tree.dirty[tree.parent[n]] = 1


# -- boxes -------------------------------------------------------------------------------------------------------------


@part
def _place(tree: Tree, n: int) -> int:
    """The lane of a node in its parent."""
    lane = 0
    while tree.entries[tree.parent[n], lane] != n:
        lane += 1
    return lane


@part
def _fit(tree: Tree, n: int) -> None:
    """Draw the box of a node tight, where its parent has it."""
    up, d = tree.parent[n], tree.scales.size
    if up == NOBODY:
        return
    lane = _place(tree, n)
    highs = tree.lows if tree.leaf[n] else tree.highs
    for k in range(d):
        base = (n * d + k) * LANES
        low, high = tree.lows[base], highs[base]
        for i in range(1, tree.sizes[n]):
            low, high = min(low, tree.lows[base + i]), max(high, highs[base + i])
        tree.lows[(up * d + k) * LANES + lane] = low
        tree.highs[(up * d + k) * LANES + lane] = high


@part
def ascend(tree: Tree, store: Store, n: int, boxes: bool) -> None:
    """Bring the aggregates, and the boxes where they may have shrunk, up to date from a node to the root."""
    while n != NOBODY:
        pull(tree, store, n)
        if boxes:
            _fit(tree, n)
        n = tree.parent[n]


@part
def _set_lane(tree: Tree, n: int, lane: int, which: int) -> None:
    """Put entry `which` of the overfull node into a lane."""
    d = tree.scales.size
    for k in range(d):
        tree.lows[(n * d + k) * LANES + lane] = tree.overfull[0, which, k]
        tree.highs[(n * d + k) * LANES + lane] = tree.overfull[1, which, k]


@part
def _clear_lane(tree: Tree, n: int, lane: int) -> None:
    """Fill a lane with the last one, and leave that empty."""
    d, last = tree.scales.size, tree.sizes[n] - 1
    for k in range(d):
        base = (n * d + k) * LANES
        tree.lows[base + lane], tree.lows[base + last] = tree.lows[base + last], np.nan
        tree.highs[base + lane], tree.highs[base + last] = tree.highs[base + last], np.nan
    tree.entries[n, lane] = tree.entries[n, last]
    tree.entries[n, last] = NOBODY
    tree.sizes[n] = last


# -- insertion and removal ---------------------------------------------------------------------------------------------


@part
def _new_node(tree: Tree, leaf: int) -> int:
    state = tree.state
    if state[SPARE]:
        state[SPARE] -= 1
        n = tree.spare[state[SPARE]]
    else:
        n = state[TOP]
        state[TOP] += 1
    tree.leaf[n] = leaf
    tree.parent[n] = NOBODY
    return int(n)


@part
def _adopt(tree: Tree, n: int, lane: int, m: int) -> None:
    """Make m the entry of a node in a lane."""
    tree.entries[n, lane] = m
    if tree.leaf[n]:
        tree.leaf_of[m] = n
    else:
        tree.parent[m] = n


@part
def _share(tree: Tree, low: float, high: float, k: int) -> float:
    """An extent along coordinate k as a share of the whole; infinite extents count as the whole."""
    if not low < high:
        return 0.0
    share = (high - low) * tree.scales[k]
    return min(share, 1.0) if share >= 0 else 1.0


@part
def _choose(tree: Tree, store: Store, n: int, a: int) -> int:
    """The lane whose box must grow least, along all coordinates together, to take the row in."""
    d, best, chosen = tree.scales.size, np.inf, 0
    for lane in range(tree.sizes[n]):
        cost = 0.0
        for k in range(d):
            at = (n * d + k) * LANES + lane
            x = store.values[a, k]
            cost += _share(tree, x, tree.lows[at], k) + _share(tree, tree.highs[at], x, k)
            cost += 1e-3 * _share(tree, tree.lows[at], tree.highs[at], k)
        if cost < best:
            best, chosen = cost, lane
    return chosen


@part
def _axis(tree: Tree) -> int:
    """The coordinate along which the entries of the overfull node lie farthest apart."""
    chosen, widest = 0, -1.0
    for k in range(tree.scales.size):
        low, high = tree.overfull[0, 0, k], tree.overfull[0, 0, k]
        for i in range(1, LANES + 1):
            low, high = min(low, tree.overfull[0, i, k]), max(high, tree.overfull[0, i, k])
        share = _share(tree, low, high, k)
        if share > widest:
            widest, chosen = share, k
    return chosen


@part
def _split(tree: Tree, n: int, extra: int, order: Integers) -> int:
    """Share the entries of a full node, and `extra` whose box is the last of `overfull`, with a new one: that one."""
    d, half = tree.scales.size, (LANES + 1) // 2
    for i in range(LANES):
        order[i] = tree.entries[n, i]
        for k in range(d):
            tree.overfull[0, i, k] = tree.lows[(n * d + k) * LANES + i]
            tree.overfull[1, i, k] = tree.highs[(n * d + k) * LANES + i]
    order[LANES] = extra
    axis: int = _axis(tree)
    rank = order[LANES + 1 :]
    for i in range(LANES + 1):  # by insertion: there are 17
        j = i
        while j > 0 and tree.overfull[0, rank[j - 1], axis] > tree.overfull[0, i, axis]:
            rank[j] = rank[j - 1]
            j -= 1
        rank[j] = i
    m: int = _new_node(tree, tree.leaf[n])
    while tree.sizes[n]:
        _clear_lane(tree, n, tree.sizes[n] - 1)
    for i in range(LANES + 1):
        to = n if i < half else m
        lane = tree.sizes[to]
        _set_lane(tree, to, lane, rank[i])
        tree.sizes[to] += 1
        _adopt(tree, to, lane, order[rank[i]])
    return m


@part
def _box_to_overfull(tree: Tree, n: int, which: int) -> None:
    """Write the box of a node's entries as entry `which` of the overfull node."""
    d = tree.scales.size
    for k in range(d):
        base = (n * d + k) * LANES
        low, high = tree.lows[base], tree.highs[base]
        for i in range(1, tree.sizes[n]):
            low, high = min(low, tree.lows[base + i]), max(high, tree.highs[base + i])
        tree.overfull[0, which, k], tree.overfull[1, which, k] = low, high


@part
def insert(tree: Tree, store: Store, a: int, order: Integers) -> None:
    """Put a candidate into the tree. `order` is scratch for 34 numbers; height + 1 nodes must be there to be taken."""
    d, state = tree.scales.size, tree.state
    n = state[ROOT]
    push_down(tree, store, n)
    while not tree.leaf[n]:
        lane = _choose(tree, store, n, a)
        for k in range(d):
            at = (n * d + k) * LANES + lane
            tree.lows[at] = min(tree.lows[at], store.values[a, k])
            tree.highs[at] = max(tree.highs[at], store.values[a, k])
        n = tree.entries[n, lane]
        push_down(tree, store, n)
    extra = a
    for k in range(d):
        tree.overfull[0, LANES, k] = tree.overfull[1, LANES, k] = store.values[a, k]
    while tree.sizes[n] == LANES:
        m = _split(tree, n, extra, order)
        pull(tree, store, n)
        pull(tree, store, m)
        _box_to_overfull(tree, m, LANES)
        if tree.parent[n] == NOBODY:
            root = _new_node(tree, 0)
            _box_to_overfull(tree, n, 0)
            _set_lane(tree, root, 0, 0)
            tree.sizes[root] = 1
            _adopt(tree, root, 0, n)
            state[ROOT] = root
            state[HEIGHT] += 1
        else:
            _fit(tree, n)
        extra, n = m, tree.parent[n]
    lane = tree.sizes[n]
    _set_lane(tree, n, lane, LANES)
    tree.sizes[n] += 1
    _adopt(tree, n, lane, extra)
    ascend(tree, store, n, False)


@part
def remove(tree: Tree, store: Store, x: int) -> None:
    """Take a candidate out of the tree, and nodes that become empty."""
    state, n, entry = tree.state, tree.leaf_of[x], x
    tree.leaf_of[x] = NOBODY
    while True:
        lane = 0
        while tree.entries[n, lane] != entry:
            lane += 1
        _clear_lane(tree, n, lane)
        if tree.sizes[n] or tree.parent[n] == NOBODY:
            break
        entry, n = n, tree.parent[n]
        for k in range(4):
            tree.tags[k, entry] = 0
        tree.spare[state[SPARE]] = entry
        state[SPARE] += 1
    if not tree.sizes[n] and not tree.leaf[n]:  # the root has become empty: it is a leaf again
        tree.leaf[n] = 1
        state[HEIGHT] = 1
    ascend(tree, store, n, True)


@lean
def rescale(tree: Tree) -> None:
    """Measure extents by those of the whole tree from now on. Only the shape of the tree hangs on it."""
    n = tree.state[ROOT]
    if tree.sizes[n]:
        _box_to_overfull(tree, n, 0)
        for k in range(tree.scales.size):
            extent = tree.overfull[1, 0, k] - tree.overfull[0, 0, k]
            tree.scales[k] = 1 / extent if 0 < extent < np.inf else 1.0


@lean
def remap(tree: Tree, moved: Integers) -> None:
    """Follow the candidates to their new slots. O(nodes)."""
    tree.leaf_of[:] = NOBODY
    for n in range(tree.state[TOP]):
        if tree.leaf[n]:
            for i in range(tree.sizes[n]):
                c = moved[tree.entries[n, i]]
                tree.entries[n, i] = c
                tree.leaf_of[c] = n
