"""The k-skyband of a window against its definition, on streams with ties in values, arrivals and expiries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.errors import OptionError
from skytide.monitors.sliding import skyband
from skytide.monitors.sliding.engine import Rows
from skytide.monitors.sliding.skyband import SkybandEngine
from skytide.reference.window import window_changes
from tests.monitors.sliding.drawn import Changes, Stream, listed, part, streams, truth


@settings(max_examples=300, deadline=None)
@given(streams(), st.integers(1, 5))
def test_the_moves_are_the_net_differences_of_the_band_at_every_instant(stream: Stream, k: int) -> None:
    engine = SkybandEngine(stream.rows.values.shape[1], k)
    found: Changes = []
    for rows, until in stream.runs():
        expected_silence = engine.next_event()
        moves = listed(engine.run(rows, until))
        if not len(rows) and moves:
            assert moves[0][0] >= expected_silence
        found += moves
        engine._check()
    assert sorted(found) == truth(stream.rows, k, stream.cuts[-1])
    assert len(engine.retained()) == 0 and engine.next_event() == np.iinfo(np.int64).max


@settings(max_examples=150, deadline=None)
@given(streams(most=60), st.integers(1, 4), st.integers(1, 20))
def test_dropping_chunk_rows_that_strong_rows_outdo_changes_nothing(stream: Stream, k: int, chunk: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(skyband, "CHUNK", chunk)
        patch.setattr(skyband, "FEWEST", 1)
        patch.setattr(skyband, "PATIENCE", 0)
        engine = SkybandEngine(stream.rows.values.shape[1], k)
        found: Changes = []
        for rows, until in stream.runs():
            found += listed(engine.run(rows, until))
            engine._check()
    assert sorted(found) == truth(stream.rows, k, stream.cuts[-1])


def test_most_rows_of_a_large_batch_are_dropped_before_they_reach_the_list() -> None:
    rng = np.random.default_rng(7)
    times = np.arange(20_000, dtype=np.int64)
    rows = Rows(rng.random((20_000, 2)), times, times + 15_000, times)
    engine = SkybandEngine(2, 3)
    pruned = engine.run(part(rows, 0, 10_000), 9_999)
    keep = engine._survivors(part(rows, 10_000, 18_000))
    assert np.count_nonzero(keep) < 2_000
    pruned_rest = engine.run(part(rows, 10_000, 20_000), 50_000)
    plain = SkybandEngine(2, 3)
    one_by_one = [plain.run(part(rows, i, i + 500), i + 499) for i in range(0, 20_000, 500)] + [
        plain.run(part(rows, 0, 0), 50_000)
    ]
    assert sorted(listed(pruned) + listed(pruned_rest)) == sorted(
        move for moves in one_by_one for move in listed(moves)
    )


@settings(max_examples=150, deadline=None)
@given(streams(), st.integers(1, 4), st.data())
def test_what_is_retained_has_the_same_future_in_another_engine(stream: Stream, k: int, data: st.DataObject) -> None:
    runs = stream.runs()
    swap = data.draw(st.integers(0, len(runs) - 1))
    engine = SkybandEngine(stream.rows.values.shape[1], k)
    found: Changes = []
    for number, (rows, until) in enumerate(runs):
        found += listed(engine.run(rows, until))
        if number == swap:
            # The whole window, dead rows and all, is as good as the candidates.
            everything = part(stream.rows, 0, int(np.searchsorted(stream.rows.arrivals, until, side="right")))
            kept = engine.retained() if data.draw(st.booleans()) else everything
            engine = SkybandEngine(stream.rows.values.shape[1], k)
            engine.load(kept, until)
            engine._check()
    assert sorted(found) == truth(stream.rows, k, stream.cuts[-1])


@settings(max_examples=60, deadline=None)
@given(streams(most=15), st.integers(1, 4), st.integers(1, 12))
def test_the_reference_window_says_the_same(stream: Stream, k: int, duration: int) -> None:
    arrivals = stream.rows.arrivals - (stream.rows.arrivals[0] if len(stream.rows) else 0)
    rows = Rows(stream.rows.values, arrivals, arrivals + duration, stream.rows.handles)
    until = int(arrivals[-1]) + duration if len(rows) else 0
    moves = listed(SkybandEngine(rows.values.shape[1], k).run(rows, until))
    signs = {1: "+", -1: "-"}
    expected = window_changes(
        [tuple(row) for row in rows.values.tolist()],
        arrivals.tolist(),
        rows.handles.tolist(),
        duration=duration,
        until=until,
        k=k,
    )
    assert sorted((at, signs[sign], one) for at, sign, one in moves) == sorted(map(tuple, expected))


def test_a_row_can_leave_and_come_back() -> None:
    values = np.array([[1.0], [3.0], [2.0]])
    rows = Rows(values, np.array([0, 2, 4]), np.array([5, 9, 10]), np.array([10, 11, 12]))
    moves = listed(SkybandEngine(1, 2).run(rows, 20))
    assert [(at, sign) for at, sign, one in moves if one == 11] == [(2, 1), (4, -1), (5, 1), (9, -1)]


def test_read_only_and_strided_columns_are_taken_as_they_come() -> None:
    wide = np.arange(12.0).reshape(6, 2)[:, ::-1]
    times = np.arange(6, dtype=np.int64)
    times.flags.writeable = False
    moves = SkybandEngine(2, 1).run(Rows(wide, times, times + 2, times), 10)
    assert listed(moves) == truth(Rows(wide, times, times + 2, times), 1, 10)


@pytest.mark.parametrize("dimensions", [1, 2])
def test_retained_rows_stay_as_they_were_while_the_engine_goes_on(dimensions: int) -> None:
    times = np.arange(20, dtype=np.int64)
    rows = Rows(np.repeat(times[:, None].astype(float), dimensions, axis=1), times, times + 30, times)
    engine = SkybandEngine(dimensions, 2)
    engine.run(part(rows, 0, 10), 9)
    kept = engine.retained()
    before = [column.copy() for column in vars(kept).values()]
    engine.run(part(rows, 10, 20), 100)
    assert len(kept) == 10
    assert all(np.array_equal(was, column) for was, column in zip(before, vars(kept).values(), strict=True))


def test_memory_stays_within_twice_the_candidates_and_shrinks_after_a_burst() -> None:
    rng = np.random.default_rng(3)
    angles = rng.random(4_000)
    times = np.arange(4_000, dtype=np.int64)
    k = 5
    engine = SkybandEngine(2, k)
    # All on a falling line: every row is a candidate.
    engine.run(Rows(np.column_stack((angles, -angles)), times, times + 10_000, times), 3_999)
    own = len(engine.retained()) * 8 * (2 + 3 + k)
    assert len(engine.retained()) == 4_000 and engine.counters()["memory_bytes"] <= 2 * own
    engine.run(part(engine.retained(), 0, 0), 13_950)
    assert engine.counters()["memory_bytes"] < 50_000 < own


@pytest.mark.parametrize("k", [0, -1, 1.5, True])
def test_a_band_needs_a_whole_number_from_one(k: float) -> None:
    with pytest.raises(OptionError, match="whole number from 1"):
        SkybandEngine(2, k)  # type: ignore[arg-type]
