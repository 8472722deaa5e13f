"""The window oracle against tao06's example, hand-made cases and the laws of a change stream."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.reference.batch import dominates
from skytide.reference.window import (
    differences,
    instants,
    lives,
    skyline_at,
    split_late,
    split_repeated,
    window_changes,
)

FIGURE_1B = [
    ("a", 1, (4, 4)),
    ("b", 3, (1, 8)),
    ("c", 5, (5, 5)),
    ("d", 7, (4, 6)),
    ("e", 9, (3, 3)),
    ("f", 11, (7, 1)),
]


def stream(changes: list[Any]) -> str:
    return " ".join(f"({change}{one},{time})" for time, change, one in changes)


def figure(**options: Any) -> str:
    ids, times, rows = zip(*FIGURE_1B, strict=True)
    return stream(window_changes(rows, times, ids, duration=5, **options))


def test_the_stream_of_tao06_figure_1b_comes_out_in_our_order() -> None:
    assert figure() == "(+a,1) (+b,3) (-a,6) (+c,6) (+d,7) (-b,8) (-c,9) (-d,9) (+e,9) (+f,11)"


def test_until_lets_time_run_on_and_closes_its_own_instant() -> None:
    assert figure(until=15).endswith("(+f,11) (-e,14)")
    assert figure(until=16).endswith("(+f,11) (-e,14) (-f,16)")


def test_a_run_that_merely_stops_leaves_the_last_instant_open() -> None:
    assert figure(close_last=False).endswith("(-d,9) (+e,9)")


def test_lateness_keeps_instants_open_until_a_later_row_is_seen() -> None:
    assert figure(close_last=False, lateness=3).endswith("(+d,7)")
    assert figure(close_last=False, lateness=2, until=9).endswith("(+e,9)")


def test_an_earlier_until_does_not_take_back_what_rows_have_closed() -> None:
    assert figure(until=1) == figure()


def test_a_row_is_dead_at_the_instant_of_its_expiry_and_a_newcomer_at_that_instant_does_not_meet_it() -> None:
    assert stream(window_changes([(1,), (2,)], [0, 5], ["x", "y"], duration=5)) == "(+x,0) (-x,5) (+y,5)"


def test_rows_of_one_instant_meet_before_anything_is_reported() -> None:
    assert stream(window_changes([(2,), (1,), (1,)], [3, 3, 3], [1, 10, 2], duration=1)) == "(+10,3) (+2,3)"


def test_an_id_that_leaves_and_comes_back_at_one_instant_does_not_change() -> None:
    assert stream(window_changes([(1,), (2,)], [0, 5], ["x", "x"], duration=5, until=10)) == "(+x,0) (-x,10)"


def test_in_a_count_window_time_is_the_arrival_number_and_a_row_lives_until_n_more_came() -> None:
    rows = [(1,), (2,), (3,), (0,)]
    assert lives(None, 4, count=2)[:2] == [(1, 3), (2, 4)]
    assert stream(window_changes(rows, None, "abcd", count=2)) == "(+a,1) (-a,3) (+b,3) (-b,4) (+d,4)"


def test_a_count_window_with_groups_counts_per_group_but_numbers_arrivals_over_all() -> None:
    found = window_changes([(1,), (5,), (2,), (6,)], None, "abcd", count=1, by=["x", "y", "x", "y"])
    assert stream(found) == "(+a,1) (+b,2) (-a,3) (+c,3) (-b,4) (+d,4)"


def test_groups_have_their_own_skylines_in_one_change_stream() -> None:
    found = window_changes([(1,), (2,), (3,)], [1, 1, 2], "abc", duration=2, by=["x", "y", "x"], until=4)
    assert stream(found) == "(+a,1) (+b,1) (-a,3) (-b,3) (+c,3) (-c,4)"


def test_top_k_by_score_counts_strictly_better_live_rows() -> None:
    rows = [(1, 1), (0, 3), (2, 2), (0, 0)]
    found = window_changes(rows, [1, 2, 3, 4], "abcd", duration=10, k=2, score=sum)
    assert stream(found) == "(+a,1) (+b,2) (-b,4) (+d,4)"
    tied = window_changes([(1, 1), (2, 0), (0, 2)], [1, 2, 3], "abc", duration=10, k=1, score=sum)
    assert stream(tied) == "(+a,1) (+b,2) (+c,3)"


def test_the_skyband_window_keeps_rows_that_fewer_than_k_dominate() -> None:
    found = window_changes([(1,), (2,), (3,)], [1, 2, 3], "abc", duration=10, k=2, until=12)
    assert stream(found) == "(+a,1) (+b,2) (-a,11) (+c,11) (-b,12)"


@pytest.mark.parametrize(
    ("times", "lateness", "late"),
    [([1, 2, 1], 0, [2]), ([2, 2, 2], 0, []), ([5, 3], 2, []), ([5, 2], 2, [1]), ([5, 1, 4, 9, 8, 5], 3, [1, 5])],
)
def test_a_row_is_late_when_an_earlier_seen_row_closed_its_instant(
    times: list[int], lateness: int, late: list[int]
) -> None:
    assert split_late(times, lateness) == ([position for position in range(len(times)) if position not in late], late)


def test_an_id_is_free_again_at_the_instant_its_row_expires() -> None:
    assert split_repeated(["a", "b", "a", "a"], [1, 1, 3, 4], 3) == ([0, 1, 3], [2])
    assert split_repeated(["a", "a"], [2, 1], 5) == ([1], [0])


points = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 6), st.sampled_from("xy")), min_size=1, max_size=10
)


@settings(max_examples=60)
@given(points, st.integers(1, 4), st.integers(0, 12), st.booleans(), st.integers(1, 2), st.booleans())
def test_the_change_stream_replays_to_the_answer_at_every_closed_instant(
    drawn: list[tuple[int, int, int, str]], length: int, until: int, by_count: bool, k: int, grouped: bool
) -> None:
    rows, times = [row[:2] for row in drawn], [row[2] for row in drawn]
    ids = list(range(len(drawn)))
    by = [row[3] for row in drawn] if grouped else None
    shape: dict[str, Any] = {"count": length} if by_count else {"duration": length}
    changes = window_changes(rows, times, ids, by=by, k=k, until=until, **shape)
    assert changes == sorted(changes, key=lambda change: (change.time, "-+".index(change.change), str(change.id)))
    assert len({(change.time, change.id) for change in changes}) == len(changes)
    last = len(rows) if by_count else max(until, max(times))
    assert all(change.time <= last for change in changes)
    for at in range(last + 1):
        inside: set[int] = set()
        for change in changes:
            if change.time <= at:
                (inside.add if change.change == "+" else inside.remove)(change.id)
        assert inside == skyline_at(at, rows, times, ids, by=by, k=k, **shape)


@settings(max_examples=60)
@given(points, st.integers(1, 4))
def test_a_row_is_in_the_skyline_for_one_interval_at_most(
    drawn: list[tuple[int, int, int, str]], duration: int
) -> None:
    # tao06, Section 1: lives have equal lengths, so who blocks a row at its end blocks it to its end.
    rows, times = [row[:2] for row in drawn], [row[2] for row in drawn]
    changes = window_changes(rows, times, list(range(len(drawn))), duration=duration, until=20)
    for position in range(len(drawn)):
        own = [change.change for change in changes if change.id == position]
        assert own in ([], ["+", "-"])


@given(points, st.integers(1, 4))
def test_between_instants_nothing_changes(drawn: list[tuple[int, int, int, str]], duration: int) -> None:
    rows, times, ids = [row[:2] for row in drawn], [row[2] for row in drawn], list(range(len(drawn)))
    marks = instants(lives(times, len(rows), duration=duration))
    dense = [at / 2 for at in range(2 * max(marks) + 1)]
    answers = [(at, skyline_at(at, rows, times, ids, duration=duration)) for at in dense]
    assert differences(answers) == window_changes(rows, times, ids, duration=duration, until=max(marks))


@given(st.lists(st.integers(0, 8), max_size=12), st.integers(0, 4))
def test_kept_rows_differ_from_the_largest_time_before_them_by_the_lateness_at_most(
    times: list[int], lateness: int
) -> None:
    kept, late = split_late(times, lateness)
    assert sorted(kept + late) == list(range(len(times)))
    highest = -1
    for position, time in enumerate(times):
        assert (position in late) == (time < highest - lateness)
        highest = max(highest, time)


def test_dominance_of_the_example_is_what_the_text_says() -> None:
    where = {name: row for name, _, row in FIGURE_1B}
    assert dominates(where["a"], where["c"]) and all(dominates(where["e"], where[name]) for name in "acd")
