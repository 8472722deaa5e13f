"""The one interface of the engines for uncertain rows: rows in order of arrival in, net changes per threshold out.

As in `monitors.sliding.engine`, an engine knows neither ids nor columns nor groups nor lateness; values are oriented
(smaller is better), times are int64 keys, a row lives on [arrival, expiry). A row exists with its probability,
independently of the others. Its skyline probability at an instant is its own probability times the product of (1 - P)
over the live rows that dominate it. A probability within 1e-12 (relative) of a threshold reaches it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from skytide.model import Booleans, Floats, Integers

TOLERANCE = 1e-12
"""A probability this near below a threshold, relatively, reaches it."""


@dataclass(frozen=True)
class UncertainRows:
    """Rows as columns: values (n, d), probabilities in (0, 1], arrival and expiry keys, handles. Sorted by arrival."""

    values: Floats
    probabilities: Floats
    arrivals: Integers
    expiries: Integers
    handles: Integers

    def __len__(self) -> int:
        return len(self.handles)

    def pick(self, which: slice | Booleans | Integers) -> UncertainRows:
        """Some of the rows, in the order they have or are asked for in."""
        return UncertainRows(
            self.values[which],
            self.probabilities[which],
            self.arrivals[which],
            self.expiries[which],
            self.handles[which],
        )


@dataclass(frozen=True)
class ThresholdMoves:
    """Net changes as columns: the instant, +1 or -1, the handle, and which threshold (its position, from 0).

    Ordered by instant; for one threshold no handle twice in one instant.
    """

    times: Integers
    signs: Integers
    handles: Integers
    thresholds: Integers

    def __len__(self) -> int:
        return len(self.times)

    @classmethod
    def joined(cls, parts: Sequence[ThresholdMoves]) -> ThresholdMoves:
        """All moves of the parts, in the order given."""
        none = np.zeros(0, np.int64)
        return cls(
            np.concatenate([none, *(part.times for part in parts)]),
            np.concatenate([none, *(part.signs for part in parts)]),
            np.concatenate([none, *(part.handles for part in parts)]),
            np.concatenate([none, *(part.thresholds for part in parts)]),
        )


class UncertainEngine(Protocol):
    """Keeps the skyline probabilities of the rows that can reach the smallest threshold; time only moves forward.

    Made with the number of dimensions and the thresholds, in falling order. The instant up to which everything is
    final is `now`.
    """

    def run(self, rows: UncertainRows, until: int) -> ThresholdMoves:
        """Take the rows with now < arrival <= until, make all instants up to and including `until` final."""
        ...

    def answer(self, threshold: float) -> tuple[Integers, Floats]:
        """Handles and skyline probabilities of the rows that reach a threshold not below the smallest, as of `now`."""
        ...

    def retained(self) -> UncertainRows:
        """Every row that may still matter, as of `now`; loading them into any engine gives the same future."""
        ...

    def load(self, rows: UncertainRows, now: int) -> None:
        """Start afresh from retained rows as of `now` without emitting moves; some may have expired."""
        ...

    def next_event(self) -> int:
        """No move happens before this instant unless rows arrive; the largest int64 where nothing is retained."""
        ...

    def counters(self) -> dict[str, int]:
        """Work since the start, at least: dominance_tests, node_visits, and memory_bytes as of now."""
        ...
