"""Windows beyond the skyline: skybands, the top k by a score, load shedding."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import skytide as sk
from skytide.errors import StateError
from skytide.reference.window import skyline_at, window_changes
from tests.monitors.sliding.windows import batches, listed, preference, streams, table


@settings(max_examples=100)
@given(
    stream=streams(),
    k=st.integers(1, 4),
    length=st.one_of(st.tuples(st.just("count"), st.integers(1, 8)), st.tuples(st.just("duration"), st.integers(1, 9))),
    by=st.booleans(),
    top=st.booleans(),
)
def test_skybands_and_top_k_give_the_reference_stream_and_survive_storage(
    stream: tuple[Any, Any, Any, Any], k: int, length: tuple[str, Any], by: bool, top: bool
) -> None:
    rows, times, groups, cuts = stream
    rows = [tuple(min(max(value, -9.0), 9.0) for value in row) for row in rows]
    weights = [1.0, 2.0, 0.5][: len(rows[0])]
    options: dict[str, Any] = {length[0]: length[1], "k": k} | ({"score": weights} if top else {})
    window = sk.SlidingWindow(preference(rows, by), **options)
    timed = length[0] == "duration"
    found: list[tuple[Any, str, Any]] = []
    expect: dict[str, Any] = {length[0]: length[1], "k": k}
    if top:
        expect["score"] = lambda row: sum(weight * value for weight, value in zip(weights, row, strict=True))
    for part in batches(len(rows), cuts):
        found += listed(window.extend(table(rows, groups, part), times=times[part] if timed else None))
        window = sk.SlidingWindow.from_bytes(window.to_bytes())
        seen = part.stop
        keys = groups[:seen] if by else None
        if seen:
            at = times[seen - 1] if timed else seen
            ids = list(range(1, seen + 1))
            assert set(window.skyline()) == skyline_at(
                at, rows[:seen], times[:seen] if timed else None, ids, by=keys, **expect
            )
    if timed:
        found += listed(window.advance(times[-1]))
    ids = list(range(1, len(rows) + 1))
    by_group = groups if by else None
    assert found == [tuple(c) for c in window_changes(rows, times if timed else None, ids, by=by_group, **expect)]


def test_a_score_function_is_given_again_when_a_window_is_restored() -> None:
    def worst(values: Any) -> Any:
        return values.max(axis=1)

    window = sk.SlidingWindow(sk.Preference.columns(2), count=4, k=2, score=worst)
    window.extend(np.array([[1.0, 9.0], [5.0, 4.0], [6.0, 6.0]]))
    again = sk.SlidingWindow.from_bytes(window.to_bytes(), score=worst)
    assert set(again.skyline()) == {2, 3} and again.skyline().values.ravel().tolist() == [5.0, 6.0]
    with pytest.raises(StateError, match="score function"):
        sk.SlidingWindow.from_bytes(window.to_bytes())
    with pytest.raises(StateError, match="no score function"):
        sk.SlidingWindow.from_bytes(sk.SlidingWindow(sk.Preference.columns(2), count=4).to_bytes(), score=worst)


@settings(max_examples=100)
@given(
    stream=streams(),
    capacity=st.integers(1, 3),
    length=st.one_of(st.tuples(st.just("count"), st.integers(1, 8)), st.tuples(st.just("duration"), st.integers(1, 9))),
    by=st.booleans(),
)
def test_shedding_states_how_many_changes_were_missed_at_most(
    stream: tuple[Any, Any, Any, Any], capacity: int, length: tuple[str, Any], by: bool
) -> None:
    rows, times, groups, cuts = stream
    timed = length[0] == "duration"
    window = sk.SlidingWindow(preference(rows, by), **{length[0]: length[1]}, capacity=capacity)
    found: list[tuple[Any, str, Any]] = []
    for part in batches(len(rows), cuts):
        found += listed(window.extend(table(rows, groups, part), times=times[part] if timed else None))
        before = window.stats()
        window = sk.SlidingWindow.from_bytes(window.to_bytes())
        same = ("shed", "shed_harmless", "missed_at_most", "wrong_at_most")
        assert [window.stats().get(name, 0) for name in same] == [before.get(name, 0) for name in same]
    if timed:
        found += listed(window.advance(times[-1] + 30))
    expected = window_changes(
        rows,
        times if timed else None,
        list(range(1, len(rows) + 1)),
        **{length[0]: length[1]},
        by=groups if by else None,
        until=times[-1] + 30 if timed else None,
    )
    missed = [change for change in expected if tuple(change) not in found]
    wrong = [change for change in found if change not in expected]
    stats = window.stats()
    assert len(missed) <= stats.get("missed_at_most", 0) and len(wrong) <= stats.get("wrong_at_most", 0)
