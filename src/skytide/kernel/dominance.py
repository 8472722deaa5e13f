"""Dominance between two rows, as small functions that compiled loops inline.

Rows are one-dimensional float64 arrays of one length, smaller is better, no NaN. Only comparisons are used, never
arithmetic, so infinities and huge values are ordinary and -0.0 equals 0.0. This is the one place that says what
dominance means; everything compiled that compares whole rows calls it. None of it allocates, so numba's reference
counts are left out (`_nrt`): a loop that pays for them takes up to four times as long.
"""

# ruff: noqa: SIM110 (numba has no all() over a generator)

from __future__ import annotations

from numba import njit

from skytide.model import Floats


@njit(cache=True, forceinline=True, _nrt=False)
def weakly_dominates(a: Floats, b: Floats) -> bool:
    """Whether `a` is at least as good as `b` everywhere; equal rows do so too. O(d), stops at the first that fails.

    >>> import numpy as np
    >>> weakly_dominates(np.array([1.0, 2.0]), np.array([1.0, 2.0]))
    True
    """
    for k in range(a.shape[0]):
        if a[k] > b[k]:
            return False
    return True


@njit(cache=True, forceinline=True, _nrt=False)
def equal(a: Floats, b: Floats) -> bool:
    """Whether two rows have the same values. O(d), stops at the first that differs."""
    for k in range(a.shape[0]):
        if a[k] != b[k]:
            return False
    return True


@njit(cache=True, forceinline=True, _nrt=False)
def dominates(a: Floats, b: Floats) -> bool:
    """Whether `a` is at least as good as `b` everywhere and better somewhere. O(d), stops at the first that fails.

    >>> import numpy as np
    >>> dominates(np.array([1.0, 2.0]), np.array([1.0, 3.0])), dominates(np.array([1.0, 2.0]), np.array([1.0, 2.0]))
    (True, False)
    """
    better = False
    for k in range(a.shape[0]):
        if a[k] > b[k]:
            return False
        better |= a[k] < b[k]
    return better


@njit(cache=True, forceinline=True, _nrt=False)
def relation(a: Floats, b: Floats) -> int:
    """Who dominates whom: -1 when `a` does, 1 when `b` does, 0 when neither does, also when they are equal. O(d).

    >>> import numpy as np
    >>> relation(np.array([2.0, 2.0]), np.array([1.0, 2.0]))
    1
    """
    a_better = False
    b_better = False
    for k in range(a.shape[0]):
        a_better |= a[k] < b[k]
        b_better |= a[k] > b[k]
        if a_better and b_better:
            return 0
    return int(b_better) - int(a_better)


@njit(cache=True, forceinline=True, _nrt=False)
def precedes(a: Floats, b: Floats) -> bool:
    """Whether `a` comes before `b` column by column. What dominates a row precedes it, so this order is safe to scan.

    >>> import numpy as np
    >>> precedes(np.array([1.0, 9.0]), np.array([2.0, 0.0])), precedes(np.array([1.0, 9.0]), np.array([1.0, 9.0]))
    (True, False)
    """
    for k in range(a.shape[0]):
        if a[k] != b[k]:
            return bool(a[k] < b[k])
    return False


# The same for rows within matrices, which spares the caller a view of the row.


@njit(cache=True, forceinline=True, _nrt=False)
def weakly_dominates_at(a: Floats, i: int, b: Floats, j: int) -> bool:
    """Whether row i of matrix `a` is at least as good as row j of matrix `b` everywhere. O(d)."""
    for k in range(a.shape[1]):
        if a[i, k] > b[j, k]:
            return False
    return True


@njit(cache=True, forceinline=True, _nrt=False)
def equal_at(a: Floats, i: int, b: Floats, j: int) -> bool:
    """Whether row i of matrix `a` has the values of row j of matrix `b`. O(d)."""
    for k in range(a.shape[1]):
        if a[i, k] != b[j, k]:
            return False
    return True


@njit(cache=True, forceinline=True, _nrt=False)
def dominates_at(a: Floats, i: int, b: Floats, j: int) -> bool:
    """Whether row i of matrix `a` dominates row j of matrix `b`. O(d)."""
    better = False
    for k in range(a.shape[1]):
        if a[i, k] > b[j, k]:
            return False
        better |= a[i, k] < b[j, k]
    return better


@njit(cache=True, forceinline=True, _nrt=False)
def relation_at(a: Floats, i: int, b: Floats, j: int) -> int:
    """Who dominates whom, row i of matrix `a` (-1) or row j of matrix `b` (1), or neither (0). O(d)."""
    a_better = False
    b_better = False
    for k in range(a.shape[1]):
        a_better |= a[i, k] < b[j, k]
        b_better |= a[i, k] > b[j, k]
        if a_better and b_better:
            return 0
    return int(b_better) - int(a_better)


@njit(cache=True, forceinline=True, _nrt=False)
def precedes_at(a: Floats, i: int, b: Floats, j: int) -> bool:
    """Whether row i of matrix `a` comes before row j of matrix `b` column by column. O(d)."""
    for k in range(a.shape[1]):
        if a[i, k] != b[j, k]:
            return bool(a[i, k] < b[j, k])
    return False
