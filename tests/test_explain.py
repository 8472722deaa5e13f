"""Explanations: bounds that are sharp, and a smallest change that brute force cannot beat."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import skytide.explain
from skytide.errors import InputError
from skytide.explain import Bound, dominators_of, explain
from skytide.model import Floats, Preference

grids = st.integers(1, 4).flatmap(
    lambda d: st.lists(st.lists(st.integers(0, 4), min_size=d, max_size=d), min_size=1, max_size=9)
)
extremes = st.sampled_from([-np.inf, -1.797e308, -1.0, -5e-324, 0.0, -0.0, 5e-324, 2.0, 1.797e308, np.inf])
wild = st.integers(1, 3).flatmap(lambda d: st.lists(st.lists(extremes, min_size=d, max_size=d), min_size=1, max_size=7))
tables = st.one_of(grids, wild)


def inside(values: Floats, row: int, point: Floats) -> bool:
    return not dominators_of(np.delete(values, row, axis=0), point).any()


def moved(values: Floats, row: int, bounds: list[Bound]) -> Floats:
    """The row with each bound just reached."""
    point: Floats = values[row].copy()
    for bound in bounds:
        assert values[bound.like, int(bound.column)] == bound.value
        point[int(bound.column)] = np.nextafter(bound.value, -np.inf) if bound.strict else bound.value
    return point


@settings(max_examples=200)
@given(rows=tables)
def test_dominators_are_those_that_dominate_and_a_row_without_is_inside(rows: list[list[float]]) -> None:
    values = np.array(rows, dtype=float)
    for row in range(len(values)):
        found = explain(values, Preference.columns(values.shape[1]), row)
        assert found.dominators.tolist() == np.flatnonzero(dominators_of(values, values[row])).tolist()
        assert found.inside == inside(values, row, values[row])
        assert found.dominated == sum(bool(dominators_of(values[[row]], other).any()) for other in values)


@settings(max_examples=200)
@given(rows=tables)
def test_the_bound_of_one_column_is_sharp(rows: list[list[float]]) -> None:
    values = np.array(rows, dtype=float)
    for row in range(len(values)):
        found = explain(values, Preference.columns(values.shape[1]), row)
        for column, bound in enumerate(found.alone):
            point = values[row].copy()
            if bound is None:
                point[column] = -np.inf
                assert not inside(values, row, point)
                continue
            assert inside(values, row, moved(values, row, [bound]))
            point[column] = bound.value if bound.strict else np.nextafter(bound.value, np.inf)
            assert not inside(values, row, point)


@settings(max_examples=200)
@given(rows=tables)
def test_how_far_a_row_of_the_skyline_may_worsen_is_sharp(rows: list[list[float]]) -> None:
    values = np.array(rows, dtype=float)
    for row in range(len(values)):
        for column, bound in enumerate(explain(values, Preference.columns(values.shape[1]), row).slack):
            point = values[row].copy()
            if bound is None:
                point[column] = np.inf
                assert inside(values, row, point)
                continue
            if bound.strict:
                assert bound.value > values[row, column]
                point[column] = np.nextafter(bound.value, -np.inf)
                assert inside(values, row, point)
                point[column] = bound.value
                assert not inside(values, row, point)
            else:
                point[column] = bound.value
                assert inside(values, row, point)
                if bound.value < np.inf:
                    point[column] = np.nextafter(bound.value, np.inf)
                    assert not inside(values, row, point)


@settings(max_examples=150)
@given(rows=grids)
def test_no_change_is_smaller_than_the_smallest(rows: list[list[float]]) -> None:
    values = np.array(rows, dtype=float)
    ranges = np.where(np.ptp(values, axis=0) > 0, np.ptp(values, axis=0), 1.0)
    for row in range(len(values)):
        found = explain(values, Preference.columns(values.shape[1]), row)
        if found.smallest is None:
            assert found.inside
            continue
        assert found.smallest.exact
        assert inside(values, row, moved(values, row, list(found.smallest.bounds)))
        # On the grid an optimum lies at values of rows, or just below them.
        below = [np.concatenate([column, np.nextafter(column, -9)]) for column in values.T]
        steps = [np.unique(column[column <= own]) for column, own in zip(below, values[row], strict=True)]
        reach = [np.array(point) for point in itertools.product(*steps)]
        least = min(float(((values[row] - point) / ranges).sum()) for point in reach if inside(values, row, point))
        assert found.smallest.cost == pytest.approx(least, abs=1e-9)


@settings(max_examples=150)
@given(rows=wild)
def test_the_smallest_change_brings_the_row_in_even_among_extreme_values(rows: list[list[float]]) -> None:
    values = np.array(rows, dtype=float)
    for row in range(len(values)):
        found = explain(values, Preference.columns(values.shape[1]), row)
        if not found.inside:
            assert found.smallest is not None and np.isfinite(found.smallest.cost)
            assert inside(values, row, moved(values, row, list(found.smallest.bounds)))


def test_a_search_without_budget_gives_a_move_that_works_and_does_not_call_it_the_least(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = np.random.default_rng(0).random((400, 4))
    row = int(values.sum(axis=1).argmax())
    proven = explain(values, Preference.columns(4), row).smallest
    monkeypatch.setattr(skytide.explain, "SEARCH_WORK", 10)
    found = explain(values, Preference.columns(4), row).smallest
    assert proven is not None and found is not None
    assert proven.exact and not found.exact
    assert proven.cost <= found.cost
    assert inside(values, row, moved(values, row, list(found.bounds)))


def test_groups_compete_on_their_own_and_values_come_in_the_column_s_own_direction() -> None:
    table = pa.table({"price": [10, 5, 9], "mpg": [20, 30, 25], "city": ["a", "b", "a"]})
    found = explain(table, Preference(minimize=["price"], maximize=["mpg"], by=["city"]), 0)
    assert found.dominators.tolist() == [2]
    needs = [(bound.column, bound.value, bound.like) for bound in found.alone if bound]
    assert needs == [("price", 9, 2), ("mpg", 25, 2)]


def test_missing_values_are_worst_or_leave_the_row_out() -> None:
    table = pa.table({"a": [None, 1.0, None], "b": [1.0, 1.0, 0.0]})
    preference = Preference(minimize=["a", "b"])
    found = explain(table, preference, 0, nulls="worst")
    assert found.dominators.tolist() == [1, 2]
    assert found.smallest is not None
    with pytest.raises(InputError, match="row 1: the row has a missing value"):
        explain(table, preference, 0, nulls="drop")
    with pytest.raises(InputError, match="no row at this position"):
        explain(table, preference, 3, nulls="worst")
