"""The fast engine against the definition: at every instant, the skyline of what lives, and the net differences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.model import Floats
from skytide.monitors.sliding.eager_list import EagerList
from skytide.monitors.sliding.engine import Moves, Rows

EXTREMES = [-np.inf, -1.797e308, -1.0, -5e-324, -0.0, 0.0, 5e-324, 1.0, 1.797e308, np.inf]
FARTHEST = 2**63 - 1


@dataclass(frozen=True)
class Stream:
    rows: Rows
    cuts: tuple[int, ...]
    """Where the stream is cut into runs; never within an instant."""
    ends: tuple[int, ...]
    """The instant up to which each run is final."""


def dominates(a: Floats, b: Floats) -> bool:
    return bool((a <= b).all() and (a < b).any())


def expected_moves(rows: Rows, until: int) -> set[tuple[int, int, int]]:
    living = [i for i in range(len(rows)) if rows.arrivals[i] < rows.expiries[i]]
    instants = sorted({int(t) for i in living for t in (rows.arrivals[i], rows.expiries[i]) if t <= until})
    before: set[int] = set()
    moves = set()
    for now in instants:
        live = [i for i in living if rows.arrivals[i] <= now < rows.expiries[i]]
        answer = {
            int(rows.handles[i]) for i in live if not any(dominates(rows.values[j], rows.values[i]) for j in live)
        }
        moves |= {(now, -1, one) for one in before - answer} | {(now, 1, one) for one in answer - before}
        before = answer
    return moves


def listed(moves: Moves) -> list[tuple[int, int, int]]:
    return list(zip(moves.times.tolist(), moves.signs.tolist(), moves.handles.tolist(), strict=True))


def part(rows: Rows, first: int, last: int) -> Rows:
    return Rows(rows.values[first:last], rows.arrivals[first:last], rows.expiries[first:last], rows.handles[first:last])


@st.composite
def streams(draw: st.DrawFn, *, shift: int | None = None) -> Stream:
    d = draw(st.integers(1, 4) | st.integers(5, 10))
    n = draw(st.integers(0, 40))
    cell = draw(st.sampled_from([st.integers(0, 3), st.integers(0, 12), st.sampled_from(EXTREMES)]))
    values = np.array(draw(st.lists(cell, min_size=n * d, max_size=n * d)), dtype=np.float64)
    gaps = draw(st.lists(st.sampled_from([0, 0, 1, 1, 2, 7]), min_size=n, max_size=n))
    lasts = draw(st.lists(st.sampled_from([0, 0, 0, 1, 3]), min_size=n, max_size=n))
    arrivals = np.cumsum(np.array(gaps, dtype=np.int64))
    expiries = np.maximum.accumulate(arrivals + draw(st.integers(-1, 40)) + np.array(lasts, dtype=np.int64))
    if shift is not None:
        arrivals, expiries = arrivals + shift, np.where(expiries > FARTHEST - shift, FARTHEST, expiries + shift)
    handles = np.array(draw(st.permutations(range(n))), dtype=np.int64) * 3 - 50
    rows = Rows(values.reshape(n, d), arrivals, expiries, handles)
    where = [i for i in range(1, n) if arrivals[i] > arrivals[i - 1]]
    cuts = tuple(sorted(draw(st.sets(st.sampled_from(where), max_size=12)))) if where else ()
    ends = tuple(draw(st.integers(int(arrivals[i - 1]), int(arrivals[i]) - 1)) for i in cuts)
    final = int(arrivals[-1]) if n else 0
    return Stream(rows, cuts, (*ends, draw(st.integers(final, min(FARTHEST, final + 60)))))


def runs(stream: Stream) -> list[tuple[Rows, int]]:
    bounds = [0, *stream.cuts, len(stream.rows)]
    return [(part(stream.rows, a, b), end) for a, b, end in zip(bounds, bounds[1:], stream.ends, strict=False)]


@dataclass(frozen=True)
class Maker:
    """Engines whose limits are so small that few rows reach every path."""

    batch: int
    few: int
    coded: int
    tied: int

    def __call__(self, dimensions: int) -> EagerList:
        engine = EagerList(dimensions, batch=self.batch, few=self.few, coded=self.coded)
        engine._tied = self.tied
        return engine


engines = st.builds(
    Maker,
    st.sampled_from([1, 2, 5, 64, 4_096]),
    st.sampled_from([0, 1, 4, 1_000]),
    st.sampled_from([0, 8, 1_024]),
    st.sampled_from([0, 1_000]),
)


@settings(max_examples=300, deadline=None)
@given(streams(), engines)
def test_every_split_into_runs_batches_and_single_rows_gives_the_moves_of_the_definition(
    stream: Stream, engine: Maker
) -> None:
    eager = engine(stream.rows.values.shape[1])
    found = []
    for rows, end in runs(stream):
        moves = listed(eager.run(rows, end))
        assert [time for time, _, _ in moves] == sorted(time for time, _, _ in moves)
        found += moves
    assert len(found) == len(set(found))
    assert set(found) == expected_moves(stream.rows, stream.ends[-1])
    assert len({(time, handle) for time, _, handle in found}) == len(found)


@settings(max_examples=120, deadline=None)
@given(streams(shift=-(2**63)) | streams(shift=2**63 - 1_000), engines)
def test_times_at_the_ends_of_int64_do_not_overflow(stream: Stream, engine: Maker) -> None:
    eager = engine(stream.rows.values.shape[1])
    found = [move for rows, end in runs(stream) for move in listed(eager.run(rows, end))]
    assert set(found) == expected_moves(stream.rows, stream.ends[-1])


@settings(max_examples=120, deadline=None)
@given(streams(), engines, engines, st.data())
def test_retained_rows_loaded_into_a_new_engine_give_the_same_future(
    stream: Stream, engine: Maker, other: Maker, data: st.DataObject
) -> None:
    eager = engine(stream.rows.values.shape[1])
    parts = runs(stream)
    stop = data.draw(st.integers(0, len(parts) - 1))
    for rows, end in parts[: stop + 1]:
        eager.run(rows, end)
    copy = other(stream.rows.values.shape[1])
    copy.load(eager.retained(), parts[stop][1])
    for rows, end in [*parts[stop + 1 :], (part(stream.rows, 0, 0), stream.ends[-1] + 1_000)]:
        assert set(listed(copy.run(rows, end))) == set(listed(eager.run(rows, end)))
        for one in (copy, eager):
            assert (np.diff(one.retained().arrivals) >= 0).all()


@settings(max_examples=40, deadline=None)
@given(streams(), engines)
def test_no_move_comes_before_the_next_event(stream: Stream, engine: Maker) -> None:
    eager = engine(stream.rows.values.shape[1])
    for rows, end in runs(stream):
        eager.run(rows, end)
        ahead = eager.next_event()
        assert ahead > end or not len(eager.retained())
        quiet = engine(stream.rows.values.shape[1])
        quiet.load(eager.retained(), end)
        later = listed(quiet.run(part(stream.rows, 0, 0), FARTHEST - 1))
        assert all(time >= ahead for time, _, _ in later)


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 6, 7, 10])
@pytest.mark.parametrize("ties", [True, False])
def test_long_batches_agree_with_single_rows(d: int, ties: bool) -> None:
    random = np.random.default_rng(d)
    n, window = 3_000, 700
    values = random.integers(0, 9, (n, d)).astype(float) if ties else random.random((n, d))
    arrivals = np.cumsum(random.integers(0, 3, n))
    rows = Rows(values, arrivals, arrivals + window, np.arange(n))
    singly = EagerList(d, few=10**9, coded=64)
    in_batches = EagerList(d, batch=1_000)
    until = int(arrivals[-1]) + 2 * window
    assert sorted(listed(singly.run(rows, until))) == sorted(listed(in_batches.run(rows, until)))


def test_retained_are_those_that_no_newer_live_row_dominates() -> None:
    random = np.random.default_rng(5)
    n, window = 2_000, 400
    values = random.integers(0, 12, (n, 3)).astype(float)
    arrivals = np.arange(n)
    engine = EagerList(3, batch=256)
    engine.run(Rows(values, arrivals, arrivals + window, arrivals), n - 1)
    live = range(n - window, n)
    expected = [i for i in live if not any(dominates(values[j], values[i]) for j in range(i + 1, n))]
    assert engine.retained().handles.tolist() == expected


@pytest.mark.parametrize("single", [True, False])
def test_memory_between_runs_is_at_most_twice_the_candidates_columns(single: bool) -> None:
    random = np.random.default_rng(6)
    for d in (2, 4, 6):
        n, window = 12_000, 3_000
        engine = EagerList(d)
        size = 7 if single else n // 3
        for first in range(0, n, size):
            arrivals = np.arange(first, min(n, first + size))
            engine.run(
                Rows(random.random((len(arrivals), d)), arrivals, arrivals + window, arrivals), int(arrivals[-1])
            )
        kept = len(engine.retained())
        assert kept >= 20
        assert engine.counters()["memory_bytes"] <= 2 * kept * 8 * (d + 3)


def test_counters_count_work() -> None:
    engine = EagerList(2)
    before = engine.counters()
    rows = Rows(np.zeros((2, 2)), np.array([1, 2]), np.array([9, 9]), np.array([1, 2]))
    engine.run(rows, 2)
    after = engine.counters()
    assert before["dominance_tests"] == before["node_visits"] == 0
    assert after["dominance_tests"] > 0 and after["node_visits"] > 0
