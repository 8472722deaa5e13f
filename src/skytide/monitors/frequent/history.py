"""The durable questions: who stayed in the skyline for how long, and who was in it when."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skytide.errors import InputError, OptionError, WindowError
from skytide.model import Integers
from skytide.monitors.frequent.clock import SeriesClock
from skytide.monitors.frequent.counts import Counts
from skytide.monitors.frequent.ids import Slots
from skytide.monitors.frequent.log import ENTERED, ENTERED_AT, LEFT, LEFT_AT, StayLog
from skytide.monitors.sliding.clock import HIGHEST


class Stay(NamedTuple):
    """An id was in the skyline from the snapshot at `entered` on, until that at `left`; None: it still is."""

    id: Any
    entered: Any
    left: Any
    snapshots: int


class History:
    """The stays that have ended, and those that have not, which the counter knows.

    With a bound, the stays are remembered that touch one of the last so many snapshots.
    """

    def __init__(self, asked: bool | int, clock: SeriesClock, ids: Slots, counts: Counts) -> None:
        self.asked = asked if isinstance(asked, bool) else _bound(asked)
        self.log = StayLog()
        self.entries = np.zeros((2, 0), np.int64)
        """By slot the number and the key of its last entry."""
        self._clock, self._ids, self._counts = clock, ids, counts

    # -- snapshots in --------------------------------------------------------------------------------------------------

    def note(self, keys: Integers) -> None:
        """Write down the stays that end in the snapshots to come, whose changes have been admitted. O(changes)."""
        if self.asked is not False:
            self._widen(self._ids.room)
            self.log.add(*self._counts.stays(keys, self.entries))

    def forget(self) -> list[int]:
        """Forget what the bound does not cover; the slots that nothing needs any more. O(what is forgotten)."""
        if isinstance(self.asked, bool):
            return []
        return self._counts.release(self.log.forget(self._counts.now - self.asked + 1))

    # -- answers out ---------------------------------------------------------------------------------------------------

    def stays(self, id: Any) -> list[tuple[Any, Any]]:
        """Entries and ends of one id's stays, in order. O(all stays)."""
        slot = self._ids.slot(id)
        columns, slots = self.every()
        entered, left = self._ends(columns[:, slots == (-1 if slot is None else slot)])
        return list(zip(entered, left, strict=True))

    def longest(self, k: int) -> list[Stay]:
        """The stays of the most snapshots. O(all stays)."""
        columns, slots = self.every()
        lengths = columns[LEFT] - columns[ENTERED]
        if k < len(lengths):
            most = np.flatnonzero(lengths >= np.partition(lengths, len(lengths) - k)[len(lengths) - k])
            columns, slots, lengths = columns[:, most], slots[most], lengths[most]
        order = np.lexsort((self._ids.ranks(slots), columns[ENTERED], -lengths))[:k]
        ids, lengths = self._ids.ids(slots[order]).tolist(), lengths[order].tolist()
        return [Stay(*one) for one in zip(ids, *self._ends(columns[:, order]), lengths, strict=True)]

    def at(self, time: Any) -> npt.NDArray[Any]:
        """Who was in at a time. O(skyline, and one step per block of stays that ended later)."""
        key = self._key(time)
        members = self._counts.members
        slots = np.concatenate((self.log.at(key), members[self.entries[1, members] <= key]))
        return self._ids.ids(slots[np.argsort(self._ids.ranks(slots))])

    def table(self) -> pa.Table:
        """All stays, by time of entry, then id as text. O(all stays, sorted)."""
        columns, slots = self.every()
        order = np.lexsort((self._ids.ranks(slots), columns[ENTERED]))
        columns, slots = columns[:, order], slots[order]
        still = columns[LEFT_AT] == HIGHEST
        ids = self._ids.ids(slots)
        try:
            names = pa.array(ids if ids.dtype != object else ids.tolist())
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            raise InputError(
                "ids of odd or mixed kinds are not a column", remedy="use numbers or text as ids"
            ) from None
        return pa.table(
            {
                "id": names,
                "entered": pa.array(self._clock.times(columns[ENTERED_AT])),
                "left": pa.array(self._clock.times(columns[LEFT_AT]), mask=still),
                "snapshots": pa.array(columns[LEFT] - columns[ENTERED]),
            }
        )

    def every(self) -> tuple[Integers, Integers]:
        """The stays as in the log, and behind them those that have not ended: they end after all times."""
        members = self._counts.members
        still = np.empty((4, len(members)), np.int64)
        still[ENTERED], still[ENTERED_AT] = self.entries[:, members]
        still[LEFT], still[LEFT_AT] = self._counts.now + 1, HIGHEST
        return np.hstack((self.log.columns, still)), np.concatenate((self.log.slots, members))

    # -- details -------------------------------------------------------------------------------------------------------

    def _widen(self, slots: int) -> None:
        if slots > self.entries.shape[1]:
            larger = np.zeros((2, 3 * slots // 2), np.int64)
            larger[:, : self.entries.shape[1]] = self.entries
            self.entries = larger

    def restore(self, members: Integers, columns: Integers, slots: Integers, horizon: int | None) -> None:
        """Take stored stays: slots, numbers and keys of the entries of those who are in, and what the log held."""
        self._widen(self._ids.room)
        self.entries[:, members[0]] = members[1:]
        self.log.add(columns, slots)
        self.log.horizon = horizon
        np.add.at(self._counts.uses, slots, 1)

    def _ends(self, columns: Integers) -> tuple[list[Any], list[Any]]:
        """When stays begin and end, as plain values; None where they have not ended."""
        still = (columns[LEFT_AT] == HIGHEST).tolist()
        entered, left = (self._clock.times(columns[row]).tolist() for row in (ENTERED_AT, LEFT_AT))
        return entered, [None if open_ else end for open_, end in zip(still, left, strict=True)]

    def _key(self, time: Any) -> int:
        """The key of a time of which something is known."""
        clock, kind = self._clock, self._clock.kind
        try:
            key = int(clock.read([time])[0])
        finally:
            clock.reset(kind)
        if key > clock.latest:
            last = clock.shown(clock.latest) if self._counts.now else None
            raise WindowError(f"is after the last snapshot ({last!r})", value=time, remedy="ask for a past time")
        if self.log.horizon is not None and key < self.log.horizon:
            raise WindowError(
                "is before what is remembered",
                value=time,
                remedy=f"ask from {clock.shown(self.log.horizon)!r} on, or remember more snapshots (history)",
            )
        return key


def _bound(asked: Any) -> int:
    if not isinstance(asked, int | np.integer) or asked < 1:
        raise OptionError(
            "is not a length of history", value=asked, remedy="give True, False or a number of snapshots from 1"
        )
    return int(asked)
