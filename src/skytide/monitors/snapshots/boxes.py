"""The method of boxes: an object that is dominated hangs on a dominator and is left alone (kernel.snapshots)."""

from __future__ import annotations

import time

import numpy as np

from skytide.kernel import snapshots as kernel
from skytide.kernel.eager_bits import SETS, stride_of
from skytide.kernel.eager_codes import CELLS, cut
from skytide.kernel.snapshots import State, due, post, pre, recode, replay, sky, tell
from skytide.model import Booleans, Floats, Integers
from skytide.monitors.snapshots.engine import Flips, Updates, flips_of

PATIENCE = 50
"""Snapshots in a row in which a candidate is dominated before it is hung on its dominator: the paper's choice."""
_ROOM = 1 << 14


class BoxEngine:
    """udom14's method with boxes, improved as `kernel.snapshots` says.

    A snapshot costs a few comparisons per update, a search among the candidates for each link that breaks, and a
    comparison of every candidate with those that moved. `patience` is the paper's cfp_ths.
    """

    def __init__(self, dimensions: int, *, patience: int = PATIENCE, timed: bool = False) -> None:
        self._d = dimensions
        self._patience = patience
        self._timed = timed
        self.seconds = np.zeros(3)
        """Time in PRE, SKY and POST, where it was asked for; measuring takes some itself."""
        self._numbers = np.zeros(kernel.NUMBERS, np.int64)
        self._state = self._empty(16, 16)

    def _empty(self, slots: int, updates: int) -> State:
        def line(value: int, room: int = slots) -> Integers:
            return np.full(room, value, np.int64)

        # A snapshot puts an object on a list once, and once more for each of its updates.
        lists = slots + updates
        return State(
            points=np.zeros((slots, self._d)),
            corners=np.zeros((slots, self._d)),
            dominator=line(kernel.FREE),
            first=line(kernel.NOBODY),
            after=line(kernel.NOBODY),
            before=line(kernel.NOBODY),
            place=line(kernel.NOBODY),
            rival=line(kernel.NOBODY),
            since=line(0),
            moved=line(-1),
            stirred=line(-1),
            alike=line(-1),
            shown=line(0),
            asked=line(-1),
            candidates=line(0),
            front=np.zeros((slots, self._d)),
            waiters=line(0, lists),
            touched=line(0, 2 * lists),
            unsure=line(0),
            edges=np.full((self._d, CELLS - 1), np.inf),
            cells=np.zeros((slots, self._d), np.uint8),
            bits=np.zeros(0, np.uint64),
            sets=np.zeros(self._d, np.uint64),
            open_rows=np.zeros(stride_of(slots), np.uint64),
            taken=line(0),
            work=np.zeros(2, np.int64),
            numbers=self._numbers,
        )

    def reserve(self, slots: int, updates: int) -> None:
        """Make room for so many slots, and so many updates in one snapshot."""
        old = self._state
        have = len(old.points)
        if slots <= have and have + updates <= len(old.waiters):
            return
        room = have if slots <= have else max(slots, 2 * have)
        fresh = self._empty(room, max(updates, len(old.waiters) - have))._replace(bits=old.bits)
        for before, after in zip(old, fresh, strict=True):
            if before is not after:
                after[: len(before)] = before
        self._state = fresh

    def _tune(self) -> None:
        """Cut the cells anew, and give the bitmaps room for a half more candidates than there are."""
        count = int(self._numbers[kernel.CANDIDATES])
        self._cut(self._state.front[:count], count + (count >> 1))

    def _cut(self, points: Floats, most: int) -> None:
        """Cut the cells at quantiles of these points; bitmaps for so many candidates, if they are not too many."""
        self._state.edges[:] = cut(points, points[:0], 0)
        recode(self._state)
        words = stride_of(min(most, kernel.MOST)) * self._d * SETS
        if words > len(self._state.bits):
            self._state = self._state._replace(bits=np.zeros(words, np.uint64))

    def run(self, updates: Updates) -> Flips:
        """Play the snapshots; whose membership changed from one to the next."""
        sizes = np.diff(updates.cuts)
        self.reserve(int(updates.slots.max(initial=-1)) + 1, int(sizes.max(initial=0)))
        if self._timed:
            return self._run_timed(updates, sizes)
        if not self._numbers[kernel.OBJECTS] and sizes.max(initial=0) >= 4 * kernel.MANY:
            self._cut(updates.rows[: int(updates.cuts[int(np.argmax(sizes)) + 1])], int(sizes.max()))
        room = max(_ROOM, 2 * len(self._state.points) + int(sizes.max(initial=0)))
        found, begin = [], 0
        while begin < updates.snapshots:
            if due(self._state):
                self._tune()
            moves = np.empty((3, room), np.int64)
            begin, told = replay(
                self._state, updates.slots, updates.rows, updates.gone, updates.cuts, begin, self._patience, moves
            )
            found.append(moves[:, :told])
        return flips_of(np.concatenate([np.zeros((3, 0), np.int64), *found], axis=1))

    def _run_timed(self, updates: Updates, sizes: Integers) -> Flips:
        found = []
        for i in range(updates.snapshots):
            if due(self._state):
                self._tune()
            moves = np.empty((3, 2 * len(self._state.points) + int(sizes[i])), np.int64)
            start = time.perf_counter()
            pre(self._state, updates.slots, updates.rows, updates.gone, updates.cuts[i], updates.cuts[i + 1])
            between = time.perf_counter()
            sky(self._state)
            after = time.perf_counter()
            post(self._state, self._patience)
            told = tell(self._state, i, moves, 0)
            self.seconds += (between - start, after - between, time.perf_counter() - after)
            found.append(moves[:, :told])
        return flips_of(np.concatenate([np.zeros((3, 0), np.int64), *found], axis=1))

    def __len__(self) -> int:
        """How many objects there are. O(1)."""
        return int(self._numbers[kernel.OBJECTS])

    def objects(self) -> tuple[Floats, Booleans]:
        """The points by slot, and which slots hold an object."""
        return self._state.points, self._state.dominator != kernel.FREE

    def skyline(self) -> Integers:
        """The slots in the skyline."""
        return np.flatnonzero(self._state.shown)

    def load(self, points: Floats, live: Booleans) -> None:
        """Start afresh from objects, without telling changes. As a first snapshot with all of them, strong ones first.

        The order only saves work: who comes early finds few candidates before it, and hangs those that come later.
        """
        numbers = self._numbers.copy()
        self._state = self._empty(max(16, len(points)), len(points))
        self._numbers[: kernel.PRE] = 0
        self._numbers[kernel.CLOCK] = numbers[kernel.CLOCK]
        slots = np.flatnonzero(live)
        order = slots[np.argsort(promise(points[slots]), kind="stable")]
        gone = np.zeros(len(order), np.uint8)
        self.run(Updates(order, points[order], gone, np.array([0, len(order)])))

    def counters(self) -> dict[str, int]:
        """Dominance tests by phase, searches, links kept and cut, candidates, bytes held now."""
        numbers = self._numbers
        return {
            "snapshots": int(numbers[kernel.CLOCK]),
            "pre_tests": int(numbers[kernel.PRE]),
            "sky_tests": int(numbers[kernel.SKY]),
            "post_tests": int(numbers[kernel.POST]),
            "searches": int(numbers[kernel.SEARCHES]),
            "links_kept": int(numbers[kernel.PASSED]),
            "boxes_cut": int(numbers[kernel.CUTS]),
            "demoted": int(numbers[kernel.DEMOTED]),
            "candidates": int(numbers[kernel.CANDIDATES]),
            "candidates_seen": int(numbers[kernel.SEEN]),
            "memory_bytes": sum(part.nbytes for part in self._state),
        }


def promise(points: Floats) -> Floats:
    """A number per point, the sum of its ranks in the columns: who dominates another has less. O(n d log n)."""
    total = np.zeros(len(points))
    for column in points.T:
        order = np.argsort(column, kind="stable")
        rises = np.zeros(len(points), bool)
        rises[1:] = column[order[1:]] != column[order[:-1]]
        # Equal values share a rank, that of the first of them.
        total[order] += np.maximum.accumulate(np.where(rises, np.arange(len(points)), 0))
    return total
