"""The owner of the compiled counter's arrays: makes room for them, runs them, and checks them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skytide.kernel import frequent as kernel
from skytide.kernel.frequent import FINE, HEAP, MEMBERS, META, NEVER, NEXT, NONE, TAIL, TWICE, USED
from skytide.model import Integers
from skytide.monitors.frequent.pairs import Pair

_LITTLE = 1024
"""Changes for which room is held without a need."""
_NO_MOVES = np.empty((3, 0), np.int64)


class Refused(NamedTuple):
    """The position of a change that cannot be, and whether it is its id's second one in a snapshot."""

    position: int
    twice: bool


class Queued(NamedTuple):
    """Changes: numbers of snapshots, slots, +1 or -1."""

    numbers: Integers
    slots: Integers
    signs: Integers


class Counts:
    """Counts, for each pair, in how many of the last `over` snapshots each slot was.

    >>> counts = Counts([Pair.of(0.5, 4)])
    >>> counts.widen(1)
    >>> counts.admit(np.array([1, 2]), np.array([0, 0]), np.array([1, -1]))
    >>> counts.run(9).tolist()
    [[], [], []]
    >>> counts.admit(np.array([10]), np.array([0]), np.array([1]))
    >>> counts.run(12).tolist()
    [[11], [0], [1]]
    """

    def __init__(self, pairs: Sequence[Pair]) -> None:
        self.pairs = pairs
        self.now = 0
        """The number of the last snapshot; the first one has the number 1."""
        self.meta = np.zeros(META, np.int64)
        self.meta[NEXT] = NEVER
        self._queue = kernel.Queue(
            numbers=np.zeros(0, np.int64),
            slots=np.zeros(0, np.int32),
            signs=np.zeros(0, np.int8),
            overs=np.array([pair.window for pair in pairs], np.int64),
            needs=np.array([pair.bar for pair in pairs], np.int64),
            heads=np.zeros(len(pairs), np.int64),
        )
        self._released = 0  # the first changes of the queue, which have left every window and been told of
        self._slots = 0
        self._make_slots()

    # -- snapshots -----------------------------------------------------------------------------------------------------

    def admit(self, numbers: Integers, slots: Integers, signs: npt.NDArray[Any]) -> Refused | None:
        """Take changes at snapshots to come, in order; or none of them, where one cannot be. Amortised O(changes).

        There must be room for their slots: `widen` first.
        """
        count = len(numbers)
        if not count:
            return None
        self._lengthen(count)
        q, first = self._queue, int(self.meta[USED])
        q.numbers[first : first + count], q.slots[first : first + count] = numbers, slots
        q.signs[first : first + count] = signs
        position, wrong = kernel.admit(self.meta, q, self._skyline, count)
        return None if wrong == FINE else Refused(int(position), bool(wrong == TWICE))

    def stays(self, keys: Integers, entries: Integers) -> tuple[Integers, npt.NDArray[Any]]:
        """The stays that end with the admitted changes that have yet to come, and their slots; see `kernel.stays`.

        `keys` are the times of the snapshots to come; `entries` holds number and time of each slot's last entry, and
        is brought up to date. O(changes).
        """
        q, coming = self._queue, slice(int(self.meta[TAIL]), int(self.meta[USED]))
        numbers, slots, signs = q.numbers[coming], q.slots[coming], q.signs[coming]
        ending = slots[signs < 0]
        log = np.empty((4, len(ending)), np.int64)
        kernel.stays(slots, signs, numbers, keys[numbers - self.now - 1], self._skyline.uses, entries, log)
        return log, ending

    def run(self, until: int) -> Integers:
        """Let the snapshots up to this number pass; the crossings as rows of numbers, nodes and signs."""
        self.now = until
        if until < self.meta[NEXT]:
            return _NO_MOVES
        parts: list[Integers] = []
        room = _LITTLE
        while not parts or parts[-1].shape[1] == room:
            room *= 2
            moves = np.empty((3, room), np.int64)
            count = kernel.run(self.meta, self._queue, self._lines, self._heap, until, moves)
            parts.append(moves[:, :count])
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)

    def drain(self) -> list[int]:
        """Forget the changes that have left every window; the slots that nothing needs any more. O(changes)."""
        first, self._released = self._released, int(self._queue.heads.min())
        return self.release(self._queue.slots[first : self._released])

    def release(self, slots: npt.NDArray[Any]) -> list[int]:
        """One use less for each slot named; the slots that nothing needs any more. O(slots)."""
        if not len(slots):
            return []
        free = np.empty(len(slots), np.int64)
        found: list[int] = free[: kernel.release(self._skyline, slots, free)].tolist()
        return found

    # -- answers -------------------------------------------------------------------------------------------------------

    @property
    def members(self) -> Integers:
        """The slots in the skyline, in any order. O(skyline)."""
        return self._skyline.members[: int(self.meta[MEMBERS])].astype(np.int64)

    def frequent(self, pair: int) -> Integers:
        """The slots in the answer of a pair, in order. O(slots)."""
        return np.flatnonzero(self._lines.shown[pair :: len(self.pairs)])

    def counts(self, slots: Integers, pair: int) -> Integers:
        """In how many of the pair's last snapshots the slots were."""
        nodes = slots * len(self.pairs) + pair
        return np.asarray(self._lines.bases[nodes] + self._lines.slopes[nodes].astype(np.int64) * self.now)

    @property
    def changes(self) -> Queued:
        """The changes in the largest window. O(changes)."""
        q, kept = self._queue, slice(self._released, int(self.meta[USED]))
        return Queued(q.numbers[kept].copy(), q.slots[kept].astype(np.int64), q.signs[kept].astype(np.int64))

    @property
    def queued(self) -> int:
        """How many changes are in the largest window. O(1)."""
        return int(self.meta[USED]) - self._released

    @property
    def uses(self) -> Integers:
        """How often the queue and the history name each slot; a view."""
        return self._skyline.uses

    @property
    def memory_bytes(self) -> int:
        """Bytes of all arrays held. O(1)."""
        return sum(array.nbytes for group in (self._queue, self._lines, self._heap, self._skyline) for array in group)

    # -- room ----------------------------------------------------------------------------------------------------------

    def widen(self, slots: int) -> None:
        """Make room for so many slots. Amortised O(1) per slot."""
        if slots > self._slots:
            old = (self._lines, self._heap, self._skyline)
            self._slots = max(slots, 3 * self._slots // 2 + 8)
            self._make_slots()
            for source, target in zip(old, (self._lines, self._heap, self._skyline), strict=True):
                for column, larger in zip(source, target, strict=True):
                    larger[: len(column)] = column

    def _make_slots(self) -> None:
        slots, nodes = self._slots, self._slots * len(self.pairs)
        self._lines = kernel.Lines(np.zeros(nodes, np.int64), np.zeros(nodes, np.int8), np.zeros(nodes, np.int8))
        self._heap = kernel.Heap(np.zeros(nodes, np.int64), np.zeros(nodes, np.int32), np.full(nodes, NONE, np.int32))
        self._skyline = kernel.Skyline(
            members=np.zeros(slots, np.int32),
            seats=np.full(slots, NONE, np.int32),
            touched=np.full(slots, NONE, np.int64),
            uses=np.zeros(slots, np.int64),
        )

    def _lengthen(self, changes: int) -> None:
        """Make room for so many changes behind the queue. Amortised O(1) per change."""
        q, gone, used = self._queue, self._released, int(self.meta[USED])
        room, live = len(q.numbers), used - gone
        needed = live + changes
        if used + changes <= room <= 8 * needed + _LITTLE:
            return
        columns: tuple[npt.NDArray[Any], ...] = q[:3]
        if not 3 * needed // 2 <= room <= 4 * needed + _LITTLE:
            columns = tuple(np.zeros(2 * needed, column.dtype) for column in columns)
        for source, target in zip(q[:3], columns, strict=True):
            target[:live] = source[gone:used]
        self._queue = q._replace(numbers=columns[0], slots=columns[1], signs=columns[2])
        q.heads[:] -= gone
        self.meta[[USED, TAIL]] -= gone
        self._released = 0

    # -- stored --------------------------------------------------------------------------------------------------------

    def load(self, now: int, slots: int, members: Integers, changes: Queued) -> None:
        """Take what `members` and `changes` gave into a new counter; they must be in order. O(slots and changes).

        Nothing else is stored: in(m) is in(now) less the signs of the changes after m, which summed over a window gives
        the count, and from the counts follow the answers and the crossings ahead.
        """
        self.now = now
        self.widen(slots)
        self._lengthen(len(changes.numbers))
        q, s, used = self._queue, self._skyline, len(changes.numbers)
        q.numbers[:used], q.slots[:used], q.signs[:used] = changes
        self.meta[[USED, TAIL]], self.meta[MEMBERS] = used, len(members)
        s.members[: len(members)], s.seats[members] = members, np.arange(len(members))
        s.uses[:slots] = np.bincount(changes.slots, minlength=slots)
        bases, slopes, shown = (column.reshape(-1, len(self.pairs)) for column in self._lines)
        for pair, over in enumerate(q.overs.tolist()):
            start = max(now - over, 0)
            head = q.heads[pair] = int(np.searchsorted(changes.numbers, start, side="right"))
            numbers, names, signs = (column[head:] for column in changes)
            np.add.at(bases[:, pair], names, -signs * (numbers - 1 - start))
            bases[members, pair] += now - start
            np.add.at(slopes[:, pair], names, signs.astype(np.int8))
        shown[:] = bases >= q.needs
        bases -= slopes.astype(np.int64) * now
        self._foresee()

    def _foresee(self) -> None:
        """Find the crossings ahead anew, and the next event. O(nodes log nodes)."""
        line, h, q = self._lines, self._heap, self._queue
        needs = np.tile(q.needs, self._slots)
        rising, falling = (line.slopes == 1) & (line.shown == 0), (line.slopes == -1) & (line.shown == 1)
        dues = np.where(rising, needs - line.bases, line.bases - needs + 1)
        nodes = np.flatnonzero(rising | falling)
        nodes = nodes[np.argsort(dues[nodes], kind="stable")]  # what is sorted is a heap
        h.dues[: len(nodes)], h.nodes[: len(nodes)], h.places[nodes] = dues[nodes], nodes, np.arange(len(nodes))
        self.meta[HEAP] = len(nodes)
        self.meta[NEXT] = self.now + 1  # at the earliest

    def _check(self) -> None:
        """State the invariants between calls: the heap, the members, and that what is kept follows from the rest."""
        h, s = self._heap, self._skyline
        size, count = int(self.meta[HEAP]), int(self.meta[MEMBERS])
        assert self.meta[TAIL] == self.meta[USED] and self._released <= self._queue.heads.min()
        assert all(h.dues[(at - 1) // 2] <= h.dues[at] for at in range(1, size))
        assert h.places[h.nodes[:size]].tolist() == list(range(size)) and (h.places != NONE).sum() == size
        assert s.seats[s.members[:count]].tolist() == list(range(count)) and (s.seats != NONE).sum() == count
        anew = Counts(self.pairs)
        anew.load(self.now, self._slots, self.members, self.changes)
        assert self._lines.slopes.tolist() == anew._lines.slopes[: len(h.dues)].tolist()
        assert self._lines.shown.tolist() == anew._lines.shown[: len(h.dues)].tolist()
        for pair in range(len(self.pairs)):
            every = np.arange(self._slots)
            assert (self.counts(every, pair) == anew.counts(every, pair)).all()
        assert self._crossings() == anew._crossings()
        assert (s.uses >= anew._skyline.uses[: self._slots]).all()

    def _crossings(self) -> set[tuple[int, int]]:
        size = int(self.meta[HEAP])
        return set(zip(self._heap.dues[:size].tolist(), self._heap.nodes[:size].tolist(), strict=True))
