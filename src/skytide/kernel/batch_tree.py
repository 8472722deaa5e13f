"""The skyline found so far as a tree over codes, and the scans that grow and ask it.

Rows come in Z-order, so what dominates a row has come before it and everything that enters the tree is final. The tree
is built by appending, as in ZSearch (Lee et al., VLDB 2007): a node covers sixteen neighbours in Z-order and holds the
lower corner of their codes. A row is asked only of the nodes whose corner is at most its own code; sixteen corners are
tested at once (`batch_codes`), and the rows themselves are compared at the leaves alone. That is also what the bit
masks of BSkyTree (Lee, Hwang, EDBT 2010) and Hybrid (Chester et al., ICDE 2015) do; a code is such a mask with several
bits per column.

A tree is one array: the corners of the top nodes, of the two levels below, and the codes of the rows. Rows are spoken
of by their position in a matrix, and nothing here allocates: numba's reference counts would take most of the time.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from skytide.kernel.batch_codes import LANES, Codes, codes_at_most, lower_corner, lowest_bit
from skytide.kernel.dominance import equal_at, weakly_dominates_at
from skytide.model import Booleans, Floats, Integers

TESTS, SCREENS, SIZE = 0, 1, 2
"""Where the scans count: whole rows compared, codes compared, rows in the tree."""
_TOP = LANES**3
AHEAD = 64
"""So many rows are fetched together, so that their waits for memory overlap."""


def empty_tree(capacity: int, guards: np.uint64) -> Codes:
    """A tree with room for so many rows. A free place holds the guards, which is at most no code. O(capacity)."""
    room = np.empty(levels(capacity)[3] + -(-capacity // _TOP) * _TOP + 8, dtype=np.uint64)
    # Sixteen codes are two cache lines, not three, when the array begins with a line.
    start = -(room.ctypes.data // 8) % 8
    tree = room[start : len(room) - 8 + start]
    tree[:] = guards
    return tree


@njit(cache=True, forceinline=True, _nrt=False)
def levels(capacity: int) -> tuple[int, int, int, int]:
    """Where the top nodes, the two levels below and the codes of the rows begin."""
    top = -(-capacity // _TOP)
    nodes2 = -(-top // LANES) * LANES
    nodes = nodes2 + top * LANES
    return 0, nodes2, nodes, nodes + top * LANES**2


def row_codes(tree: Codes, capacity: int) -> Codes:
    """The codes of the rows, in the order in which they came."""
    found: Codes = tree[levels(capacity)[3] :]
    return found


@njit(cache=True, forceinline=True, _nrt=False)
def _leaf_verdict(
    tree: Codes, leaf: int, kept: Floats, values: Floats, row: int, guarded: int, guards: int, counts: Integers
) -> int:
    """1 when a row of the leaf that begins there dominates, -1 when one is equal, 0 otherwise."""
    first = levels(kept.shape[0])[3]
    counts[SCREENS] += LANES
    found = codes_at_most(tree, first + leaf, guarded, guards)
    while found != 0:
        place = leaf + lowest_bit(found)
        found &= found - np.uint64(1)
        counts[TESTS] += 1
        if weakly_dominates_at(kept, place, values, row):
            return -1 if equal_at(kept, place, values, row) else 1
    return 0


@njit(cache=True, _nrt=False)
def _find_leaf(tree: Codes, kept: Floats, values: Floats, row: int, guarded: int, guards: int, counts: Integers) -> int:
    """The leaf with a row that dominates, or -1. Where an equal row is in the tree, no other one dominates."""
    one = np.uint64(1)
    nodes3, nodes2, nodes, _ = levels(kept.shape[0])
    for base in range(0, -(-counts[SIZE] // _TOP), LANES):
        found3 = codes_at_most(tree, nodes3 + base, guarded, guards)
        counts[SCREENS] += LANES
        while found3 != 0:
            node3 = (base + lowest_bit(found3)) * LANES
            found3 &= found3 - one
            found2 = codes_at_most(tree, nodes2 + node3, guarded, guards)
            counts[SCREENS] += LANES
            while found2 != 0:
                node2 = (node3 + lowest_bit(found2)) * LANES
                found2 &= found2 - one
                found = codes_at_most(tree, nodes + node2, guarded, guards)
                counts[SCREENS] += LANES
                while found != 0:
                    leaf = (node2 + lowest_bit(found)) * LANES
                    found &= found - one
                    verdict = _leaf_verdict(tree, leaf, kept, values, row, guarded, guards, counts)
                    if verdict != 0:
                        return leaf if verdict > 0 else -1
    return -1


@njit(cache=True, forceinline=True, _nrt=False)
def append(tree: Codes, capacity: int, place: int, code: int, guards: int, width: int) -> None:
    """Add a code at the next place, and to the nodes above it."""
    nodes3, nodes2, nodes, codes = levels(capacity)
    tree[codes + place] = code
    _widen(tree, nodes + place // LANES, code, guards, width)
    _widen(tree, nodes2 + place // LANES**2, code, guards, width)
    _widen(tree, nodes3 + place // LANES**3, code, guards, width)


@njit(cache=True, forceinline=True, _nrt=False)
def _widen(tree: Codes, node: int, code: int, guards: int, width: int) -> None:
    tree[node] = code if tree[node] == guards else lower_corner(tree[node], code, guards, width)


@njit(cache=True, nogil=True, _nrt=False)
def scan(
    values: Floats,
    first: int,
    step: int,
    order: Integers,
    codes: Codes,
    guards: int,
    width: int,
    tree: Codes,
    kept: Floats,
    batch: Floats,
    words: Codes,
    places: Integers,
    counts: Integers,
) -> None:
    """The skyline of the rows first, first + step, ..., taken in `order`: Z-order, with equal rows as neighbours.

    Fills `tree` and `kept` with one row for all that are equal; `places` says where it lies, or -1 for a dominated row.
    """
    n, d = order.shape[0], values.shape[1]
    # The row before a batch stays at its front, so that equal rows are seen across the seam.
    words[0] = guards
    killer = last = -1
    for start in range(0, n, AHEAD):
        size = min(AHEAD, n - start)
        for i in range(size):
            words[i + 1] = codes[order[start + i]]
            for k in range(d):
                batch[i + 1, k] = values[first + order[start + i] * step, k]
        for i in range(1, size + 1):
            code = words[i]
            at = order[start + i - 1]
            if words[i - 1] == code and equal_at(batch, i, batch, i - 1):
                places[at] = last
                continue
            last = places[at] = -1
            guarded = code | guards
            # Neighbours in Z-order lie close together: what dominated the last row often dominates this one.
            if killer >= 0 and _leaf_verdict(tree, killer, kept, batch, i, guarded, guards, counts) > 0:
                continue
            leaf = _find_leaf(tree, kept, batch, i, guarded, guards, counts)
            if leaf >= 0:
                killer = leaf
                continue
            place = counts[SIZE]
            last = places[at] = place
            for k in range(d):
                kept[place, k] = batch[i, k]
            append(tree, kept.shape[0], place, code, guards, width)
            counts[SIZE] = place + 1
        words[0] = words[size]
        for k in range(d):
            batch[0, k] = batch[size, k]


@njit(cache=True, nogil=True, _nrt=False)
def cross(
    rows: Floats, codes: Codes, size: int, guards: int, tree: Codes, kept: Floats, dominated: Booleans, counts: Integers
) -> None:
    """Which of the first `size` rows, the skyline of one part, the skyline of another part dominates."""
    killer = -1
    for i in range(size):
        if dominated[i]:
            continue
        guarded = codes[i] | guards
        if killer >= 0 and _leaf_verdict(tree, killer, kept, rows, i, guarded, guards, counts) > 0:
            dominated[i] = True
            continue
        leaf = _find_leaf(tree, kept, rows, i, guarded, guards, counts)
        if leaf >= 0:
            killer = leaf
            dominated[i] = True
