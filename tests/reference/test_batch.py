"""The batch oracle against hand-made cases and the laws of dominance."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from skytide.reference.batch import by_group, dominates, dominators, groups, skyband, skyline, top, worst_for_missing

EXTREMES = [-math.inf, -1.797e308, -5e-324, -0.0, 0.0, 5e-324, 1.0, 1.797e308, math.inf]
values = st.integers(0, 3) | st.sampled_from(EXTREMES)
rows = st.lists(st.tuples(values, values, values), max_size=12)


def test_the_skyline_of_tao06_figure_1a_is_b_e_f() -> None:
    # The figure is not in the text; these points have the relations the text states: e is better than a, c and d.
    points = {"a": (5, 5), "b": (1, 8), "c": (6, 6), "d": (4, 7), "e": (3, 3), "f": (7, 1)}
    names = list(points)
    assert [names[position] for position in skyline(list(points.values()))] == ["b", "e", "f"]


def test_equal_rows_all_stay() -> None:
    assert skyline([(1, 1), (1, 1), (2, 0), (2, 2)]) == [0, 1, 2]


def test_negative_zero_equals_zero() -> None:
    assert skyline([(0.0, 1.0), (-0.0, 1.0)]) == [0, 1]


def test_infinities_are_ordinary_values() -> None:
    assert skyline([(-math.inf, math.inf), (0.0, math.inf), (0.0, 1.797e308)]) == [0, 2]


def test_a_missing_value_under_worst_loses_to_infinity_and_equals_another_missing_value() -> None:
    given_rows = worst_for_missing([(1, None), (1, math.inf), (0, math.nan), (0, None)])
    assert skyline(given_rows) == [1, 2, 3]


def test_no_rows_have_an_empty_skyline() -> None:
    assert skyline([]) == [] and skyband([], 3) == [] and top([], 2, sum) == [] and groups([]) == {}


@given(rows)
def test_dominance_is_a_strict_partial_order(points: list[tuple[float, ...]]) -> None:
    for a in points:
        assert not dominates(a, a)
        for b in points:
            assert not (dominates(a, b) and dominates(b, a))
            for c in points:
                assert not (dominates(a, b) and dominates(b, c)) or dominates(a, c)


@given(rows)
def test_every_row_outside_the_skyline_is_dominated_by_a_row_inside(points: list[tuple[float, ...]]) -> None:
    inside = skyline(points)
    for position, row in enumerate(points):
        assert (position in inside) != any(dominates(points[member], row) for member in inside)


@given(rows, st.integers(1, 4))
def test_the_skyband_grows_with_k_and_its_members_are_dominated_by_fewer_than_k(
    points: list[tuple[float, ...]], k: int
) -> None:
    band = skyband(points, k)
    assert set(band) <= set(skyband(points, k + 1))
    assert all((len(dominators(points, row)) < k) == (position in band) for position, row in enumerate(points))
    assert len(skyband(points, len(points) + 1)) == len(points)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=12), st.integers(1, 4))
def test_top_k_holds_k_rows_or_more_by_ties_and_lies_in_the_k_skyband(points: list[tuple[int, int]], k: int) -> None:
    found = top(points, k, sum)
    assert len(found) >= min(k, len(points))
    assert set(found) <= set(skyband(points, k))
    if points:
        bar = sorted(map(sum, points))[min(k, len(points)) - 1]
        assert found == [position for position, row in enumerate(points) if sum(row) <= bar]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from("xyz")), max_size=12))
def test_groups_do_not_see_each_other(points: list[tuple[int, int, str]]) -> None:
    plain, keys = [row[:2] for row in points], [row[2] for row in points]
    found = by_group(plain, keys, skyline)
    for position, row in enumerate(plain):
        rivals = [other for other, key in zip(plain, keys, strict=True) if key == keys[position]]
        assert (position in found) == (not dominators(rivals, row))
