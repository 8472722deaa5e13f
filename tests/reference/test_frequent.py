"""The oracle of frequent skylines against zhang09c's example, decimals and a running count."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skytide.reference.frequent import frequent, frequent_answers, frequent_changes
from skytide.reference.window import differences

# zhang09c, Fig. 3: the skylines of three consecutive snapshots.
FIGURE_3 = [{"p1", "p2", "p3", "p4"}, {"p7", "p2", "p3", "p4"}, {"p2", "p4", "p7"}]


def test_the_example_of_zhang09c() -> None:
    assert frequent(FIGURE_3, 0.5, over=3) == {"p2", "p3", "p4", "p7"}
    assert frequent(FIGURE_3, 0.7, over=3) == {"p2", "p4"}


@pytest.mark.parametrize("theta", [0.07, "0.07", Decimal("0.07"), Fraction(7, 100)])
def test_theta_is_a_decimal(theta: float | str | Decimal | Fraction) -> None:
    assert 0.07 * 100 > 7
    series = [{"a"}] * 7 + [set[str]()] * 93
    assert frequent(series, theta, over=100) == {"a"}
    assert frequent(series[1:], theta, over=100) == set()


def test_the_bar_is_taken_literally_before_enough_snapshots_have_been_seen() -> None:
    series = [(time, {"a"}) for time in range(1, 6)]
    assert [answer for _, answer in frequent_answers(series, 0.8, over=5)] == [set(), set(), set(), {"a"}, {"a"}]


def test_with_theta_and_s_of_1_the_frequent_skyline_is_the_skyline() -> None:
    series = list(enumerate(FIGURE_3))
    assert frequent_changes(series, 1, over=1) == differences(series)


def test_an_object_that_is_gone_stays_frequent_while_its_appearances_count() -> None:
    series = [(1, {"a"}), (2, {"a"}), (3, {"a"}), (4, set[str]()), (5, set[str]())]
    assert [tuple(change) for change in frequent_changes(series, 0.5, over=4)] == [(2, "+", "a")]
    assert frequent_changes([*series, (6, set())], 0.5, over=4)[-1] == (6, "-", "a")


@given(
    st.lists(st.sets(st.integers(0, 4)), max_size=15),
    st.integers(1, 6),
    st.sampled_from(["0.1", "0.25", "0.5", "0.6", "0.8", "1"]),
)
def test_counting_as_the_window_slides_gives_the_same(series: list[set[int]], over: int, theta: str) -> None:
    counts = dict.fromkeys(range(5), 0)
    for number, answer in enumerate(series):
        for one in answer:
            counts[one] += 1
        if number >= over:
            for one in series[number - over]:
                counts[one] -= 1
        expected = {one for one, count in counts.items() if count and Fraction(count, over) >= Fraction(theta)}
        assert frequent(series[: number + 1], theta, over) == expected
