"""Weights that add up exactly, and thresholds that are reached exactly when the product in fractions reaches them."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skytide.kernel import uncertain_numbers as numbers

chances = (
    st.floats(0, 1, exclude_min=True) | st.sampled_from([1.0, 1 - 2.0**-53, 2.0**-53, 5e-324, 0.5]) | st.floats(0.9, 1)
)


@given(st.lists(chances, max_size=60))
def test_a_sum_of_weights_is_the_logarithm_of_the_product(drawn: list[float]) -> None:
    high, low = (sum(parts) for parts in zip((0, 0), *map(numbers.weight, drawn), strict=True))
    certain = drawn.count(1.0)
    expected = math.fsum(math.log1p(-p) for p in drawn if p < 1) + certain * numbers.CERTAIN
    assert numbers.value(high, low) == pytest.approx(expected, rel=1e-15, abs=1e-18)


@given(st.lists(chances, min_size=1, max_size=60), st.randoms())
def test_what_is_taken_away_leaves_nothing_behind(drawn: list[float], source: random.Random) -> None:
    weights = np.array([numbers.weight(p) for p in drawn]).T
    order = list(range(len(drawn)))
    source.shuffle(order)
    total = weights.sum(axis=1)
    for i in order[1:]:
        total = total - weights[:, i]
    assert (total == weights[:, order[0]]).all()


def test_a_certain_row_sinks_every_sum_below_the_smallest_threshold() -> None:
    smallest = numbers.bars_of(np.array([5e-324]))[numbers.BAR, 0]
    assert numbers.value(*numbers.weight(1.0)) < smallest - 1


@given(st.lists(chances, min_size=1, max_size=30), st.floats(-4e-12, 2e-12), st.integers(-3, 3))
@example([0.5, 0.5], 0.0, 0)
@example([1e-9] * 20, -1e-12, 0)
@example([0.3, 0.7], -1e-12, 1)
def test_a_product_reaches_a_threshold_as_fractions_do(drawn: list[float], off: float, steps: int) -> None:
    product = Fraction(drawn[0]) * math.prod(1 - Fraction(p) for p in drawn[1:])
    threshold = float(product) * (1 - off)
    for _ in range(abs(steps)):
        threshold = math.nextafter(threshold, math.copysign(2.0, steps))
    if not 1e-280 < threshold <= 1:
        return
    high, low = drawn[0], 0.0
    for p in drawn[1:]:
        high, low = numbers.times(high, low, *numbers.complement(p))
    reached = product >= Fraction(threshold) * (1 - Fraction(1, 10**12))
    assert numbers.product_reaches(high, low, threshold) == reached


@given(chances)
def test_a_complement_is_exact(p: float) -> None:
    high, low = numbers.complement(p)
    assert Fraction(float(high)) + Fraction(float(low)) == 1 - Fraction(p)
