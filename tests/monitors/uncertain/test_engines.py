"""Every engine for uncertain rows against the definition, in exact arithmetic, at every instant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from skytide.errors import OptionError
from skytide.monitors.uncertain import cells
from skytide.monitors.uncertain.auto import METHODS, make_engine
from skytide.monitors.uncertain.cells import CellsEngine
from skytide.monitors.uncertain.engine import ThresholdMoves, UncertainRows
from skytide.monitors.uncertain.scan import ScanEngine
from skytide.monitors.uncertain.tree import TreeEngine
from skytide.reference.uncertain import at_least, probability, reaches, single

Move = tuple[int, int, int, int]
ENGINES: list[Callable[[int, Sequence[float]], Any]] = [ScanEngine, CellsEngine, TreeEngine]
NEARLY_ONE = 1 - 2.0**-53
CHANCES = [1.0, 1.0, 0.5, 0.5, 0.25, NEARLY_ONE, 1e-9, 0.3, 0.7, 5e-324, 2.0**-53, 0.1]
THRESHOLDS = [1.0, NEARLY_ONE, 0.7, 0.5, 0.3, 0.25, 0.21, 0.125, 0.0625, 0.7 * 0.7, 0.3 * 0.7, 0.3 * 0.3, 1e-9, 1e-300]
EXTREMES = [-np.inf, -1.797e308, -5e-324, -0.0, 0.0, 5e-324, 1.797e308, np.inf]


@dataclass(frozen=True)
class Stream:
    rows: UncertainRows
    thresholds: tuple[float, ...]
    cuts: tuple[int, ...]
    """Where the stream is cut into runs; never within an instant."""
    until: int


def live_at(rows: UncertainRows, now: int) -> list[int]:
    return [i for i in range(len(rows)) if rows.arrivals[i] <= now < rows.expiries[i]]


def objects_of(rows: UncertainRows, live: list[int]) -> Any:
    return single([tuple(rows.values[i].tolist()) for i in live], [float(rows.probabilities[i]) for i in live])


def answer_at(rows: UncertainRows, now: int, threshold: float) -> set[int]:
    live = live_at(rows, now)
    return {int(rows.handles[live[i]]) for i in at_least(objects_of(rows, live), threshold)}


def expected_moves(stream: Stream) -> list[Move]:
    rows = stream.rows
    living = [i for i in range(len(rows)) if rows.arrivals[i] < rows.expiries[i]]
    instants = sorted({int(t) for i in living for t in (rows.arrivals[i], rows.expiries[i]) if t <= stream.until})
    moves: list[Move] = []
    for j, threshold in enumerate(stream.thresholds):
        before: set[int] = set()
        for now in instants:
            answer = answer_at(rows, now, threshold)
            moves += [(now, -1, one, j) for one in before - answer] + [(now, 1, one, j) for one in answer - before]
            before = answer
    return sorted(moves)


def listed(moves: ThresholdMoves) -> list[Move]:
    assert (np.diff(moves.times) >= 0).all()
    columns = (moves.times, moves.signs, moves.handles, moves.thresholds)
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


def runs(stream: Stream) -> list[tuple[UncertainRows, int]]:
    bounds = [0, *stream.cuts, len(stream.rows)]
    ends = [int(stream.rows.arrivals[i]) - 1 for i in stream.cuts] + [stream.until]
    return [(stream.rows.pick(slice(a, b)), end) for a, b, end in zip(bounds, bounds[1:], ends, strict=False)]


@st.composite
def streams(draw: st.DrawFn, *, sorted_expiries: bool = True) -> Stream:
    d = draw(st.integers(1, 4))
    n = draw(st.integers(0, 30))
    cell = draw(st.sampled_from([st.integers(0, 2), st.integers(0, 5), st.sampled_from(EXTREMES)]))
    values = np.array(draw(st.lists(cell, min_size=n * d, max_size=n * d)), dtype=np.float64).reshape(n, d)
    chance = draw(st.sampled_from([st.sampled_from(CHANCES), st.sampled_from([0.5, 1.0]), st.floats(1e-9, 1.0)]))
    chances = np.array(draw(st.lists(chance, min_size=n, max_size=n)), dtype=np.float64)
    gaps = draw(st.lists(st.sampled_from([0, 0, 1, 1, 2, 7]), min_size=n, max_size=n))
    arrivals = np.cumsum(np.array(gaps, dtype=np.int64))
    lasts = np.array(draw(st.lists(st.sampled_from([0, 0, 0, 1, 3]), min_size=n, max_size=n)), dtype=np.int64)
    expiries = arrivals + draw(st.integers(0, 30)) + lasts * (1 if sorted_expiries else 5)
    if sorted_expiries:
        expiries = np.maximum.accumulate(expiries)
    handles = np.array(draw(st.permutations(range(n))), dtype=np.int64) * 3 - 50
    level = st.sampled_from(THRESHOLDS) | st.floats(0.01, 1.0)
    thresholds = tuple(sorted(draw(st.sets(level, min_size=1, max_size=4)), reverse=True))
    where = [i for i in range(1, n) if arrivals[i] > arrivals[i - 1]]
    cuts = tuple(sorted(draw(st.sets(st.sampled_from(where), max_size=8)))) if where else ()
    until = (int(arrivals[-1]) if n else 0) + draw(st.integers(0, 40))
    return Stream(UncertainRows(values, chances, arrivals, expiries, handles), thresholds, cuts, until)


def check_answers(engine: Any, rows: UncertainRows, now: int, thresholds: Sequence[float]) -> None:
    """The answer at `now`, for each threshold and between them: who, and with what probability."""
    live = live_at(rows, now)
    objects = objects_of(rows, live)
    exact = {int(rows.handles[i]): probability(objects, position) for position, i in enumerate(live)}
    for threshold in (*thresholds, (1 + thresholds[-1]) / 2):
        handles, chances = engine.answer(threshold)
        assert set(handles.tolist()) == answer_at(rows, now, threshold) and len(handles) == len(set(handles.tolist()))
        for handle, chance in zip(handles.tolist(), chances.tolist(), strict=True):
            assert abs(Fraction(chance) / exact[handle] - 1) < Fraction(1, 10**9)


@pytest.mark.parametrize("make", ENGINES)
@given(stream=streams())
@settings(max_examples=60, deadline=None)
def test_moves_and_answers_are_those_of_the_definition_after_every_run(make: Any, stream: Stream) -> None:
    engine = make(stream.rows.values.shape[1], stream.thresholds)
    moves = []
    for rows, until in runs(stream):
        moves += listed(engine.run(rows, until))
        engine._check()
        check_answers(engine, stream.rows, until, stream.thresholds)
    assert sorted(moves) == expected_moves(stream)


@pytest.mark.parametrize("make", ENGINES)
@given(stream=streams(sorted_expiries=False))
@settings(max_examples=40, deadline=None)
def test_rows_may_outlive_later_ones(make: Any, stream: Stream) -> None:
    engine = make(stream.rows.values.shape[1], stream.thresholds)
    moves = []
    for rows, until in runs(stream):
        moves += listed(engine.run(rows, until))
        engine._check()
    assert sorted(moves) == expected_moves(stream)


@pytest.mark.parametrize("make", ENGINES)
@pytest.mark.parametrize("other", ENGINES)
@given(stream=streams(), after=st.integers(0, 40))
@settings(max_examples=20, deadline=None)
def test_retained_rows_give_the_same_future_in_any_engine(make: Any, other: Any, stream: Stream, after: int) -> None:
    d = stream.rows.values.shape[1]
    first, second = make(d, stream.thresholds), other(d, stream.thresholds)
    (rows, until), *later = runs(stream)
    first.run(rows, until)
    now = until + (0 if later else after)
    second.load(first.retained(), now)
    second._check()
    check_answers(second, stream.rows, now, stream.thresholds)
    if not later:
        return
    for rows, until in later:
        expected = listed(first.run(rows, until))
        assert second.next_event() > now or listed(second.run(rows.pick(slice(0, 0)), now)) == []
        assert listed(second.run(rows, until)) == expected
        now = until
    assert second.next_event() == first.next_event()


@pytest.mark.parametrize("make", ENGINES)
@given(stream=streams())
@settings(max_examples=20, deadline=None)
def test_nothing_moves_before_the_next_event(make: Any, stream: Stream) -> None:
    engine = make(stream.rows.values.shape[1], stream.thresholds)
    engine.run(stream.rows, stream.until)
    nothing = stream.rows.pick(slice(0, 0))
    following = engine.next_event()
    assume(following < 2**63 - 1)
    assert len(engine.run(nothing, following - 1)) == 0
    assert engine.next_event() == following


@pytest.mark.parametrize("make", ENGINES)
def test_an_engine_that_nothing_has_reached_has_no_event(make: Any) -> None:
    engine = make(2, [0.3])
    assert engine.next_event() == 2**63 - 1 and len(engine.retained()) == 0
    assert engine.answer(0.5)[0].tolist() == []


def random_stream(
    n: int, d: int, window: int, seed: int, chances: Any = None, grid: int | None = None
) -> UncertainRows:
    source = np.random.default_rng(seed)
    values = source.random((n, d)) if grid is None else source.integers(0, grid, (n, d)).astype(float)
    values[:, 0] -= values[:, 1:].sum(axis=1) * 0.8  # so that candidates are many
    arrivals = np.arange(n, dtype=np.int64)
    drawn = 1 - source.random(n) if chances is None else source.choice(chances, n)
    return UncertainRows(values, drawn, arrivals, arrivals + window, arrivals)


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("chances", [None, [0.5, 1.0, 0.25], [0.001, 0.002], [NEARLY_ONE, 1e-9, 0.3]])
def test_engines_agree_on_streams_that_outgrow_their_first_room(d: int, chances: Any) -> None:
    rows = random_stream(4_000, d, 900, 5, chances, None if chances is None else 50)
    thresholds = (0.7, 0.5, 0.3)
    made = [make(d, thresholds) for make in ENGINES]
    for first in range(0, 4_000, 1_000):
        piece = rows.pick(slice(first, first + 1_000))
        found = [listed(engine.run(piece, first + 999)) for engine in made]
        assert all(moves == found[0] for moves in found)
        kept = [set(engine.retained().handles.tolist()) for engine in made]
        assert all(candidates == kept[0] for candidates in kept)
    for engine in made:
        engine._check()


def test_engines_agree_where_many_rows_outlive_later_ones() -> None:
    rows = random_stream(3_000, 2, 300, 8, [0.5, 0.1, 0.02])
    rows = replace(rows, expiries=rows.expiries + np.random.default_rng(9).integers(0, 600, 3_000))
    made = [make(2, (0.5, 0.2)) for make in ENGINES]
    for first in range(0, 3_000, 500):
        found = [listed(engine.run(rows.pick(slice(first, first + 500)), first + 499)) for engine in made]
        assert all(moves == found[0] for moves in found)
        for engine in made:
            engine._check()


def test_cells_are_cut_anew_as_values_wander(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "_RECUT", 64)
    rows = random_stream(4_000, 2, 300, 10)
    rows = replace(rows, values=rows.values + np.arange(4_000)[:, None] * [0.01, -0.01])
    made: list[Any] = [CellsEngine(2, (0.5, 0.2)), ScanEngine(2, (0.5, 0.2))]
    edges = set()
    for first in range(0, 4_000, 100):
        found = [listed(engine.run(rows.pick(slice(first, first + 100)), first + 99)) for engine in made]
        made[0]._check()
        edges.add(made[0]._edges.tobytes())
        assert found[0] == found[1]
    assert len(edges) > 10


@pytest.mark.parametrize("make", ENGINES)
def test_many_arrivals_leave_no_drift(make: Any) -> None:
    """Only each last window is summed anew, exactly; the benchmark does the same after ten million arrivals."""
    engine = make(2, [0.5, 0.05])
    n, window = 120_000, 200
    rows = random_stream(n, 2, window, 3, [0.001, 0.3, 1.0, 0.999999, 0.01, 1e-9])
    for first in range(0, n, 20_000):
        engine.run(rows.pick(slice(first, first + 20_000)), first + 19_999)
    last = rows.pick(slice(n - window, n))
    engine._check()
    check_answers(engine, last, n - 1, [0.5, 0.05])
    assert len(engine.answer(0.05)[0]) > 5


@pytest.mark.parametrize("make", ENGINES)
@pytest.mark.parametrize("chance", [0.5343479163247489, 0.6745397725916279, 0.5])
def test_rows_on_a_threshold_come_in_when_a_thousand_all_but_certain_rows_have_gone(make: Any, chance: float) -> None:
    """Sums of such rows are large: bounds that round them must not hide a row that they let go in the end."""
    chain, front, beside = 1000, 300, 300
    x = np.sort(np.random.default_rng(6).random(front)) * 1000 + 1e5
    below = np.stack([x, 3e5 - x], axis=1)
    aside = np.stack([np.arange(beside) - 1e6, 1e7 - np.arange(beside)], axis=1)
    mixed = np.random.default_rng(7).permutation(front + beside)
    later = np.stack([1e8 + np.arange(chain + 9), 2e8 - np.arange(chain + 9)], axis=1)
    values = np.concatenate([np.arange(chain)[:, None] + np.zeros(2), np.concatenate([below, aside])[mixed], later])
    chances = np.repeat([NEARLY_ONE, chance, 0.1], [chain, front + beside, chain + 9])
    arrivals = np.arange(len(values))
    window = chain + front + beside
    engine = make(2, [chance])
    moves = engine.run(UncertainRows(values, chances, arrivals, arrivals + window, arrivals), len(values) - 1)
    came = {move[2]: move[0] for move in listed(moves) if move[1] == 1 and chain <= move[2] < window}
    last = chain - 1 + window
    assert came == {chain + i: last if one < front else chain + i for i, one in enumerate(mixed.tolist())}


# -- thresholds and choices --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", ENGINES)
@pytest.mark.parametrize("shift, inside", [(0.0, True), (0.5e-12, True), (2e-12, False)])
def test_a_probability_just_below_a_threshold_reaches_it(make: Any, shift: float, inside: bool) -> None:
    engine = make(1, [0.49 * (1 + shift)])
    rows = UncertainRows(
        np.array([[1.0], [2.0]]), np.array([0.3, 0.7]), np.array([1, 2]), np.array([8, 9]), np.array([1, 2])
    )
    engine.run(rows, 2)
    assert engine.answer(0.49 * (1 + shift))[0].tolist() == ([2] if inside else [])


@pytest.mark.parametrize("make", ENGINES)
def test_thresholds_nearer_than_rounding_are_decided_as_fractions_decide_them(make: Any) -> None:
    """Thresholds a few units in the last place around the one whose bar is the product itself."""
    rows = UncertainRows(
        np.array([[0.0, 2.0], [1.0, 1.0], [2.0, 0.0], [3.0, 3.0]]),
        np.array([0.1, 1e-9, 0.3, 0.7]),
        np.arange(4),
        np.arange(4) + 9,
        np.arange(4),
    )
    exact = probability(objects_of(rows, list(range(4))), 3)
    middle = float(exact / (1 - Fraction(1, 10**12)))
    decided = set()
    for steps in range(-6, 7):
        threshold = middle + steps * np.spacing(middle)
        engine = make(2, [threshold])
        engine.run(rows, 3)
        inside = 3 in engine.answer(threshold)[0].tolist()
        assert inside == reaches(exact, threshold)
        decided.add(inside)
        worse = UncertainRows(
            np.full((2, 2), 9.0), np.full(2, 0.5), np.array([5, 6]), np.array([14, 15]), np.array([5, 6])
        )
        later = listed(engine.run(worse, 8))
        assert all(handle != 3 for _, _, handle, _ in later)
        assert (3 in engine.answer(threshold)[0].tolist()) == inside
    assert decided == {True, False}


@pytest.mark.parametrize("make", ENGINES)
def test_a_threshold_is_reached_to_the_last_digit_of_the_product(make: Any) -> None:
    """Logarithms alone are wrong about some of these."""
    for chance in (0.1, 0.3, 0.7, 0.9, *np.random.default_rng(4).random(30).tolist()):
        rows = UncertainRows(
            np.array([[1.0], [2.0]]), np.array([0.3, chance]), np.arange(2), np.array([5, 9]), np.arange(2)
        )
        for exact, now in ((Fraction(chance) * (1 - Fraction(0.3)), 1), (Fraction(chance), 5)):
            middle = float(exact / (1 - Fraction(1, 10**12)))
            for threshold in (middle + steps * np.spacing(middle) for steps in range(-2, 3)):
                engine = make(1, [threshold])
                engine.run(rows, now)
                assert (1 in engine.answer(threshold)[0].tolist()) == reaches(exact, threshold)


@pytest.mark.parametrize("make", ENGINES)
def test_a_row_comes_in_when_the_newer_of_two_dominators_goes_first(make: Any) -> None:
    engine = make(1, [0.6])
    rows = UncertainRows(
        np.array([[1.0], [1.0], [2.0]]), np.array([0.3, 0.3, 0.9]), np.arange(3), np.array([50, 5, 60]), np.arange(3)
    )
    assert listed(engine.run(rows, 60)) == [(5, 1, 2, 0), (60, -1, 2, 0)]


@pytest.mark.parametrize("method", METHODS)
def test_every_method_makes_an_engine(method: str) -> None:
    engine = make_engine(2, [0.5], method=method)
    engine.run(random_stream(9, 2, 9, 1), 9)
    assert len(engine.retained()) > 1


def test_what_is_no_method_or_threshold_is_refused() -> None:
    with pytest.raises(OptionError, match="is not a method"):
        make_engine(2, [0.5], method="trees")
    for thresholds in ([], [0.0], [1.5], [0.3, 0.5], [0.5, 0.5], [float("nan")]):
        with pytest.raises(OptionError, match="thresholds"):
            make_engine(2, thresholds)
    with pytest.raises(OptionError, match="asked for"):
        make_engine(2, [0.5]).answer(0.4)
