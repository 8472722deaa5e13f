"""Ranges over balls: exact where there is a formula, and never too narrow."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.errors import SkytideError
from skytide.expressions import parse
from skytide.kernel.functions import values
from skytide.kernel.intervals import ball_range
from skytide.model import Floats
from skytide.protocols.fragmented.functions import Functions
from skytide.reference.functional import expression
from tests.protocols.fragmented.expressions import SAMPLES, At, drawn_text, vectors

POINTS = 500


def points_of(centre: Floats, radius: float, source: np.random.Generator, count: int) -> Floats:
    """Points of a ball, half of them on its rim."""
    steps = source.normal(size=(count, len(centre)))
    steps /= np.maximum(np.linalg.norm(steps, axis=1, keepdims=True), 1e-300)
    inner = source.random((count, 1)) ** (1 / len(centre))
    # a little inside, so that rounding puts none outside
    return centre + radius * (1 - 2**-50) * steps * np.where(source.random((count, 1)) < 0.5, 1.0, inner)


def contained(functions: Functions, source: np.random.Generator, balls: int) -> int:
    """Sampled values lie in their ranges; how many of the ranges were finite."""
    finite = 0
    columns = source.normal(size=(balls, len(functions.columns))) * 10.0 ** source.integers(-1, 3, (balls, 1))
    for centre in vectors(functions, np.where(source.random((balls, 1)) < 0.5, np.abs(columns), columns)):
        radius = float(np.abs(centre).max() * source.choice([0.0, 1e-9, 1e-3, 0.1, 1.0, 10.0]))
        points = points_of(centre, radius, source, POINTS)
        found = values(functions.programs, points)
        for k in range(functions.k):
            low, high = ball_range(functions.programs, k, centre, radius)
            if math.isinf(low) or math.isinf(high):
                assert (low, high) == (-math.inf, math.inf)
                continue
            finite += 1
            assert low <= found[:, k].min() and found[:, k].max() <= high
    return finite


@pytest.mark.parametrize("text", SAMPLES)
def test_ranges_contain_sampled_values(text: str) -> None:
    assert contained(Functions([text], [f"2 - ({text})"]), np.random.default_rng(7), 40) > 8


@settings(max_examples=60)
@given(st.integers(0, 2**32))
def test_ranges_of_any_expression_contain_sampled_values(seed: int) -> None:
    try:
        functions = Functions([drawn_text(random.Random(seed))])
    except SkytideError:
        return
    contained(functions, np.random.default_rng(seed), 10)


@settings(max_examples=60)
@given(st.integers(0, 2**32))
def test_ranges_contain_what_the_reference_says(seed: int) -> None:
    source = np.random.default_rng(seed)
    text = SAMPLES[seed % len(SAMPLES)]
    functions = Functions([text])
    centre = vectors(functions, source.normal(size=(1, len(functions.columns))))[0]
    low, high = ball_range(functions.programs, 0, centre, 0.5)
    for point in points_of(centre, 0.5, source, 20):
        true = expression(parse(text))(At(functions, point))
        assert low <= true <= high or math.isinf(low)


def near(found: tuple[float, float], low: float, high: float, size: float) -> bool:
    room = 1e-12 * (size + 1)
    return low - room <= found[0] <= low + 1e-13 * room and high - 1e-13 * room <= found[1] <= high + room


vector = st.lists(st.sampled_from([0.0, 1.0, -1.0, 0.1, 3.0, 1e3]) | st.floats(-10, 10), min_size=4, max_size=4)
radii = st.sampled_from([0.0, 0.5, 1.0, 1e-3, 10.0]) | st.floats(0, 10)


@given(vector, radii)
def test_linear_functions_norms_and_distances_have_their_exact_ranges(numbers: list[float], radius: float) -> None:
    centre = np.array(numbers)
    functions = Functions(["2 * a - b + 1", "norm(a, b, c, d)", "distance(a, b, c, d)"], ["norm(d, a)"])
    exact = [
        (2 * centre[0] - centre[1] + 1, math.sqrt(5) * radius),
        (math.hypot(*centre), radius),
        (math.hypot(centre[0] - centre[2], centre[1] - centre[3]), math.sqrt(2) * radius),
        (math.hypot(centre[3], centre[0]), radius),
    ]
    for k, (middle, reach) in enumerate(exact):
        low, high = (middle - reach if k == 0 else max(middle - reach, 0.0)), middle + reach
        low, high = (-high, -low) if k == 3 else (low, high)
        assert near(ball_range(functions.programs, k, centre, radius), low, high, 3 * np.abs(centre).sum() + 3 * radius)


@settings(max_examples=200)
@given(
    st.sampled_from([0.0, 1e-300, 1e-12, 1e-3, 0.1, 1.0, -3.0, 100.0]) | st.floats(-5, 5),
    st.floats(-5, 5),
    radii | st.sampled_from([1e-9, 0.4999999, 0.5000001]),
)
def test_the_variance_has_its_exact_range(x: float, y: float, radius: float) -> None:
    functions = Functions(["var(a)"], [])
    low, high = ball_range(functions.programs, 0, np.array([y, x]), radius)
    angles = np.linspace(0, 2 * np.pi, 20_001)
    for _ in range(3):  # closer and closer around the two extremes on the rim
        rim = y + radius * np.sin(angles) - (x + radius * np.cos(angles)) ** 2
        step = angles[1] - angles[0]
        best = [angles[rim.argmin()], angles[rim.argmax()]]
        least, most = rim.min(), rim.max()
        angles = np.concatenate([np.linspace(angle - step, angle + step, 10_001) for angle in best])
        angles.sort()
    room = 1e-7 * radius * (1 + abs(x) + radius) + 1e-11 * (1 + abs(y) + x * x)
    assert low <= least + 1e-14 * room and least - low <= room
    assert most - 1e-14 * room <= high and high - most <= room


@pytest.mark.parametrize(
    ("text", "centre", "radius"),
    [
        ("a", [1.0], math.nan),
        ("a", [1.0], -1.0),
        ("a", [math.nan], 1.0),
        ("norm(a, b)", [math.inf, 0.0], 1.0),
        ("norm(a, b)", [1e200, 1e200], 1.0),
        ("var(a)", [0.0, 1e200], 1.0),
        ("var(a)", [math.nan, 1.0], 1.0),
        ("log(a)", [1.0], 1.0),
        ("sqrt(a)", [1.0], 1.5),
        ("1 / a", [1.0], 1.0),
        ("b / a", [1.0, -1.0], 2.0),
        ("a ** -1", [1.0], 1.0),
        ("a ** 0.5", [1.0], 2.0),
        ("a ** b", [1.0, 1.0], 2.0),
        ("exp(a)", [1000.0], 1.0),
        ("min(log(a), 1)", [0.0], 1.0),
        ("max(a * b, 0)", [1e200, 1e200], 1.0),
    ],
)
def test_what_may_have_no_value_has_no_range(text: str, centre: list[float], radius: float) -> None:
    for functions in (Functions([text]), Functions([], [text])):
        assert ball_range(functions.programs, 0, np.array(centre), radius) == (-math.inf, math.inf)
