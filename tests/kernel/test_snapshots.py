"""The parts of the method of boxes on their own: cuts, and searches by bitmaps however few candidates there are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.kernel import snapshots as kernel
from skytide.kernel.eager_bits import fill
from skytide.kernel.snapshots import State, _cut, _next_no_worse, _outdone, _outdone_from, due, fits
from skytide.model import Booleans, Floats
from skytide.monitors.snapshots import boxes
from skytide.monitors.snapshots.boxes import BoxEngine, promise
from tests.monitors.snapshots.drawn import (
    EXTREMES,
    anti_correlated,
    check,
    crowd,
    listed,
    of,
    undominated,
    whole_numbers,
)


def beats(points: Floats, one: int) -> Booleans:
    """Which points dominate this one, by definition."""
    return np.asarray((points <= points[one]).all(axis=1) & (points < points[one]).any(axis=1))


@settings(max_examples=100)
@given(st.data())
def test_a_cut_box_holds_its_point_and_dominates_the_object(data: st.DataObject) -> None:
    d = data.draw(st.integers(1, 3))
    numbers = np.array([*EXTREMES, 2.0, np.nextafter(2.0, 3.0), 7.5, 1e300, 4.9e-323])
    low, high, reach = (numbers[data.draw(whole_numbers((d,), len(numbers) - 1))] for _ in range(3))
    low, high = np.minimum(low, high), np.maximum(low, high)
    if (low == high).all():
        return
    state = BoxEngine(d)._state
    state.points[0], state.points[1] = low, high
    before = np.maximum(low, reach)
    state.corners[0] = before
    _cut(state, 0, 1)
    corner = state.corners[0]
    assert (low <= corner).all() and (corner <= before).all()
    assert (corner <= high).all() and (corner < high).any()


def test_a_cut_leaves_room_on_both_sides() -> None:
    state = BoxEngine(2)._state
    state.points[:2] = [[0.0, 0.0], [8.0, 2.0]]
    state.corners[0] = 9.0, 9.0
    _cut(state, 0, 1)
    assert state.corners[0].tolist() == [4.0, 1.0]


def candidates(points: Floats, filled: int) -> State:
    """All points as candidates, the first of them in the bitmaps; nobody knows yet who dominates whom."""
    engine = BoxEngine(points.shape[1])
    engine.reserve(len(points), len(points))
    engine._cut(points, max(1, len(points)))
    state = engine._state
    for slot, point in enumerate(points):
        state.points[slot] = state.corners[slot] = point
        kernel._add_candidate(state, slot, kernel.NOBODY)
    if filled:
        fill(state.bits, state.cells, filled, points.shape[1])
    state.numbers[kernel.FILLED] = filled
    return state


@st.composite
def fields(draw: st.DrawFn) -> tuple[Floats, int]:
    d, n = draw(st.integers(1, 4)), draw(st.integers(1, 90))
    numbers = np.array(draw(st.sampled_from([[0.0, 1.0], [0.0, 1.0, 2.0, 3.0], list(map(float, range(60))), EXTREMES])))
    rng = np.random.default_rng(draw(st.integers(0, 9999)))
    return rng.choice(numbers, (n, d)), int(rng.integers(0, n + 1))


@settings(max_examples=60)
@given(fields())
def test_the_next_candidate_that_is_nowhere_worse_is_found_in_the_bitmaps_and_behind_them(
    drawn: tuple[Floats, int],
) -> None:
    points, filled = drawn
    state = candidates(points, filled)
    for one in range(len(points)):
        fitting = np.flatnonzero((points <= points[one]).all(axis=1)).tolist()
        for begin in {0, one, max(0, filled - 1), filled, min(one, filled) // 2}:
            later = [at for at in fitting if at >= begin]
            assert _next_no_worse(state, begin, one, kernel.NOBODY) == (later[0] if later else -1)
            others = [at for at in later if at != one]
            assert _next_no_worse(state, begin, one, one) == (others[0] if others else -1)


@settings(max_examples=60)
@given(fields(), st.data())
def test_who_is_dominated_by_a_touched_candidate_is_found_in_the_bitmaps_and_behind_them(
    drawn: tuple[Floats, int], data: st.DataObject
) -> None:
    points, filled = drawn
    state = candidates(points, filled)
    touched = sorted(data.draw(st.sets(st.integers(0, len(points) - 1), max_size=9)))
    state.touched[: len(touched)] = touched
    state.numbers[kernel.TOUCHED] = len(touched)
    if filled:
        _outdone(state)
    _outdone_from(state, filled)
    for one in range(len(points)):
        better = set(np.flatnonzero(beats(points, one)).tolist()) & set(touched)
        assert (state.rival[one] in better) if better else state.rival[one] == kernel.NOBODY


def test_bitmaps_are_due_from_many_candidates_on_and_tuning_ends_it() -> None:
    rng = np.random.default_rng(0)
    for count in (kernel.MANY - 1, kernel.MANY, 4 * kernel.MANY - 1, 4 * kernel.MANY):
        x = rng.permutation(count).astype(np.float64)
        engine = BoxEngine(2)
        engine.run(of([enumerate(np.stack([x, -x], axis=1).tolist())], 2))
        assert engine._numbers[kernel.CANDIDATES] == count
        # For so large a first snapshot the cells are cut before it.
        assert due(engine._state) == (kernel.MANY <= count < 4 * kernel.MANY)
        engine._tune()
        assert not due(engine._state) and fits(engine._state)
        engine._numbers[kernel.CLOCK] += kernel.RECUT
        assert due(engine._state) == (count >= kernel.MANY)


@pytest.mark.parametrize("room", [1, 700, 1300])
def test_moves_that_find_no_room_are_told_by_the_next_call(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = crowd(np.random.default_rng(2), 240, 2, 40, 25, 60)
    expected = listed(BoxEngine(2).run(drawn))
    monkeypatch.setattr(boxes, "_ROOM", room)
    engine = BoxEngine(2)
    assert listed(engine.run(drawn)) == expected
    check(engine)


@settings(max_examples=40)
@given(fields())
def test_who_dominates_another_promises_more(drawn: tuple[Floats, int]) -> None:
    points, _ = drawn
    promised = promise(points)
    for one in range(len(points)):
        assert (promised[beats(points, one)] < promised[one]).all()


def test_the_strongest_come_first_when_objects_are_loaded() -> None:
    points = anti_correlated(np.random.default_rng(1), 400, 3, 30) + np.arange(400)[:, None] % 7
    engine = BoxEngine(3)
    engine.load(points, np.ones(400, bool))
    check(engine)
    # Whoever is in the skyline came before all that it dominates, so nobody else is a candidate.
    assert engine.counters()["candidates"] == np.count_nonzero(undominated(points))
