"""Objects with several instances: exact skyline probabilities from a small part of the window.

zhang09p, Section VI, says that its candidate set carries over from rows to objects. It does not: an object may fall out
of S_{N,q} by its other instances while one instance still dominates somebody. So we keep instances, not objects.

*Definitions.* For an instance v of V and an object W, (W < v) is the probability that W is at an instance dominating v.
The skyline probability of U is the sum over its instances u of c(u) = P(u) · product over live W other than U of
1 - (W < u). For an instance v of V let n(v) be the product over all objects W newer than V of 1 - (W < v). Newer
objects outlive V, so n(v) only falls as long as v lives.

*Rule.* An instance v is forgotten, for every purpose, when n(v) < e = q · 2^-60, where q is the smallest threshold.

*Why this is exact.* Take an instance u of U, and suppose that forgotten live instances of other objects dominate it.
Let v, of V, be the newest of them.

1. Truly c(u) < e. Whatever dominates v dominates u, so each factor of c(u) for a W newer than V, other than U, is at
   most 1 - (W < v). If U is newer than V, n(v) has a factor 1 - (U < v) as well; u is not among the instances of U
   that dominate v, because v dominates u, so P(u) <= 1 - (U < v). Either way c(u) <= n(v) < e.
2. Computed without what is forgotten, c(u) < e too: an instance of a W newer than V, other than U, that dominates v
   also dominates u, and is not forgotten, for v is the newest of those; so the same factors are all there.

So what is forgotten changes each term of a sum by less than e, and the probability of an answer member with m instances
by less than m · 2^-60 of itself: not more than the rounding of its last bits. If u itself is forgotten, c(u) <= n(u) <
e. And n(v) itself is exact, as new objects come whole; a v with a forgotten newer dominator w has n(v) <= n(w) < e and
is forgotten with it, so that n can be computed again from what is kept (`load`).

*How sharp it is.* With e = 0, an instance is forgotten when a newer object dominates it with certainty: the rule for
exact numbers. No rule can do much better, and the smallest threshold does not help: as long as n(v) > 0 an object may
come that is in the answer by another instance, and of whose probability v decides a part of size n(v). Only below the
resolution of the numbers nobody can tell. An object is in the answer, or may yet be, while the sum of P(u) n(u) reaches
q; only then its probability is kept.
"""

from __future__ import annotations

import numpy as np

from skytide.kernel import uncertain_objects as kernel
from skytide.model import Floats, Integers
from skytide.monitors.sliding.clock import HIGHEST
from skytide.monitors.uncertain.engine import TOLERANCE, ThresholdMoves, UncertainRows

RESOLUTION = 2.0**-60


class ObjectEngine:
    """An `UncertainEngine` for objects: neighbouring rows with one handle are the instances of one of them.

    Expiries must not fall. A new instance costs a comparison with every instance that is kept.

    >>> engine = ObjectEngine(1, np.array([0.5]))
    >>> numbers = np.array([7, 7, 8])
    >>> values, chances = np.array([[1.0], [3.0], [2.0]]), np.array([0.5, 0.5, 1.0])
    >>> _ = engine.run(UncertainRows(values, chances, np.array([1, 1, 2]), np.array([9, 9, 9]), numbers), 2)
    >>> [column.tolist() for column in engine.answer(0.5)]
    [[7, 8], [0.5, 0.5]]
    """

    def __init__(self, dimensions: int, thresholds: Floats) -> None:
        self._bars = np.asarray(thresholds, dtype=np.float64) * (1 - TOLERANCE)
        self._least = float(self._bars[-1]) * RESOLUTION
        self._tests = 0
        self._clear(dimensions)

    def _clear(self, dimensions: int) -> None:
        self._values = np.zeros((0, dimensions))
        self._chances = np.zeros((3, 0))
        self._places = np.zeros((2, 0), np.int64)
        self._lives = np.zeros((8, 0), np.int64)
        self._next_until = HIGHEST

    def run(self, rows: UncertainRows, until: int) -> ThresholdMoves:
        """As `UncertainEngine.run`."""
        starts = _starts(rows.handles)
        old, more = self._lives.shape[1], len(starts)
        n = len(self._values)
        lives = np.zeros((8, old + more), np.int64)
        lives[:, :old] = self._lives
        lives[kernel.START, old:] = n + starts
        lives[kernel.STOP, old:] = n + np.append(starts, len(rows))[1:]
        lives[kernel.ARRIVAL, old:] = rows.arrivals[starts]
        lives[kernel.EXPIRY, old:] = rows.expiries[starts]
        lives[kernel.HANDLE, old:] = rows.handles[starts]
        values = np.concatenate((self._values, rows.values))
        chances = np.zeros((3, len(values)))
        chances[:, :n] = self._chances
        chances[kernel.P, n:] = rows.probabilities
        places = np.zeros((2, len(values)), np.int64)
        places[:, :n] = self._places
        meta = np.zeros(kernel.META, np.int64)
        meta[kernel.OBJECTS], meta[kernel.INSTANCES], meta[kernel.LIVE] = old, n, n
        meta[kernel.NEXT_UNTIL] = self._next_until
        found = kernel.advance(values, chances, places, lives, meta, more, until, self._bars, self._least)
        kept, n = int(meta[kernel.OBJECTS]), int(meta[kernel.INSTANCES])
        # Copies: views would keep the rows of the call.
        self._lives, self._values = lives[:, :kept].copy(), values[:n].copy()
        self._chances, self._places = chances[:, :n].copy(), places[:, :n].copy()
        self._next_until = int(meta[kernel.NEXT_UNTIL])
        self._tests += int(meta[kernel.TESTS])
        return ThresholdMoves(*found)

    def answer(self, threshold: float) -> tuple[Integers, Floats]:
        """As `UncertainEngine.answer`. O(instances kept)."""
        chances = kernel.probabilities(self._chances, self._places, self._lives)
        inside = chances >= threshold * (1 - TOLERANCE)
        return self._lives[kernel.HANDLE, inside], chances[inside]

    def retained(self) -> UncertainRows:
        """As `UncertainEngine.retained`: the instances that are kept, of one object side by side."""
        owners = self._lives[:, self._places[kernel.OWNER]]
        return UncertainRows(
            self._values,
            self._chances[kernel.P],
            owners[kernel.ARRIVAL],
            owners[kernel.EXPIRY],
            owners[kernel.HANDLE],
        )

    def load(self, rows: UncertainRows, now: int) -> None:
        """As `UncertainEngine.load`: what is kept lives again from its first arrival on."""
        self._clear(self._values.shape[1])
        self.run(rows, now)

    def next_event(self) -> int:
        """As `UncertainEngine.next_event`: the first expiry."""
        return int(self._lives[kernel.EXPIRY, 0]) if self._lives.shape[1] else HIGHEST

    def counters(self) -> dict[str, int]:
        """As `UncertainEngine.counters`."""
        arrays = (self._values, self._chances, self._places, self._lives)
        return {"dominance_tests": self._tests, "node_visits": 0, "memory_bytes": sum(one.nbytes for one in arrays)}


def _starts(handles: Integers) -> Integers:
    """Where the objects begin in rows of which neighbours with one handle belong together."""
    if not len(handles):
        return np.zeros(0, np.int64)
    return np.flatnonzero(np.concatenate(([True], handles[1:] != handles[:-1])))
