"""The clients' kernel: reaches that catch up are those that fade step by step, and runs of quiet timestamps."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.kernel.filtering import recall
from skytide.kernel.filtering_clients import Clients, catch_up, move
from skytide.model import Floats

VALUE = st.integers(-3, 3).map(float) | st.sampled_from([np.inf, -np.inf, 1.797e308, 5e-324])


def resting(points: Floats) -> Clients:
    """Clients that have just come."""
    n = len(points)
    flags = np.ones(n, np.bool_)
    none, wide = np.zeros(n, np.int64), np.full_like(points, np.inf)
    return Clients(points.copy(), -wide, wide, points.copy(), points.copy(), none, none.astype(np.int8), flags, ~flags)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.none() | st.tuples(VALUE, VALUE), min_size=1, max_size=30))
def test_a_reach_that_catches_up_is_the_one_that_fades_at_every_timestamp(
    track: list[tuple[float, ...] | None],
) -> None:
    start = np.array([[0.0, 1.0]])
    state, one = resting(start), np.zeros(1, np.int64)
    point, floor, roof = start.copy(), start.copy(), start.copy()
    for time, moved in enumerate(track, start=1):
        if moved is not None:
            point[0] = moved
            move(state, one, np.array([moved]), time)
        recall(point, floor, roof)
    catch_up(state, one, len(track))
    assert (state.floor <= state.points).all() and (state.points <= state.roof).all()
    assert np.array_equal(state.points, point)
    # As far as rounding goes; a difference of the largest numbers overflows in one way and not in the other.
    ordinary = np.abs(point) < 1e300
    for caught, faded in ((state.floor, floor), (state.roof, roof)):
        near = np.abs(faded) < 1e300
        assert np.allclose(caught[ordinary & near], faded[ordinary & near], rtol=1e-9, atol=1e-9)


def test_a_client_that_never_moves_has_no_reach_however_long_it_stays() -> None:
    start = np.array([[0.1, -0.0, 5e-324]])
    state = resting(start)
    for time in (1, 2, 1000, 10**9):
        catch_up(state, np.zeros(1, np.int64), time)
        assert (state.floor == start).all() and (state.roof == start).all()


def test_time_that_stands_still_or_goes_back_does_not_fade() -> None:
    state, one = resting(np.array([[0.0]])), np.zeros(1, np.int64)
    move(state, one, np.array([[64.0]]), 5)
    before = state.floor.copy()
    catch_up(state, one, 5)
    catch_up(state, one, 3)
    assert np.array_equal(state.floor, before) and state.since[0] == 5
