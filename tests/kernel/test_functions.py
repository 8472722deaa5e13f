"""Values to the last bit as the reference has them, and bounds that hold at every average."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.errors import SkytideError
from skytide.expressions import parse
from skytide.kernel.functions import bounds, bounds_of, value, values
from skytide.model import Floats
from skytide.protocols.fragmented.functions import Functions
from skytide.reference.functional import expression, rounded_sum
from tests.protocols.fragmented.expressions import SAMPLES, At, drawn_text, vectors

EXTREME = [0.0, -0.0, 1.0, -1.0, 0.1, 1e-3, 1e16, -1e16, 1e155, 1e-155, 1.7e308, 5e-324, math.inf, -math.inf, math.nan]
CASES = 20_000


def same(found: float, wanted: float) -> bool:
    return found == wanted or (math.isnan(found) and math.isnan(wanted))


def functions_of(text: str, sign: int = 1) -> Functions:
    return Functions([text]) if sign > 0 else Functions([], [text])


def reference(functions: Functions, text: str, means: Floats, sign: int = 1) -> float:
    return sign * expression(parse(text))(At(functions, means))


@pytest.mark.parametrize("text", SAMPLES)
def test_values_are_those_of_the_reference(text: str) -> None:
    source = np.random.default_rng(1)
    functions = Functions([text], ["-(" + text + ")"])
    plain = source.normal(size=(200, functions.d)) * 10.0 ** source.integers(-2, 3, (200, 1))
    means = np.concatenate((plain, source.choice(EXTREME, (200, functions.d)), np.round(plain)))
    for mean, both in zip(means, values(functions.programs, means), strict=True):
        wanted = reference(functions, text, mean)
        assert same(both[0], wanted) and same(both[1], wanted)
        assert same(value(functions.programs, 0, mean), wanted)


@settings(max_examples=100)
@given(st.integers(0, 2**32), st.lists(st.sampled_from(EXTREME) | st.floats(), min_size=8, max_size=8))
def test_values_of_any_expression_are_those_of_the_reference(seed: int, numbers: list[float]) -> None:
    text = drawn_text(random.Random(seed))
    try:
        functions = functions_of(text)
    except SkytideError:
        return
    means = np.array(numbers[: functions.d])
    assert same(value(functions.programs, 0, means), reference(functions, text, means))


# -- bounds ------------------------------------------------------------------------------------------------------------


def drifts(functions: Functions, source: np.random.Generator, cases: int) -> tuple[Floats, list[Floats]]:
    """Estimates, and for each some drift vectors: near, far, and where the estimate is."""
    powers = np.where(source.random(cases) < 0.1, source.integers(-150, 150, cases), source.integers(-1, 3, cases))
    columns = source.normal(size=(cases, len(functions.columns))) * 10.0 ** powers[:, None]
    columns = np.where(source.random((cases, 1)) < 0.3, np.round(columns), columns)
    columns = np.where(source.random((cases, 1)) < 0.4, np.abs(columns), columns)
    e = vectors(functions, columns)
    reach = np.abs(e).max(1, keepdims=True) * source.choice([0.0, 1e-12, 1e-6, 1e-2, 0.3, 3.0], (cases, 1))
    count = int(source.integers(1, 5))
    return e, [e + reach * source.normal(size=e.shape) for _ in range(count)]


def check(text: str, sign: int, seed: int, cases: int) -> int:
    """Bounds at averages of drift vectors; how often both were finite."""
    functions = functions_of(text, sign)
    source = np.random.default_rng(seed)
    e, several = drifts(functions, source, cases)
    weights = source.dirichlet(np.ones(len(several)), cases)
    mean = sum(weights[:, [p]] * u for p, u in enumerate(several)) if len(several) > 1 else several[0]
    found = np.array([bounds_of(functions.programs, 0, e, u) for u in several])
    low, high = found[:, :, 0].min(0), found[:, :, 1].max(0)
    true = values(functions.programs, np.asarray(mean))[:, 0]
    assert np.all((low <= true) | (low == -np.inf)) and np.all((true <= high) | (high == np.inf))
    return int(np.sum(np.isfinite(low) & np.isfinite(high)))


@pytest.mark.parametrize("text", SAMPLES)
def test_bounds_hold_at_every_average(text: str) -> None:
    quiet = sum(check(text, sign, seed, CASES // 4) for seed, sign in enumerate([1, -1, 1, -1]))
    assert quiet > CASES / 10


@settings(max_examples=60)
@given(st.integers(0, 2**32))
def test_bounds_of_any_expression_hold_at_every_average(seed: int) -> None:
    text = drawn_text(random.Random(seed))
    try:
        functions_of(text)
    except SkytideError:
        return
    check(text, 1, seed, 400)


numbers = st.sampled_from([0.0, 0.1, 0.2, 0.3, 1.0, -1.0, 1e-3, 3.0, 1e8]) | st.floats(-100, 100)


@st.composite
def scenarios(draw: st.DrawFn) -> tuple[str, list[list[float]], list[float], list[int]]:
    text = draw(st.sampled_from(SAMPLES))
    d = Functions([text]).d
    vector = st.lists(numbers, min_size=d, max_size=d)
    several = draw(st.lists(vector, min_size=1, max_size=4))
    weights = draw(st.lists(st.integers(1, 5), min_size=len(several), max_size=len(several)))
    return text, several, draw(vector), weights


@settings(max_examples=300)
@given(scenarios(), st.sampled_from([1, -1]))
def test_bounds_hold_for_means_that_are_rounded_sums(
    scenario: tuple[str, list[list[float]], list[float], list[int]], sign: int
) -> None:
    text, several, estimate, weights = scenario
    functions, e = functions_of(text, sign), np.array(estimate)
    repeated = [u for u, times in zip(several, weights, strict=True) for _ in range(times)]
    mean = np.array([rounded_sum(column) / len(repeated) for column in zip(*repeated, strict=True)])
    true = reference(functions, text, mean, sign)
    most = max(bounds(functions.programs, 0, e, np.array(u))[1] for u in several)
    least = min(bounds(functions.programs, 0, e, np.array(u))[0] for u in several)
    assert true <= most or most == math.inf
    assert true >= least or least == -math.inf


def one(text: str, e: Sequence[float], u: Sequence[float], sign: int = 1) -> tuple[float, float]:
    programs = functions_of(text, sign).programs
    found: tuple[float, float] = bounds(programs, 0, np.array(e), np.array(u))
    return found


@pytest.mark.parametrize(
    ("text", "e", "u"),
    [
        ("a", [1.0], [math.nan]),
        ("a", [math.nan], [1.0]),
        ("a", [1.0], [math.inf]),
        ("2 * a - b", [1.0, 1.0], [math.inf, math.inf]),
        ("a + b", [1.0, 1.0], [1.7e308, 1.7e308]),
        ("norm(a, b)", [1.0, 1.0], [math.nan, 1.0]),
        ("norm(a, b)", [math.inf, 1.0], [1.0, 1.0]),
        ("var(a)", [1.0, 1.0], [1.0, math.nan]),
        ("max(a, 1)", [1.0], [math.nan]),
        ("min(a, 1)", [1.0], [math.nan]),
        ("abs(a)", [1.0], [math.nan]),
        ("log(a)", [1.0], [0.0]),
        ("log(a)", [1.0], [-1.0]),
        ("log(a)", [-1.0], [1.0]),
        ("sqrt(a)", [1.0], [-1.0]),
        ("1 / a", [1.0], [0.0]),
        ("b / a", [1.0, 1.0], [1.0, -1.0]),
        ("b / a + 1", [1.0, 1.0], [1.0, -1.0]),
        ("a ** -1", [-1.0], [1.0]),
        ("a ** 0.5", [1.0], [-1.0]),
        ("exp(a)", [1.0], [1000.0]),
        ("exp(a) - exp(b)", [1.0, 1.0], [1000.0, 1000.0]),
        ("a ** b", [1.0, 1.0], [-1.0, 1.0]),
        ("min(log(a), 1)", [1.0], [0.0]),
        ("sqrt(min(a, 2))", [1.0], [-1.0]),
        ("min(sqrt(a), 2) + b", [1.0, 1.0], [-1.0, 1.0]),
        ("min(max(1 / a, 0), 1)", [1.0], [-1.0]),
        ("min(max(a ** -2, 0), 1)", [1.0], [-1.0]),
        ("min(max(b / a, 0), 1)", [1.0, 1.0], [1.0, -1.0]),
        ("min(max(b / a + b, 0), 1)", [1.0, 1.0], [1.0, -1.0]),
        ("min(a ** b, 2)", [1.0, 1.0], [-1.0, 1.0]),
    ],
)
def test_what_may_have_no_value_is_never_quiet(text: str, e: list[float], u: list[float]) -> None:
    for sign in (1, -1):
        assert one(text, e, u, sign) == (-math.inf, math.inf)


@pytest.mark.parametrize(
    ("text", "e", "u", "low", "high"),
    [
        ("a", [3.0], [4.0], 4.0, 4.0),
        ("2 * a - b / 4 + 1", [0.0, 0.0], [1.0, 8.0], 1.0, 1.0),
        ("norm(a, b)", [3.0, 4.0], [0.0, 10.0], 8.0, 10.0),
        ("norm(a, b)", [0.0, 0.0], [3.0, 4.0], 0.0, 5.0),
        ("distance(a, b, c, d)", [3.0, 4.0, 0.0, 0.0], [1.0, 10.0, 1.0, 0.0], 8.0, 10.0),
        ("var(a)", [10.0, 3.0], [20.0, 4.0], 4.0, 5.0),
        ("a * a", [3.0], [5.0], 25.0, 25.0),
        ("a * a + b", [3.0, 0.0], [5.0, 0.0], 21.0, 25.0),
        ("abs(a) + b", [3.0, 0.0], [-5.0, 0.0], -5.0, 5.0),
        ("a / b", [1.0, 1.0], [6.0, 3.0], 2.0, 2.0),
        ("sqrt(var(a))", [4.0, 0.0], [9.0, 0.0], 3.0, 3.0),
        ("max(a, b)", [1.0, 2.0], [4.0, 3.0], 3.0, 4.0),
        ("a * b", [2.0, 3.0], [2.0, 3.0], 6.0, 6.0),
        ("exp(log(a))", [2.0], [3.0], 3.0, 3.0),
        ("a ** 3", [-2.0], [3.0], 27.0, 27.0),
        ("log(a) + b", [1.0, 0.0], [3.0, 0.0], math.log(3.0), 2.0),
    ],
)
def test_convex_functions_are_their_own_bound_and_concave_ones_have_their_tangent(
    text: str, e: list[float], u: list[float], low: float, high: float
) -> None:
    assert one(text, e, u) == pytest.approx((low, high), rel=1e-12, abs=1e-12)
    assert one(text, e, u, -1) == pytest.approx((-high, -low), rel=1e-12, abs=1e-12)
    found = one(text, e, u)
    assert found[0] <= low and high <= found[1]


def test_tolerances_are_those_of_the_terms_not_of_their_sum() -> None:
    exact = Fraction(0.1) + Fraction(0.2)
    low, high = one("(a + 1e16) + (b - 1e16)", [0.0, 0.0], [0.1, 0.2])
    assert low <= -1 and high >= 1
    low, high = one("a + b", [0.0, 0.0], [0.1, 0.2])
    assert low < exact < high and high - low < 1e-14
