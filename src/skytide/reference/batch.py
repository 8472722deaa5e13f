"""Skylines of rows at rest, by their definitions.

Dominance is that of docs/semantics.md, not the weak one of tao06 (<= everywhere): equal rows never dominate each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any

SEAM = 1.2345678901234567e300
ABOVE_SEAM = math.nextafter(SEAM, math.inf)
"""The one number that has the rank of its lower neighbour where missing values are the worst."""

Row = Sequence[Any]
"""The preference values of one row, oriented: smaller is better. Any ordered values do; floats are the rule."""


def dominates(a: Row, b: Row) -> bool:
    """Whether a is at least as good as b in every column and better in one. O(d).

    >>> dominates((1, 2), (1, 3)), dominates((1, 2), (1, 2)), dominates((1, 2), (0, 3))
    (True, False, False)
    """
    no_worse = all(x <= y for x, y in zip(a, b, strict=True))
    better = any(x < y for x, y in zip(a, b, strict=True))
    return no_worse and better


def dominators(rows: Sequence[Row], row: Row) -> list[int]:
    """The positions of the rows that dominate `row`. O(n d)."""
    return [position for position, other in enumerate(rows) if dominates(other, row)]


def skyline(rows: Sequence[Row]) -> list[int]:
    """The positions of the rows that no row dominates, in input order. O(n² d).

    >>> skyline([(1, 4), (2, 2), (3, 3), (2, 2)])
    [0, 1, 3]
    """
    return skyband(rows, 1)


def skyband(rows: Sequence[Row], k: int) -> list[int]:
    """The positions of the rows that fewer than k rows dominate, in input order. O(n² d).

    >>> skyband([(1,), (2,), (2,), (3,)], 2)
    [0, 1, 2]
    """
    return [position for position, row in enumerate(rows) if len(dominators(rows, row)) < k]


def top(rows: Sequence[Row], k: int, score: Callable[[Row], Any]) -> list[int]:
    """The positions of the rows with fewer than k rows of a strictly smaller score, in input order. O(n²).

    Rows with equal scores share their fate, so there may be more than k.

    >>> top([(1, 4), (2, 2), (3, 2)], 1, sum)
    [1]
    """
    scores = [score(row) for row in rows]
    return [position for position, own in enumerate(scores) if sum(other < own for other in scores) < k]


def groups(keys: Sequence[Hashable]) -> dict[Hashable, list[int]]:
    """The positions of each group's rows, groups in the order of their first rows. O(n).

    >>> groups(["x", "y", "x"])
    {'x': [0, 2], 'y': [1]}
    """
    found: dict[Hashable, list[int]] = {}
    for position, key in enumerate(keys):
        found.setdefault(key, []).append(position)
    return found


def by_group(rows: Sequence[Row], keys: Sequence[Hashable], answer: Callable[[list[Row]], list[int]]) -> list[int]:
    """The positions that `answer` finds in each group on its own, in input order.

    >>> by_group([(1,), (2,), (3,)], ["x", "y", "x"], skyline)
    [0, 1]
    """
    found = []
    for members in groups(keys).values():
        found += [members[position] for position in answer([rows[member] for member in members])]
    return sorted(found)


def worst_for_missing(rows: Sequence[Row]) -> list[Row]:
    """Rows in which None and NaN are worse than every value, infinity too: each value becomes an ordered pair.

    Under this policy two neighbours are equal, which docs/semantics.md names: SEAM and the next number.

    >>> dominates(*worst_for_missing([(1, float("inf")), (1, None)]))
    True
    """
    return [[(1, 0.0) if value is None or value != value else (0, _sewn(value)) for value in row] for row in rows]


def _sewn(value: Any) -> Any:
    return SEAM if value == ABOVE_SEAM else value
