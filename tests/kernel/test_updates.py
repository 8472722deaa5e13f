"""What rows make of objects, compiled, against the reference row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.kernel.updates import (
    AVERAGE,
    BAD,
    GONE,
    IDLE,
    MULTIPLY,
    OPERATIONS,
    PLACED,
    SET,
    commit,
    missing_in,
    outcome,
)
from skytide.model import Floats, Integers
from skytide.reference.snapshots import apply, missing

NAN, INF = float("nan"), float("inf")
CELLS = st.sampled_from([0.0, 1.0, -2.0, 3.5, INF, -INF, NAN, 1.797e308, -1.797e308, 5e-324, -0.0])


def plain(row: Any) -> list[float | None]:
    return [None if missing(value) else float(value) for value in row]


def run(
    values: Any, present: Any, numbers: list[int], rows: Any, operations: list[int], signs: Any, partial: bool
) -> tuple[Floats, list[int], int, Integers]:
    held = np.array(values, np.float64)
    given = np.array(rows, np.float64).reshape(len(numbers), held.shape[1])
    results, verdicts = np.full(given.shape, 77.0), np.full(len(given), 9)
    last = np.full(len(held), -1)
    bad = outcome(
        held, np.array(present, bool), np.array(numbers, np.int64), given, np.array(operations, np.int64),
        np.array(signs, np.float64), partial, last, results, verdicts,
    )  # fmt: skip
    assert np.array_equal(held, np.array(values, np.float64), equal_nan=True), "the objects are as they were"
    return results, verdicts.tolist(), bad, last


@settings(max_examples=150)
@given(st.data())
def test_rows_make_of_objects_what_the_reference_says(data: st.DataObject) -> None:
    d, objects = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 4))
    row = st.lists(CELLS, min_size=d, max_size=d)
    signs = np.array(data.draw(st.lists(st.sampled_from([1.0, -1.0]), min_size=d, max_size=d)))
    partial = data.draw(st.booleans())
    values = np.array(data.draw(st.lists(row, min_size=objects, max_size=objects)))
    present = np.array(data.draw(st.lists(st.booleans(), min_size=objects, max_size=objects)))
    if not partial:
        present &= ~np.isnan(values).any(axis=1)
    rows = data.draw(st.lists(row, max_size=12))
    numbers = [data.draw(st.integers(0, objects - 1)) for _ in rows]
    operations = [data.draw(st.sampled_from(sorted(OPERATIONS))) for _ in rows]
    results, verdicts, bad, last = run(
        values, present, numbers, np.array(rows).reshape(len(rows), d) * signs, [OPERATIONS[op] for op in operations],
        signs, partial,
    )  # fmt: skip
    # Values that users have are not oriented.
    held: dict[int, Any] = {one: plain(values[one] * signs) for one in range(objects) if present[one]}
    for place, (one, given_row, operation) in enumerate(zip(numbers, rows, operations, strict=True)):
        there = one in held
        taken = apply(held, one, given_row, operation, "worst" if partial else "drop")
        if all(map(missing, given_row)):
            assert verdicts[place] == (GONE if there else IDLE)
        elif not taken:
            assert verdicts[place] == BAD
        else:
            assert verdicts[place] == PLACED
            assert plain(results[place] * signs) == held[one]
    assert bad == verdicts.count(BAD)
    assert (last == -1).all(), "the scratch is left as it was"


def test_a_product_of_a_maximised_column_keeps_its_sign() -> None:
    results, verdicts, bad, _ = run([[-3.0, 3.0]], [True], [0], [[2.0, -2.0]], [MULTIPLY], [1.0, -1.0], False)
    assert results.tolist() == [[-6.0, 6.0]] and verdicts == [PLACED] and bad == 0


@pytest.mark.parametrize("operation", sorted(OPERATIONS))
def test_extreme_values_are_added_multiplied_and_halved_as_floats_are(operation: str) -> None:
    numbers = [0.0, 1.0, -3.0, INF, -INF, 1.797e308, -1.797e308, 5e-324, -5e-324, 0.1]
    for old in numbers:
        rows = [[new] for new in numbers]
        results, verdicts, _, _ = run(
            [[old]] * len(rows), [True] * len(rows), list(range(len(rows))), rows, [OPERATIONS[operation]] * len(rows),
            [1.0], False,
        )  # fmt: skip
        for new, found, verdict in zip(numbers, results[:, 0].tolist(), verdicts, strict=True):
            held: dict[int, Any] = {0: (old,)}
            assert (verdict == PLACED) == apply(held, 0, (new,), operation, "drop")
            assert verdict == BAD or found == held[0][0]


def test_what_a_bad_row_leaves_is_what_the_next_one_finds() -> None:
    rows = [[INF], [-INF], [5.0], [NAN], [NAN], [4.0], [8.0]]
    operations = [SET, 1, 1, SET, SET, AVERAGE, AVERAGE]
    results, verdicts, bad, _ = run([[1.0]], [True], [0] * 7, rows, operations, [1.0], False)
    assert verdicts == [PLACED, BAD, PLACED, GONE, IDLE, PLACED, PLACED] and bad == 1
    assert results[[0, 2, 5, 6], 0].tolist() == [INF, INF, 4.0, 6.0]


@pytest.mark.parametrize("partial", [False, True])
def test_no_rows_do_nothing(partial: bool) -> None:
    results, verdicts, bad, last = run([[1.0, NAN]], [True], [], np.zeros((0, 2)), [], [1.0, 1.0], partial)
    assert results.shape == (0, 2) and verdicts == [] and bad == 0 and last.tolist() == [-1]


@settings(max_examples=60)
@given(st.data())
def test_rows_are_committed_one_after_the_other(data: st.DataObject) -> None:
    d, objects, rows = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 4)), data.draw(st.integers(0, 12))
    seed = np.random.default_rng(data.draw(st.integers(0, 999)))
    values, present, home = seed.random((objects, d)), seed.random(objects) < 0.5, seed.integers(-1, 3, objects)
    numbers, groups = seed.integers(0, objects, rows), seed.integers(0, 3, rows)
    results, verdicts = seed.random((rows, d)), seed.integers(0, 4, rows)
    expected = [
        (row.tolist(), bool(there), int(where)) for row, there, where in zip(values, present, home, strict=True)
    ]
    for number, group, row, verdict in zip(
        numbers.tolist(), groups.tolist(), results.tolist(), verdicts.tolist(), strict=True
    ):
        if verdict == PLACED:
            expected[number] = (row, True, group)
        elif verdict in (GONE, IDLE):
            expected[number] = (expected[number][0], False, -1)
    commit(values, present, home, numbers, groups, results, verdicts)
    assert [
        (row.tolist(), bool(there), int(where)) for row, there, where in zip(values, present, home, strict=True)
    ] == expected


def test_rows_miss_nothing_something_or_everything() -> None:
    rows = np.array([[1.0, 2.0], [NAN, 2.0], [NAN, NAN], [INF, -INF], [1.0, NAN]])
    partial, empty = np.ones(5, bool), np.ones(5, bool)
    missing_in(rows, partial, empty)
    assert partial.tolist() == [False, True, False, False, True] and empty.tolist() == [
        False,
        False,
        True,
        False,
        False,
    ]
    one = np.array([[NAN], [1.0]])
    missing_in(one, partial[:2], empty[:2])
    assert partial[:2].tolist() == [False, False] and empty[:2].tolist() == [True, False]
