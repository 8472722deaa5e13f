"""What updates make of objects, compiled: set, add, multiply and average, row by row, before anything is changed."""

from __future__ import annotations

import numpy as np
from numba import njit

from skytide.model import Floats, Integers

SET, ADD, MULTIPLY, AVERAGE = 0, 1, 2, 3
OPERATIONS = {"set": SET, "add": ADD, "multiply": MULTIPLY, "average": AVERAGE}
PLACED, GONE, IDLE, BAD = 0, 1, 2, 3
"""What a row does: it places an object, or deletes one that was there, or one that was not; or it is left out."""


@njit(cache=True, _nrt=False)
def outcome(
    values: Floats,
    present: np.ndarray,
    numbers: Integers,
    rows: Floats,
    operations: np.ndarray,
    signs: Floats,
    partial: bool,
    last: Integers,
    results: Floats,
    verdicts: np.ndarray,
) -> int:
    """Find the values of the objects after each row, and what each row does; how many rows are bad. O(n d).

    `values` are the objects' values, oriented (smaller is better), NaN where missing, and `present` says which objects
    are there; neither is changed. Rows are oriented too; a product needs the factor as it was, so `signs` undo it. The
    first row of an object sets it, whatever the operation. A row without any value deletes. With `partial` an object
    may have some values missing (the policy `worst`), else such a row is bad and changes nothing. `last` is scratch
    for as many objects, all -1, and is left so.
    """
    n, d = rows.shape
    bad = 0
    for u in range(n):
        one = numbers[u]
        before = last[one]
        there = present[one] if before < 0 else verdicts[before] == PLACED
        empty = True
        for k in range(d):
            if not np.isnan(rows[u, k]):
                empty = False
        if empty:
            verdicts[u] = GONE if there else IDLE
            last[one] = u
            continue
        operation = operations[u] if there else SET
        whole = True
        for k in range(d):
            old = values[one, k] if before < 0 else results[before, k]
            new = rows[u, k]
            if operation == ADD:
                new = old + new
            elif operation == MULTIPLY:
                new = old * (new * signs[k])
            elif operation == AVERAGE:
                new = (old + new) / 2
            results[u, k] = new
            if np.isnan(new):
                whole = False
        if whole or partial:
            verdicts[u] = PLACED
            last[one] = u
        else:
            verdicts[u] = BAD
            bad += 1
    for u in range(n):
        last[numbers[u]] = -1
    return bad


@njit(cache=True, _nrt=False)
def commit(
    values: Floats,
    present: np.ndarray,
    home: Integers,
    numbers: Integers,
    groups: Integers,
    results: Floats,
    verdicts: Integers,
) -> None:
    """Change the objects as the rows do, one after the other; where an object is gone its group is -1. O(n d)."""
    for u in range(numbers.shape[0]):
        if verdicts[u] == BAD:
            continue
        one = numbers[u]
        placed = verdicts[u] == PLACED
        present[one] = placed
        home[one] = groups[u] if placed else -1
        if placed:
            for k in range(values.shape[1]):
                values[one, k] = results[u, k]


@njit(cache=True, _nrt=False)
def missing_in(rows: Floats, partial: np.ndarray, empty: np.ndarray) -> None:
    """Which rows miss some values but not all, and which miss all. O(n d)."""
    n, d = rows.shape
    for u in range(n):
        missing = 0
        for k in range(d):
            missing += np.isnan(rows[u, k])
        partial[u] = 0 < missing < d
        empty[u] = missing == d
