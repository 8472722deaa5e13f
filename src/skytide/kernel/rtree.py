"""A main-memory R-tree of points with the largest key below every entry: the owner of the arrays, and bulk loading.

The compiled parts are `rtree_nodes` (the layout), `rtree_insert`, `rtree_remove` and `rtree_search`. A run loop takes
`RTree.arrays` and calls those directly; when `has_room` says no it returns to Python, which calls `RTree.grow` and
goes on. The methods here do one operation each.

>>> import numpy as np
>>> tree = RTree(2)
>>> tree.load(np.array([[1.0, 5.0], [3.0, 3.0], [4.0, 4.0]]), keys=np.array([7, 8, 9]))
>>> tree.last_dominator(np.array([5.0, 5.0])), tree.any_dominates(np.array([3.0, 3.0]))
(2, False)
>>> tree.dominated(np.array([2.0, 3.0])).tolist()
[1, 2]
"""

from __future__ import annotations

import numpy as np
from numba import njit

from skytide.kernel.rtree_insert import insert, rescale
from skytide.kernel.rtree_lanes import LANES, lean, part
from skytide.kernel.rtree_nodes import (
    COUNT,
    FREE_INNER,
    FREE_LEAF,
    HEAD_SIZE,
    HEIGHT,
    INNERS,
    LEAVES,
    LEVEL,
    NONE,
    PLACE,
    ROOT,
    SIZE,
    TESTS,
    UP,
    USED_INNERS,
    USED_LEAVES,
    VISITS,
    Tree,
    attach,
    clear,
    has_room,
    new_inner,
    new_leaf,
    put,
    refresh,
)
from skytide.kernel.rtree_remove import remove
from skytide.kernel.rtree_search import any_dominates, dominated, last_dominator
from skytide.model import Floats, Integers

FILL = 3 * LANES // 4
"""Entries of a node after bulk loading: room for a few insertions before the first split."""
_LOWEST = np.iinfo(np.int64).min


# -- bulk loading ------------------------------------------------------------------------------------------------------


