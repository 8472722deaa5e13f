"""Series of skylines and comparisons that the tests of the frequent-skyline monitor share."""

from __future__ import annotations

import datetime as dt
import itertools
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

import skytide as sk
from skytide.monitors.frequent.changes import PairChanges
from skytide.reference.frequent import frequent, frequent_changes
from skytide.reference.window import differences

THETAS = st.sampled_from([0.1, 0.25, "0.5", 0.6, Decimal("0.8"), 1, Fraction(1, 3), 0.07])
PAIR = st.tuples(THETAS, st.integers(1, 9) | st.sampled_from([14, 100, 10**30]))
DAY = dt.datetime(2024, 1, 1)
KINDS: dict[str, tuple[Any, Any]] = {
    "whole": (lambda tick: 3 * tick - 7, lambda one: one - 2),
    "real": (lambda tick: tick * 0.1 - 0.5, lambda one: f"n{one}"),
    "stamps": (lambda tick: DAY + dt.timedelta(microseconds=tick), lambda one: one / 4),
}


@dataclass(frozen=True)
class Series:
    """Times with the ids in the skyline at each."""

    times: list[Any]
    answers: list[set[Any]]

    @property
    def timed(self) -> list[tuple[Any, set[Any]]]:
        return list(zip(self.times, self.answers, strict=True))

    def __len__(self) -> int:
        return len(self.times)

    def changes(self, start: int, stop: int) -> sk.Changes:
        """The change stream of the snapshots from `start` up to before `stop`."""
        before = [("before", self.answers[start - 1])] if start else []
        found = [one for one in differences([*before, *self.timed[start:stop]]) if one.time != "before"]
        if not found:
            return sk.Changes.concatenate([])
        return sk.Changes.of(
            times=[one.time for one in found],
            signs=[1 if one.change == "+" else -1 for one in found],
            ids=[one.id for one in found],
        )


@st.composite
def series(draw: st.DrawFn, most: int = 12) -> Series:
    """Few ids that come, go, return and stay through snapshots in which nothing changes."""
    runs = draw(st.lists(st.tuples(st.sets(st.integers(0, 4)), st.integers(1, 4)), max_size=most))
    time, name = KINDS[draw(st.sampled_from(sorted(KINDS)))]
    answers = [{name(one) for one in answer} for answer, length in runs for _ in range(length)]
    steps = draw(st.lists(st.integers(1, 3), min_size=len(answers), max_size=len(answers)))
    return Series([time(tick) for tick in itertools.accumulate(steps)], answers)


def pairs_of(most: int = 3) -> st.SearchStrategy[list[tuple[Any, int]]]:
    return st.lists(PAIR, min_size=1, max_size=most, unique_by=lambda pair: (Fraction(str(pair[0])), pair[1]))


def listed(changes: sk.Changes | PairChanges) -> list[tuple[Any, ...]]:
    return [tuple(one) for one in changes]


def expected_changes(given: Series, pairs: list[tuple[Any, int]]) -> list[tuple[Any, ...]]:
    """The truth: of one pair as it is, of several together in the order of the change stream."""
    if len(pairs) == 1:
        return [tuple(one) for one in frequent_changes(given.timed, *pairs[0])]
    every = [
        (*change, float(Fraction(str(theta))), min(over, 2**62))
        for theta, over in pairs
        for change in frequent_changes(given.timed, theta, over)
    ]
    return sorted(every, key=lambda one: (one[0], one[1] == "+", str(one[2]), one[3], one[4]))


def agrees(monitor: sk.Frequent, given: Series, pairs: list[tuple[Any, int]], names: set[Any]) -> None:
    """The answers after the last snapshot are the truth, with right counts, in order."""
    for position, (theta, over) in enumerate(pairs):
        counts = {one: sum(one in answer for answer in given.answers[-over:]) for one in names}
        found = list(monitor.frequent(position))
        assert {one for one, _ in found} == frequent(given.answers, theta, over)
        assert all(counts[one] == count for one, count in found)
        assert found == sorted(found, key=lambda one: (-one[1], str(one[0])))
        assert {one: monitor.count(one, position) for one in names} == counts


def brute_stays(given: Series) -> list[tuple[Any, Any, Any, int, int]]:
    """All stays by definition: id, entered, left (None: still in), snapshots, and the number that it left at."""
    found = []
    for one in set().union(*given.answers):
        inside = [one in answer for answer in given.answers]
        for start in range(len(inside)):
            if inside[start] and not (start and inside[start - 1]):
                stop = next((at for at in range(start, len(inside)) if not inside[at]), len(inside))
                left = given.times[stop] if stop < len(inside) else None
                found.append((one, given.times[start], left, stop - start, stop))
    return found


def plain(values: Any) -> Any:
    return values.tolist() if isinstance(values, np.ndarray) else values
