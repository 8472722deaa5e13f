"""How objects are watched, as arrays: zones, and pairs of objects that are to stay in order."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from skytide.kernel.fragmented import ALL, FREE, Pairs, Zones
from skytide.kernel.functions import TOP, Programs
from skytide.model import Floats, Integers
from skytide.monitors.storage import Parts
from skytide.protocols.arrays import grown
from skytide.protocols.stored import Contents, must


def no_zones(components: int, functions: int) -> Zones:
    """Zones of no object."""
    box: Floats = np.zeros((0, functions))
    return Zones(np.zeros(0, np.int8), np.zeros((0, components)), box, box, np.zeros(0))


def more_zones(zones: Zones, room: int) -> Zones:
    """The same zones with room for more objects, of which everything is told. Amortised O(1) for each."""
    return Zones(
        grown(zones.mode, room, FREE),
        grown(zones.centre, room),
        grown(zones.low, room),
        grown(zones.high, room),
        grown(zones.stretch, room, 1),
    )


def zone_parts(zones: Zones) -> Parts:
    """Zones as they are stored."""
    return {f"zone.{name}": column for name, column in zones._asdict().items()}


def restored_zones(contents: Contents, room: int, components: int, functions: int) -> Zones:
    """The zones of so many objects that were stored."""
    zone = contents.inner_parts("zone")
    return Zones(
        zone.modes("mode", room),
        zone.reals("centre", room, components),
        zone.reals("low", room, functions),
        zone.reals("high", room, functions),
        zone.floats("stretch", room),
    )


def comparable(programs: Programs) -> Programs:
    """The programs with bounds that can be compared with each other: convex above and concave below everywhere.

    For a zone it is enough that their level sets are convex.
    """
    nodes = programs.nodes.copy()
    nodes[:, TOP] = 0
    return programs._replace(nodes=nodes)


class Pair(NamedTuple):
    """An object that is to stay better than another: on one column, or (`ALL`) dominate it."""

    left: int
    right: int
    column: int


class Terms(NamedTuple):
    """Where a dominating object is strictly better, by how much either one's drift is stretched, and the coordinator's
    share of the weight, which sites need not know.
    """

    strict: int
    left: float
    right: float
    share: float = 0.0


class PairTable:
    """Pairs with their terms, also as arrays for the kernel.

    >>> table = PairTable()
    >>> table.put(Pair(0, 3, 1), Terms(1, 1.0, 1.0))
    >>> table.of([3]).tolist(), table.arrays.starts.tolist()
    ([0], [0, 1, 1, 1, 2])
    """

    def __init__(self) -> None:
        self._terms: dict[Pair, Terms] = {}
        self._arrays: Pairs | None = None
        self._before: dict[Pair, Terms | None] | None = None  # of what changed since `mark`; None: nobody asks
        self._room = 0
        self.shares: Floats = np.zeros(0)
        """The coordinator's shares, as the arrays have the pairs."""

    def copy(self) -> PairTable:
        """The same again, as it is when nobody asks for changes. O(pairs)."""
        other = copy.copy(self)
        other._terms, other._before = dict(self._terms), None  # arrays are made anew, never changed
        return other

    def reserve(self, room: int) -> None:
        """See to it that there are so many objects at least, if without pairs. O(pairs) where there were fewer."""
        if room > self._room:
            self._room, self._arrays = max(room, 2 * self._room), None

    def __contains__(self, pair: Pair) -> bool:
        return pair in self._terms

    def __iter__(self) -> Iterator[Pair]:
        return iter(self._terms)

    def __len__(self) -> int:
        return len(self._terms)

    def terms(self, pair: Pair) -> Terms:
        """The terms of a pair. O(1)."""
        return self._terms[pair]

    def put(self, pair: Pair, terms: Terms) -> None:
        """Add a pair, or give it other terms. O(1), and the arrays are made anew."""
        self.reserve(max(pair.left, pair.right) + 1)
        if self._before is not None:
            self._before.setdefault(pair, self._terms.get(pair))
        self._terms[pair] = terms
        self._arrays = None

    def drop(self, pair: Pair) -> None:
        """Forget a pair; nothing where there is none. O(1), and the arrays are made anew."""
        terms = self._terms.pop(pair, None)
        if terms is not None:
            self._arrays = None
            if self._before is not None:
                self._before.setdefault(pair, terms)

    def mark(self) -> None:
        """From now on remember what changes. O(1)."""
        self._before = {}

    def changes(self) -> tuple[list[Pair], list[Pair]]:
        """Since `mark`: the pairs that are new or have other terms, and those that are gone. O(changes).

        >>> table = PairTable()
        >>> table.mark()
        >>> table.put(Pair(0, 3, 1), Terms(1, 1.0, 1.0))
        >>> table.changes()
        ([Pair(left=0, right=3, column=1)], [])
        """
        before = self._before or {}
        put = [pair for pair, terms in before.items() if pair in self._terms and self._terms[pair] != terms]
        return put, [pair for pair, terms in before.items() if pair not in self._terms and terms is not None]

    def at(self, place: int) -> Pair:
        """The pair at a place in the arrays. O(1)."""
        arrays = self.arrays
        return Pair(int(arrays.left[place]), int(arrays.right[place]), int(arrays.column[place]))

    @property
    def arrays(self) -> Pairs:
        """The pairs as arrays. O(1) if nothing changed, else O(pairs log pairs)."""
        if self._arrays is None:
            keys = np.array(list(self._terms), np.int64).reshape(-1, 3)
            terms = np.array(list(self._terms.values()), np.float64).reshape(-1, 4)
            ends = np.concatenate((keys[:, 0], keys[:, 1]))
            order = np.argsort(ends, kind="stable")
            starts = np.searchsorted(ends[order], np.arange(self._room + 1))
            left, right, column = (np.ascontiguousarray(each) for each in keys.T)
            stretch = np.ascontiguousarray(terms[:, 1:3])
            self.shares = np.ascontiguousarray(terms[:, 3])
            entries = order % max(len(keys), 1)
            self._arrays = Pairs(left, right, column, terms[:, 0].astype(np.int64), stretch, starts, entries)
        return self._arrays

    def contents(self) -> Contents:
        """The pairs as they are stored."""
        keys = np.array(list(self._terms), np.int64).reshape(-1, 3)
        terms = np.array(list(self._terms.values()), np.float64).reshape(-1, 4)
        return Contents({}, {"keys": keys.reshape(-1), "terms": terms})

    @classmethod
    def restored(cls, contents: Contents, room: int, functions: int) -> PairTable:
        """The pairs that were stored, of objects numbered below `room`."""
        made = cls()
        made.reserve(room)
        terms = contents.floats("terms", -1, 4)
        keys = contents.integers("keys", 3 * len(terms), ALL, room + functions).reshape(-1, 3)
        must(bool((keys[:, :2] >= 0).all() and (keys[:, :2] < room).all() and (keys[:, 2] < functions).all()), "pairs")
        must(bool((keys[:, 0] != keys[:, 1]).all() and (terms[:, 1:3] > 0.0).all()), "pairs")
        must(bool((terms[:, 0] >= 0).all() and (terms[:, 0] < functions).all()), "pairs")
        for key, row in zip(keys.tolist(), terms.tolist(), strict=True):
            made.put(Pair(*key), Terms(int(row[0]), *row[1:]))
        return made

    def of(self, objects: Iterable[int]) -> Integers:
        """The places in the arrays of the pairs of objects, each once, in order. O(pairs found)."""
        arrays = self.arrays
        runs = [arrays.entries[arrays.starts[one] : arrays.starts[one + 1]] for one in objects if one < self._room]
        return np.unique(np.concatenate(runs)) if runs else np.zeros(0, np.int64)
