"""The skyline found so far as a tree over codes, and the scans that grow and ask it.

Rows come in Z-order, so what dominates a row has come before it and everything that enters the tree is final. The tree
is built by appending, as in ZSearch (Lee et al., VLDB 2007): a node covers sixteen neighbours in Z-order and holds the
lower corner of their codes. A row is asked only of the nodes whose corner is at most its own code; sixteen corners are
tested at once (`batch_codes`), and the rows themselves are compared at the leaves alone. That is also what the bit
masks of BSkyTree (Lee, Hwang, EDBT 2010) and Hybrid (Chester et al., ICDE 2015) do; a code is such a mask with several
bits per column.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from skytide.kernel.batch_codes import LANES, Codes, codes_at_most, lower_corner, lowest_bit
from skytide.kernel.dominance import equal, weakly_dominates
from skytide.model import Booleans, Floats, Integers

TESTS, SCREENS, SIZE = 0, 1, 2
"""Where the scans count: whole rows compared, codes compared, rows in the tree."""


class Tree(NamedTuple):
    """The codes of the rows, and of the nodes above them, each level a sixteenth of the one below."""

    codes: Codes
    nodes: Codes
    nodes2: Codes
    nodes3: Codes


def empty_tree(capacity: int, guards: np.uint64) -> Tree:
    """A tree with room for so many rows. A free place holds the guards, which is at most no code. O(capacity)."""
    top = max(1, -(-capacity // LANES**3))
    return Tree(
        np.full(top * LANES**3, guards),
        np.full(top * LANES**2, guards),
        np.full(top * LANES, guards),
        np.full(-(-top // LANES) * LANES, guards),
    )


@njit(cache=True)
def _leaf_dominates(
    codes: Codes, rows: Floats, leaf: int, row: Floats, code: int, guards: int, counts: Integers
) -> int:
    """1 when a row of the leaf dominates, -1 when one is equal, 0 otherwise."""
    counts[SCREENS] += LANES
    found = codes_at_most(codes, leaf * LANES, code | guards, guards)
    while found != 0:
        one = leaf * LANES + lowest_bit(found)
        found &= found - np.uint64(1)
        counts[TESTS] += 1
        if weakly_dominates(rows[one], row):
            return -1 if equal(rows[one], row) else 1
    return 0


@njit(cache=True)
def _dominated(tree: Tree, rows: Floats, row: Floats, code: int, guards: int, counts: Integers) -> int:
    """The leaf with a row that dominates, or -1. Where an equal row is in the tree, no other one dominates."""
    codes, nodes, nodes2, nodes3 = tree
    guarded = code | guards
    one = np.uint64(1)
    top = -(-counts[SIZE] // LANES**3)
    for base in range(0, top, LANES):
        found3 = codes_at_most(nodes3, base, guarded, guards)
        counts[SCREENS] += LANES
        while found3 != 0:
            node3 = base + lowest_bit(found3)
            found3 &= found3 - one
            found2 = codes_at_most(nodes2, node3 * LANES, guarded, guards)
            counts[SCREENS] += LANES
            while found2 != 0:
                node2 = node3 * LANES + lowest_bit(found2)
                found2 &= found2 - one
                found = codes_at_most(nodes, node2 * LANES, guarded, guards)
                counts[SCREENS] += LANES
                while found != 0:
                    leaf = node2 * LANES + lowest_bit(found)
                    found &= found - one
                    verdict = _leaf_dominates(codes, rows, leaf, row, code, guards, counts)
                    if verdict != 0:
                        return leaf if verdict > 0 else -1
    return -1


@njit(cache=True)
def _append(tree: Tree, place: int, code: int, guards: int, width: int) -> None:
    codes, nodes, nodes2, nodes3 = tree
    codes[place] = code
    _widen(nodes, place // LANES, code, guards, width)
    _widen(nodes2, place // LANES**2, code, guards, width)
    _widen(nodes3, place // LANES**3, code, guards, width)


@njit(cache=True)
def _widen(nodes: Codes, node: int, code: int, guards: int, width: int) -> None:
    nodes[node] = code if nodes[node] == guards else lower_corner(nodes[node], code, guards, width)


@njit(cache=True, nogil=True)
def scan(
    values: Floats,
    rows: Integers,
    order: Integers,
    codes: Codes,
    guards: int,
    width: int,
    tree: Tree,
    kept: Floats,
    places: Integers,
    counts: Integers,
) -> None:
    """The skyline of some rows of `values`, taken in the given order, which is Z-order with equal rows as neighbours.

    Fills `tree` and `kept` with one row for all that are equal; `places` says where it lies, or -1 for a dominated row.
    """
    killer = -1
    for i in range(order.shape[0]):
        row = values[rows[order[i]]]
        code = codes[order[i]]
        if i > 0 and codes[order[i - 1]] == code and equal(row, values[rows[order[i - 1]]]):
            places[i] = places[i - 1]
            continue
        # Neighbours in Z-order lie close together: what dominated the last row often dominates this one.
        if killer >= 0 and _leaf_dominates(tree[0], kept, killer, row, code, guards, counts) > 0:
            places[i] = -1
            continue
        leaf = _dominated(tree, kept, row, code, guards, counts)
        if leaf >= 0:
            places[i] = -1
            killer = leaf
            continue
        place = counts[SIZE]
        places[i] = place
        for k in range(row.shape[0]):
            kept[place, k] = row[k]
        _append(tree, place, code, guards, width)
        counts[SIZE] = place + 1


@njit(cache=True, nogil=True)
def cross(
    rows: Floats, codes: Codes, size: int, guards: int, tree: Tree, kept: Floats, dominated: Booleans, counts: Integers
) -> None:
    """Which of the first `size` rows, the skyline of one part, the skyline of another part dominates."""
    killer = -1
    for i in range(size):
        if dominated[i]:
            continue
        if killer >= 0 and _leaf_dominates(tree[0], kept, killer, rows[i], codes[i], guards, counts) > 0:
            dominated[i] = True
            continue
        leaf = _dominated(tree, kept, rows[i], codes[i], guards, counts)
        if leaf >= 0:
            killer = leaf
            dominated[i] = True
