"""A first pass over a long run of rows: drop those that an older and a newer row together dominate all their lives.

Where a row that is not newer dominates r and lives until one comes that is not older and dominates r too, r is never in
the answer, nor does it decide about another row. Such pairs are easy to find for most rows of a long run: every so
often a few strong rows are chosen (`kernel.batch_filter`), and what lies between two such posts is compared with the
strong rows of both. A pass costs a few nanoseconds a row, the join that follows some hundred.
"""

from __future__ import annotations

import numpy as np

from skytide.kernel.batch_filter import choose_strong, drop_above_stairs, drop_dominated, lay_out, lay_out_stairs
from skytide.model import Booleans, Floats, Integers

POST = 1024
"""The rows among which strong ones are chosen."""
SPAN = 1 << 15
"""From one post to the next."""
LEAST = SPAN + POST
"""Shorter runs are not worth a pass."""
_CANDIDATES, _STRONG, _LEAST_GAIN = 48, 16, 0.01
_SHARE = 0.7
"""Strong rows that dominate less than this share of their post are not used."""


def left_between(values: Floats, arrivals: Integers, expiries: Integers, work: Integers) -> Integers | None:
    """The positions of the rows that are left, in order; None where there is no use in a pass. O(n d).

    Rows are in the order of arrival. Rows of two columns or more only.
    """
    n, d = values.shape
    if n < LEAST or d < 2:
        return None
    starts = [*range(0, n - POST - SPAN // 2, SPAN), n - POST]
    posts = [_strong(values[start : start + POST]) for start in starts]
    kept = np.ones(n, dtype=bool)
    some = False
    for (first, older), (last, newer) in zip(
        zip(starts[:-1], posts[:-1], strict=True), zip(starts[1:], posts[1:], strict=True), strict=True
    ):
        # All strong rows of one post live until the last row of the next has come.
        if older is None or newer is None or expiries[first] < arrivals[last + POST - 1]:
            continue
        some = True
        start, stop = first + POST, last
        mine: Booleans = kept[start:stop]
        mine[:] = False
        mine[_undominated(values, start, stop, older, work) - start] = True
        mine[_undominated(values, start, stop, newer, work) - start] = True
    return np.flatnonzero(kept) if some else None


def _strong(post: Floats) -> Floats | None:
    chosen, share, _ = choose_strong(post, _CANDIDATES, _STRONG, _LEAST_GAIN)
    return post[chosen] if len(chosen) and share >= _SHARE else None


def _undominated(values: Floats, start: int, stop: int, strong: Floats, work: Integers) -> Integers:
    room = np.empty(stop - start, dtype=np.int64)
    if values.shape[1] == 2:
        size = drop_above_stairs(values, start, stop, lay_out_stairs(strong), room, work)
    else:
        size = drop_dominated(values, start, stop, lay_out(strong), True, room, work)
    return room[:size]
