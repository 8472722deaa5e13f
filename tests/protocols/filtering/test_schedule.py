"""The sequence that server and clients share, and the rate."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skytide.errors import OptionError
from skytide.protocols.filtering.schedule import Schedule, number_at, sampling_rate


@pytest.mark.parametrize("seed", [0, 1, 2**64 - 1])
def test_the_numbers_are_uniform_and_do_not_follow_from_each_other(seed: int) -> None:
    n = 20_000
    x = np.array([number_at(seed, time) / 2**64 for time in range(n)])
    counts = np.histogram(x, bins=50, range=(0, 1))[0]
    # The 99.99% point of chi-squared with 49 degrees of freedom is 94.
    assert ((counts - n / 50) ** 2 / (n / 50)).sum() < 94
    for lag in (1, 2, 7):
        assert abs(np.corrcoef(x[:-lag], x[lag:])[0, 1]) < 4 / np.sqrt(n)


def test_seeds_next_to_each_other_give_sequences_that_do_not_agree() -> None:
    first, second = ([number_at(seed, time) / 2**64 for time in range(5000)] for seed in (1, 2))
    assert abs(np.corrcoef(first, second)[0, 1]) < 4 / np.sqrt(5000)
    assert not set(first) & set(second)


@pytest.mark.parametrize("rate", [0.05, 0.178, 0.6])
def test_the_share_of_sampled_timestamps_is_the_rate(rate: float) -> None:
    schedule = Schedule(3, rate)
    found = np.mean([schedule.sampled(time) for time in range(20_000)])
    assert abs(found - rate) < 4 * np.sqrt(rate * (1 - rate) / 20_000)


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1))
def test_everything_is_sampled_at_rate_1_and_more_at_higher_rates(seed: int, time: int) -> None:
    assert Schedule(seed, 1.0).sampled(time)
    found = [Schedule(seed, rate).sampled(time) for rate in (0.1, 0.3, 0.9, 1.0)]
    assert found == sorted(found)


def test_the_rate_is_that_of_the_theorem_and_several_queries_take_the_largest() -> None:
    usual = (Fraction("0.8"), 1000)
    assert abs(sampling_rate([usual], 0.2, 0.1) - 0.17783) < 1e-4
    assert sampling_rate([usual, (Fraction("0.8"), 10)], 0.2, 0.1) == 1.0
    both = sampling_rate([usual, (Fraction("0.8"), 500)], 0.2, 0.1)
    assert both == sampling_rate([(Fraction("0.8"), 500)], 0.2, 0.1) > sampling_rate([usual], 0.2, 0.1)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.1), (0.2, 1.0), (-1.0, 0.1), (0.2, float("nan"))])
def test_rates_that_are_none_are_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(OptionError, match="is not a usable"):
        sampling_rate([(Fraction(1), 1)], epsilon, delta)
