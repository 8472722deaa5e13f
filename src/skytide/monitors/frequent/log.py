"""The stays in the skyline that have ended, as columns in the order of their ends."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from skytide.model import Integers

_BLOCK = 512
"""Stays of which only the earliest entry is looked at where none of them reaches back far enough."""
ENTERED, LEFT, ENTERED_AT, LEFT_AT = range(4)
"""The rows of a log: the number of the snapshot of entry and of leaving, and the keys of their times."""


class StayLog:
    """Ended stays: four numbers and a slot each. With a bound, stays are forgotten that ended long ago.

    >>> log = StayLog()
    >>> log.add(np.array([[1, 2], [3, 4], [10, 20], [30, 40]]), np.array([7, 8]))
    >>> log.at(20).tolist(), log.at(30).tolist()
    ([7, 8], [8])
    """

    def __init__(self) -> None:
        self._columns = np.empty((4, 0), np.int64)
        self._slots = np.empty(0, np.int32)
        self._first, self._size = 0, 0
        self._earliest = np.empty(0, np.int64)  # the earliest entry of each full block, as far as it was asked for
        self.horizon: int | None = None
        """The key of the latest time at which a forgotten stay ended: what was before it is not known any more."""

    def __len__(self) -> int:
        return self._size - self._first

    @property
    def columns(self) -> Integers:
        """Numbers and keys of the stays, as rows; a view."""
        return self._columns[:, self._first : self._size]

    @property
    def slots(self) -> npt.NDArray[np.int32]:
        """Who stayed; a view."""
        return self._slots[self._first : self._size]

    @property
    def memory_bytes(self) -> int:
        """Bytes of all arrays held. O(1)."""
        return self._columns.nbytes + self._slots.nbytes + self._earliest.nbytes

    def add(self, columns: Integers, slots: npt.NDArray[np.integer]) -> None:
        """Take stays that ended after all before them. Amortised O(stays)."""
        count = len(slots)
        if self._size + count > len(self._slots):
            self._make_room(count)
        self._columns[:, self._size : self._size + count] = columns
        self._slots[self._size : self._size + count] = slots
        self._size += count

    def forget(self, number: int) -> npt.NDArray[np.int32]:
        """Forget the stays that ended with this snapshot or before; their slots. O(log stays and what is forgotten)."""
        cut = int(np.searchsorted(self.columns[LEFT], number, side="right"))
        slots = self.slots[:cut].copy()
        if cut:
            self.horizon = int(self.columns[LEFT_AT, cut - 1])
            self._first += cut
        return slots

    def at(self, key: int) -> Integers:
        """The slots whose stays hold a time. O(log stays, one step per 512 stays that ended later, and what is found).

        Of a block of stays the earliest entry is known, so that blocks which began later are passed over.
        """
        start = self._first + int(np.searchsorted(self.columns[LEFT_AT], key, side="right"))
        full = self._size // _BLOCK
        self._look_at_blocks(full)
        block = -(-start // _BLOCK)  # the first one that lies behind the start as a whole
        hits = block + np.flatnonzero(self._earliest[block:full] <= key)
        parts = [
            np.arange(start, min(block * _BLOCK, self._size)),
            (hits[:, None] * _BLOCK + np.arange(_BLOCK)).ravel(),
            np.arange(max(start, full * _BLOCK, min(block * _BLOCK, self._size)), self._size),
        ]
        where = np.concatenate(parts)
        inside = where[self._columns[ENTERED_AT, where] <= key]
        return np.asarray(self._slots[inside], dtype=np.int64)

    def _look_at_blocks(self, full: int) -> None:
        known = len(self._earliest)
        if known < full:
            more = self._columns[ENTERED_AT, known * _BLOCK : full * _BLOCK].reshape(-1, _BLOCK).min(axis=1)
            self._earliest = np.concatenate((self._earliest, more))

    def _make_room(self, count: int) -> None:
        """Let forgotten stays go, in whole blocks, and make room for so many more."""
        gone = self._first // _BLOCK * _BLOCK
        live = self._size - gone
        room = max(2 * (live + count), 64)
        columns, slots = np.empty((4, room), np.int64), np.empty(room, np.int32)
        columns[:, :live], slots[:live] = self._columns[:, gone : self._size], self._slots[gone : self._size]
        self._columns, self._slots = columns, slots
        self._first, self._size = self._first - gone, live
        self._earliest = self._earliest[gone // _BLOCK :]
