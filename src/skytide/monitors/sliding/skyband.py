"""The k-skyband of a sliding window: the live rows that fewer than k live rows dominate. With k = 1, the skyline.

tao06 leaves other forms of skyline retrieval on streams to future work (Section 7). This is one, and top-k by a score
is its one-dimensional case (`scoring`). It follows the paper's Eager: only rows that may still enter are kept.

What is kept, and why it is enough. A row is expunged when k of its dominators live at least as long as it does: from
then on it is never in the band. Forgetting it is harmless, as is forgetting any row that k live rows dominate at every
instant of its life. For at an instant t take the live rows that dominate some row y, dominators before what they
dominate. If they are k or more, the first k of them are not forgotten: a forgotten row has k live dominators, which
dominate y too and stand before it. If they are fewer than k, none is forgotten, for the same reason. So counting up to
k gives the same, whoever has been forgotten.

Batches. A row of a chunk is dropped before it reaches the list when k live rows that outlast the chunk dominate it and
k later rows of the chunk do so too: the former until the chunk's end, the latter, which are newer, from then on to the
row's end. This is the rule b <= s for k dominators, looked for among strong rows only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skytide.errors import OptionError
from skytide.kernel import skyband as kernel
from skytide.kernel.cover import cover
from skytide.model import Booleans, Floats, Integers
from skytide.monitors.sliding.engine import Moves, Rows

CHUNK = 8_192
"""Rows that are pruned together: many, so that later rows outdo earlier ones; few, so that live rows outlast them."""
FEWEST = 1_024
"""Fewer rows are not worth pruning."""
PATIENCE = 8
"""Chunks that go unpruned after one in which it did not pay."""

_COLUMNS, _RING, _KEYS, _HEADS, _INSIDE, _LOWS, _HIGHS, _DUE, _STATE = range(9)


class SkybandEngine:
    """Keeps the rows with fewer than k live dominators current. A row takes O(candidates * d), 16 at a time.

    Memory is that of the candidates: values, arrival, expiry, handle and the k latest expiries of their dominators,
    with at most half as much again to grow into.

    >>> engine = SkybandEngine(dimensions=1, k=2)
    >>> times = np.arange(4)
    >>> moves = engine.run(Rows(np.array([[1.0], [3.0], [2.0], [0.0]]), times, times + 3, times), until=3)
    >>> list(zip(moves.times.tolist(), moves.signs.tolist(), moves.handles.tolist()))
    [(0, 1, 0), (1, 1, 1), (2, -1, 1), (2, 1, 2), (3, -1, 0), (3, 1, 3)]
    """

    def __init__(self, dimensions: int, k: int) -> None:
        if isinstance(k, bool) or int(k) != k or k < 1:
            raise OptionError(
                "is not a number of dominators for a skyband", value=k, remedy="give a whole number from 1"
            )
        self._dimensions = dimensions
        self._k = int(k)
        self._now = kernel.LONG_AGO
        self._store = _allocate(dimensions, self._k, 0)
        self._unpruned = 0

    def run(self, rows: Rows, until: int) -> Moves:
        """Take the rows with now < arrival <= until, make all instants up to and including `until` final."""
        values, arrivals = _behaved(rows.values), _behaved(rows.arrivals)
        rows = Rows(values, arrivals, _behaved(rows.expiries), _behaved(rows.handles))
        parts: list[Integers] = []
        start = 0
        while len(rows) - start >= FEWEST:
            chunk = rows.pick(slice(start, start + CHUNK))
            start += len(chunk)
            # The instant of the next row is still open; every earlier one is not.
            end = int(arrivals[start]) - 1 if start < len(rows) else until
            self._take(self._pruned(chunk), end, parts)
        self._take(rows.pick(slice(start, None)) if start else rows, until, parts)
        moves = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
        return Moves(moves[0], moves[1], moves[2])

    def _take(self, rows: Rows, until: int, parts: list[Integers]) -> None:
        taken = 0
        while True:
            taken, moves = kernel.run(
                self._store, rows.values, rows.arrivals, rows.expiries, rows.handles, taken, self._now, until
            )
            parts.append(moves)
            if taken == len(rows):
                break
            self._resize()
        self._now = until
        if self._store[_COLUMNS].shape[1] > 4 * self._live + 64:
            self._resize()

    def _pruned(self, rows: Rows) -> Rows:
        if self._unpruned:
            self._unpruned -= 1
            return rows
        keep = self._survivors(rows)
        if 4 * np.count_nonzero(keep) > 3 * len(rows):
            self._unpruned = PATIENCE
        return rows.pick(keep)

    def _survivors(self, rows: Rows) -> Booleans:
        """Which rows of a chunk may be in the band or decide about others; see the top of the file."""
        used = int(self._store[_STATE][kernel.USED])
        columns = self._store[_COLUMNS][:, :used]
        lasting = ~np.isnan(columns[0])
        seeds = np.ascontiguousarray(columns[:, lasting].T)
        every = np.concatenate((seeds, rows.values))
        marks = np.concatenate((self._store[_KEYS][kernel.EXPIRY, :used][lasting], rows.expiries))
        strengths = strength(every)
        slots = -(-max(64, 2 * self._k) // kernel.BLOCK) * kernel.BLOCK
        first = len(seeds)
        before, _ = cover(every, marks, strengths, first, self._k, int(rows.arrivals[-1]), slots, False)
        doubtful = np.flatnonzero(before)
        after, _ = cover(
            rows.values[::-1].copy(),
            ~rows.arrivals[::-1],
            strengths[first:][::-1].copy(),
            0,
            self._k,
            kernel.LONG_AGO,
            slots,
            False,
        )
        keep = np.ones(len(rows), dtype=bool)
        keep[doubtful] = ~after[::-1][doubtful]
        return keep

    @property
    def _live(self) -> int:
        return int(self._store[_STATE][kernel.LIVE])

    def _resize(self) -> None:
        """Move the candidates to a store with room for half as many more."""
        old = self._store
        kernel.compact(old)
        live = self._live
        new = _allocate(self._dimensions, self._k, live + live // 2)
        for which in (_COLUMNS, _KEYS):
            new[which][:, :live] = old[which][:, :live]
        for which in (_RING, _HEADS, _INSIDE):
            new[which][:live] = old[which][:live]
        new[_STATE][:] = old[_STATE]
        kernel.compact(new)
        self._store = new

    def retained(self) -> Rows:
        """The candidates, in order of arrival, as copies. O(candidates)."""
        kernel.compact(self._store)
        live = self._live
        columns, _, keys, *_ = self._store
        values = columns[:, :live].T.copy(order="C")  # one column is contiguous as it is, and would be a view
        keys = keys[:, :live]
        return Rows(values, keys[kernel.ARRIVAL].copy(), keys[kernel.EXPIRY].copy(), keys[kernel.HANDLE].copy())

    def load(self, rows: Rows, now: int) -> None:
        """Start afresh from rows in order of arrival as of `now`, without moves. As costly as their arrivals."""
        counted = self._store[_STATE][[kernel.TESTS, kernel.VISITS]]
        self._store = _allocate(self._dimensions, self._k, len(rows))
        self._store[_STATE][[kernel.TESTS, kernel.VISITS]] = counted
        # Rows that arrived up to `now` are taken as of `now`, all in one instant; that settles who is in the band.
        self._now = now
        self._take(Rows(*(_behaved(column) for column in vars(rows).values())), now, [])

    def next_event(self) -> int:
        """No move happens before this instant unless rows arrive; the largest int64 where nothing is retained. O(1)."""
        return int(self._store[_STATE][kernel.NEXT])

    def counters(self) -> dict[str, int]:
        """Comparisons of rows and of blocks since the start (16 at a time, counted singly), and memory as of now."""
        state = self._store[_STATE]
        return {
            "dominance_tests": int(state[kernel.TESTS]),
            "node_visits": int(state[kernel.VISITS]),
            "memory_bytes": sum(part.nbytes for part in self._store),
        }

    def _check(self) -> None:
        """State the invariants, for tests: order, rings, events and the blocks' bounds."""
        columns, ring, keys, heads, inside, lows, highs, due, state = self._store
        there = np.flatnonzero(~np.isnan(columns[0]))
        assert len(there) == state[kernel.LIVE] and (there < state[kernel.USED]).all()
        assert _ascending(keys[kernel.ARRIVAL, there]) and _ascending(keys[kernel.EXPIRY, there])
        for slot in there:
            latest = np.roll(ring[slot], -heads[slot])
            zone = slot // kernel.BLOCK
            assert _ascending(latest) and latest[0] < keys[kernel.EXPIRY, slot]
            assert bool(inside[slot]) == (latest[0] <= self._now)
            assert keys[kernel.EVENT, slot] == (keys[kernel.EXPIRY, slot] if inside[slot] else latest[0]) > self._now
            assert state[kernel.NEXT] <= due[zone] <= keys[kernel.EVENT, slot]
            assert (lows[:, zone] <= columns[:, slot]).all() and (columns[:, slot] <= highs[:, zone]).all()


