"""Sliding windows by definition: at every instant that matters, the answer of what lives, and the net differences.

The problem is tao06's. Where its Fig. 1b leaves the order within an instant open, ours is `-` before `+`, then the id
as text; and where processing tuple by tuple would let a row enter and leave at one instant, we report neither.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

from skytide.model import Change
from skytide.reference.batch import Row, by_group, skyband, top


class Life(NamedTuple):
    """A row lives on [start, end); an end of None never comes."""

    start: Any
    end: Any


def alive(life: Life, at: Any) -> bool:
    """Whether a row with this life lives at the instant."""
    return bool(life.start <= at and (life.end is None or at < life.end))


def lives(
    times: Sequence[Any] | None,
    rows: int,
    *,
    count: int | None = None,
    duration: Any = None,
    by: Sequence[Hashable] | None = None,
) -> list[Life]:
    """The life of each of so many rows. In a count window the time is the arrival number, from 1, over all groups.

    >>> lives([1, 3], 2, duration=5)
    [Life(start=1, end=6), Life(start=3, end=8)]
    >>> lives(None, 3, count=1, by=["x", "y", "x"])
    [Life(start=1, end=3), Life(start=2, end=None), Life(start=3, end=None)]
    """
    if duration is not None:
        assert times is not None and count is None
        return [Life(time, time + duration) for time in times]
    assert count is not None
    found = []
    for position in range(rows):
        followers = [later for later in range(position + 1, rows) if by is None or by[later] == by[position]]
        end = followers[count - 1] + 1 if len(followers) >= count else None
        found.append(Life(position + 1, end))
    return found


def instants(all_lives: Sequence[Life]) -> list[Any]:
    """The times at which something begins or ends to live, in order, each once: no answer changes between them."""
    return sorted({life.start for life in all_lives} | {life.end for life in all_lives if life.end is not None})


def closed(at: Any, times: Sequence[Any], *, until: Any = None, lateness: Any = 0, close_last: bool = True) -> bool:
    """Whether an instant of a time window is final once rows with these times have been seen.

    It is when a row later than it plus the lateness has been seen; or by `until`; or, with `close_last` (the end of a
    file that is read whole), when it is not after the latest row.
    """
    if until is not None and at <= until:
        return True
    return any(at + lateness < time or (close_last and at <= time) for time in times)


def differences(answers: Sequence[tuple[Any, set[Any]]]) -> list[Change]:
    """The change stream of a series of (instant, answer as a set of ids): net, `-` before `+`, then id as text.

    >>> differences([(1, {"a"}), (2, {"b", "c"})])
    [Change(time=1, change='+', id='a'), Change(time=2, change='-', id='a'), Change(time=2, change='+', id='b'),
    Change(time=2, change='+', id='c')]
    """
    changes = []
    before: set[Any] = set()
    for at, answer in answers:
        changes += [Change(at, "-", one) for one in sorted(before - answer, key=str)]
        changes += [Change(at, "+", one) for one in sorted(answer - before, key=str)]
        before = answer
    return changes


def skyline_at(
    at: Any,
    rows: Sequence[Row],
    times: Sequence[Any] | None,
    ids: Sequence[Any],
    *,
    count: int | None = None,
    duration: Any = None,
    by: Sequence[Hashable] | None = None,
    k: int = 1,
    score: Callable[[Row], Any] | None = None,
) -> set[Any]:
    """The ids of the answer at an instant: of what lives then, the rows that fewer than k dominate. O(n² d).

    With `score`, instead the rows with fewer than k rows of a strictly smaller score. With `by`, per group.
    """
    every = lives(times, len(rows), count=count, duration=duration, by=by)
    live = [position for position, life in enumerate(every) if alive(life, at)]

    def answer(members: list[Row]) -> list[int]:
        return skyband(members, k) if score is None else top(members, k, score)

    keys = [None if by is None else by[position] for position in live]
    return {ids[live[position]] for position in by_group([rows[position] for position in live], keys, answer)}


def window_changes(
    rows: Sequence[Row],
    times: Sequence[Any] | None,
    ids: Sequence[Any],
    *,
    count: int | None = None,
    duration: Any = None,
    until: Any = None,
    by: Sequence[Hashable] | None = None,
    k: int = 1,
    score: Callable[[Row], Any] | None = None,
    lateness: Any = 0,
    close_last: bool = True,
) -> list[Change]:
    """The change stream of a window, up to the last closed instant. O(n³ d).

    Rows of a time window may be given in any order; leave out the late ones first (`split_late`). Rows of a count
    window are given in the order of arrival, and every one of them is an instant that closes at once.

    >>> for change in window_changes([(2, 2), (1, 3), (1, 1)], [1, 2, 4], ["a", "b", "c"], duration=3):
    ...     print(*change)
    1 + a
    2 + b
    4 - a
    4 - b
    4 + c
    """
    every = lives(times, len(rows), count=count, duration=duration, by=by)
    at_all = instants(every)
    if duration is not None and times is not None:
        at_all = [at for at in at_all if closed(at, times, until=until, lateness=lateness, close_last=close_last)]
    return differences(
        [
            (at, skyline_at(at, rows, times, ids, count=count, duration=duration, by=by, k=k, score=score))
            for at in at_all
        ]
    )


def split_late(times: Sequence[Any], lateness: Any = 0) -> tuple[list[int], list[int]]:
    """The positions of the rows that are in time and of those that are late, when seen in this order. O(n²).

    A row is late when its instant is already closed: some row before it is later than its time plus the lateness.

    >>> split_late([1, 5, 3, 2], lateness=2)
    ([0, 1, 2], [3])
    """
    late = [position for position, time in enumerate(times) if any(time + lateness < seen for seen in times[:position])]
    return [position for position in range(len(times)) if position not in late], late


def split_repeated(ids: Sequence[Hashable], times: Sequence[Any], duration: Any) -> tuple[list[int], list[int]]:
    """The positions of the rows of a time window that may enter, and of those whose id a live row already has. O(n²).

    Rows are considered in the order of their times, those of one time in input order.

    >>> split_repeated(["a", "a", "a"], [1, 2, 4], 3)
    ([0, 2], [1])
    """
    kept: list[int] = []
    for position in sorted(range(len(ids)), key=lambda position: times[position]):
        living = {ids[one] for one in kept if times[position] < times[one] + duration}
        if ids[position] not in living:
            kept.append(position)
    return sorted(kept), [position for position in range(len(ids)) if position not in kept]
