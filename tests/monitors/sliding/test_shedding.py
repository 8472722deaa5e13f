"""Load shedding: the bounds on what is missed hold on every stream, and harmless drops cost nothing."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.errors import OptionError
from skytide.monitors.sliding.engine import Engine, Moves, Rows
from skytide.monitors.sliding.shedding import Shedder, SheddingEngine
from skytide.monitors.sliding.skyband import SkybandEngine
from tests.monitors.sliding.drawn import Changes, Stream, listed, part, streams, truth


class WholeWindow:
    """An engine that retains every row it ever got, as a lazy one may."""

    def __init__(self, dimensions: int) -> None:
        self.inner = SkybandEngine(dimensions, 1)
        self.rows = Rows(np.zeros((0, dimensions)), *[np.zeros(0, np.int64)] * 3)

    def run(self, rows: Rows, until: int) -> Moves:
        pairs = zip(vars(self.rows).values(), vars(rows).values(), strict=True)
        self.rows = Rows(*(np.concatenate(pair) for pair in pairs))
        return self.inner.run(rows, until)

    def retained(self) -> Rows:
        return self.rows

    def load(self, rows: Rows, now: int) -> None:
        self.rows = rows
        self.inner.load(rows, now)

    def next_event(self) -> int:
        return self.inner.next_event()

    def counters(self) -> dict[str, int]:
        return self.inner.counters()


def engines(dimensions: int) -> st.SearchStrategy[Engine]:
    return st.sampled_from([0, 1]).map(lambda lazy: WholeWindow(dimensions) if lazy else SkybandEngine(dimensions, 1))


@settings(max_examples=500, deadline=None)
@given(streams(most=50), st.integers(1, 12), st.sampled_from([1, 2, 3, 1_024]), st.data())
def test_never_more_is_missed_or_wrong_than_is_said(
    stream: Stream, capacity: int, memory: int, data: st.DataObject
) -> None:
    shedding = SheddingEngine(data.draw(engines(stream.rows.values.shape[1])), capacity, memory)
    found: Changes = []
    for rows, until in stream.runs():
        found += listed(shedding.run(rows, until))
        counters = shedding.counters()
        expected = Counter(truth(stream.rows, 1, until))
        emitted = Counter(found)
        assert (expected - emitted).total() <= counters["missed_at_most"]
        assert (emitted - expected).total() <= counters["wrong_at_most"]
        assert shedding.next_event() > until
        kept = shedding.shedder._drops
        assert kept is None or len(kept) <= memory
        if counters["shed"] == counters["shed_harmless"]:
            assert counters["missed_at_most"] == counters["wrong_at_most"] == 0
    if len(found):
        assert shedding.next_event() == np.iinfo(np.int64).max


@settings(max_examples=200, deadline=None)
@given(streams(most=50), st.integers(1, 12))
def test_no_run_takes_more_than_its_capacity_and_below_it_nothing_is_dropped(stream: Stream, capacity: int) -> None:
    engine = SkybandEngine(stream.rows.values.shape[1], 1)
    shedder = Shedder(capacity)
    for rows, until in stream.runs():
        before = shedder.shed
        keep = shedder.admit(rows, engine.retained)
        assert np.count_nonzero(keep) <= capacity and shedder.shed - before == len(rows) - np.count_nonzero(keep)
        assert len(rows) > capacity or keep.all()
        admitted = Rows(*(column[keep] for column in vars(rows).values()))
        shedder.observe(rows, engine.run(admitted, until), until, engine.retained)


@settings(max_examples=150, deadline=None)
@given(streams(most=40), st.integers(1, 8), st.data())
def test_a_stored_shedder_goes_on_as_if_nothing_had_happened(
    stream: Stream, capacity: int, data: st.DataObject
) -> None:
    runs = stream.runs()
    swap = data.draw(st.integers(0, len(runs) - 1))
    d = stream.rows.values.shape[1]
    one, other = SheddingEngine(SkybandEngine(d, 1), capacity), SheddingEngine(SkybandEngine(d, 1), capacity)
    for number, (rows, until) in enumerate(runs):
        assert listed(one.run(rows, until)) == listed(other.run(rows, until))
        if number == swap:
            state, kept = other.shedder.state(), other.retained()
            other = SheddingEngine(SkybandEngine(d, 1), capacity)
            other.load(kept, until)
            other.shedder.restore(state)
    for name in ("shed", "shed_harmless", "missed_at_most", "wrong_at_most"):
        assert one.counters()[name] == other.counters()[name]


def spike(n: int, seed: int) -> Rows:
    """Rows at a steady pace, then, in the middle, thousands at once."""
    rng = np.random.default_rng(seed)
    times = np.sort(np.concatenate((np.arange(0, 3_000, 10), 1_500 + rng.integers(0, 10, n)))).astype(np.int64)
    return Rows(rng.random((len(times), 3)), times, times + 1_000, np.arange(len(times)))


def test_a_spike_of_independent_rows_is_shed_without_loss() -> None:
    rows = spike(5_000, seed=1)
    shedding = SheddingEngine(SkybandEngine(3, 1), capacity=1_000)
    stream = Stream(rows, [1_499, 1_510, *range(1_600, 5_000, 100)])
    found = [move for some, until in stream.runs() for move in listed(shedding.run(some, until))]
    plain = SkybandEngine(3, 1)
    expected = [move for some, until in stream.runs() for move in listed(plain.run(some, until))]
    counters = shedding.counters()
    assert sorted(found) == sorted(expected)
    assert counters["shed"] >= 4_000 and counters["missed_at_most"] == counters["wrong_at_most"] == 0


@pytest.mark.parametrize("capacity", [30, 100])
def test_the_bound_for_a_spike_is_of_the_size_of_what_is_missed(capacity: int) -> None:
    rows = spike(5_000, seed=2)
    shedding = SheddingEngine(SkybandEngine(3, 1), capacity)
    stream = Stream(rows, [1_499, 1_510, *range(1_600, 5_000, 100)])
    found = Counter(move for some, until in stream.runs() for move in listed(shedding.run(some, until)))
    plain = SkybandEngine(3, 1)
    expected = Counter(move for some, until in stream.runs() for move in listed(plain.run(some, until)))
    counters = shedding.counters()
    missed = (expected - found).total()
    assert counters["shed"] > counters["shed_harmless"]
    assert 0 < missed <= counters["missed_at_most"] <= 2 * missed


def test_a_dropped_row_that_would_have_entered_is_counted_when_it_would() -> None:
    # The first row covers the second until 10; the third keeps the run above its capacity.
    values = np.array([[1.0, 1.0], [2.0, 2.0], [0.0, 9.0]])
    times = np.array([0, 1, 2])
    shedding = SheddingEngine(SkybandEngine(2, 1), capacity=2)
    rows = Rows(values, times, times + 10, times)
    shedding.run(rows, 5)
    assert (shedding.shedder.shed, shedding.shedder.shed_harmless, shedding.shedder.missed_at_most) == (1, 0, 0)
    assert shedding.next_event() == 10
    shedding.run(part(rows, 0, 0), 9)
    assert shedding.shedder.missed_at_most == 0
    shedding.run(part(rows, 0, 0), 10)
    assert shedding.shedder.missed_at_most == 2


@pytest.mark.parametrize(("capacity", "memory"), [(0, 5), (-1, 5), (5, 0), (True, 5), (1.5, 5)])
def test_capacity_and_memory_are_numbers_from_one(capacity: int, memory: int) -> None:
    with pytest.raises(OptionError, match="number from 1"):
        Shedder(capacity, memory)
