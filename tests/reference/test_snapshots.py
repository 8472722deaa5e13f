"""The oracle of updates: udom14's example, each rule of an update, and random streams against replayed states."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.errors import InputError
from skytide.reference.batch import dominates
from skytide.reference.snapshots import snapshot_answers, snapshot_changes, updated

INF = math.inf


def stream(changes: list[Any]) -> str:
    return " ".join(f"({change}{one},{time})" for time, change, one in changes)


def test_the_running_example_of_udom14() -> None:
    # Fig. 1b is not in the text. These places keep its statements: the box of 1 is dominated by the boxes of 3 and 4,
    # that of 2 by that of 4; the skyline is {4} at t = 5 and {3, 4, 5} at t = 6.
    at_5 = {1: (9, 9), 2: (6, 8), 3: (3, 5), 4: (2, 4), 5: (7, 4)}
    at_6 = {3: (1, 6), 5: (6, 1)}
    times = [5] * len(at_5) + [6] * len(at_6)
    rows = [*at_5.values(), *at_6.values()]
    assert snapshot_answers(times, [*at_5, *at_6], rows) == [(5, {4}), (6, {3, 4, 5})]
    assert stream(snapshot_changes(times, [*at_5, *at_6], rows)) == "(+4,5) (+3,6) (+5,6)"


@pytest.mark.parametrize(
    ("operation", "rows", "values"),
    [
        ("set", [(3, 1), (2, 9)], [2, 9]),
        ("add", [(3, 1), (-5, 2), (1, 1)], [-1, 4]),
        ("multiply", [(3, 1), (-2, 4)], [-6, 4]),
        ("average", [(1, 8), (3, 4), (6, 4)], [4, 5]),
        ("add", [(3, 1)], [3, 1]),
        ("multiply", [(3, 1)], [3, 1]),
        ("average", [(3, 1)], [3, 1]),
    ],
)
def test_the_first_row_sets_and_the_others_follow_the_operation(
    operation: str, rows: list[tuple[int, int]], values: list[int]
) -> None:
    current = None
    for row in rows:
        current = updated(current, row, operation)
    assert current == values
    # The same through the stream: the object ties with one that rests at these values, and neither goes.
    times, ids = [0, *range(1, len(rows) + 1)], ["rest", *["moves"] * len(rows)]
    assert snapshot_answers(times, ids, [values, *rows], operation=operation)[-1][1] == {"rest", "moves"}


def test_rows_of_one_object_at_one_time_are_applied_in_input_order() -> None:
    rows = [(4, 4), (2, 2), (8, 8), (3, 3)]
    assert snapshot_changes([1, 1, 1, 1], "aaab", rows, operation="average") == [(1, "+", "b")]
    assert snapshot_answers([1, 1, 1, 1], "aaab", rows, operation="set") == [(1, {"b"})]
    assert snapshot_answers([1, 1, 1, 1], "aaab", [(8, 8), (8, 8), (2, 2), (3, 3)]) == [(1, {"a"})]


def test_rows_may_come_in_any_order_of_time() -> None:
    assert snapshot_answers([2, 1], "aa", [(1, 1), (5, 5)], operation="add")[-1] == (2, {"a"})
    assert stream(snapshot_changes([2, 1, 1], "aab", [(1, 1), (5, 5), (3, 3)])) == "(+b,1) (-b,2) (+a,2)"


def test_a_row_that_is_all_empty_deletes_and_the_object_may_come_back_anew() -> None:
    rows = [(1, 1), (2, 2), (None, math.nan), (5, 5), (None, None)]
    found = snapshot_changes([1, 1, 2, 3, 4], "abaab", rows, operation="add")
    assert stream(found) == "(+a,1) (-a,2) (+b,2) (-b,4) (+a,4)"


def test_deleting_what_is_not_there_is_a_snapshot_without_changes() -> None:
    assert snapshot_answers([1, 2], "ab", [(1, 1), (None, None)]) == [(1, {"a"}), (2, {"a"})]


def test_equal_objects_all_stay() -> None:
    assert stream(snapshot_changes([1, 2, 3], "abc", [(1, 1), (1, 1), (1, 2)])) == "(+a,1) (+b,2)"


def test_maximised_columns_are_compared_after_the_operation() -> None:
    rows = [(-2, 1), (3, 1), (1, 1)]
    # -2 times 3 is -6, the worst of a maximised column; negated values would give the best.
    assert snapshot_answers([1, 2, 2], "aab", rows, operation="multiply", signs=[-1, 1])[-1][1] == {"b"}
    assert snapshot_answers([1, 2, 2], "aab", rows, operation="multiply", signs=[1, 1])[-1][1] == {"a"}


def test_partly_empty_rows_follow_the_policy() -> None:
    rows, times, ids = [(1, None), (2, 2), (3, 3)], [1, 2, 3], "aba"
    with pytest.raises(InputError, match="'a' a value is missing"):
        snapshot_changes(times, ids, rows)
    assert stream(snapshot_changes(times, ids, rows, nulls="drop")) == "(+b,2)"
    assert stream(snapshot_changes(times, ids, rows, nulls="worst")) == "(+a,1) (+b,2) (-a,3)"


def test_a_dropped_row_leaves_the_object_as_it_was_and_makes_no_snapshot() -> None:
    rows = [(1, 1), (0, None)]
    assert snapshot_answers([1, 2], "aa", rows, nulls="drop") == [(1, {"a"})]


def test_a_missing_value_stays_missing_until_it_is_set() -> None:
    rows = [(1, None), (1, 1), (1, INF)]
    assert snapshot_answers([1, 1, 1], "aab", rows, operation="add", nulls="worst") == [(1, {"b"})]


def test_infinities_are_ordinary_values_until_they_cancel() -> None:
    with pytest.raises(InputError):
        snapshot_answers([1, 2], "aa", [(INF, 1), (-INF, 1)], operation="add")
    assert snapshot_answers([1, 2], "aa", [(INF, 1), (5, 1)], operation="add")[-1] == (2, {"a"})


def test_groups_have_their_own_skylines_and_an_object_can_change_its_group() -> None:
    found = snapshot_changes([1, 1, 2], "abb", [(1, 1), (2, 2), (2, 2)], by=["x", "y", "x"])
    assert stream(found) == "(+a,1) (+b,1) (-b,2)"


def test_only_closed_snapshots_are_emitted() -> None:
    times, ids, rows = [1, 2, 4], "abc", [(3, 3), (2, 2), (1, 1)]
    assert stream(snapshot_changes(times, ids, rows)) == "(+a,1) (-a,2) (+b,2) (-b,4) (+c,4)"
    assert stream(snapshot_changes(times, ids, rows, close_last=False)) == "(+a,1) (-a,2) (+b,2)"
    assert stream(snapshot_changes(times, ids, rows, close_last=False, lateness=2)) == "(+a,1)"
    assert stream(snapshot_changes(times, ids, rows, close_last=False, until=4)).endswith("(+c,4)")


value = st.integers(0, 3)
updates = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 3), st.tuples(value, value) | st.just((None, None))), max_size=14
)


@settings(max_examples=80)
@given(updates)
def test_after_each_snapshot_the_answer_is_what_no_current_object_dominates(drawn: list[Any]) -> None:
    times, ids, rows = [row[0] for row in drawn], [row[1] for row in drawn], [row[2] for row in drawn]
    answers = dict(snapshot_answers(times, ids, rows))
    assert sorted(answers) == sorted(set(times))
    for time, answer in answers.items():
        past = sorted((own for own in drawn if own[0] <= time), key=lambda own: own[0])
        current = {one: row for _, one, row in past}
        present = {one: row for one, row in current.items() if row != (None, None)}
        expected = {one for one, row in present.items() if not any(dominates(x, row) for x in present.values())}
        assert answer == expected


@settings(max_examples=40)
@given(updates, st.sampled_from(["add", "average", "multiply"]))
def test_operations_equal_setting_the_results(drawn: list[Any], operation: str) -> None:
    times, ids, rows = [row[0] for row in drawn], [row[1] for row in drawn], [row[2] for row in drawn]
    state: dict[int, Any] = {}
    results: dict[int, Any] = {}
    for position in sorted(range(len(drawn)), key=lambda position: times[position]):
        old, new = state.get(ids[position]), rows[position]
        if old is not None and new[0] is not None:
            pairs = list(zip(old, new, strict=True))
            new = tuple({"add": x + y, "multiply": x * y, "average": (x + y) / 2}[operation] for x, y in pairs)
        state[ids[position]] = None if new[0] is None else new
        results[position] = new
    as_set = [results[position] for position in range(len(drawn))]
    assert snapshot_changes(times, ids, rows, operation=operation) == snapshot_changes(times, ids, as_set)
