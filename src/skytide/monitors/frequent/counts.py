"""The owner of the compiled counter's arrays: makes room for them, runs them, and checks them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skytide.kernel import frequent as kernel
from skytide.kernel.frequent import FINE, HEAP, MEMBERS, META, NONE, TAIL, TWICE, USED, State
from skytide.model import Integers
from skytide.monitors.frequent.pairs import Pair

_LITTLE = 1024
"""Changes for which room is held without a need."""


class Refused(NamedTuple):
    """The position of a change that cannot be, and whether it is its id's second one in a snapshot."""

    position: int
    twice: bool


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
        self.pairs = len(pairs)
        self.now = 0
        """The number of the last snapshot; the first one has the number 1."""
        overs = np.array([pair.window for pair in pairs], np.int64)
        needs = np.array([pair.bar for pair in pairs], np.int64)
        self.state = _state(overs, needs)

        self._released = 0  # the first changes of the queue, which have left every window and been told of

    # -- snapshots -----------------------------------------------------------------------------------------------------

    def admit(self, numbers: Integers, slots: Integers, signs: npt.NDArray[Any]) -> Refused | None:
        """Take changes at snapshots to come, in order; or none of them, where one cannot be. Amortised O(changes).

        There must be room for their slots: `widen` first.
        """
        count = len(numbers)
        self._lengthen(count)
        s, first = self.state, int(self.state.meta[USED])
        for column, values in ((s.numbers, numbers), (s.slots, slots), (s.signs, signs)):
            column[first : first + count] = values
        position, wrong = kernel.admit(s, count)
        return None if wrong == FINE else Refused(int(position), bool(wrong == TWICE))

    def compare(self, given: Integers) -> tuple[Integers, Integers]:
        """The changes that make the given slots, and no others, the members: slots and signs. O(given and members)."""
        most = len(given) + int(self.state.meta[MEMBERS])
        slots, signs = np.empty(most, np.int64), np.empty(most, np.int64)
        count = kernel.compare(self.state, given, slots, signs)
        return slots[:count], signs[:count]

    def stays(self, keys: Integers) -> tuple[Integers, Integers]:
        """The stays that end with the admitted changes that have yet to come, which are noted; see `kernel.stays`.

        `keys` are the times of the snapshots to come. O(changes).
        """
        s = self.state
        first = int(s.meta[TAIL])
        ends = int((s.signs[first : int(s.meta[USED])] < 0).sum())
        log, slots = np.empty((4, ends), np.int64), np.empty(ends, np.int64)
        kernel.stays(s, first, keys, self.now, log, slots)
        return log, slots

    def run(self, until: int) -> Integers:
        """Let the snapshots up to this number pass; the crossings as rows of numbers, nodes and signs."""
        self.now = until
        return np.asarray(kernel.run(self.state, until))

    def drain(self) -> list[int]:
        """Forget the changes that have left every window; the slots that nothing needs any more. O(changes)."""
        first, self._released = self._released, int(self.state.heads.min())
        return self.release(self.state.slots[first : self._released])

    def release(self, slots: npt.NDArray[Any]) -> list[int]:
        """One use less for each slot named; the slots that nothing needs any more. O(slots)."""
        if not len(slots):
            return []
        free = np.empty(len(slots), np.int64)
        found: list[int] = free[: kernel.release(self.state, slots, free)].tolist()
        return found

    # -- answers -------------------------------------------------------------------------------------------------------

    @property
    def members(self) -> Integers:
        """The slots in the skyline, in any order. O(skyline)."""
        return self.state.members[: int(self.state.meta[MEMBERS])].astype(np.int64)

    def frequent(self, pair: int) -> Integers:
        """The slots in the answer of a pair, in order. O(slots)."""
        return np.flatnonzero(self.state.shown[pair :: self.pairs])

    def counts(self, slots: Integers, pair: int) -> Integers:
        """In how many of the pair's last snapshots the slots were."""
        nodes = slots * self.pairs + pair
        return np.asarray(self.state.bases[nodes] + self.state.slopes[nodes].astype(np.int64) * self.now)

    @property
    def queue(self) -> tuple[Integers, Integers, Integers]:
        """The changes in the largest window: numbers of snapshots, slots, signs. O(changes)."""
        s, kept = self.state, slice(self._released, int(self.state.meta[USED]))
        return s.numbers[kept].copy(), s.slots[kept].astype(np.int64), s.signs[kept].astype(np.int64)

    @property
    def queued(self) -> int:
        """How many changes are in the largest window. O(1)."""
        return int(self.state.meta[USED]) - self._released

    @property
    def memory_bytes(self) -> int:
        """Bytes of all arrays held. O(1)."""
        return sum(array.nbytes for array in self.state)

    # -- room ----------------------------------------------------------------------------------------------------------

    def widen(self, slots: int) -> None:
        """Make room for so many slots. Amortised O(1) per slot."""
        s = self.state
        if slots > len(s.seats):
            larger = _by_slot(max(slots, 3 * len(s.seats) // 2 + 8), self.pairs)
            for name, column in larger.items():
                old = getattr(s, name)
                column[: len(old)] = old
            self.state = s._replace(**larger)

    def _lengthen(self, changes: int) -> None:
        """Make room for so many changes behind the queue. Amortised O(1) per change."""
        s, gone, used = self.state, self._released, int(self.state.meta[USED])
        room, live = len(s.numbers), used - gone
        needed = live + changes
        if used + changes <= room <= 8 * needed + _LITTLE:
            return
        columns = {"numbers": s.numbers, "slots": s.slots, "signs": s.signs}
        if not 3 * needed // 2 <= room <= 4 * needed + _LITTLE:
            columns = {name: np.zeros(2 * needed, column.dtype) for name, column in columns.items()}
        for name, column in columns.items():
            column[:live] = getattr(s, name)[gone:used]
        self.state = s._replace(**columns)
        s.heads[:] -= gone
        s.meta[[USED, TAIL]] -= gone
        self._released = 0

    # -- stored --------------------------------------------------------------------------------------------------------

    def load(self, now: int, slots: int, members: Integers, queue: tuple[Integers, Integers, Integers]) -> None:
        """Take what `members` and `queue` gave into a new counter; a `ValueError` where that cannot be.

        Nothing else is stored: the counts, the answers and the crossings ahead follow from it. O(slots and changes).
        """
        numbers, names, signs = queue
        self.now = now
        self.widen(slots)
        self._lengthen(len(numbers))
        s = self.state
        s.meta[USED], s.meta[MEMBERS] = len(numbers), len(members)
        s.numbers[: len(numbers)], s.slots[: len(numbers)], s.signs[: len(numbers)] = numbers, names, signs
        s.members[: len(members)] = members
        s.seats[members] = np.arange(len(members))
        s.uses[:slots] = np.bincount(names, minlength=slots)
        kernel.load(s, now)

    def _check(self) -> None:
        """State the invariants between calls: the heap, the members, and that what is kept follows from the rest."""
        s = self.state
        size, count = int(s.meta[HEAP]), int(s.meta[MEMBERS])
        assert s.meta[TAIL] == s.meta[USED] and self._released <= s.heads.min()
        assert all(s.dues[(at - 1) // 2] <= s.dues[at] for at in range(1, size))
        assert s.places[s.nodes[:size]].tolist() == list(range(size)) and (s.places != NONE).sum() == size
        assert s.seats[s.members[:count]].tolist() == list(range(count)) and (s.seats != NONE).sum() == count
        anew = Counts.__new__(Counts)
        anew.pairs, anew._released = self.pairs, 0
        anew.state = _state(s.overs, s.needs)
        anew.load(self.now, len(s.seats), self.members, self.queue)
        for name in ("slopes", "shown"):
            assert (getattr(s, name) == getattr(anew.state, name)).all()
        for pair in range(self.pairs):
            every = np.arange(len(s.seats))
            assert (self.counts(every, pair) == anew.counts(every, pair)).all()
        assert _crossings(s) == _crossings(anew.state)
        assert (s.uses >= anew.state.uses).all()


def _crossings(s: State) -> set[tuple[int, int]]:
    size = int(s.meta[HEAP])
    return set(zip(s.dues[:size].tolist(), s.nodes[:size].tolist(), strict=True))


def _by_slot(slots: int, pairs: int) -> dict[str, npt.NDArray[Any]]:
    nodes = slots * pairs
    return {
        "bases": np.zeros(nodes, np.int64),
        "slopes": np.zeros(nodes, np.int8),
        "shown": np.zeros(nodes, np.int8),
        "places": np.full(nodes, NONE, np.int32),
        "dues": np.zeros(nodes, np.int64),
        "nodes": np.zeros(nodes, np.int32),
        "seats": np.full(slots, NONE, np.int32),
        "touched": np.full(slots, NONE, np.int64),
        "uses": np.zeros(slots, np.int64),
        "entries": np.zeros(slots, np.int64),
        "entry_keys": np.zeros(slots, np.int64),
        "members": np.zeros(slots, np.int32),
    }


def _state(overs: Integers, needs: Integers) -> State:
    return State(
        meta=np.zeros(META, np.int64),
        overs=overs,
        needs=needs,
        heads=np.zeros(len(overs), np.int64),
        numbers=np.zeros(0, np.int64),
        slots=np.zeros(0, np.int32),
        signs=np.zeros(0, np.int8),
        **_by_slot(0, len(overs)),
    )
