"""Load shedding: when a spike brings more rows than a run may cost, drop those that matter least; say what it costs.

The last paragraph of tao06 asks for it: very fast, no distances, least harm. What we drop, in this order:

1. Rows that provably never matter: dominated at every instant of their life, first by a row that is not newer (until
   s, the latest expiry among these), then by one that is not older (from b, the earliest arrival among those), b <= s.
   The change stream stays exactly what it is.
2. If more rows than the capacity are left: those that live rows dominate for longest, since such a row has no
   influence before s, whatever it dominates being dominated anyway. A row that nothing dominates goes last, the weakest
   first. These drops are remembered until they are known to be harmless or have expired.

What a drop costs. Let D be the dropped rows of the second kind, T the true change stream, E the emitted one, that of
the rows that were not dropped. A live D-row is *exposed* at t when it is not known that a live row dominates it, so a
D-row of the true skyline is exposed. At every instant E's answer holds what T's holds, D apart, and more only under
D-rows of the true skyline. So these are all changes of T that E can lack:

* a D-row's own entering and leaving: 2 for each that is ever exposed;
* the `+` of a row that entered E earlier than T: when it did, an exposed D-row dominated it. At most 1 for each `+` of
  E under an exposed D-row;
* the `-` of a row that left T earlier than E: a D-row arrived, exposed, and dominated it. At most 1 for each row of E
  under a D-row that is exposed on arrival.

`missed_at_most` is the sum of these. Likewise each change of E that T lacks is a `+` of the second kind, or the `-` of
such a row or of one of the third kind: `wrong_at_most`. Both count the changes up to the last instant that is final,
are never too small, and stay 0 as long as every drop turns out harmless.

To find out, a remembered row is looked at once its cover ends: a row that arrived by then and dominates it covers it
further, for good if it is newer. The memory holds a fixed number of drops. When it is full, neighbours (by the end
of their cover, then by the first column) are merged: their lower corner dominates whatever one of them does, and lives
and is exposed whenever one of them is, so that the bounds grow but stay bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np

from skytide.errors import OptionError
from skytide.kernel.batch import skyline_mask
from skytide.kernel.cover import NOTHING, cover, outdone, prolong
from skytide.model import Booleans, Floats, Integers
from skytide.monitors.sliding.engine import Engine, Moves, Rows
from skytide.monitors.sliding.skyband import strength

FOREVER = np.iinfo(np.int64).max
STRONG = 64
"""Strong rows that are looked at to find dominated ones."""
ARRIVED = 256
"""Points that stand for the drops of one run that were exposed on arrival."""


@dataclass
class _Drops:
    """Dropped rows that may matter: each entry is the lower corner of one or more of them."""

    corners: Floats
    begins: Integers
    """The earliest arrival."""
    covers: Integers
    """Not exposed before this instant."""
    ends: Integers
    """The latest expiry."""
    owed: Integers
    """How many of the rows have not been counted as missed."""

    def __len__(self) -> int:
        return len(self.owed)

    def pick(self, which: Booleans | Integers) -> _Drops:
        return _Drops(*(getattr(self, one.name)[which] for one in fields(self)))

    def join(self, more: _Drops) -> _Drops:
        pairs = ((getattr(self, one.name), getattr(more, one.name)) for one in fields(self))
        return _Drops(*(np.concatenate(pair) for pair in pairs))

    def merged(self, most: int) -> _Drops:
        """At most so many entries that together stand for all of these."""
        if len(self) <= most:
            return self
        ordered = self.pick(np.lexsort((self.corners[:, 0], self.covers)))
        starts = np.arange(most) * len(self) // most
        return _Drops(
            np.minimum.reduceat(ordered.corners, starts, axis=0),
            np.minimum.reduceat(ordered.begins, starts),
            np.minimum.reduceat(ordered.covers, starts),
            np.maximum.reduceat(ordered.ends, starts),
            np.add.reduceat(ordered.owed, starts),
        )


def _no_drops(dimensions: int) -> _Drops:
    none = np.zeros(0, np.int64)
    return _Drops(np.zeros((0, dimensions)), none, none, none, none)


@dataclass
class _Arrived:
    """What `observe` must know about a run in which drops were exposed on arrival."""

    drops: _Drops
    before: Rows
    """The rows retained before the run."""
    answer: Rows
    """The answer before the run."""


class Shedder:
    """Drops rows above a capacity per run, and bounds what the change stream lacks for it. For skylines (k = 1).

    >>> times = np.arange(4)
    >>> rows = Rows(np.array([[1.0, 1.0], [3.0, 3.0], [2.0, 2.0], [0.0, 9.0]]), times, times + 9, times)
    >>> nothing = Rows(np.zeros((0, 2)), *[np.zeros(0, np.int64)] * 3)
    >>> shedder = Shedder(capacity=3)
    >>> shedder.admit(rows, lambda: nothing).tolist(), shedder.shed, shedder.missed_at_most
    ([True, False, True, True], 1, 0)
    """

    def __init__(self, capacity: int, memory: int = 1_024, now: int = NOTHING) -> None:
        for name, number in (("capacity", capacity), ("memory", memory)):
            if isinstance(number, bool) or int(number) != number or number < 1:
                raise OptionError(f"is not a {name} for load shedding", value=number, remedy="give a number from 1")
        self.capacity = int(capacity)
        self.memory = int(memory)
        self.shed = 0
        """Rows dropped."""
        self.shed_harmless = 0
        """Those of them that were known to be harmless when they were dropped."""
        self._owned = self._entered = self._outlived = 0
        self._now = now
        self._drops: _Drops | None = None
        self._arrived: _Arrived | None = None

    @property
    def missed_at_most(self) -> int:
        """At most so many changes of the true stream up to the last final instant are missing from the emitted one."""
        return self._owned + self._entered + self._outlived

    @property
    def wrong_at_most(self) -> int:
        """At most so many emitted changes are not in the true stream."""
        return 2 * self._entered + self._outlived

    def admit(self, rows: Rows, retained: Callable[[], Rows]) -> Booleans:
        """Which rows to give to the engine, at most `capacity`. O(1) below it, else O((n + retained) d) and a sort.

        `retained` is the engine's, and is called above the capacity only. Call `observe` when the engine has run.
        """
        keep = np.ones(len(rows), dtype=bool)
        if len(rows) <= self.capacity:
            return keep
        before = retained()
        first = len(before)
        every = np.concatenate((before.values, rows.values))
        strengths = strength(every)
        marks = np.concatenate((before.expiries, rows.expiries))
        older, covers = cover(every, marks, strengths, first, 1, NOTHING, STRONG, True)
        strengths = strengths[first:]
        newer, starts = cover(
            rows.values[::-1].copy(), ~rows.arrivals[::-1], strengths[::-1].copy(), 0, 1, NOTHING, STRONG, True
        )
        harmless = older & newer[::-1] & (~starts[::-1] <= covers) | (rows.expiries <= rows.arrivals)
        keep[harmless] = False
        left = np.flatnonzero(keep)
        harmful = np.zeros(0, np.int64)
        if len(left) > self.capacity:
            order = np.lexsort((-strengths[left], ~covers[left]))
            harmful = left[order[: len(left) - self.capacity]]
            keep[harmful] = False
            self._remember(rows, harmful, covers[harmful], before)
        self.shed += int(len(rows) - np.count_nonzero(keep))
        self.shed_harmless += int(np.count_nonzero(harmless))
        return keep

    def _remember(self, rows: Rows, which: Integers, covers: Integers, before: Rows) -> None:
        arrivals = rows.arrivals[which]
        drops = _Drops(
            rows.values[which],
            arrivals,
            np.maximum(covers, arrivals),
            rows.expiries[which],
            np.ones(len(which), dtype=np.int64),
        )
        arrived = drops.pick(drops.covers == arrivals)
        drops = drops.pick(drops.covers < drops.ends)
        if len(arrived):
            # Merging must keep the arrivals, so they take the place of the ends.
            arrived.ends = arrived.begins
            alive = before.pick(before.expiries > self._now)
            answer = alive.pick(skyline_mask(alive.values))
            self._arrived = _Arrived(arrived.merged(ARRIVED), before, answer)
        drops = drops if self._drops is None else self._drops.join(drops)
        # Down to half, so that merging is rare.
        self._drops = drops if len(drops) <= self.memory else drops.merged(self.memory // 2 + 1)

    def observe(self, rows: Rows, moves: Moves, until: int, retained: Callable[[], Rows]) -> None:
        """Account for a run: the rows that came (dropped ones too), what the engine emitted, up to when.

        O(1) while nothing that may matter is dropped and alive. `retained` is the engine's, called where needed only.
        """
        self._now = until
        if self._drops is None:
            return
        self._settle(until, retained)
        drops = self._drops
        entered = moves.signs > 0
        if len(drops) and entered.any():
            times, handles = moves.times[entered], moves.handles[entered]
            exposed = np.maximum(drops.begins, drops.covers)
            near = (times >= exposed.min()) & (times < drops.ends.max())
            values, known = self._values(handles[near], rows, retained)
            hit = outdone(values, times[near], times[near], drops.corners, exposed, drops.ends - 1)
            self._entered += int(np.count_nonzero(hit | ~known))
        if self._arrived is not None:
            self._outlived += self._left_behind(self._arrived, rows, moves)
            self._arrived = None
        drops = drops.pick(drops.ends > until)
        self._drops = drops if len(drops) else None

    def _settle(self, until: int, retained: Callable[[], Rows]) -> None:
        """Look at the drops whose cover has ended: find them another one, or count their own changes."""
        drops = self._drops
        assert drops is not None
        due = np.flatnonzero((drops.covers <= until) & (drops.owed > 0))
        if not len(due):
            return
        now = retained()
        covers = drops.covers[due]
        prolong(drops.corners[due], covers, drops.ends[due], now.values, now.arrivals, now.expiries, until)
        drops.covers[due] = covers
        exposed = due[(covers <= until) & (covers < drops.ends[due])]
        self._owned += 2 * int(drops.owed[exposed].sum())
        drops.owed[exposed] = 0
        self._drops = drops.pick(drops.covers < drops.ends)

    def _values(self, handles: Integers, rows: Rows, retained: Callable[[], Rows]) -> tuple[Floats, Booleans]:
        """The values of rows by handle, and which of them are known: one that came and went within a run may not be."""
        values, known = _look_up(handles, rows)
        if not known.all() and self._arrived is not None:
            _fill_in(handles, values, known, self._arrived.before)
        if not known.all():
            _fill_in(handles, values, known, retained())
        return values, known

    def _left_behind(self, arrived: _Arrived, rows: Rows, moves: Moves) -> int:
        """How many rows of the emitted answer a drop dominated that was exposed when it arrived."""
        plus = moves.signs > 0
        came, known = _look_up(moves.handles[plus], rows)
        _fill_in(moves.handles[plus], came, known, arrived.before)
        handles = np.concatenate((arrived.answer.handles, moves.handles[plus]))
        values = np.concatenate((arrived.answer.values, came))
        begins = np.concatenate((np.full(len(arrived.answer), NOTHING), moves.times[plus] + 1))
        ends = np.full(len(handles), FOREVER)
        order = np.argsort(handles)
        gone = order[np.searchsorted(handles[order], moves.handles[~plus])]
        ends[gone] = moves.times[~plus] - 1
        drops = arrived.drops
        return int(np.count_nonzero(outdone(values, begins, ends, drops.corners, drops.begins, drops.ends)))

    def next_event(self) -> int:
        """When a remembered drop is to be looked at or can be forgotten; the largest int64 where there is none."""
        drops = self._drops
        return (
            FOREVER if drops is None else int(np.where(drops.owed > 0, drops.covers, drops.ends).min(initial=FOREVER))
        )

    def state(self) -> dict[str, Integers | Floats]:
        """All that is to be stored between two runs, as arrays."""
        drops = self._drops if self._drops is not None else _no_drops(1)
        numbers = [self.shed, self.shed_harmless, self._owned, self._entered, self._outlived, self._now]
        return {"numbers": np.array(numbers, np.int64), **{one.name: getattr(drops, one.name) for one in fields(drops)}}

    def restore(self, state: dict[str, Integers | Floats]) -> None:
        """Go on from a stored state."""
        numbers = [int(number) for number in state["numbers"]]
        self.shed, self.shed_harmless, self._owned, self._entered, self._outlived, self._now = numbers
        drops = _Drops(*(np.array(state[one.name]) for one in fields(_Drops)))  # type: ignore[arg-type]
        self._drops = drops if len(drops) else None
        self._arrived = None


class SheddingEngine:
    """An engine that takes at most `capacity` rows per run, in front of any engine for skylines.

    Its counters are the engine's and `shed`, `shed_harmless`, `missed_at_most` and `wrong_at_most`.
    """

    def __init__(self, engine: Engine, capacity: int, memory: int = 1_024) -> None:
        self.engine = engine
        self.shedder = Shedder(capacity, memory)

    def run(self, rows: Rows, until: int) -> Moves:
        """Drop rows above the capacity, run the engine over the others."""
        keep = self.shedder.admit(rows, self.engine.retained)
        moves = self.engine.run(rows if keep.all() else rows.pick(keep), until)
        self.shedder.observe(rows, moves, until, self.engine.retained)
        return moves

    def retained(self) -> Rows:
        """What the engine retains. What the shedder remembers is in `shedder.state()`."""
        return self.engine.retained()

    def load(self, rows: Rows, now: int) -> None:
        """Start the engine afresh. Give the shedder its stored state with `shedder.restore`."""
        self.engine.load(rows, now)
        self.shedder = Shedder(self.shedder.capacity, self.shedder.memory, now)

    def next_event(self) -> int:
        """The engine's next event, or the instant at which a dropped row may begin to matter."""
        return min(self.engine.next_event(), self.shedder.next_event())

    def counters(self) -> dict[str, int]:
        """The engine's work, and what was dropped and may be missed."""
        shedder = self.shedder
        return {
            **self.engine.counters(),
            "shed": shedder.shed,
            "shed_harmless": shedder.shed_harmless,
            "missed_at_most": shedder.missed_at_most,
            "wrong_at_most": shedder.wrong_at_most,
        }


def _look_up(handles: Integers, rows: Rows) -> tuple[Floats, Booleans]:
    values = np.zeros((len(handles), rows.values.shape[1]))
    known = np.zeros(len(handles), dtype=bool)
    _fill_in(handles, values, known, rows)
    return values, known


def _fill_in(handles: Integers, values: Floats, known: Booleans, rows: Rows) -> None:
    """Set the values of those of the handles that are among the rows. O((n + handles) log n)."""
    if not len(rows):
        return
    order = np.argsort(rows.handles)
    places = order[np.minimum(np.searchsorted(rows.handles, handles, sorter=order), len(rows) - 1)]
    found = rows.handles[places] == handles
    values[found] = rows.values[places[found]]
    known |= found
