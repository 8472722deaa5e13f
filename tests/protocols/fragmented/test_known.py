"""What the coordinator knows: means as the definition has them, whatever was said before."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.protocols.fragmented.known import Known
from skytide.protocols.fragmented.messages import Arrivals, Departures, Updates, Violations
from skytide.reference.functional import Averages

VALUE = st.one_of(
    st.integers(-3, 3).map(float),
    st.floats(-1e6, 1e6),
    st.sampled_from([1e16, -1e16, 1.797e308, -1.797e308, 5e-324, math.inf, -math.inf, math.nan, 1e-300]),
)
STEPS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), st.one_of(VALUE, VALUE, st.none())), max_size=25)


@settings(max_examples=200)
@given(STEPS, st.lists(st.sampled_from([1.0, 0.5, 3.0, 0.1]), min_size=4, max_size=4))
def test_the_exact_mean_is_the_definition_and_the_quick_one_close_to_it(
    steps: list[tuple[int, int, float | None]], weights: list[float]
) -> None:
    known, truth = Known(1), dict[int, dict[int, float]]()
    for site, one, value in steps:
        sites, objects = np.array([site]), np.array([one])
        at_sites = truth.setdefault(one, {})
        if value is None:
            if site in at_sites:
                known.take(Departures(0, sites, objects))
                del at_sites[site]
            continue
        vector = np.array([[value]])
        weight = np.array([weights[site]])
        known.take(
            Updates(0, sites, objects, vector) if site in at_sites else Arrivals(0, sites, objects, weight, vector)
        )
        at_sites[site] = value
        wanted = Averages([{"x": each} for each in at_sites.values()], [weights[at] for at in at_sites]).mean("x")
        quick = known.mean(one)
        assert np.array_equal(known.exact_mean(one), [wanted], equal_nan=True)
        assert np.isclose(quick[0], wanted, rtol=1e-12, atol=0.0, equal_nan=True) or quick[0] == wanted
        assert known.members[one] == len(at_sites)
        assert known.cells(one)[0].tolist() == sorted(at_sites)


def told(known: Known, values: list[float]) -> None:
    sites = np.arange(len(values))
    vectors = np.array(values).reshape(-1, 1)
    known.take(Arrivals(0, sites, np.zeros_like(sites), np.ones(len(values)), vectors))


def test_a_shift_moves_the_known_mean_by_the_surplus() -> None:
    known = Known(1)
    told(known, [1.0, 2.0, 6.0, 7.0])
    amount = known.shift(0, np.array([0, 3]), np.array([0.5]))
    assert amount.tolist() == [1.0] and known.mean(0).tolist() == [3.5]


def test_sites_that_spoke_last_come_first() -> None:
    known = Known(1)
    told(known, [1.0, 2.0, 3.0])
    known.take(Updates(1, np.array([1]), np.array([0]), np.array([[2.5]])))
    assert known.recent(0, 2).tolist()[0] == 1 and len(known.recent(0, 2)) == 2


def test_the_size_of_an_update_is_learnt_from_reports_and_infinite_ones_are_left_out() -> None:
    known = Known(1)
    told(known, [1.0])
    one = np.array([0])
    known.take(Violations(1, one, one, np.array([[5.0]]), np.array([4]), np.array([[8.0]])))
    assert known.step[0].tolist() == [2.0]
    known.take(Violations(1, one, one, np.array([[5.0]]), np.array([1]), np.array([[math.inf]])))
    assert known.step[0].tolist() == [2.0]


def test_the_weights_of_two_objects_count_shared_sites_once() -> None:
    known = Known(1)
    sites, objects = np.array([0, 1, 1, 2]), np.array([0, 0, 1, 1])
    known.take(Arrivals(0, sites, objects, np.array([1.0, 2.0, 2.0, 4.0]), np.ones((4, 1))))
    assert known.weights(0, 1) == (7.0, 3.0, 6.0) and known.weights(0, 0) == (3.0, 3.0, 3.0)
    assert known.present(0).tolist()[:3] == [True, True, False]
