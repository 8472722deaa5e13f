"""The oracle of the sampled timestamps: published numbers, the theorem, and what the methods know without a word."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.protocols.filtering.schedule import Schedule, sampling_rate
from skytide.reference.sampling import Sampled, rate, splitmix64


def test_the_numbers_are_those_that_others_publish_for_splitmix64() -> None:
    assert list(itertools.islice(splitmix64(1234567), 5)) == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    assert next(splitmix64(0)) == 0xE220A8397B1DCDAF


@pytest.mark.parametrize(
    ("theta", "over", "epsilon", "delta", "expected"),
    [
        # ln(1/delta) is 1: sqrt(1/2s) + 2/(epsilon² theta s).
        ("0.5", 200, 0.5, math.exp(-1), 0.05 + 0.08),
        ("1", 800, 0.25, math.exp(-1), 0.025 + 0.04),
        ("0.5", 200, 0.5, math.exp(-4), 0.1 + 0.32),
        ("0.8", 10, 0.2, 0.1, 1.0),
    ],
)
def test_the_rate_is_that_of_the_theorem(theta: str, over: int, epsilon: float, delta: float, expected: float) -> None:
    assert math.isclose(rate(Fraction(theta), over, epsilon, delta), expected, rel_tol=1e-12)


@settings(max_examples=50)
@given(
    st.integers(0, 2**64 - 1),
    st.sampled_from(["0.07", "0.5", "1"]),
    st.integers(1, 5000),
    st.floats(0.01, 0.99),
    st.floats(0.001, 0.999),
)
def test_the_methods_sample_the_same_timestamps(seed: int, theta: str, over: int, epsilon: float, delta: float) -> None:
    expected = Sampled(Fraction(theta), over, epsilon=epsilon, delta=delta, seed=seed)
    schedule = Schedule(seed, sampling_rate([(Fraction(theta), over)], epsilon, delta))
    assert [schedule.sampled(time) for time in range(60)] == [expected(time) for time in range(60)]
