"""Which rows of one matrix does any row of another dominate, compiled: the question that a parallel merge asks.

The skyline of a union falls apart into such questions. Each part of a merge asks about its own rows only, so what one
part compares another need not: of P parts each does its share of the work, and nothing is compared among the witnesses.

The means are those of the batch skyline: witnesses are put in Z-order by their codes (`batch_codes`, after Lee, Zheng,
Li, Lee: Approaching the Skyline in Z Order, VLDB 2007) and under a tree of lower corners (`batch_tree`). Where we
differ: the witnesses need not be a skyline, so the tree takes them all, without a search, and a row that equals one of
them is still asked of the others; and rows come in Z-order too, so that the search ends where the witnesses begin that
are too late to dominate. One column is a minimum, and two are a binary search on stairs.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from skytide.errors import InputError
from skytide.kernel.batch_codes import LANES, Codes, choose_layout, codes_at_most, encode, lowest_bit, spread_table
from skytide.kernel.batch_tree import append, empty_tree, levels
from skytide.kernel.dominance import dominates_at
from skytide.model import Booleans, Floats, Integers

PAIRS = 1 << 14
"""Up to so many pairs of a row and a witness are compared one by one."""
SAMPLE = 1024
"""So many witnesses are looked at to find the quantiles of the columns."""


def dominated_by(rows: Floats, witnesses: Floats) -> Booleans:
    """Which rows any of the witnesses dominates; smaller is better, there is no NaN, and nothing is changed.

    Rows may be among the witnesses: equal rows do not dominate each other. With n rows and w witnesses the memory is
    linear in n + w, and the time is of the order of (n + w) log (n + w) and n times the witnesses that come into
    question, which are w at most.

    >>> import numpy as np
    >>> witnesses = np.array([[1.0, 4.0, 0.0], [2.0, 2.0, 2.0]])
    >>> dominated_by(np.array([[1.0, 5.0, 0.0], [2.0, 2.0, 2.0], [0.0, 9.0, 9.0]]), witnesses).tolist()
    [True, False, False]
    """
    asked, known = _frozen(rows), _frozen(witnesses)
    if asked.ndim != 2 or known.ndim != 2 or asked.shape[1] != known.shape[1] or not asked.shape[1]:
        raise InputError(
            "are not the shapes of two matrices of rows",
            value=(np.shape(rows), np.shape(witnesses)),
            remedy="give (n, d) and (w, d), d >= 1",
        )
    dominated = np.zeros(len(asked), dtype=np.bool_)
    if not len(asked) or not len(known):
        return dominated
    if asked.shape[1] == 1:
        np.greater(asked[:, 0], known.min(), out=dominated)
        return dominated
    if asked.shape[1] == 2:
        return _above_stairs(asked, known)
    if len(asked) * len(known) <= PAIRS:
        ask_pairs(asked, known, dominated)
    else:
        _ask_tree(asked, known, dominated)
    return dominated


def _frozen(matrix: Floats) -> Floats:
    """The matrix as the kernel takes it, not writeable: one form for all, so that it is compiled once."""
    found = np.ascontiguousarray(matrix, dtype=np.float64).view()
    found.flags.writeable = False
    return found


def _above_stairs(rows: Floats, witnesses: Floats) -> Booleans:
    """Two columns: the lowest witness to the left of a row, or straight below it."""
    steps = witnesses[np.lexsort((witnesses[:, 1], witnesses[:, 0]))]
    lowest = np.minimum.accumulate(steps[:, 1])
    left = np.searchsorted(steps[:, 0], rows[:, 0], side="left")
    beside = np.searchsorted(steps[:, 0], rows[:, 0], side="right")
    # A witness to the left dominates also at the same height, one straight below must be lower.
    found: Booleans = (left > 0) & (lowest[left - 1] <= rows[:, 1])
    found |= (beside > left) & (lowest[beside - 1] < rows[:, 1])
    return found


def _ask_tree(rows: Floats, witnesses: Floats, dominated: Booleans) -> None:
    layout = choose_layout(witnesses, SAMPLE)
    columns, width, bits, steps, guards, thresholds = layout
    spread = spread_table(bits, len(columns))
    # Both sides drop the same bits of their addresses, so that one can be compared with the other.
    shift = max(len(rows), len(witnesses)).bit_length()
    codes, keys = [], []
    for matrix in (rows, witnesses):
        codes.append(np.empty(len(matrix), dtype=np.uint64))
        keys.append(np.empty(len(matrix), dtype=np.uint64))
        encode(matrix, 0, 1, columns, thresholds, bits, steps, width, spread, codes[-1], keys[-1], shift)
        keys[-1].sort()
    order = (keys[1] & np.uint64((1 << shift) - 1)).astype(np.int64)
    tree = empty_tree(len(witnesses), guards)
    plant(tree, codes[1], order, guards, width)
    ask_tree(rows, codes[0], keys[0], shift, tree, witnesses[order], keys[1], guards, dominated)


@njit(cache=True, nogil=True, _nrt=False)
def ask_pairs(rows: Floats, witnesses: Floats, dominated: Booleans) -> None:
    """Every row of every witness. O(rows * witnesses * d)."""
    for i in range(rows.shape[0]):
        for j in range(witnesses.shape[0]):
            if dominates_at(witnesses, j, rows, i):
                dominated[i] = True
                break


@njit(cache=True, nogil=True, _nrt=False)
def plant(tree: Codes, codes: Codes, order: Integers, guards: int, width: int) -> None:
    """Fill an empty tree with all codes, in order. O(codes)."""
    for place in range(order.shape[0]):
        append(tree, order.shape[0], place, codes[order[place]], guards, width)


@njit(cache=True, forceinline=True, _nrt=False)
def _leaf_dominates(tree: Codes, leaf: int, kept: Floats, rows: Floats, row: int, guarded: int, guards: int) -> bool:
    found = codes_at_most(tree, levels(kept.shape[0])[3] + leaf, guarded, guards)
    while found != 0:
        place = leaf + lowest_bit(found)
        found &= found - np.uint64(1)
        if dominates_at(kept, place, rows, row):
            return True
    return False


@njit(cache=True, _nrt=False)
def _dominating_leaf(tree: Codes, kept: Floats, limit: int, rows: Floats, row: int, guarded: int, guards: int) -> int:
    """A leaf with a witness that dominates, among those that begin before the limit; or -1."""
    one = np.uint64(1)
    nodes3, nodes2, nodes, _ = levels(kept.shape[0])
    for base in range(0, -(-limit // LANES**3), LANES):
        found3 = codes_at_most(tree, nodes3 + base, guarded, guards)
        while found3 != 0:
            node3 = (base + lowest_bit(found3)) * LANES
            found3 &= found3 - one
            found2 = codes_at_most(tree, nodes2 + node3, guarded, guards)
            while found2 != 0:
                node2 = (node3 + lowest_bit(found2)) * LANES
                found2 &= found2 - one
                found = codes_at_most(tree, nodes + node2, guarded, guards)
                while found != 0:
                    leaf = (node2 + lowest_bit(found)) * LANES
                    found &= found - one
                    if leaf >= limit:
                        return -1
                    if _leaf_dominates(tree, leaf, kept, rows, row, guarded, guards):
                        return int(leaf)
    return -1


@njit(cache=True, nogil=True, _nrt=False)
def ask_tree(
    rows: Floats,
    codes: Codes,
    keys: Codes,
    shift: int,
    tree: Codes,
    kept: Floats,
    kept_keys: Codes,
    guards: int,
    dominated: Booleans,
) -> None:
    """Every row of the tree, in the order of the sorted keys; `kept` are the witnesses in the order of theirs."""
    numbers = (np.uint64(1) << np.uint64(shift)) - np.uint64(1)
    limit = 0
    killer = -1
    for i in range(keys.shape[0]):
        row = np.int64(keys[i] & numbers)
        address = keys[i] >> np.uint64(shift)
        while limit < kept_keys.shape[0] and kept_keys[limit] >> np.uint64(shift) <= address:
            limit += 1
        guarded = codes[row] | guards
        # Neighbours in Z-order lie close together: what dominated the last row often dominates this one.
        if killer >= 0 and _leaf_dominates(tree, killer, kept, rows, row, guarded, guards):
            dominated[row] = True
            continue
        leaf = _dominating_leaf(tree, kept, limit, rows, row, guarded, guards)
        if leaf >= 0:
            killer = leaf
            dominated[row] = True
