"""Which rows may come in: no two live rows have one id, in time windows and in count windows."""

from __future__ import annotations

from bisect import bisect
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from skytide.model import Integers
from skytide.monitors.sliding.flow import CountFlow, TimeFlow
from skytide.monitors.sliding.ids import LiveIds


def admit_timed(live: LiveIds, flow: TimeFlow, column: npt.NDArray[Any], keys: Integers) -> None:
    """Refuse a second row with one id that lives at the same time in a time window; remember the rows. O(1) per row."""

    @cache
    def expiry(arrival: int) -> int:
        return int(flow.clock.expiries(np.array([arrival]))[0])

    def admit(others: list[int], arrival: int) -> bool:
        # A later row expires no earlier, so only the neighbours in time can live together with this one.
        place = bisect(others, arrival)
        if place and expiry(others[place - 1]) > arrival:
            return False
        if place < len(others) and expiry(arrival) > others[place]:
            return False
        others.insert(place, arrival)
        return True

    def lives(arrival: int) -> bool:
        return expiry(arrival) > flow.closed

    if column.dtype.kind == "i" and live.append(column, keys, lives):
        return
    live.spread(int, lives)
    ids, arrivals = column.tolist(), keys.tolist()
    live.check(ids, arrivals, admit)
    live.add(ids, arrivals, lives)


def admit_counted(live: LiveIds, flow: CountFlow, column: npt.NDArray[Any], codes: Integers) -> None:
    """Refuse a second live row with one id in a count window; remember the rows. O(n log n)."""

    def lives(known: tuple[int, int, int]) -> bool:
        return known[1] + flow.length > flow.counts.get(known[0], 0)

    alone = codes.strides == (0,)
    if alone and column.dtype.kind == "i":
        before = flow.counts.get(0, 0)
        numbers = np.arange(before + 1, before + 1 + len(column))
        if live.append(column, numbers, lambda number: number + flow.length > before):
            return
    live.spread(lambda number: (0, number, -1), lives)
    ids = column.tolist()
    # A row is known by its group, its number in the group and its position in this batch (before it: -1).
    order = np.argsort(codes, kind="stable")
    positions = {
        int(codes[part[0]]): part for part in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1) if len(part)
    }
    local = np.empty(len(codes), dtype=np.int64)
    for code, part in positions.items():
        local[part] = np.arange(1, len(part) + 1) + flow.counts.get(code, 0)
    arrivals = list(zip(codes.tolist(), local.tolist(), range(len(ids)), strict=True))

    def admit(others: list[tuple[int, int, int]], new: tuple[int, int, int]) -> bool:
        for code, number, _ in others:
            came = int(np.searchsorted(positions[code], new[2], side="right")) if code in positions else 0
            if number + flow.length > flow.counts.get(code, 0) + came:
                return False
        others[:] = [new]  # rows come in order: what is dead now stays so
        return True

    live.check(ids, arrivals, admit)
    known = [(code, number, -1) for code, number, _ in arrivals]
    live.add(ids, known, lives)


def spread(live: LiveIds, flow: CountFlow | TimeFlow) -> None:
    """See to it that the table of live ids holds all of them, as when a window is stored."""
    if isinstance(flow, TimeFlow):
        admit_timed(live, flow, _NO_IDS, _NONE)
    else:
        admit_counted(live, flow, _NO_IDS, _NONE)


_NO_IDS = np.zeros(0, dtype=object)
_NONE = np.zeros(0, np.int64)
