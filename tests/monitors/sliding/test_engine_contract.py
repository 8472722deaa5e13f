"""Every engine in the registry gives the answer of a plain oracle after every step; any can take over from any."""

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.model import Floats
from skytide.monitors.sliding.engine import Engine, Moves, Rows
from skytide.monitors.sliding.engines import ENGINES, load_engine

Make = Callable[[int], Engine]
Move = tuple[int, int, int]
LOWEST, HIGHEST = -(2**63), 2**63 - 1


def _present() -> Iterator[tuple[str, str]]:
    for name, place in ENGINES.items():
        if find_spec(place.split(":")[0]) is None:
            print(f"no module for the engine {name}: {place}")
        else:
            yield name


PRESENT = list(_present())


@pytest.fixture(params=PRESENT, ids="-".join)
def make(request: pytest.FixtureRequest) -> Make:
    return load_engine(*request.param)


def rows_of(values: list[list[float]] | Floats, arrivals: list[int], expiries: list[int], first: int = 0) -> Rows:
    matrix = np.asarray(values, dtype=np.float64)
    handles = np.arange(first, first + len(arrivals), dtype=np.int64)
    return Rows(matrix, np.array(arrivals, dtype=np.int64), np.array(expiries, dtype=np.int64), handles)


def part(rows: Rows, start: int, stop: int) -> Rows:
    cut = slice(start, stop)
    return Rows(rows.values[cut], rows.arrivals[cut], rows.expiries[cut], rows.handles[cut])


def as_set(moves: Moves) -> set[Move]:
    listed = list(zip(moves.times.tolist(), moves.signs.tolist(), moves.handles.tolist(), strict=True))
    assert [time for time, _, _ in listed] == sorted(time for time, _, _ in listed)
    assert len({(time, handle) for time, _, handle in listed}) == len(listed)
    return set(listed)


def answer(rows: Rows, time: int) -> set[int]:
    live = np.flatnonzero((rows.arrivals <= time) & (time < rows.expiries))
    values = rows.values[live]
    no_worse = (values[:, None] <= values[None]).all(axis=2)
    better = (values[:, None] < values[None]).any(axis=2)
    return set(rows.handles[live[~(no_worse & better).any(axis=0)]].tolist())


def oracle(rows: Rows) -> list[Move]:
    """The whole change stream from the definition alone."""
    moves: list[Move] = []
    before: set[int] = set()
    for time in sorted({*rows.arrivals.tolist(), *rows.expiries.tolist()}):
        now = answer(rows, time)
        moves += [(time, -1, handle) for handle in before - now] + [(time, 1, handle) for handle in now - before]
        before = now
    return moves


def check(engine: Engine) -> None:
    for owned in vars(engine).values():
        if hasattr(owned, "_check"):
            owned._check()
    if hasattr(engine, "_check"):
        engine._check()


