"""zhang09p's SSKY, MSKY and QSKY: candidates in an aggregate R-tree (kernel.uncertain_tree, kernel.uncertain_nodes)."""

from __future__ import annotations

import numpy as np

from skytide.kernel import uncertain_nodes as nodes
from skytide.kernel import uncertain_state as state
from skytide.kernel import uncertain_tree as kernel
from skytide.kernel.rtree_lanes import LANES
from skytide.kernel.uncertain_numbers import HIGH_UNIT, LOW_UNIT, value
from skytide.model import Floats, Integers
from skytide.monitors.uncertain.compiled import CompiledEngine, columns
from skytide.monitors.uncertain.engine import UncertainRows

_PER_NODE = 4
"""Slots per node that a new tree has room for; it grows where rows lie thinner."""


class TreeEngine(CompiledEngine):
    """A row costs a search for what dominates it and one for what it dominates; whole boxes are taken at once.

    >>> engine = TreeEngine(1, [0.4])
    >>> times = np.array([1, 2])
    >>> rows = UncertainRows(np.array([[1.0], [2.0]]), np.array([0.7, 0.5]), times, times + 3, np.array([7, 8]))
    >>> moves = engine.run(rows, until=5)
    >>> sorted(zip(moves.times.tolist(), moves.signs.tolist(), moves.handles.tolist()))
    [(1, 1, 7), (4, -1, 7), (4, 1, 8), (5, -1, 8)]
    """

    def _reset(self) -> None:
        super()._reset()
        self._tree = nodes.allocate(self.dimensions, self._slots // _PER_NODE + 8, self._slots)

    def _take(self, rows: UncertainRows, start: int, until: int) -> tuple[int, Integers]:
        tree = self._tree
        left = len(tree.sizes) - tree.state[nodes.TOP] + tree.state[nodes.SPARE]
        if left < tree.state[nodes.HEIGHT] + 2:
            self._grow(len(tree.sizes) * 3 // 2 + 8)
        nodes.rescale(self._tree)
        taken, moves = kernel.run(tuple(self._store), tuple(self._tree), *columns(rows), start, until)
        return int(taken), moves

    def _compact(self) -> Integers:
        moved = super()._compact()
        nodes.remap(self._tree, moved)
        return moved

    def _resize(self) -> None:
        super()._resize()
        tree = self._tree
        self._grow(max(int(tree.state[nodes.TOP]), self._slots // _PER_NODE) + 8)

    def _grow(self, room: int) -> None:
        """Move the tree to arrays with room for so many nodes, over as many slots as the store has."""
        old = self._tree
        new = nodes.allocate(self.dimensions, room, self._slots)
        top, kept = int(old.state[nodes.TOP]), min(len(old.leaf_of), self._slots)
        width = top * self.dimensions * LANES
        for name in nodes.Tree._fields:
            of_old, of_new = getattr(old, name), getattr(new, name)
            if name in ("lows", "highs"):
                of_new[:width] = of_old[:width]
            elif name in ("tags", "noc", "bounds", "spans"):
                of_new[:, :top] = of_old[:, :top]
            elif name in ("entries", "sizes", "leaf", "parent", "dirty", "spare"):
                of_new[:top] = of_old[:top]
            elif name == "leaf_of":
                of_new[:kept] = of_old[:kept]
            elif name in ("scales", "state"):
                of_new[:] = of_old
        self._tree = new

    def _totals(self) -> Floats:
        totals = np.zeros(self._slots)
        kernel.totals_of(tuple(self._store), tuple(self._tree), np.zeros(2, np.int64), totals)
        return totals

    def counters(self) -> dict[str, int]:
        """Comparisons of two rows' values, nodes looked at since the start, and bytes held now."""
        counted = super().counters()
        counted["memory_bytes"] += sum(array.nbytes for array in self._tree)
        return counted

    # -- for tests -----------------------------------------------------------------------------------------------------

    def _sums(self, c: int, which: int) -> Integers:
        sums = np.zeros(2, np.int64)
        kernel.sums_of(self._tree, self._store, c, which, sums)
        return sums

    def _total(self, c: int) -> Integers:
        return self._sums(c, nodes.ALL)

    def _lasting(self, c: int) -> float:
        sums = self._sums(c, nodes.NEW)
        return float(sums[0] / HIGH_UNIT + sums[1] / LOW_UNIT)

    def _check(self) -> None:
        super()._check()
        tree, store = self._tree, self._store
        alive = np.flatnonzero(store.flags & state.ALIVE)
        assert self._check_node(int(tree.state[nodes.ROOT]), 1) == set(alive.tolist())
        assert tree.parent[tree.state[nodes.ROOT]] == nodes.NOBODY and not tree.dirty.any()
        assert (np.delete(tree.leaf_of, alive) == nodes.NOBODY).all()

    def _check_node(self, n: int, level: int) -> set[int]:
        """The slots below a node, after a check that its aggregates hold for them."""
        tree, store = self._tree, self._store
        entries = tree.entries[n, : tree.sizes[n]].tolist()
        low = tree.lows.reshape(-1, self.dimensions, LANES)[n, :, : len(entries)]
        high = tree.highs.reshape(-1, self.dimensions, LANES)[n, :, : len(entries)]
        below: set[int] = set()
        for lane, m in enumerate(entries):
            if tree.leaf[n]:
                assert level == tree.state[nodes.HEIGHT] and tree.leaf_of[m] == n
                under = {m}
            else:
                assert tree.parent[m] == n and tree.sizes[m]
                under = self._check_node(m, level + 1)
            rows = store.values[sorted(under)]
            assert (low[:, lane] == rows.min(axis=0)).all() and (high[:, lane] == rows.max(axis=0)).all()
            below |= under
        slots = sorted(below)
        assert (tree.noc[:, n] == store.weights[:, slots].sum(axis=1)).all()
        if slots:
            pending = np.sum([tree.tags[:, n], *self._tags_above(n)], axis=0)
            lasting = [self._lasting(c) - value(*pending[:2]) for c in slots]
            slack = [nodes.slack_of(store, c, value(*(self._total(c) - pending[2:]))) for c in slots]
            assert np.allclose([min(lasting), max(lasting)], tree.bounds[: nodes.FALL, n], rtol=1e-12, atol=1e-12)
            found, exact = tree.bounds[nodes.FALL :, n], np.min(slack, axis=0)
            assert (found <= exact + 1e-12 * (1 + abs(exact))).all() and np.allclose(found, exact, rtol=1e-9, atol=1e-8)
            expiries = store.keys[state.EXPIRY, slots]
            assert (expiries.min(), expiries.max()) == tuple(tree.spans[:, n])
        return below

    def _tags_above(self, n: int) -> list[Integers]:
        """The multipliers of a node's ancestors."""
        tree, tags = self._tree, []
        while tree.parent[n] != nodes.NOBODY:
            n = int(tree.parent[n])
            tags.append(tree.tags[:, n])
        return tags
