"""What changes between two answers that are given as their members."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skytide.model import Integers

Members = Integers | set[Hashable]
"""Whole numbers in order, or a set of other ids."""


class Difference(NamedTuple):
    """Who entered and who left, each once, and who is in now."""

    entered: npt.NDArray[Any]
    left: npt.NDArray[Any]
    members: Members


def members_of(ids: npt.NDArray[Any]) -> Members:
    """Ids as members. O(n log n) for whole numbers, else O(n)."""
    return np.sort(ids) if ids.dtype == np.int64 else set(ids.tolist())


def difference(before: Members, ids: npt.NDArray[Any], whole: bool) -> Difference:
    """The difference between members and ids in any order, some perhaps more than once.

    O(n log n) for whole numbers, O(n) where they come in order or are the members of before; else O(n).

    >>> found = difference(np.array([1, 2]), np.array([3, 2, 3]), whole=True)
    >>> found.entered.tolist(), found.left.tolist()
    ([3], [1])
    """
    if whole:
        return _of_numbers(before if isinstance(before, np.ndarray) else np.zeros(0, np.int64), ids)
    held = before if isinstance(before, set) else set[Hashable]()
    given = dict.fromkeys(ids.tolist())
    entered, left = [one for one in given if one not in held], [one for one in held if one not in given]
    return Difference(_objects(entered), _objects(left), set(given))


def _of_numbers(before: Integers, ids: npt.NDArray[Any]) -> Difference:
    if len(ids) == len(before) and (ids == before).all():
        return Difference(before[:0], before[:0], before)
    given = ids.astype(np.int64)
    if not (given[1:] > given[:-1]).all():
        given = np.unique(given)
    places = np.searchsorted(before, given)
    known = places < len(before)
    known[known] = before[places[known]] == given[known]
    gone = np.ones(len(before), bool)
    gone[places[known]] = False
    return Difference(given[~known], before[gone], given)


def _objects(values: list[Any]) -> npt.NDArray[Any]:
    return np.fromiter(values, dtype=object, count=len(values))