@st.composite
def streams(draw: st.DrawFn) -> tuple[Rows, list[int]]:
    """Rows with ties in values and times, anywhere on the time axis, and the instants at which batches end."""
    d = draw(st.integers(1, 5))
    n = draw(st.integers(1, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values = rng.integers(0, draw(st.integers(1, 7)) + 1, (n, d)).astype(np.float64)
    if draw(st.booleans()):
        values = np.array([-np.inf, -1.797e308, -0.0, 0.0, 5e-324, 1.0, 1.797e308, np.inf])[values.astype(int)]
    offsets = np.cumsum(rng.integers(0, draw(st.integers(1, 4)), n))
    length = draw(st.integers(1, 30))
    ends = offsets + length
    if draw(st.booleans()):
        # Lives of different lengths, some of no length at all; equal arrivals may have different expiries.
        ends = np.maximum.accumulate(offsets + rng.integers(-1, length + 1, n))
    last = int(ends.max()) + 5
    base = draw(st.sampled_from([0, LOWEST + 2, HIGHEST - last - 1]))
    arrivals, expiries = [base + int(x) for x in offsets], [base + int(x) for x in ends]
    cuts = sorted(draw(st.sets(st.integers(-1, last - 1), max_size=8)))
    return rows_of(values, arrivals, expiries, first=1000), [base + cut for cut in cuts] + [base + last]


def feed(engine: Engine, rows: Rows, after: int, until: int) -> set[Move]:
    """Run the rows with after < arrival <= until."""
    start, stop = np.searchsorted(rows.arrivals, [after, until], side="right")
    return as_set(engine.run(part(rows, int(start), int(stop)), until))


@settings(max_examples=60, deadline=None)
@given(stream=streams())
def test_the_moves_of_every_batch_are_the_oracles(stream: tuple[Rows, list[int]]) -> None:
    rows, cuts = stream
    expected = oracle(rows)
    for name in PRESENT:
        engine = load_engine(*name)(rows.values.shape[1])
        after = int(rows.arrivals[0]) - 1
        for until in cuts:
            got = feed(engine, rows, after, until)
            assert got == {move for move in expected if after < move[0] <= until}, name
            due = [int(time) for time in rows.expiries.tolist() if time > until]
            upcoming = [time for time, _, _ in expected if time > until]
            arrived = rows.arrivals <= until
            if not arrived.all():
                upcoming = [time for time, _, _ in oracle(part(rows, 0, int(arrived.sum()))) if time > until]
            assert engine.next_event() <= min(upcoming, default=HIGHEST), name
            assert due or engine.next_event() == HIGHEST, name
            check(engine)
            after = until
        assert len(engine.retained()) == 0


@settings(max_examples=50, deadline=None)
@given(stream=streams(), switches=st.lists(st.integers(0, 7), min_size=9, max_size=9))
def test_engines_take_over_from_each_other_without_a_difference(
    stream: tuple[Rows, list[int]], switches: list[int]
) -> None:
    rows, cuts = stream
    expected = oracle(rows)
    d = rows.values.shape[1]
    engine = load_engine(*PRESENT[0])(d)
    after = int(rows.arrivals[0]) - 1
    for until, switch in zip(cuts, switches, strict=False):
        assert feed(engine, rows, after, until) == {move for move in expected if after < move[0] <= until}
        after = until
        kept = engine.retained()
        assert set(kept.handles.tolist()) <= set(rows.handles[rows.expiries > until].tolist())
        assert answer(kept, until) == answer(rows, until)
        if switch < 6:
            # An older state must load too: rows that have expired since, or that others dominate.
            older = part(rows, 0, int((rows.arrivals <= until).sum())) if switch % 2 else kept
            engine = load_engine(*PRESENT[switch % len(PRESENT)])(d)
            engine.load(older, until)
            check(engine)


def test_what_is_retained_is_a_copy(make: Make) -> None:
    engine = make(1)
    engine.run(rows_of([[1.0], [2.0]], [0, 1], [10, 11]), 1)
    kept = engine.retained()
    kept.values[:] = 0.0
    kept.expiries[:] = 0
    assert as_set(engine.run(rows_of(np.empty((0, 1)), [], []), 20)) == {(10, -1, 0), (10, 1, 1), (11, -1, 1)}


def test_the_stream_of_figure_1b(make: Make) -> None:
    values = [[2.0, 4.0], [6.0, 1.0], [3.0, 5.0], [5.0, 3.0], [2.0, 2.0], [1.0, 6.0]]
    arrivals = [1, 3, 5, 7, 9, 11]
    a, b, c, d, e, f = range(6)
    moves = as_set(make(2).run(rows_of(values, arrivals, [t + 5 for t in arrivals]), 11))
    assert moves == {
        *[(1, 1, a), (3, 1, b), (6, -1, a), (6, 1, c), (7, 1, d), (8, -1, b)],
        *[(9, 1, e), (9, -1, c), (9, -1, d), (11, 1, f)],
    }


FIGURE_6 = {
    **{"a": (2, 16, 1), "b": (1, 20, 3), "c": (4, 12, 5), "d": (6, 9, 7), "e": (8, 7, 9), "f": (10, 5, 11)},
    **{"g": (14, 3, 13), "h": (12, 18, 15), "i": (5, 14, 17), "j": (13, 15, 19), "k": (12, 2, 21)},
}


def test_the_example_of_figure_6(make: Make) -> None:
    names = list(FIGURE_6)
    arrivals = [time for _, _, time in FIGURE_6.values()]
    rows = rows_of([[x, y] for x, y, _ in FIGURE_6.values()], arrivals, [time + 15 for time in arrivals])
    engine = make(2)
    after, kept, moves = 0, {}, []
    for until in (13, 15, 16, 17, 18, 19, 20, 21, 40):
        moves += [(time, sign, names[handle]) for time, sign, handle in sorted(feed(engine, rows, after, until))]
        kept[until] = "".join(names[handle] for handle in engine.retained().handles.tolist())
        after = until
    entered = [(time, 1, name) for name, time in zip("abcdefg", range(1, 14, 2), strict=True)]
    assert moves == [
        *entered,
        *[(16, -1, "a"), (18, -1, "b"), (20, -1, "c"), (20, 1, "i"), (21, -1, "g"), (21, 1, "k")],
        *[(22, -1, "d"), (24, -1, "e"), (26, -1, "f"), (32, -1, "i"), (36, -1, "k")],
    ]
    if "Eager" in getattr(make, "__name__", ""):
        # The text: h waits, i evicts it, j waits for i, k evicts g and j.
        assert kept == {
            **{13: "abcdefg", 15: "abcdefgh", 16: "bcdefgh", 17: "bcdefgi", 18: "cdefgi", 19: "cdefgij"},
            **{20: "defgij", 21: "defik", 40: ""},
        }


def test_one_expiry_lets_hundreds_in_at_once(make: Make) -> None:
    rng = np.random.default_rng(0)
    x = rng.permutation(600).astype(np.float64) + 1.0
    behind = np.stack([x, 700.0 - x + 50.0 * rng.integers(0, 2, 600)], axis=1)
    # All but the first live on for long, so that two instants say everything.
    rows = rows_of(np.concatenate([[[0.0, 0.0]], behind]), list(range(601)), [700, *[900] * 600])
    engine = make(2)
    assert feed(engine, rows, -1, 600) == {(0, 1, 0)}
    check(engine)
    entered = answer(rows, 700)
    assert len(entered) > 200
    assert feed(engine, rows, 600, 700) == {(700, -1, 0), *((700, 1, handle) for handle in entered)}
    check(engine)
    assert feed(engine, rows, 700, 1000) == {(900, -1, handle) for handle in entered}
    check(engine)


@pytest.mark.parametrize("d", [1, 2, 4])
def test_long_random_streams_with_growth_and_shrinking(make: Make, d: int) -> None:
    rng = np.random.default_rng(d)
    n = 1500
    # A burst in the middle: the window grows to many rows and shrinks again.
    gaps = np.where((np.arange(n) > 400) & (np.arange(n) < 900), 0, 3)
    arrivals = np.cumsum(gaps * rng.integers(0, 2, n)).tolist()
    side = rng.integers(0, 40, (n, d)).astype(np.float64)
    if d > 1:
        side[:, -1] = 40.0 * d - side[:, :-1].sum(axis=1) + rng.integers(0, 3, n)
    rows = rows_of(side, arrivals, [t + 60 for t in arrivals])
    expected = oracle(rows)
    engine = make(d)
    after = -1
    for until in [*range(0, arrivals[-1], 37), arrivals[-1] + 100]:
        assert feed(engine, rows, after, until) == {move for move in expected if after < move[0] <= until}
        check(engine)
        after = until
    assert len(engine.retained()) == 0


def test_memory_comes_back_after_a_spike(make: Make) -> None:
    engine = make(3)
    rng = np.random.default_rng(0)
    x = rng.random((20_000, 3))
    x[:, 2] = 3.0 - x[:, 0] - x[:, 1]
    engine.run(rows_of(x, [0] * 20_000, [10] * 20_000), 0)
    assert engine.counters()["memory_bytes"] > 20_000 * 3 * 8
    engine.run(rows_of(x[:10], [20] * 10, [30] * 10), 20)
    assert engine.counters()["memory_bytes"] < 200_000


def test_counters_only_go_up(make: Make) -> None:
    engine = make(2)
    rng = np.random.default_rng(0)
    seen = [engine.counters()]
    for start in range(0, 300, 50):
        times = list(range(start, start + 50))
        engine.run(rows_of(rng.random((50, 2)), times, [t + 70 for t in times], first=start), start + 49)
        seen.append(engine.counters())
        engine.load(engine.retained(), start + 49)
    for name in ("dominance_tests", "node_visits"):
        assert all(before[name] <= after[name] for before, after in pairwise(seen))
    assert seen[-1]["dominance_tests"] > 0
