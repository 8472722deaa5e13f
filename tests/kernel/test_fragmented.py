"""The kernel of the sites: zones and pairs that hold at every site hold for the mean as well."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.errors import SkytideError
from skytide.kernel.fragmented import ALL, ZONED, Pairs, Zones, broken, inside, reserved
from skytide.kernel.functions import Programs, values
from skytide.model import Floats
from skytide.protocols.fragmented.functions import Functions
from skytide.protocols.fragmented.watched import comparable
from tests.protocols.fragmented.expressions import SAMPLES, drawn_text


def zones_of(centre: Floats, low: Floats, high: Floats) -> Zones:
    return Zones(np.array([ZONED], np.int8), centre[None], low[None], high[None], np.ones(1))


def text(seed: int) -> str:
    source = random.Random(seed)
    return source.choice(SAMPLES) if seed % 2 else drawn_text(source, 3)


@settings(max_examples=150)
@given(st.integers(0, 10**6), st.integers(1, 6), st.sampled_from([0.01, 0.3, 3.0]), st.floats(0.0, 0.9))
def test_drifts_that_are_all_in_a_zone_have_their_mean_in_its_box(
    seed: int, sites: int, scale: float, reserve: float
) -> None:
    try:
        functions = Functions([text(seed)])
    except SkytideError:
        return
    source = np.random.default_rng(seed)
    centre = source.uniform(0.5, 3.0, functions.d)
    (at_centre,) = values(functions.programs, centre[None])[0]
    if not np.isfinite(at_centre):
        return
    size = scale * (abs(at_centre) + 0.1)
    zones = zones_of(centre, np.array([at_centre - size]), np.array([at_centre + size]))
    drifts = centre + source.uniform(-1, 1, (60, functions.d)) * scale
    held = [drift for drift in drifts if inside(functions.programs, zones, 0, drift)][:sites]
    if not held:
        return
    weights = source.random(len(held)) + 0.01
    for mean in (np.average(held, axis=0, weights=weights), *held):
        (found,) = values(functions.programs, mean[None])[0]
        assert at_centre - size <= found <= at_centre + size
    # The coordinator's drift, with the sites' ones stretched by the rest of the weight, is one of the drifts.
    shift = reserve * (source.uniform(-1, 1, functions.d) * scale)
    if reserve > 0.0 and reserved(functions.programs, zones, 0, shift, reserve):
        mean = (1 - reserve) * np.average(held, axis=0, weights=weights) + reserve * (centre + shift / reserve)
        (found,) = values(functions.programs, mean[None])[0]
        assert at_centre - size <= found <= at_centre + size


def test_without_a_reserve_nothing_may_be_shifted() -> None:
    functions = Functions(["a", "b"])
    zones = zones_of(np.zeros(2), np.full(2, -1.0), np.full(2, 1.0))
    assert reserved(functions.programs, zones, 0, np.zeros(2), 0.0)
    assert not reserved(functions.programs, zones, 0, np.array([0.0, 1e-9]), 0.0)
    assert reserved(functions.programs, zones, 0, np.array([0.0, 0.4]), 0.5)
    assert not reserved(functions.programs, zones, 0, np.array([0.0, 0.6]), 0.5)


@pytest.mark.parametrize("drift", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_in_no_zone(drift: float) -> None:
    functions = Functions(["a"])
    zones = zones_of(np.zeros(1), np.array([-np.inf]), np.array([np.inf]))
    assert inside(functions.programs, zones, 0, np.array([1e300]))
    assert not inside(functions.programs, zones, 0, np.array([drift]))


def pairs(column: int, strict: int = 0) -> Pairs:
    one = np.zeros(1, np.int64)
    return Pairs(one, one + 1, one + column, one + strict, np.ones((1, 2)), np.array([0, 1, 2]), np.array([0, 0]))


def kept(programs: Programs, centre: Floats, pair: Pairs, drifts: Floats) -> bool:
    """Whether a pair is in order at the centres and at drifts, as the coordinator sees it with all of the weight."""
    return not broken(programs, centre, pair, np.array([0]), drifts - centre, np.ones(1))[0]


@settings(max_examples=150)
@given(st.integers(0, 10**6), st.integers(1, 5), st.sampled_from([0.05, 1.0]))
def test_a_pair_in_order_at_every_site_is_in_order_on_average(seed: int, sites: int, scale: float) -> None:
    try:
        functions = Functions([text(seed)])
    except SkytideError:
        return
    programs, source = comparable(functions.programs), np.random.default_rng(seed)
    centre = source.uniform(0.5, 3.0, (2, functions.d))
    if not values(programs, centre)[0, 0] < values(programs, centre)[1, 0]:
        centre = centre[::-1].copy()
    drifts = centre + source.uniform(-1, 1, (80, 2, functions.d)) * scale
    held = [each for each in drifts if kept(programs, centre, pairs(0), each)][:sites]
    if held:
        left, right = values(programs, np.mean(held, axis=0))[:, 0]
        assert left < right


def test_a_pair_on_all_functions_needs_one_strictly_and_a_pair_on_one_that_one() -> None:
    programs, centre = Functions(["a", "b"]).programs, np.array([[0.0, 0.0], [2.0, 2.0]])

    def held(pair: Pairs, *right: float) -> bool:
        return kept(programs, centre, pair, np.array([[0.0, 0.0], right]))

    assert held(pairs(ALL), 1.0, 1.0) and not held(pairs(ALL), 1.0, -1.0)
    assert held(pairs(0), 1.0, -1.0) and not held(pairs(1), 1.0, -1.0)
    assert not held(pairs(0), 0.0, 1.0) and not held(pairs(ALL, strict=0), 0.0, 1.0)


def test_a_pair_whose_functions_may_be_without_a_value_is_not_in_order() -> None:
    programs, centre = comparable(Functions(["sqrt(a)"]).programs), np.array([[1.0], [9.0]])
    assert kept(programs, centre, pairs(0), np.array([[0.5], [9.0]]))
    assert not kept(programs, centre, pairs(0), np.array([[-1.0], [9.0]]))


def test_the_coordinator_sees_a_pair_at_the_centres_and_at_its_own_drifts() -> None:
    functions, which = Functions(["a"]), np.array([0])
    centre = np.array([[0.0], [4.0]])

    def seen(shift: float, share: float) -> bool:
        shifts = np.array([[shift], [0.0]])
        return bool(broken(functions.programs, centre, pairs(0), which, shifts, np.array([share]))[0])

    assert not seen(0.0, 0.0) and not seen(1.0, 0.5) and seen(3.0, 0.5) and seen(1e-9, 0.0)
    assert broken(functions.programs, centre[::-1].copy(), pairs(0), which, np.zeros((2, 1)), np.zeros(1))[0]
