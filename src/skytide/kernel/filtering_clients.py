"""The clients' side of the filters, compiled: recent reaches that catch up, and runs of timestamps without a word.

A client's reach fades at every timestamp (`kernel.filtering.recall`). Nobody needs to see it do so: a client that is
touched fades for all timestamps since it was last touched at once, so that a timestamp costs what moves in it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skytide.kernel.compiled import entrance, njit
from skytide.model import Booleans, Floats, Integers

FREE, BOXED, SAMPLED = 0, 1, 2
"""What keeps a client quiet: nothing, a box, a schedule; or both of the latter (the paper's mixed mode)."""
FADING = 1 / 64
"""The share of the recent reach that is forgotten at each timestamp."""


class Clients(NamedTuple):
    """What clients know, a row for each: where they are, their boxes, their reach, and since when it is up to date.

    `here` are the clients that are alive and know it, `stale` those that moved since they told their point.
    """

    points: Floats
    low: Floats
    high: Floats
    floor: Floats
    roof: Floats
    since: Integers
    mode: np.ndarray
    here: Booleans
    stale: Booleans


@entrance
@njit(cache=True)
def outside(low: Floats, high: Floats, points: Floats) -> Booleans:
    """Which points are not in their boxes. O(n d)."""
    n, d = points.shape
    found = np.zeros(n, np.bool_)
    for i in range(n):
        for k in range(d):
            if not (low[i, k] <= points[i, k] <= high[i, k]):
                found[i] = True
                break
    return found


@entrance
@njit(cache=True)
def catch_up(state: Clients, who: Integers, time: int) -> None:
    """Let the reach of clients fade to a timestamp, as if they had stayed where they are. O(who d)."""
    for one in who:
        _fade(state, one, time)


@njit(cache=True, _nrt=False)
def _kept(steps: int) -> float:
    """The share of a reach that is left after so many timestamps: a power, by squaring."""
    kept, factor = 1.0, 1.0 - FADING
    while steps > 0:
        if steps & 1:
            kept *= factor
        factor *= factor
        steps >>= 1
    return kept


@njit(cache=True, _nrt=False)
def _fade(state: Clients, one: int, time: int) -> None:
    steps = time - state.since[one]
    if steps <= 0:
        return
    state.since[one] = time
    kept = _kept(steps)
    for k in range(state.points.shape[1]):
        point = state.points[one, k]
        down, up = point - state.floor[one, k], state.roof[one, k] - point
        # An end that is infinitely far is forgotten at once, or it would stay for ever.
        state.floor[one, k] = min(point, point - down * kept) if 0.0 <= down < np.inf else point
        state.roof[one, k] = max(point, point + up * kept) if 0.0 <= up < np.inf else point


@entrance
@njit(cache=True)
def move(state: Clients, who: Integers, points: Floats, time: int) -> None:
    """Put clients to their points of a timestamp; their reach fades to it and holds them. O(who d)."""
    for row in range(who.shape[0]):
        _move(state, who[row], points, row, time)


@njit(cache=True, _nrt=False)
def _move(state: Clients, one: int, points: Floats, row: int, time: int) -> None:
    _fade(state, one, time - 1)
    moved = False
    for k in range(points.shape[1]):
        moved |= state.points[one, k] != points[row, k]
        state.points[one, k] = points[row, k]
    _fade(state, one, time)
    for k in range(points.shape[1]):
        state.floor[one, k] = min(state.floor[one, k], points[row, k])
        state.roof[one, k] = max(state.roof[one, k], points[row, k])
    state.stale[one] |= moved


@entrance
@njit(cache=True)
def absorb(state: Clients, time: int, cuts: Integers, clients: Integers, points: Floats, sampled: Booleans) -> int:
    """Take timestamps from `time` on as long as nobody has anything to say; how many were taken.

    The rows of timestamp i are cuts[i]:cuts[i + 1], and `sampled` says which timestamps are. O(rows d), and O(clients)
    once.
    """
    waiting = 0
    for one in range(state.mode.shape[0]):
        waiting += state.here[one] and state.stale[one] and state.mode[one] & SAMPLED > 0
    for i in range(cuts.shape[0] - 1):
        if sampled[i] and waiting > 0:
            return i
        for row in range(cuts[i], cuts[i + 1]):
            if _speaks(state, clients[row], points, row, sampled[i]):
                return i
        for row in range(cuts[i], cuts[i + 1]):
            one = clients[row]
            before = state.stale[one]
            _move(state, one, points, row, time + i)
            waiting += state.stale[one] and not before and state.mode[one] & SAMPLED > 0
    return int(cuts.shape[0] - 1)


@njit(cache=True, _nrt=False)
def _speaks(state: Clients, one: int, points: Floats, row: int, sampled: bool) -> bool:
    """Whether a client with this point would say something."""
    if one >= state.mode.shape[0] or not state.here[one]:
        return True
    moved, left = False, False
    for k in range(points.shape[1]):
        value = points[row, k]
        moved |= state.points[one, k] != value
        left |= not (state.low[one, k] <= value <= state.high[one, k])
    mode = state.mode[one]
    return bool(moved and (mode == FREE or (left and mode & BOXED > 0) or (sampled and mode & SAMPLED > 0)))
