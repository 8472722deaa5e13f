"""The skyline of a group of rows that come and go in one order, with a proof for each row.

A row is out because of its witness, a living row that dominates it. A row is in because it was compared with every row
that lived, and with every one that came since. When a witness dies, the row is compared with all that live. So each
answer is that of the definition, though most rows are compared with few.
"""

from __future__ import annotations

import numpy as np

from skytide.cli._verify.definition import dominating, ranked, undominated
from skytide.model import Booleans, Floats, Integers

_NONE = -1
_BLOCK = 4096
_MANY = 64
"""After more arrivals than these it is cheaper to begin anew."""


class Witnesses:
    """Rows that begin to live in their order, and end in the same.

    >>> rows = Witnesses(np.array([[2.0, 2.0], [1.0, 1.0], [3.0, 0.0]]))
    >>> [rows.skyline(*span).tolist() for span in ((0, 1), (0, 2), (0, 3), (2, 3))]
    [[0], [1], [1, 2], [2]]
    """

    def __init__(self, points: Floats) -> None:
        self._points = ranked(points) if np.isnan(points).any() else points
        self._witness = np.full(len(points), _NONE)
        self._seen = 0

    def skyline(self, low: int, high: int) -> Integers:
        """Which of the rows from `low` to before `high`, which are those that live, no one of them dominates.

        Neither number may fall from call to call. O(living rows), for each row that came and each whose witness died.
        """
        if high - max(low, self._seen) > _MANY:
            self._begin(low, high)
        elif high > low:
            self._come(low, high)
            self._mourn(low, high)
        self._seen = high
        return low + np.flatnonzero(self._witness[low:high] == _NONE)

    def _begin(self, low: int, high: int) -> None:
        """Without what was known: the skyline, and a member of it for each other row."""
        living = self._points[low:high]
        inside = undominated(living)
        self._witness[low:high] = _NONE
        for at in range(0, high - low, _BLOCK):
            found = _last(dominating(living[inside], living[at : at + _BLOCK]))
            known = found != _NONE
            places = np.flatnonzero(known) + at + low
            self._witness[places] = inside[found[known]] + low

    def _come(self, low: int, high: int) -> None:
        """Compare rows that came with all that live, in both directions."""
        fresh = np.arange(max(low, self._seen), high)
        if len(fresh):
            living = self._points[low:high]
            found = _last(dominating(living, self._points[fresh]))
            self._witness[fresh] = np.where(found == _NONE, _NONE, found + low)
            later = _last(dominating(self._points[fresh], living))
            known = later != _NONE
            self._witness[low:high][known] = np.maximum(self._witness[low:high][known], fresh[later[known]])

    def _mourn(self, low: int, high: int) -> None:
        """Look for new witnesses where the old ones are dead."""
        mine = self._witness[low:high]
        orphans = np.flatnonzero((mine != _NONE) & (mine < low)) + low
        for part in np.array_split(orphans, 1 + len(orphans) // 256):
            if len(part):
                found = _last(dominating(self._points[low:high], self._points[part]))
                self._witness[part] = np.where(found == _NONE, _NONE, found + low)


def _last(table: Booleans) -> Integers:
    """For each column the last row that is true, or none: among witnesses, the one that lives longest."""
    if not len(table):
        return np.full(table.shape[1], _NONE)
    last = len(table) - 1 - np.argmax(table[::-1], axis=0)
    return np.where(table.any(axis=0), last, _NONE)
