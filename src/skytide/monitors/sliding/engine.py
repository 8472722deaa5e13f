"""The one interface of the sliding-window algorithms: rows in order of arrival in, net changes out.

An engine knows neither ids nor columns nor groups nor lateness: the window above it has put the rows in order, oriented
their values (smaller is better) and turned times into int64 keys that keep their order. A row lives on
[arrival, expiry); a row with expiry <= arrival never lives. Handles are opaque numbers that come back in the changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from skytide.model import Booleans, Floats, Integers


@dataclass(frozen=True)
class Rows:
    """Rows as columns: values (n, d), arrival and expiry keys, handles. Sorted by arrival; expiries never decrease."""

    values: Floats
    arrivals: Integers
    expiries: Integers
    handles: Integers

    def __len__(self) -> int:
        return len(self.handles)

    def pick(self, which: slice | Booleans) -> Rows:
        """Some of the rows, in the order they have; views where they are a slice."""
        return Rows(self.values[which], self.arrivals[which], self.expiries[which], self.handles[which])


@dataclass(frozen=True)
class Moves:
    """Net changes as columns: the instant, +1 or -1, the handle. Ordered by instant; no handle twice in one instant."""

    times: Integers
    signs: Integers
    handles: Integers

    @classmethod
    def joined(cls, parts: Sequence[Moves]) -> Moves:
        """All moves of the parts, in the order given."""
        if len(parts) == 1:
            return parts[0]
        none = np.zeros(0, np.int64)
        return cls(
            np.concatenate([none, *(part.times for part in parts)]),
            np.concatenate([none, *(part.signs for part in parts)]),
            np.concatenate([none, *(part.handles for part in parts)]),
        )


class Engine(Protocol):
    """Keeps the skyline of the live rows current; time only moves forward.

    The instant up to which everything is final is `now`. The answer at an instant t is the skyline of the rows with
    arrival <= t < expiry. Moves are the net differences between consecutive instants.
    """

    def run(self, rows: Rows, until: int) -> Moves:
        """Take the rows with now < arrival <= until, make all instants up to and including `until` final."""
        ...

    def retained(self) -> Rows:
        """Every row that may still matter, as of `now`; loading them into any engine gives the same future."""
        ...

    def load(self, rows: Rows, now: int) -> None:
        """Start afresh from retained rows as of `now` without emitting moves; some may have expired or be dominated."""
        ...

    def next_event(self) -> int:
        """No move happens before this instant unless rows arrive; the largest int64 where nothing is retained."""
        ...

    def counters(self) -> dict[str, int]:
        """Work since the start, at least: dominance_tests, node_visits, and memory_bytes as of now."""
        ...
