"""The rows that passed, with their values, so that changes, which name ids alone, can be drawn."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

import numpy as np

from skytide.dashboard.values import Value

Values = tuple[Value, ...]


class Rows:
    """The latest values of the last rows, by key; those that are remembered longest go first.

    >>> rows = Rows(room=2)
    >>> rows.put(["a", "b", "c"], [(1,), (2,), (3,)])
    >>> rows.get("a"), rows.get("c"), rows.seen
    (None, (3,), 3)
    """

    def __init__(self, room: int) -> None:
        self._room = max(1, room)
        self._place: dict[str, int] = {}
        self._keys: list[str | None] = []
        self._values: list[Values] = []
        self._next = 0
        self._random = np.random.default_rng(0)
        self.seen = 0

    def __len__(self) -> int:
        return len(self._place)

    def put(self, keys: Iterable[str], values: Iterable[Values]) -> None:
        """Remember rows; one that is there already gets the new values. O(rows)."""
        place = self._place
        for key, row in zip(keys, values, strict=True):
            self.seen += 1
            at = place.get(key)
            if at is not None:
                self._values[at] = row
            elif len(self._keys) < self._room:
                place[key] = len(self._keys)
                self._keys.append(key)
                self._values.append(row)
            else:
                old = self._keys[self._next]
                if old is not None:
                    del place[old]
                place[key] = self._next
                self._keys[self._next], self._values[self._next] = key, row
                self._next = (self._next + 1) % self._room

    def get(self, key: str) -> Values | None:
        """The values of a row, if they are remembered. O(1)."""
        at = self._place.get(key)
        return None if at is None else self._values[at]

    def forget(self, keys: Iterable[str]) -> None:
        """Rows that live no more. O(rows)."""
        for key in keys:
            at = self._place.pop(key, None)
            if at is not None:
                self._keys[at], self._values[at] = None, ()

    def sample(self, most: int) -> Iterator[tuple[str, Values]]:
        """Up to `most` rows, drawn evenly; all of them where there are no more. O(most)."""
        count, slots = len(self._place), len(self._keys)
        if count <= most:
            places = list(self._place.values())
        else:  # some places are of rows that were forgotten
            places = np.unique(self._random.integers(0, slots, most * slots // count)).tolist()
        found = ((self._keys[at], self._values[at]) for at in places)
        yield from itertools.islice(((key, values) for key, values in found if key is not None), most)
