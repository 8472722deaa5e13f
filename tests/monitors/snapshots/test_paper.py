"""The two errors of udom14: its algorithm as printed loses answers, each mend brings them back, ours loses none."""

from __future__ import annotations

import random
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.monitors.snapshots.boxes import BoxEngine
from skytide.reference.batch import skyline
from tests.monitors.snapshots.drawn import check, of
from tests.monitors.snapshots.literal import LiteralBoxes

Point = tuple[int, int]


class Series(NamedTuple):
    """Objects at snapshot 0, what moves in each snapshot after it, and the paper's cfp_ths."""

    objects: dict[int, Point]
    moves: list[dict[int, Point]]
    threshold: int


TIED = Series({0: (0, 3), 1: (3, 3)}, [{1: (0, 3)}], 1)
"""One object comes to rest where another is. Without strictness its link to that one still holds: it is lost."""
HOST_BEHIND = Series({0: (0, 3), 1: (3, 4), 2: (1, 3)}, [{0: (2, 3)}, {0: (5, 5)}, {2: (4, 1)}], 1)
"""1 hangs on 0, and 0 comes to hang on 2. When 0 grows to (5, 5) nobody checks 1, and when 2 goes 1 is lost."""
FAR_APART = Series(
    {1: (108, 252), 2: (164, 59), 4: (523, 165)},
    [{1: (618, 928)}, {2: (611, 696)}, {2: (908, 296)}, {4: (803, 73)}],
    1,
)
"""The same without any tie."""


def truth(series: Series) -> list[set[int]]:
    current, found = dict(series.objects), []
    for moves in [{}, *series.moves]:
        current |= moves
        names = list(current)
        found.append({names[place] for place in skyline([current[one] for one in names])})
    return found


def literal(series: Series, *, strict: bool, everybody: bool) -> list[set[int]]:
    boxes = LiteralBoxes(series.objects, series.threshold, strict=strict, everybody=everybody)
    return [set(boxes.skyline), *(set(boxes.apply(moves)) for moves in series.moves)]


def ours(series: Series, patience: int) -> list[set[int]]:
    engine, found = BoxEngine(2, patience=patience), []
    for moves in [series.objects, *series.moves]:
        engine.run(of([moves.items()], 2))
        check(engine)
        found.append(set(engine.skyline().tolist()))
    return found


@pytest.mark.parametrize("patience", [1, 2, 50])
@pytest.mark.parametrize("series", [TIED, HOST_BEHIND, FAR_APART], ids=["tied", "host-behind", "far-apart"])
def test_ours_is_right_where_the_paper_is_not(series: Series, patience: int) -> None:
    expected = truth(series)
    printed = literal(series, strict=False, everybody=False)
    assert printed[:-1] == expected[:-1] and printed[-1] < expected[-1], "an answer is lost, in the last snapshot"
    assert literal(series, strict=True, everybody=True) == expected
    assert ours(series, patience) == expected


def test_without_strictness_an_object_that_ties_is_lost() -> None:
    assert literal(TIED, strict=False, everybody=True)[-1] == {0}
    assert literal(TIED, strict=True, everybody=False)[-1] == {0, 1} == truth(TIED)[-1]


@pytest.mark.parametrize("series", [HOST_BEHIND, FAR_APART], ids=["host-behind", "far-apart"])
def test_unless_every_grown_box_is_checked_an_object_behind_a_dominated_one_is_lost(series: Series) -> None:
    for strict in (False, True):
        assert literal(series, strict=strict, everybody=False)[-1] < truth(series)[-1]
    assert literal(series, strict=True, everybody=True) == truth(series)


def _drawn(seed: int, side: int) -> Series:
    rng = random.Random(seed)
    objects = {one: (rng.randrange(side), rng.randrange(side)) for one in range(rng.randrange(2, 7))}
    moves = [
        {one: (rng.randrange(side), rng.randrange(side)) for one in objects if rng.random() < 0.4}
        for _ in range(rng.randrange(1, 12))
    ]
    return Series(objects, moves, rng.choice([1, 2, 3]))


def test_random_series_with_ties_go_wrong_often_as_printed_and_never_when_mended() -> None:
    series = [_drawn(seed, 4) for seed in range(150)]
    expected = [truth(one) for one in series]
    printed = [literal(one, strict=False, everybody=False) for one in series]
    assert sum(found != right for found, right in zip(printed, expected, strict=True)) > 15
    assert [literal(one, strict=True, everybody=True) for one in series] == expected


POINTS = st.tuples(st.integers(0, 5), st.integers(0, 5))
MOVES = st.dictionaries(st.integers(0, 4), POINTS, max_size=4)


@settings(max_examples=80)
@given(st.lists(POINTS, min_size=5, max_size=5), st.lists(MOVES, max_size=12), st.integers(1, 3))
def test_the_mended_paper_and_ours_agree_with_the_definition(
    start: list[Point], moves: list[dict[int, Point]], threshold: int
) -> None:
    series = Series(dict(enumerate(start)), moves, threshold)
    expected = truth(series)
    assert literal(series, strict=True, everybody=True) == expected
    assert ours(series, threshold) == expected
