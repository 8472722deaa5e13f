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
        self._store = _empty(0, 0, dimensions)

    def run(self, rows: UncertainRows, until: int) -> ThresholdMoves:
        """As `UncertainEngine.run`."""
        starts, old = _starts(rows.handles), self._store
        m, n = old.lives.shape[1], len(old.values)
        new = _empty(m + len(starts), n + len(rows), old.values.shape[1])
        _copy(old, new, m, n)
        new.lives[kernel.START, m:] = n + starts
        new.lives[kernel.STOP, m:] = n + np.append(starts, len(rows))[1:]
        for place, column in ((kernel.ARRIVAL, "arrivals"), (kernel.EXPIRY, "expiries"), (kernel.HANDLE, "handles")):
            new.lives[place, m:] = getattr(rows, column)[starts]
        new.values[n:] = rows.values
        new.chances[kernel.P, n:] = rows.probabilities
        found = kernel.advance(new, len(starts), until, self._bars, self._least)
        m, n = int(new.meta[kernel.OBJECTS]), int(new.meta[kernel.INSTANCES])
        self._store = _empty(m, n, old.values.shape[1])  # not a view, which would keep the rows of the call
        _copy(new, self._store, m, n)
        return ThresholdMoves(*found)

    def answer(self, threshold: float) -> tuple[Integers, Floats]:
        """As `UncertainEngine.answer`. O(instances kept)."""
        chances = np.empty(self._store.lives.shape[1])
        kernel.probabilities(self._store, chances)
        inside = chances >= threshold * (1 - TOLERANCE)
        return self._store.lives[kernel.HANDLE, inside], chances[inside]

    def retained(self) -> UncertainRows:
        """As `UncertainEngine.retained`: the instances that are kept, of one object side by side."""
        lives = self._store.lives
        owners = np.repeat(lives, lives[kernel.STOP] - lives[kernel.START], axis=1)
        return UncertainRows(
            self._store.values.copy(),
            self._store.chances[kernel.P].copy(),
            owners[kernel.ARRIVAL],
            owners[kernel.EXPIRY],
            owners[kernel.HANDLE],
        )

    def load(self, rows: UncertainRows, now: int) -> None:
        """As `UncertainEngine.load`: what is kept lives again from its first arrival on."""
        tests = self._store.meta[kernel.TESTS]
        self._store = _empty(0, 0, self._store.values.shape[1])
        self._store.meta[kernel.TESTS] = tests
        self.run(rows, now)

    def next_event(self) -> int:
        """As `UncertainEngine.next_event`: the first expiry."""
        lives = self._store.lives
        return int(lives[kernel.EXPIRY, 0]) if lives.shape[1] else HIGHEST

    def counters(self) -> dict[str, int]:
        """As `UncertainEngine.counters`."""
        tests = int(self._store.meta[kernel.TESTS])
        return {"dominance_tests": tests, "node_visits": 0, "memory_bytes": sum(one.nbytes for one in self._store)}


def _empty(objects: int, instances: int, dimensions: int) -> kernel.Store:
    meta = np.zeros(kernel.META, np.int64)
    meta[kernel.NEXT_UNTIL] = kernel.NEVER
    return kernel.Store(
        np.zeros((instances, dimensions)),
        np.zeros((3, instances)),
        np.zeros(instances, np.int64),
        np.zeros((8, objects), np.int64),
        np.zeros((2, objects, dimensions)),
        np.zeros(objects),
        meta,
    )


def _copy(source: kernel.Store, target: kernel.Store, objects: int, instances: int) -> None:
    """Fill the beginning of a larger store, or one of the same size."""
    target.values[:instances] = source.values[:instances]
    target.chances[:, :instances] = source.chances[:, :instances]
    target.until[:instances] = source.until[:instances]
    target.lives[:, :objects] = source.lives[:, :objects]
    target.boxes[:, :objects] = source.boxes[:, :objects]
    target.nowhere[:objects] = source.nowhere[:objects]
    target.meta[:] = source.meta


def _starts(handles: Integers) -> Integers:
    """Where the objects begin in rows of which neighbours with one handle belong together."""
    if not len(handles):
        return np.zeros(0, np.int64)
    return np.flatnonzero(np.concatenate(([True], handles[1:] != handles[:-1])))