def strength(values: Floats) -> Floats:
    """A number per row, the smaller the more rows it is likely to dominate: the sum of its columns, each scaled to its
    range. Only a guess about speed hangs on it: where infinities meet, the row counts as weak. O(n d)."""
    total = np.zeros(len(values))
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        for column in values.T:
            low, high = column.min(initial=np.inf), column.max(initial=-np.inf)
            if high > low:
                total += (column - low) / (high - low)
    total[np.isnan(total)] = np.inf
    return total


def _behaved(array: Any) -> Any:
    """The array itself where compiled code can take it as it is, else a copy: views and read-only arrays would each
    compile everything anew."""
    return array if array.flags.carray else array.copy(order="C")


def _ascending(keys: Integers) -> bool:
    return bool((keys[1:] >= keys[:-1]).all())


def _allocate(dimensions: int, k: int, capacity: int) -> kernel.Store:
    """An empty store with room for at least so many candidates."""
    capacity = (capacity // kernel.BLOCK + 1) * kernel.BLOCK
    zones = -(-capacity // kernel.BLOCK**2) * kernel.BLOCK
    state = np.zeros(5, np.int64)
    state[kernel.NEXT] = kernel.NEVER
    keys = np.zeros((4, capacity), np.int64)
    keys[kernel.EVENT] = kernel.NEVER
    return (
        np.full((dimensions, capacity), np.nan),
        np.empty((capacity, k), np.int64),
        keys,
        np.zeros(capacity, np.int32),
        np.zeros(capacity, np.uint8),
        np.full((dimensions, zones), np.nan),
        np.full((dimensions, zones), np.nan),
        np.full(zones, kernel.NEVER),
        state,
    )