@part
def _select(values: np.ndarray, axis: int, order: np.ndarray, start: int, stop: int, middle: int) -> None:
    """Reorder order[start:stop] so that the rows before `middle` are at most, the others at least the one there."""
    while stop - start > 1:
        pivot = values[order[(start + stop) // 2], axis]
        i, j = start, stop - 1
        while i <= j:
            while values[order[i], axis] < pivot:
                i += 1
            while values[order[j], axis] > pivot:
                j -= 1
            if i <= j:
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if middle <= j:
            stop = j + 1
        elif middle >= i:
            start = i
        else:
            return


@part
def _widest(values: np.ndarray, order: np.ndarray, start: int, stop: int, weights: np.ndarray) -> int:
    best, axis = -1.0, 0
    for k in range(weights.size):
        low, high = values[order[start], k], values[order[start], k]
        for i in range(start + 1, stop):
            low, high = min(low, values[order[i], k]), max(high, values[order[i], k])
        width = weights[k] * (high - low) if high > low else 0.0
        if width > best:
            best, axis = width, k
    return axis


@njit(cache=True)
def tile(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The rows in an order whose runs of FILL, FILL squared and so on are compact. O(d * n log n).

    Halves along the widest axis, at multiples of the largest full subtree that fits, so that runs and cells agree.
    """
    order = np.arange(len(values))
    ends = np.empty(128, dtype=np.int64)
    ends[0] = len(values)
    start, top = 0, 1
    while top > 0:
        stop = ends[top - 1]
        size = stop - start
        if size <= FILL:
            start = stop
            top -= 1
            continue
        unit = FILL
        while unit * FILL < size:
            unit *= FILL
        middle = start + max(unit, (size // 2 + unit // 2) // unit * unit)
        _select(values, _widest(values, order, start, stop, weights), order, start, stop, middle)
        ends[top] = middle
        top += 1
    return order


@lean
def bulk_load(t: Tree, values: np.ndarray, keys: np.ndarray, slots: np.ndarray, order: np.ndarray) -> None:
    """Build the tree anew from rows in tiled order; the arrays must have room. O(d * n)."""
    clear(t)
    if len(order) == 0:
        return
    t.head[INNERS] = t.head[USED_INNERS] = 0
    count = (len(order) + FILL - 1) // FILL
    for leaf in range(count):
        new_leaf(t)
        for i in range(leaf * FILL, min((leaf + 1) * FILL, len(order))):
            put(t, leaf, i - leaf * FILL, slots[order[i]], values[order[i]], keys[order[i]])
            t.leaf[leaf, SIZE] += 1
    below, level = 0, 0
    while level == 0 or count > 1:
        level += 1
        first = t.head[INNERS]
        for child in range(count):
            if child % FILL == 0:
                new_inner(t, level)
            parent = first + child // FILL
            attach(t, parent, child % FILL, below + child)
            refresh(t, parent, child % FILL)
            t.inner[parent, SIZE] += 1
        below, count = first, (count + FILL - 1) // FILL
    t.head[ROOT], t.head[HEIGHT], t.head[COUNT] = below, level, len(order)
    rescale(t)


@lean
def gather(t: Tree, slots: np.ndarray, out: np.ndarray) -> None:
    """Copy the coordinates of these slots. O(d) per slot."""
    d = t.weights.size
    for i in range(slots.size):
        at = t.where[slots[i]]
        for k in range(d):
            out[i, k] = t.points[(at // LANES * d + k) * LANES + at % LANES]


def scales(values: Floats) -> Floats:
    """One over the extent of the finite values of each column, so that units do not decide the widest axis."""
    weights = np.ones(values.shape[1])
    for k in range(values.shape[1]):
        finite = values[np.isfinite(values[:, k]), k]
        half = 0.5 * finite.max() - 0.5 * finite.min() if len(finite) else 0.0
        if half > 0.0:
            weights[k] = min(0.5 / half, 1e300)
    return weights


# -- the owner ---------------------------------------------------------------------------------------------------------


class RTree:
    """Points under slots that the user numbers; every operation is compiled. Memory: see `memory_bytes`."""

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self.arrays = _arrays(dimensions, leaves=2, inners=4, slots=0)
        clear(self.arrays)

    def __len__(self) -> int:
        return int(self.arrays.head[COUNT])

    @property
    def visits(self) -> int:
        """Nodes visited by searches so far."""
        return int(self.arrays.head[VISITS])

    @property
    def tests(self) -> int:
        """Points compared by searches so far."""
        return int(self.arrays.head[TESTS])

    @property
    def memory_bytes(self) -> int:
        """Bytes of all arrays held. O(1)."""
        return sum(array.nbytes for array in self.arrays)

    def grow(self, slots: int = 0) -> None:
        """Make room for one more insertion at least, and for slots below this number. Amortised O(d) per point."""
        t = self.arrays
        if slots <= t.where.size and has_room(t):
            return
        leaves, inners = len(t.leaf), len(t.inner)
        if leaves < t.head[USED_LEAVES] + 2:
            leaves += leaves // 3 + 2
        if inners < t.head[USED_INNERS] + t.head[HEIGHT] + 2:
            inners += inners // 3 + 4
        if slots > t.where.size:
            slots = max(slots, t.where.size + t.where.size // 3)
        self.arrays = _copied(t, _arrays(self.dimensions, leaves, inners, max(slots, t.where.size)))

    def load(self, values: Floats, keys: Integers, slots: Integers | None = None) -> None:
        """Forget everything and take these points, packed; slots are 0, 1, ... if not given. O(d * n log n)."""
        slots = np.arange(len(values), dtype=np.int64) if slots is None else slots
        nodes = len(values) // FILL + 2
        fresh = _arrays(
            self.dimensions,
            leaves=nodes + nodes // 8,
            inners=nodes // (FILL - 1) + 12,
            slots=int(slots.max(initial=-1)) + 1,
        )
        fresh.head[TESTS], fresh.head[VISITS] = self.tests, self.visits
        self.arrays = fresh
        values = np.ascontiguousarray(values, dtype=np.float64)
        bulk_load(fresh, values, keys, slots, tile(values, scales(values)))

    def compact(self) -> None:
        """Build the tree anew in arrays that fit, if most of the room is unused. Amortised O(d log n) per deletion."""
        t = self.arrays
        if t.leaf.shape[0] > 64 and t.head[USED_LEAVES] * 3 < t.leaf.shape[0]:
            slots = np.flatnonzero(t.where >= 0)
            room = t.where.size
            self.load(self.values(slots), t.keys[t.where[slots]], slots)
            self.grow(room)

    def values(self, slots: Integers) -> Floats:
        """The coordinates of these slots. O(d) per slot."""
        values = np.empty((len(slots), self.dimensions))
        gather(self.arrays, slots, values)
        return values

    def insert(self, slot: int, point: Floats, key: int) -> None:
        """Add a point under a slot that is not in use. O(d * height)."""
        self.grow(slot + 1)
        insert(self.arrays, slot, point, key)

    def remove(self, slot: int) -> None:
        """Take out the point of this slot. O(d * height) at most."""
        remove(self.arrays, slot)

    def any_dominates(self, point: Floats) -> bool:
        """Whether some point dominates this one."""
        return bool(any_dominates(self.arrays, point))

    def last_dominator(self, point: Floats, floor: int = _LOWEST) -> int:
        """The slot with the largest key above `floor` among points that dominate this one, or -1."""
        return int(last_dominator(self.arrays, point, floor))

    def dominated(self, point: Floats) -> Integers:
        """The slots, in order, of the points that this one dominates."""
        out = np.empty(len(self) + LANES, dtype=np.int64)
        return np.sort(out[: dominated(self.arrays, point, out)])

    def _check(self) -> None:
        """State the invariants: exact boxes and largest keys, links both ways, counts, free lists. O(d * n)."""
        t, d = self.arrays, self.dimensions
        leaves: set[int] = set()
        inners: set[int] = set()
        slots: set[int] = set()

        def visit(level: int, node: int) -> tuple[Floats, Floats, int]:
            if level == 0:
                leaves.add(node)
                size = t.leaf[node, SIZE]
                assert 1 <= size <= LANES
                lanes = np.arange(node * LANES, node * LANES + size)
                assert (t.where[t.slots[lanes]] == lanes).all()
                assert slots.isdisjoint(t.slots[lanes].tolist())
                slots.update(t.slots[lanes].tolist())
                points = t.points.reshape(-1, d, LANES)[node, :, :size]
                return points.min(axis=1), points.max(axis=1), int(t.keys[lanes].max())
            inners.add(node)
            size = t.inner[node, SIZE]
            assert t.inner[node, LEVEL] == level
            assert (1 if len(self) else 0) <= size <= LANES
            lo, hi = (boxes.reshape(-1, d, LANES)[node, :, :size] for boxes in (t.lo, t.hi))
            keys = t.largest[node * LANES : node * LANES + size]
            for j in range(size):
                child = int(t.kids[node * LANES + j])
                assert (t.leaf if level == 1 else t.inner)[child, [UP, PLACE]].tolist() == [node, j]
                low, high, key = visit(level - 1, child)
                assert (low == lo[:, j]).all() and (high == hi[:, j]).all() and key == keys[j]
            if size == 0:
                return np.zeros(d), np.zeros(d), 0
            return lo.min(axis=1), hi.max(axis=1), int(keys.max())

        root = int(t.head[ROOT])
        assert t.inner[root, UP] == NONE
        assert t.head[HEIGHT] == 1 or t.inner[root, SIZE] > 1
        visit(int(t.head[HEIGHT]), root)
        assert slots == set(np.flatnonzero(t.where >= 0).tolist())
        assert len(slots) == len(self)
        for nodes, used, made, free, table in (
            (leaves, USED_LEAVES, LEAVES, FREE_LEAF, t.leaf),
            (inners, USED_INNERS, INNERS, FREE_INNER, t.inner),
        ):
            assert len(nodes) == t.head[used] <= t.head[made] <= len(table)
            spare, node = set(), int(t.head[free])
            while node != NONE:
                assert node not in spare and node not in nodes and table[node, SIZE] == NONE
                spare.add(node)
                node = int(table[node, UP])
            assert len(spare) + len(nodes) == t.head[made]


def _arrays(d: int, leaves: int, inners: int, slots: int) -> Tree:
    most = LANES + 1
    return Tree(
        head=np.zeros(HEAD_SIZE, dtype=np.int64),
        points=np.empty(leaves * d * LANES),
        keys=np.empty(leaves * LANES, dtype=np.int64),
        slots=np.empty(leaves * LANES, dtype=np.int32),
        leaf=np.empty((leaves, 3), dtype=np.int64),
        lo=np.empty(inners * d * LANES),
        hi=np.empty(inners * d * LANES),
        largest=np.empty(inners * LANES, dtype=np.int64),
        kids=np.empty(inners * LANES, dtype=np.int64),
        inner=np.empty((inners, 4), dtype=np.int64),
        where=np.full(slots, NONE, dtype=np.int32),
        weights=np.ones(d),
        work=np.zeros(2 * d * most + most + 1 + LANES),
        pick=np.zeros(4 * most, dtype=np.int64),
        stack=np.zeros(512, dtype=np.int64),
    )


def _copied(old: Tree, new: Tree) -> Tree:
    """The new arrays with the old ones' content in front."""
    for source, target in zip(old, new, strict=True):
        target[: len(source)] = source
    return new
