"""Dominance between two rows, as small functions that compiled loops inline.

Rows are one-dimensional float64 arrays of one length, smaller is better, no NaN. Only comparisons are used, never
arithmetic, so infinities and huge values are ordinary and -0.0 equals 0.0. This is the one place that says what
dominance means; everything compiled that compares whole rows calls it.
"""

from __future__ import annotations

from numba import njit

from skytide.model import Floats


@njit(cache=True)
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


@njit(cache=True)
def equal(a: Floats, b: Floats) -> bool:
    """Whether two rows have the same values. O(d), stops at the first that differs."""
    for k in range(a.shape[0]):
        if a[k] != b[k]:
            return False
    return True


@njit(cache=True)
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


@njit(cache=True)
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


@njit(cache=True)
def precedes(a: Floats, b: Floats) -> bool:
    """Whether `a` comes before `b` column by column. What dominates a row precedes it, so this order is safe to scan.

    >>> import numpy as np
    >>> precedes(np.array([1.0, 9.0]), np.array([2.0, 0.0])), precedes(np.array([1.0, 9.0]), np.array([1.0, 9.0]))
    (True, False)
    """
    for k in range(a.shape[0]):
        if a[k] != b[k]:
            return a[k] < b[k]
    return False
