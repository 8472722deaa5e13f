"""How far `skytide verify run` expects a stream to be closed: as far as Spark's clock closes it, and no farther."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.cli._verify.rows import Question, Unit
from skytide.model import Window

pytest.importorskip("pyspark")

KINDS = {"whole": pa.int64(), "real": pa.float64(), "us": pa.timestamp("us")}
NEAR = st.integers(-(2**51) - 9000, 2**51 + 9000)
WHOLE = st.one_of(st.integers(-(2**61), 2**61), NEAR, NEAR.map(lambda one: one + 946_684_800_000_000))
REAL = st.one_of(st.floats(-1e12, 1e12), st.floats(-1e-9, 1e-9), st.floats(-1e200, 1e200))


def closing(kind: str, latest: Any, lateness: Any) -> Any:
    from skytide.cli._verify.spark_rows import Closing

    plan: Any = SimpleNamespace(query={}, kind=SimpleNamespace(rounds=False))
    question = Question("window", {"lateness": f"{lateness}us" if kind == "us" else repr(lateness)}, ())
    unit = Unit(KINDS[kind], [question.length("lateness")])
    rows: Any = SimpleNamespace(unit=unit, times=np.array([latest]))
    return Closing(plan, question, rows, pa.table({}))


@settings(max_examples=300)
@given(st.data(), st.sampled_from(list(KINDS)))
def test_what_must_be_closed_is_and_what_is_closed_may_be(data: Any, kind: str) -> None:
    from skytide.spark.streaming.clock import EventClock

    latest = data.draw(REAL if kind == "real" else WHOLE)
    lateness = data.draw(st.one_of(st.just(0), st.floats(0, 1e6) if kind == "real" else st.integers(0, 2**20)))
    lengths: dict[str, Any] = {"duration": 1, "lateness": lateness}
    clock = EventClock(Window(**({"duration": "1s", "lateness": f"{lateness}us"} if kind == "us" else lengths)), kind)

    def keys(times: Any) -> Any:
        return clock.keys.keys(times.view("datetime64[us]") if kind == "us" else times)

    steps: Any = np.array([0, 1, 2, 3, 5, 10, 20, 50, 100, 1000, 4096, 5000])
    if kind == "real":
        steps = np.append(0.0, max(abs(latest), lateness) * 2.0 ** np.arange(-52.0, -30.0))
    instants = np.unique(latest - lateness - steps)
    bound = clock.closed_by(clock.tick(int(keys(np.array([latest]))[0])))
    found = closing(kind, latest, lateness)
    must, may = found.closed(instants, None), found.closed(instants, instants.max())
    assert (keys(instants)[must] <= bound).all() and may[keys(instants) <= bound].all()
