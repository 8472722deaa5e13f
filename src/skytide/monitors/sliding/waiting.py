"""Rows that wait until their instant is closed: they come in any order, and go in the order of their times.

A large allowed lateness means many waiting rows, so neither a row that comes nor one that goes may cost a copy of all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from skytide.model import Floats, Integers

_FEW = 1024


class Arrivals(NamedTuple):
    """Rows on their way to the engines: values, group codes, handles and, in time windows, arrival keys."""

    values: Floats
    codes: Integers
    handles: Integers
    keys: Integers

    def pick(self, which: Integers | slice) -> Arrivals:
        """Some of the rows, in the order asked for; a copy, unless asked for by a slice."""
        return Arrivals(self.values[which], self.codes[which], self.handles[which], self.keys[which])

    def join(self, later: Arrivals) -> Arrivals:
        """These rows, then the later ones."""
        if not len(self.handles):
            return later
        if not len(later.handles):
            return self
        return Arrivals(*(np.concatenate(pair) for pair in zip(self, later, strict=True)))

    def in_order(self) -> Arrivals:
        """The rows in the order of their keys; rows of one key as they came."""
        ordered = (self.keys[1:] >= self.keys[:-1]).all()
        return self if ordered else self.pick(np.argsort(self.keys, kind="stable"))

    def by_group(self) -> Iterator[tuple[int, Arrivals]]:
        """The rows of each group, groups in the order of their codes, rows in the order they have."""
        alone = self.codes.strides == (0,)  # one value in memory stands for all rows: there are no `by` columns
        if len(self.codes) and (alone or (self.codes[0] == self.codes[-1] and (self.codes == self.codes[0]).all())):
            yield int(self.codes[0]), self
            return
        order = np.argsort(self.codes, kind="stable")
        cuts = np.flatnonzero(np.diff(self.codes[order])) + 1
        for part in np.split(order, cuts):
            if len(part):
                yield int(self.codes[part[0]]), self.pick(part)


def no_arrivals(dimensions: int) -> Arrivals:
    """No rows at all."""
    empty = np.zeros(0, np.int64)
    return Arrivals(np.zeros((0, dimensions)), empty, empty, empty)


class Waiting:
    """The rows that wait: most of them sorted, of which the first have gone, and what has come since.

    What has come since lies in parts whose sizes fall, so that a row is copied O(log n) times, and stays apart from the
    sorted rows until it is large enough to pay for a copy of them.
    """

    def __init__(self, dimensions: int) -> None:
        self._none = no_arrivals(dimensions)
        self._sorted, self._gone = self._none, 0
        self._fresh: list[Arrivals] = []
        self._first: int | None = None  # the least key of what has come since

    def __len__(self) -> int:
        return len(self._sorted.handles) - self._gone + sum(len(part.handles) for part in self._fresh)

    def add(self, rows: Arrivals, bound: int) -> None:
        """Take rows. `release` up to the bound must follow where some are due; else they are copied here."""
        if not len(rows.keys):
            return
        first = int(rows.keys.min())
        if first > bound:
            rows = rows.pick(np.arange(len(rows.keys)))  # the caller may use the arrays for other rows
        self._fresh.append(rows)
        self._first = first if self._first is None else min(first, self._first)
        while len(self._fresh) > 1 and len(self._fresh[-1].keys) >= len(self._fresh[-2].keys):
            last = self._fresh.pop()
            self._fresh[-1] = self._fresh[-1].join(last)

    def all(self) -> Arrivals:
        """All rows that wait, those of one key in the order in which they came. O(n)."""
        found = self._sorted.pick(slice(self._gone, None))
        for part in self._fresh:
            found = found.join(part)
        return found

    def release(self, bound: int) -> Arrivals:
        """Take out the rows up to the bound, in order. O(what goes), and now and then a copy of what stays."""
        cut = int(np.searchsorted(self._sorted.keys, bound, side="right"))
        due = self._sorted.pick(slice(self._gone, cut))
        self._gone = cut
        if 2 * cut > len(self._sorted.keys):
            self._sorted, self._gone = self._sorted.pick(np.arange(cut, len(self._sorted.keys))), 0
        if self._first is not None and self._first <= bound:
            due = due.join(self._release_fresh(bound)).in_order()
        return due

    def _release_fresh(self, bound: int) -> Arrivals:
        fresh = self._none
        for part in self._fresh:
            fresh = fresh.join(part)
        fresh = fresh.in_order()
        cut = int(np.searchsorted(fresh.keys, bound, side="right"))
        # Picked by position, not by slice: a view would keep the whole batch in memory.
        rest = fresh.pick(np.arange(cut, len(fresh.keys)))
        if len(rest.keys) ** 2 > _FEW**2 + 16 * len(self._sorted.keys):
            self._sorted, self._gone = self._sorted.pick(slice(self._gone, None)).join(rest).in_order(), 0
            rest = self._none
        self._fresh, self._first = ([rest], int(rest.keys[0])) if len(rest.keys) else ([], None)
        return fresh.pick(slice(0, cut))
