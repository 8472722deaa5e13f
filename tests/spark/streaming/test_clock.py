"""Ticks: Spark's watermark closes an instant when, and only when, a later row plus the lateness has been seen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skytide.model import Window
from skytide.monitors.sliding.clock import LOWEST
from skytide.spark.streaming.clock import EventClock

WHOLE = st.one_of(st.integers(-50, 50), st.integers(-(2**62) + 1, 2**62 - 1), st.integers(-(2**52), 2**52))
REAL = st.one_of(st.integers(-50, 50).map(float), st.floats(-1e290, 1e290), st.floats(-10, 10))
CLOCKS = [
    EventClock(Window(duration=5), "whole"),
    EventClock(Window(duration=5, lateness=7), "whole"),
    EventClock(Window(duration="5s", lateness="2ms"), "us"),
    EventClock(Window(duration=5.0), "real"),
    EventClock(Window(duration=5.0, lateness=0.1), "real"),
    EventClock(Window(duration=5.0, lateness=1e9), "real"),
]


@pytest.mark.parametrize("clock", CLOCKS, ids=str)
@given(st.data())
def test_a_watermark_that_closes_an_instant_is_the_first_or_near_it(clock: EventClock, data: st.DataObject) -> None:
    if clock.kind == "real":
        time = data.draw(REAL)
        key = int(clock.keys.keys(np.array([time]))[0])
    else:
        key = data.draw(WHOLE)
    tick = clock.tick_that_closes(key)
    assert clock.closed_by(tick) >= key
    if not (clock.kind == "real" and clock.keys.lateness):
        assert clock.closed_by(tick - 20) < key
    assert clock.closed_by(tick) <= clock.closed_by(tick + 1)


def test_before_the_first_row_nothing_is_closed() -> None:
    assert all(clock.closed_by(0) == LOWEST for clock in CLOCKS)


@pytest.mark.parametrize("clock", CLOCKS, ids=str)
@given(st.data())
def test_a_tick_closes_what_the_row_closes_and_no_more(clock: EventClock, data: st.DataObject) -> None:
    key = int(clock.keys.keys(np.array([data.draw(REAL)]))[0]) if clock.kind == "real" else data.draw(WHOLE)
    exact, closed = clock.keys.closed_by(key), clock.closed_by(clock.tick(key))
    assert closed <= exact
    if clock.kind == "real":
        last = clock.keys.times(np.array([exact, closed]))
        assert last[0] - last[1] <= 1e-11 * (abs(last[0]) + abs(float(clock.keys.lateness))) + 1e-15
    elif abs(exact - clock._origin) < 2**51:
        assert closed == exact
    else:
        assert exact - closed <= 2**12
