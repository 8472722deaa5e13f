"""The engine that changes its index while it runs: the same moves, however often it changes; when it changes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.monitors.sliding.auto import AutoEngine, limit_of
from skytide.monitors.sliding.engine import Rows
from skytide.streams.generators import generate
from tests.monitors.sliding.test_engine_contract import feed, oracle, streams


@settings(max_examples=60)
@given(
    stream=streams(),
    method=st.sampled_from(["eager", "lazy"]),
    span=st.integers(1, 9),
    limit=st.sampled_from([-1, 0, 3, 1000]),
)
def test_moves_are_the_oracles_however_often_the_index_changes(
    stream: tuple[Rows, list[int]], method: str, span: int, limit: int
) -> None:
    rows, cuts = stream
    expected = oracle(rows)
    engine = AutoEngine(rows.values.shape[1], method, span=span, limit=limit)
    after = int(rows.arrivals[0]) - 1
    tests = 0
    for until in cuts:
        assert feed(engine, rows, after, until) == {move for move in expected if after < move[0] <= until}
        after = until
        counters = engine.counters()
        assert counters["dominance_tests"] >= tests and counters["engine_changes"] >= 0
        tests = counters["dominance_tests"]
    if limit == -1 and len(rows) >= 2 * span:
        assert engine.counters()["engine_changes"] > 0
    assert len(engine.retained()) == 0


def as_rows(values: np.ndarray, window: int) -> Rows:
    keys = np.arange(len(values), dtype=np.int64)
    return Rows(np.ascontiguousarray(values), keys, keys + window, keys)


@pytest.mark.parametrize("method", ["eager", "lazy"])
def test_a_steady_stream_stays_on_the_list(method: str) -> None:
    engine = AutoEngine(3, method, span=2_000)
    engine.run(as_rows(generate("independent", 20_000, 3, seed=1), 5_000), 19_999)
    assert engine.index == "list" and engine.counters()["engine_changes"] == 0


def test_a_stream_that_is_hard_for_the_list_moves_to_the_rtree_and_back_when_it_gets_easy() -> None:
    hard = generate("anti-correlated", 16_000, 4, seed=1, deviation=0.001)
    easy = generate("independent", 40_000, 4, seed=2) - 5.0
    rows = as_rows(np.concatenate((hard, easy)), 6_000)
    engine = AutoEngine(4, "lazy", span=1_000, limit=1_000)
    seen = []
    for start in range(0, len(hard) + len(easy), 2_000):
        part = slice(start, start + 2_000)
        engine.run(
            Rows(rows.values[part], rows.arrivals[part], rows.expiries[part], rows.handles[part]),
            start + 1_999,
        )
        seen.append(engine.index)
    assert "rtree" in seen[:8] and seen[-1] == "list"


def test_lazy_lists_may_scan_more_than_eager_ones() -> None:
    assert limit_of("eager", 3) < limit_of("lazy", 3) < limit_of("lazy", 6)
