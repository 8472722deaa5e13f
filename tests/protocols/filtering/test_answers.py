"""Frequent skylines from every timestamp and from sampled ones."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.monitors.frequent.changes import PairChanges
from skytide.protocols.filtering.answers import Answers, ExactAnswers, SampledAnswers
from skytide.reference.frequent import exact, frequent_changes

SKYLINES = st.lists(st.sets(st.integers(0, 4)), min_size=1, max_size=15)
PAIRS = st.sampled_from([("1", 1), ("0.5", 3), ("0.07", 100), ("0.3", 10), ("0.8", 5), ("1", 4)])


def ordered(skyline: set[int]) -> np.ndarray:
    return np.array(sorted(skyline), np.int64)


@settings(max_examples=100, deadline=None)
@given(SKYLINES, PAIRS)
def test_where_everything_is_sampled_both_are_exact(skylines: list[set[int]], pair: tuple[str, int]) -> None:
    expected = frequent_changes(list(enumerate(skylines)), *pair)
    makers: list[Answers] = [ExactAnswers([pair]), SampledAnswers([pair])]
    for answers in makers:
        found = [one for time, each in enumerate(skylines) for one in answers.observe(ordered(each), time)]
        assert found == expected


@settings(max_examples=100, deadline=None)
@given(st.lists(st.none() | st.sets(st.integers(0, 4)), min_size=1, max_size=20), PAIRS)
def test_sampled_answers_follow_their_definition(skylines: list[set[int] | None], pair: tuple[str, int]) -> None:
    theta, over = exact(pair[0]), pair[1]
    answers, now = SampledAnswers([pair]), set[int]()
    for time, skyline in enumerate(skylines):
        for change in answers.observe(None if skyline is None else ordered(skyline), time):
            assert (change.id in now) == (change.change == "-")
            now ^= {change.id}
        samples = [each for each in skylines[max(0, time + 1 - over) : time + 1] if each is not None]
        seen = Fraction(min(time + 1, over), over)
        expected = {one for one in range(5) if sum(one in each for each in samples) * seen >= theta * len(samples)}
        assert now == (expected if samples else set())


def test_several_queries_each_have_their_changes() -> None:
    pairs: list[tuple[str, int]] = [("1", 1), ("0.5", 2)]
    exact_one, sampled = ExactAnswers(pairs), SampledAnswers(pairs)
    for time, skyline in enumerate([{1}, {2}, {2, 3}, set[int]()]):
        found = sampled.observe(ordered(skyline), time)
        assert isinstance(found, PairChanges)
        assert list(found) == list(exact_one.observe(ordered(skyline), time))


def test_theta_is_a_decimal() -> None:
    answers = SampledAnswers([(0.07, 100)])
    assert 0.07 * 100 > 7
    for time in range(100):
        found = list(answers.observe(ordered({0} if time < 7 else {1}), time))
        assert time != 6 or [tuple(one) for one in found] == [(6, "+", 0)]


@pytest.mark.parametrize("over", [2**40, 10**30])
def test_windows_longer_than_any_run_are_no_trouble(over: int) -> None:
    answers = SampledAnswers([("1", over)])
    assert len(answers.observe(ordered({3}), 0)) == 0
    assert math.isfinite(len(answers.observe(None, 1)))
