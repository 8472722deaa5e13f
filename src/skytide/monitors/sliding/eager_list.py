"""Eager over a list: the fast engine, one thread, for batches of any size (kernel.eager_list, kernel.eager_single)."""

from __future__ import annotations

import numpy as np

from skytide.kernel.eager_bits import SETS, stride_of
from skytide.kernel.eager_codes import cut
from skytide.kernel.eager_list import absorb
from skytide.kernel.eager_single import insert
from skytide.kernel.eager_state import (
    ARRIVAL,
    COUNT,
    DEAD_COUNT,
    EXPIRY,
    HANDLE,
    LOW,
    META,
    NEVER,
    NEXT_START,
    SPARE,
    compact,
    recode,
)
from skytide.model import Floats, Integers
from skytide.monitors.sliding.between import left_between
from skytide.monitors.sliding.engine import Moves, Rows

_EARLIEST = int(np.iinfo(np.int64).min)
_RECUT = 1 << 16
"""Rows after which the cuts are made anew, to follow the values; sooner where they grow stale."""
_STALE = 16
"""Comparisons by value per row since the last cut that show that the cells tell too little: the stream drifts."""
_TIED = 16
"""Batches that look out for equal rows, after one in which many comparisons of values were in vain."""


class EagerList:
    """tao06's LL-Eager: keeps only what is in the skyline or will be, and when; a batch is one join, not a simulation.

    A batch of n rows costs O(d n (n + candidates) / 512) word operations at most, n taken up to `batch`; a run of fewer
    than `few` rows goes row by row, O(d candidates / 64) each. Between runs it holds the candidates' columns and a few
    bytes more per candidate. Cells pay from `coded` candidates on; with fewer, a single row is compared by value.

    >>> engine = EagerList(2)
    >>> rows = Rows(np.array([[1.0, 2.0], [2.0, 3.0]]), np.array([1, 2]), np.array([4, 5]), np.array([7, 8]))
    >>> moves = engine.run(rows, until=4)
    >>> list(zip(moves.times.tolist(), moves.signs.tolist(), moves.handles.tolist()))
    [(1, 1, 7), (4, -1, 7), (4, 1, 8)]
    """

    def __init__(self, dimensions: int, *, batch: int = 4_096, few: int = 24, coded: int = 384) -> None:
        self._d = dimensions
        self._batch = batch
        self._few = few
        self._coded = coded
        self._work = np.zeros(2, np.int64)
        self._reset()

    def _reset(self) -> None:
        self._meta = np.zeros(META, np.int64)
        self._meta[NEXT_START] = NEVER
        self._edges: Floats = np.empty((self._d, 0))
        self._age = 0
        self._recut = _RECUT
        self._tests_at_cut = int(self._work[0])
        self._tied = 0
        self._allocate(0)

    def _allocate(self, room: int) -> None:
        self._values: Floats = np.empty((room, self._d))
        self._times: Integers = np.empty((4, room), np.int64)
        self._codes = np.zeros((self._d, room + SPARE), np.uint8)
        self._flags = np.zeros(room, np.uint8)

    def _resize(self, room: int) -> None:
        self._compact()
        count = int(self._meta[COUNT])
        before = (self._values, self._times, self._codes, self._flags)
        self._allocate(max(room, count))
        self._values[:count] = before[0][:count]
        self._times[:, :count] = before[1][:, :count]
        self._codes[:, :count] = before[2][:, :count]
        self._flags[:count] = before[3][:count]

    def run(self, rows: Rows, until: int) -> Moves:
        """Take the rows with now < arrival <= until, make all instants up to and including `until` final."""
        values = np.ascontiguousarray(rows.values, np.float64)
        times = [np.ascontiguousarray(line, np.int64) for line in (rows.arrivals, rows.expiries, rows.handles)]
        left = left_between(values, times[0], times[1], self._work)
        if left is not None:
            values, times = values[left], [line[left] for line in times]
        if len(values) < max(1, self._few):
            moves = self._run_single(values, times, until)
        else:
            moves = self._run_batches(values, times, until)
        if moves.shape[1] > 1:
            moves = moves[:, np.lexsort((moves[1], moves[0]))]
        return Moves(moves[0], moves[1], moves[2])

    def _run_single(self, values: Floats, times: list[Integers], until: int) -> Integers:
        n = len(values)
        count = int(self._meta[COUNT])
        if count + n > len(self._values):
            self._compact()
            count = int(self._meta[COUNT])
            if count + n + (count >> 4) > len(self._values):
                self._resize(count + n + (count >> 3) + 4)
        self._age += n
        if count >= self._coded and (not self._edges.size or self._age > _RECUT + 4 * count):
            self._cut(values[:0])
        moves: Integers = insert(
            self._values,
            self._times,
            self._codes,
            self._flags,
            self._meta,
            self._edges,
            values,
            *times,
            until,
            self._work,
        )
        self._shrink()
        return moves

    def _compact(self) -> None:
        compact(self._values, self._times, self._codes, self._flags, self._meta)

    def _shrink(self) -> None:
        """Give back room beyond a quarter of the candidates."""
        live = int(self._meta[COUNT] - self._meta[LOW] - self._meta[DEAD_COUNT])
        if len(self._values) > live + (live >> 2) + 8:
            self._resize(live + (live >> 3) + 4)

    def _run_batches(self, values: Floats, times: list[Integers], until: int) -> Integers:
        n = len(values)
        size = min(n, self._batch)
        bits = np.empty(self._d * SETS * stride_of(size), np.uint64)
        found = []
        for first in range(0, n, size):
            last = min(n, first + size)
            count = int(self._meta[COUNT])
            if count + size > len(self._values):
                self._resize(count + (count >> 3) + size)
            if not self._edges.size or self._age > self._recut or self._stale():
                self._cut(values[first : first + 4 * size])
            self._age += last - first
            # An instant is final before the next row comes; rows of one instant may fall into two batches.
            following = int(times[0][last]) if last < n else _EARLIEST
            final = until if last == n else max(following, _EARLIEST + 1) - 1
            tests = int(self._work[0])
            found.append(
                absorb(
                    self._values,
                    self._times,
                    self._codes,
                    self._flags,
                    self._meta,
                    self._edges,
                    values,
                    *times,
                    first,
                    last,
                    final,
                    last == n or following > _EARLIEST,
                    self._tied > 0,
                    bits,
                    self._work,
                )
            )
            self._tied = _TIED if self._work[0] - tests > 8 * (last - first) else max(0, self._tied - 1)
        self._shrink()
        if self._meta[COUNT] < self._coded:
            self._edges = np.empty((self._d, 0))
        return np.concatenate(found, axis=1)

    def _stale(self) -> bool:
        """Whether the cells tell too little. Then they are cut more often from now on, and slowly less often again."""
        stale = int(self._work[0]) - self._tests_at_cut > _STALE * max(self._age, 1_024)
        if stale:
            self._recut = min(self._recut, self._age) // 2
        return stale

    def _cut(self, rows: Floats) -> None:
        self._compact()
        count = int(self._meta[COUNT])
        self._tests_at_cut = int(self._work[0])
        self._recut = min(_RECUT, self._recut + (self._recut >> 3) + 64)
        self._edges = cut(rows, self._values, count)
        recode(self._values, self._codes, count, self._edges)
        self._age = 0

    def retained(self) -> Rows:
        """Every row that may still matter, as of `now`, in the order of arrival. O(d candidates)."""
        self._compact()
        count = int(self._meta[COUNT])
        return Rows(
            self._values[:count].copy(),
            self._times[ARRIVAL, :count].copy(),
            self._times[EXPIRY, :count].copy(),
            self._times[HANDLE, :count].copy(),
        )

    def load(self, rows: Rows, now: int) -> None:
        """Start afresh from retained rows as of `now` without emitting moves; some may have expired or be dominated."""
        self._reset()
        if len(rows):
            self.run(rows, now)

    def next_event(self) -> int:
        """No move happens before this instant unless rows arrive; the largest int64 where nothing is retained. O(1)."""
        low, count = int(self._meta[LOW]), int(self._meta[COUNT])
        if low == count:
            return int(NEVER)
        return min(int(self._meta[NEXT_START]), int(self._times[EXPIRY, low]))

    def counters(self) -> dict[str, int]:
        """Comparisons of two rows' values, blocks of 512 rows (single rows: of 64) looked at, and bytes held now."""
        held = (self._values, self._times, self._codes, self._flags, self._meta, self._edges, self._work)
        return {
            "dominance_tests": int(self._work[0]),
            "node_visits": int(self._work[1]),
            "memory_bytes": sum(array.nbytes for array in held),
        }
