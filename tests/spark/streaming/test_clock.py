"""Ticks: Spark's watermark closes an instant when, and only when, a later row plus the lateness has been seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skytide.model import Window
from skytide.monitors.sliding.clock import LOWEST
from skytide.spark.streaming.clock import EventClock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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


def test_the_ticks_of_spark_close_what_the_rows_close_and_no_more(spark: SparkSession) -> None:
    """For each row: the instants that it closes by the exact rule, and those that its tick closes."""
    from pyspark.sql import functions

    rng = np.random.default_rng(3)
    for clock in CLOCKS:
        if clock.kind == "real":
            times = np.concatenate(
                [rng.integers(-99, 99, 200) * 1.0, rng.normal(0, 1e9, 200), 10.0 ** rng.uniform(-300, 300, 200)]
            )
            times = np.concatenate([times, -times, [0.0, 0.1, 0.3, 1e9, 1e9 + 1e-6]])
        else:
            far = rng.integers(-(2**62) + 1, 2**62, 200)
            times = np.concatenate([np.arange(-100, 100), far, [2**51, 2**51 + 1, 1_700_000_000_000_000, 2**62 - 1]])
        rows = spark.createDataFrame(
            [(value,) for value in times.tolist()], "t " + ("DOUBLE" if clock.kind == "real" else "BIGINT")
        )
        ticks = [row.tick for row in rows.select(functions.unix_millis(clock.tick(rows.t)).alias("tick")).collect()]
        stamps = times.astype("datetime64[us]") if clock.kind == "us" else times
        keys = clock.keys.keys(stamps)
        for time, key, tick in zip(times.tolist(), keys.tolist(), ticks, strict=True):
            exact, closed = clock.keys.closed_by(key), clock.closed_by(tick)
            assert closed <= exact, (clock, time)
            if clock.kind == "real":
                last = clock.keys.times(np.array([exact, closed]))
                assert last[0] - last[1] <= 1e-11 * (abs(last[0]) + abs(float(clock.keys.lateness))) + 1e-15, (
                    clock,
                    time,
                )
            elif abs(exact) < 2**50:
                assert closed == exact, (clock, time)
            else:
                assert exact - closed <= 2**12, (clock, time)


def test_times_that_are_none_have_no_tick(spark: SparkSession) -> None:
    from pyspark.sql import functions

    clock = EventClock(Window(duration=5.0), "real")
    rows = spark.createDataFrame([(None,), (float("nan"),), (float("inf"),), (float("-inf"),)], "t DOUBLE")
    assert {row.tick for row in rows.select(clock.tick(functions.col("t")).alias("tick")).collect()} == {None}
