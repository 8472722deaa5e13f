"""The oracle of uncertain rows against zhang09p's examples, possible worlds and the laws of probability."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.reference.batch import skyline
from skytide.reference.uncertain import (
    Instance,
    Object,
    at_least,
    consecutive,
    most_probable,
    probability,
    probability_by_worlds,
    ranking,
    reaches,
    single,
    uncertain_changes,
    worlds,
)
from skytide.reference.window import window_changes

# zhang09p, Fig. 1: the figure is not in the text. These places have the stated relations: a4 is dominated by a1, a2, a3
# and a5; a1 by a2 and a3; and nobody else by anybody.
PLACES = {"a1": (4, 4), "a2": (1, 3), "a3": (3, 1), "a4": (6, 6), "a5": (0, 5), "a6": (9, 0)}
CHANCES = {"a1": "0.9", "a2": "0.4", "a3": "0.3", "a4": "0.9", "a5": "0.1", "a6": "0.2"}


def elements(*names: str) -> list[Object]:
    return single([PLACES[name] for name in names], [Fraction(CHANCES[name]) for name in names])


def test_example_1_gives_a4_the_probability_0_034() -> None:
    window = elements("a1", "a2", "a3", "a4", "a5")
    assert probability_by_worlds(window, 3) == Fraction("0.9") * Fraction("0.9") * Fraction("0.042")
    assert round(float(probability(window, 3)), 3) == 0.034


def test_example_3_lets_a4_in_when_a1_and_a2_have_expired() -> None:
    assert round(float(probability(elements("a2", "a3", "a4", "a5"), 2)), 2) == 0.34
    assert probability(elements("a3", "a4", "a5", "a6"), 1) == Fraction("0.567")
    names = list(PLACES)
    changes = uncertain_changes(elements(*names), None, names, thresholds=[0.5], count=4)
    assert [tuple(change) for change in changes] == [(1, "+", "a1", 0.5), (3, "-", "a1", 0.5), (6, "+", "a4", 0.5)]


def test_certain_elements_have_the_certain_skyline() -> None:
    rows = [(1, 4), (2, 2), (3, 3), (2, 2)]
    objects = single(rows, [1, 1, 1, 1])
    assert at_least(objects, 1) == skyline(rows)
    assert [probability(objects, position) for position in range(4)] == [1, 1, 0, 1]


def test_a_probability_just_below_the_threshold_reaches_it() -> None:
    # 0.7 * 0.3 is 0.21 as decimals but below 0.21 as floats.
    objects = single([(1,), (2,)], [0.3, 0.3])
    exact = probability(objects, 1)
    assert exact != Fraction(0.21) and reaches(exact, 0.21)
    assert reaches(Fraction(1, 2) * (1 - Fraction(1, 10**12)), 0.5)
    assert not reaches(Fraction(1, 2) * (1 - Fraction(11, 10**13)), 0.5)


def test_instances_of_one_object_do_not_dominate_each_other_and_exclude_each_other() -> None:
    objects: list[Object] = [[Instance((1,), Fraction(1, 2)), Instance((2,), Fraction(1, 2))], [Instance((3,), 1)]]
    assert probability(objects, 0) == 1
    assert probability(objects, 1) == probability_by_worlds(objects, 1) == 0


def test_the_counterexample_to_section_6_of_zhang09p_by_worlds() -> None:
    places = [
        [(0, 1), (2, 5), (5, 5)],
        [(1, 2)],
        [(5, 3), (0, 4)],
        [(1, 0), (5, 1), (4, 5)],
        [(0, 1), (4, 2)],
    ]
    objects: list[Object] = [[Instance(row, Fraction(1, len(rows))) for row in rows] for rows in places]
    chances = [probability(objects, position) for position in range(5)]
    assert chances == [probability_by_worlds(objects, position) for position in range(5)]
    # Newer instances leave object 0 a third, so it is no candidate at q = 0.5; yet without it object 3 would reach q.
    assert chances[3] == Fraction(4, 9) and 3 not in at_least(objects, 0.5)
    assert reaches(probability(objects[1:], 2), 0.5)


def test_consecutive_rows_with_one_key_are_one_object_and_a_key_may_return() -> None:
    keys, objects = consecutive([(1,), (2,), (3,), (4,)], [0.5, 0.25, 1.0, 1.0], ["a", "a", "b", "a"])
    assert keys == ["a", "b", "a"]
    assert [[one.row for one in found] for found in objects] == [[(1,), (2,)], [(3,)], [(4,)]]


def test_a_count_window_counts_objects_not_instances() -> None:
    keys, objects = consecutive([(1,), (1,), (2,), (3,)], [0.5, 0.5, 1.0, 1.0], ["a", "a", "b", "c"])
    found = uncertain_changes(objects, None, keys, thresholds=[0.5], count=2)
    assert [tuple(change)[:3] for change in found] == [(1, "+", "a"), (3, "-", "a"), (3, "+", "b")]


def test_time_windows_groups_and_several_thresholds() -> None:
    found = uncertain_changes(
        single([(1,), (2,), (0,)], [0.5, 0.9, 1.0]),
        [0, 1, 1],
        "abc",
        thresholds=[0.6, 0.3],
        duration=2,
        by="xxy",
        until=3,
    )
    assert [" ".join(map(str, change)) for change in found] == [
        "0 + a 0.3",
        "1 + b 0.3",
        "1 + c 0.3",
        "1 + c 0.6",
        "2 - a 0.3",
        "2 + b 0.6",
        "3 - b 0.3",
        "3 - b 0.6",
        "3 - c 0.3",
        "3 - c 0.6",
    ]


def test_the_most_probable_are_those_with_fewer_than_k_more_probable_ones() -> None:
    objects = single([(1, 9), (2, 8), (3, 7), (4, 6)], [0.5, 0.9, 0.5, 0.2])
    assert most_probable(objects, 0.3, 1) == [1]
    assert most_probable(objects, 0.3, 2) == [0, 1, 2]
    assert most_probable(objects, 0.3, 4) == [0, 1, 2]
    found = uncertain_changes(objects, None, "abcd", thresholds=[0.3, 0.6], count=9, top=1)
    assert [tuple(change) for change in found] == [(1, "+", "a", 0.3), (2, "-", "a", 0.3), (2, "+", "b", 0.3)]


def test_the_ranking_puts_equal_probabilities_in_the_order_of_ids_as_text() -> None:
    objects = single([(1, 9), (2, 8), (3, 7)], [0.5, 0.5, 0.75])
    assert [one for one, _ in ranking(objects, [10, 9, 1], 0.5)] == [1, 10, 9]


chance = st.sampled_from([Fraction(n, 10) for n in range(1, 11)])
place = st.tuples(st.integers(0, 3), st.integers(0, 3))


@st.composite
def uncertain_objects(draw: Any) -> Object:
    instances = draw(st.lists(st.tuples(place, chance), min_size=1, max_size=3))
    total = max(Fraction(1), sum(weight for _, weight in instances))
    return [Instance(row, weight / total) for row, weight in instances]


@settings(max_examples=60)
@given(st.lists(uncertain_objects(), min_size=1, max_size=4))
def test_the_product_formula_equals_the_sum_over_possible_worlds(objects: list[Object]) -> None:
    assert sum(weight for weight, _ in worlds(objects)) == 1
    for position in range(len(objects)):
        assert probability(objects, position) == probability_by_worlds(objects, position)


@settings(max_examples=60)
@given(st.lists(uncertain_objects(), min_size=2, max_size=5))
def test_more_rivals_never_help(objects: list[Object]) -> None:
    for position in range(len(objects) - 1):
        assert probability(objects, position) <= probability(objects[:-1], position)


@settings(max_examples=60)
@given(st.lists(uncertain_objects(), min_size=1, max_size=5), chance, chance)
def test_a_higher_threshold_gives_a_part_of_the_answer(objects: list[Object], one: Fraction, other: Fraction) -> None:
    low, high = min(one, other), max(one, other)
    assert set(at_least(objects, high)) <= set(at_least(objects, low))
    assert set(most_probable(objects, low, 2)) <= set(at_least(objects, low))


@settings(max_examples=40)
@given(
    st.lists(st.tuples(place, st.integers(0, 5)), min_size=1, max_size=7),
    st.integers(1, 3),
    st.booleans(),
    st.integers(0, 9),
)
def test_with_certain_rows_the_change_stream_is_that_of_the_plain_window(
    drawn: list[tuple[tuple[int, int], int]], length: int, by_count: bool, until: int
) -> None:
    rows, times, ids = [row for row, _ in drawn], [time for _, time in drawn], list(range(len(drawn)))
    shape: dict[str, Any] = {"count": length} if by_count else {"duration": length}
    found = uncertain_changes(single(rows, [1] * len(rows)), times, ids, thresholds=[0.5], until=until, **shape)
    assert [tuple(change)[:3] for change in found] == window_changes(rows, times, ids, until=until, **shape)
