"""The first pass over a long run drops only rows that never matter, and most of those."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from skytide.monitors.sliding import between
from skytide.monitors.sliding.eager_list import EagerList
from skytide.monitors.sliding.engine import Rows
from tests.monitors.sliding.test_engine_contract import as_set, feed, oracle, streams


@pytest.fixture(scope="module", autouse=True)
def _near_posts() -> Iterator[None]:
    """Posts so close together that short streams have several."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("POST", 8), ("SPAN", 14), ("LEAST", 22), ("_SHARE", 0.01)):
            patch.setattr(between, name, value)
        yield


@settings(max_examples=150, deadline=None)
@given(stream=streams())
def test_the_changes_are_those_of_the_definition_with_the_pass(stream: tuple[Rows, list[int]]) -> None:
    rows, cuts = stream
    engine = EagerList(rows.values.shape[1], few=1)
    found, before = set(), -(2**63)
    for cut in cuts:
        found |= feed(engine, rows, before, cut)
        before = cut
    assert found == {move for move in oracle(rows) if move[0] <= cuts[-1]}


@settings(max_examples=150, deadline=None)
@given(stream=streams())
def test_what_is_dropped_is_never_in_the_answer(stream: tuple[Rows, list[int]]) -> None:
    rows, _ = stream
    left = between.left_between(rows.values, rows.arrivals, rows.expiries, np.zeros(2, np.int64))
    event(f"dropped {left is not None and len(left) < len(rows)}")
    if left is not None:
        gone = set(rows.handles.tolist()) - set(rows.handles[left].tolist())
        assert gone.isdisjoint(handle for _, _, handle in oracle(rows))


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), d=st.integers(2, 4))
def test_most_rows_of_a_long_run_are_dropped(seed: int, d: int) -> None:
    values = np.random.default_rng(seed).random((400, d)) + 1.0
    values[::7] = 0.5  # every post has a row that dominates all that follows
    times = np.arange(400)
    left = between.left_between(values, times, times + 100, np.zeros(2, np.int64))
    assert left is not None
    assert len(left) < 300
    moves = EagerList(d).run(Rows(values, times, times + 100, times), 600)
    assert as_set(moves) == set(oracle(Rows(values, times, times + 100, times)))


def test_rows_that_outlive_no_post_are_all_kept() -> None:
    values, times = np.random.default_rng(1).random((400, 3)), np.arange(400)
    assert between.left_between(values, times, times + 2, np.zeros(2, np.int64)) is None
