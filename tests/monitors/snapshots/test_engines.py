"""Every engine gives the answer of a plain oracle after every snapshot, in any pieces; any can take over from any."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.kernel import snapshots as kernel
from skytide.monitors.snapshots import auto
from skytide.monitors.snapshots.auto import AutoEngine
from skytide.monitors.snapshots.boxes import BoxEngine
from skytide.monitors.snapshots.engine import Engine, Updates
from skytide.monitors.snapshots.recompute import RecomputeEngine
from tests.monitors.snapshots.drawn import ENGINES, answers, check, crowd, differences, joined, listed, of, updates

NAMES = st.sampled_from(sorted(ENGINES))


def play(engine: Engine, given: Updates, expected: list[set[int]]) -> None:
    """Snapshot by snapshot, with everything looked at in between."""
    before: set[int] = set(engine.skyline().tolist())
    for i, answer in enumerate(expected):
        assert listed(engine.run(given.part(i, i + 1))) == differences([answer], before)
        assert set(engine.skyline().tolist()) == answer
        check(engine)
        before = answer


@settings(max_examples=150)
@given(updates(), NAMES)
def test_after_every_snapshot_the_skyline_is_the_oracles(drawn: Updates, name: str) -> None:
    play(ENGINES[name](drawn.rows.shape[1]), drawn, answers(drawn))


@settings(max_examples=60)
@given(updates(), NAMES, st.lists(st.integers(0, 24), max_size=4))
def test_any_split_into_runs_tells_the_same(drawn: Updates, name: str, cuts: list[int]) -> None:
    engine = ENGINES[name](drawn.rows.shape[1])
    edges = [0, *sorted(cut for cut in cuts if cut <= drawn.snapshots), drawn.snapshots]
    told = set()
    for start, stop in itertools.pairwise(edges):
        told |= {(start + i, sign, slot) for i, sign, slot in listed(engine.run(drawn.part(start, stop)))}
        check(engine)
    assert told == differences(answers(drawn))


@settings(max_examples=80)
@given(updates(), st.lists(st.tuples(st.integers(1, 6), NAMES, st.booleans()), min_size=1, max_size=5), NAMES)
def test_whoever_loads_the_objects_has_the_same_future(
    drawn: Updates, turns: list[tuple[int, str, bool]], name: str
) -> None:
    d = drawn.rows.shape[1]
    expected = answers(drawn)
    engine, at = ENGINES[name](d), 0
    used = dict[str, Engine]()
    for length, following, again in [*turns, (drawn.snapshots, name, False)]:
        stop = min(at + length, drawn.snapshots)
        told = listed(engine.run(drawn.part(at, stop)))
        assert told == differences(expected[at:stop], expected[at - 1] if at else None)
        at = stop
        points, live = engine.objects()
        # Into itself, into one that has held other objects before, or into a new one.
        other = engine if again else used.setdefault(following, ENGINES[following](d))
        other.load(points, live)
        assert set(other.skyline().tolist()) == (expected[at - 1] if at else set())
        check(other)
        engine = other


@settings(max_examples=60)
@given(updates(most=60), st.binary(min_size=4, max_size=40), st.integers(1, 4))
def test_auto_is_right_whatever_the_clock_says(drawn: Updates, ticks: bytes, patience: int) -> None:
    moments = itertools.accumulate(itertools.cycle(ticks), lambda now, tick: now + tick / 16)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(auto, "time", SimpleNamespace(thread_time=lambda: next(moments)))
        patched.setattr(auto, "_REST", 4)
        play(AutoEngine(drawn.rows.shape[1], patience=patience), drawn, answers(drawn))


@pytest.mark.parametrize("plain", [0.01, 9.0], ids=["fast", "slow"])
def test_auto_goes_to_recomputing_and_back(plain: float, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    def costing(method: Callable[..., Any], seconds: float) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            nonlocal now
            now += seconds
            return method(*given)

        return call

    monkeypatch.setattr(auto, "time", SimpleNamespace(thread_time=lambda: now))
    monkeypatch.setattr(BoxEngine, "run", costing(BoxEngine.run, 1.0))
    monkeypatch.setattr(RecomputeEngine, "run", costing(RecomputeEngine.run, plain))
    monkeypatch.setattr(RecomputeEngine, "load", costing(RecomputeEngine.load, 0.1))  # what the trial takes
    drawn = crowd(np.random.default_rng(4), 30, 2, 9, 400, 8)
    engine, seen = AutoEngine(2), []
    for i, answer in enumerate(answers(drawn)):
        engine.run(drawn.part(i, i + 1))
        assert set(engine.skyline().tolist()) == answer
        seen.append(type(engine._current))
    stays = [(kind, len(list(run))) for kind, run in itertools.groupby(seen)]
    assert [kind for kind, _ in stays[:5]] == [BoxEngine, RecomputeEngine, BoxEngine, RecomputeEngine, BoxEngine]
    if plain < 1.0:  # boxes are tried again after a rest, and after a longer one
        assert 60 <= stays[1][1] < stays[3][1]
    else:  # boxes are taken up at once, as the other method is slower than they were
        assert stays[1][1] < 20 and stays[3][1] < 20
    counted = engine.counters()
    assert counted["switches"] == len(stays) - 1
    assert counted["recomputed"] >= sum(length for kind, length in stays if kind is RecomputeEngine)
    live = np.count_nonzero(engine.objects()[1])
    assert counted["candidates"] <= live


@pytest.fixture(params=[(1, 2, 3), (2, 2, 40), (2, 3, 12), (50, 2, 300), (50, 3, 40), (3, 4, 8)], ids=str)
def crowded(request: pytest.FixtureRequest) -> Iterator[tuple[BoxEngine, Updates]]:
    patience, d, side = request.param
    yield BoxEngine(d, patience=patience), crowd(np.random.default_rng(side), 420, d, side, 30, 160)


def test_many_candidates_are_searched_by_bitmaps_and_the_skyline_is_the_oracles(
    crowded: tuple[BoxEngine, Updates],
) -> None:
    engine, drawn = crowded
    play(engine, drawn, answers(drawn))


def test_bitmaps_are_used_where_they_pay_and_survive_growth() -> None:
    rng = np.random.default_rng(0)
    first, more = crowd(rng, 420, 2, 300, 12, 200), crowd(rng, 1500, 2, 900, 6, 400)
    both = joined(first, more)
    engine, filled = BoxEngine(2), []
    for i, answer in enumerate(answers(both)):
        # More slots than there were come when the bitmaps are full of the others.
        engine.run(both.part(i, i + 1))
        assert set(engine.skyline().tolist()) == answer
        filled.append(int(engine._numbers[kernel.FILLED]))
    check(engine)
    assert max(filled[1 : first.snapshots]) >= kernel.MANY and max(filled[first.snapshots + 1 :]) >= kernel.MANY


def test_cells_are_cut_anew_when_the_values_have_moved_on() -> None:
    rng = np.random.default_rng(1)
    n = 260
    x = rng.permutation(n).astype(np.float64)
    points = np.stack([x, n - x], axis=1)
    engine, plain = BoxEngine(2, patience=5), RecomputeEngine(2)
    coded, filled = set(), 0
    for i in range(2 * kernel.RECUT + 40):
        moving = rng.integers(0, n, 1) if i % 50 else np.arange(n)
        points[moving] += [[1.0, -1.0]] if i % 50 else [[40.0, 37.0]]
        drawn = of([[(int(slot), points[slot]) for slot in moving]], 2)
        assert listed(engine.run(drawn)) == listed(plain.run(drawn))
        coded.add(int(engine._numbers[kernel.CODED]))
        filled += bool(engine._numbers[kernel.FILLED])
    check(engine)
    assert len(coded) >= 3 and filled > 10


@pytest.mark.parametrize("name", sorted(ENGINES))
def test_equal_objects_all_stay_and_all_go(name: str) -> None:
    drawn = of(
        [
            [(slot, (3.0, 3.0)) for slot in range(5)],
            [(5, (2.0, 3.0))],
            [(5, (3.0, 3.0))],
            [(slot, (3.0, 3.0)) for slot in range(5)],
            [(slot, None) for slot in range(4)],
            [(4, (3.0, 4.0))],
            [(4, None), (5, None)],
        ],
        2,
    )
    play(ENGINES[name](2), drawn, [{0, 1, 2, 3, 4}, {5}, {0, 1, 2, 3, 4, 5}, {0, 1, 2, 3, 4, 5}, {4, 5}, {5}, set()])


@pytest.mark.parametrize("count", [150, 5_000])
def test_equal_objects_are_compared_with_a_few_others_each_however_many_there_are(count: int) -> None:
    engine = BoxEngine(2)
    places = [(3.0, 3.0), (4.0, 2.0), (2.0, 4.0)]

    def tests() -> int:
        counted = engine.counters()
        return counted["pre_tests"] + counted["sky_tests"]

    for shift in (0.0, 1.0, 1.0):  # all come, all move together, and all are told again where they are
        before = tests()
        engine.run(of([[(slot, (x + shift, y + shift)) for slot in range(count) for x, y in [places[slot % 3]]]], 2))
        assert tests() - before < 25 * count
    assert len(engine.skyline()) == count
    before = tests()
    engine.run(of([[(0, (0.0, 0.0))], [(0, (9.0, 0.0))]], 2))  # one outdoes all others, and lets them in again
    assert tests() - before < 25 * count
    assert len(engine.skyline()) == count
    check(engine)


def test_an_object_that_is_updated_often_in_one_snapshot_is_looked_at_once() -> None:
    engine, rng = BoxEngine(2), np.random.default_rng(7)
    x = rng.permutation(500).astype(np.float64)
    engine.run(of([enumerate(np.stack([x, 500 - x], axis=1).tolist())], 2))
    before = engine.counters()["sky_tests"]
    engine.run(of([[(3, (float(step), 0.0)) for step in range(3_000)]], 2))
    assert engine.counters()["sky_tests"] - before < 3 * 500
    check(engine)


@pytest.mark.parametrize("name", sorted(ENGINES))
def test_no_updates_are_a_snapshot_and_absent_objects_can_go(name: str) -> None:
    engine = ENGINES[name](3)
    assert listed(engine.run(of([[], []], 3))) == set()
    assert listed(engine.run(of([], 3))) == set()
    assert listed(engine.run(of([[(40, None), (40, (1.0, 1.0, 1.0)), (40, None)]], 3))) == set()
    assert listed(engine.run(of([[], [(40, None)], [(40, (1.0, 1.0, 1.0))]], 3))) == {(2, 1, 40)}
    check(engine)


@pytest.mark.parametrize("name", sorted(ENGINES))
def test_counters_are_never_less_than_before(name: str) -> None:
    drawn = crowd(np.random.default_rng(3), 60, 3, 6, 40, 30)
    engine = ENGINES[name](3)
    seen = [engine.counters()]
    for start in range(0, 40, 8):
        engine.run(drawn.part(start, start + 8))
        seen.append(engine.counters())
        engine.load(*engine.objects())
    for name, last in seen[-1].items():
        if name not in ("candidates", "memory_bytes"):
            assert all(before[name] <= after[name] for before, after in itertools.pairwise(seen)), name
            assert last >= 0
    assert seen[-1]["snapshots"] >= 40 and seen[-1]["sky_tests"] > 0 and seen[-1]["memory_bytes"] > 0
    assert 0 < seen[-1]["candidates"] <= 75 and seen[-1]["candidates_seen"] >= 40


def test_the_time_of_the_phases_is_kept_where_it_is_asked_for() -> None:
    drawn = crowd(np.random.default_rng(5), 230, 2, 200, 8, 60)
    timed, plain = BoxEngine(2, patience=2, timed=True), BoxEngine(2, patience=2)
    assert listed(timed.run(drawn)) == listed(plain.run(drawn))
    assert (timed.seconds > 0).all() and not plain.seconds.any()
    counted = timed.counters()
    assert {**counted, "memory_bytes": 0, "pre_tests": 0, "sky_tests": 0} == {
        **plain.counters(), "memory_bytes": 0, "pre_tests": 0, "sky_tests": 0
    }  # fmt: skip


def test_what_a_snapshot_does_is_counted() -> None:
    engine = BoxEngine(2, patience=2)
    host, low, high = (0.0, 0.0), (4.0, 4.0), (8.0, 8.0)

    def counted(*snapshots: list[tuple[int, Any]]) -> dict[str, int]:
        before = engine.counters()
        engine.run(of(snapshots, 2))
        check(engine)
        after = engine.counters()
        names = ("links_kept", "boxes_cut", "searches", "demoted", "candidates_seen")
        return {name: after[name] - before[name] for name in names if after[name] > before[name]}

    assert counted([(0, host), (1, low), (2, high)]) == {"searches": 3, "candidates_seen": 1}
    # Within what the link allows.
    assert counted([(2, (9.0, 9.0))]) == {"links_kept": 1, "candidates_seen": 1}
    # The box of the host reaches to (3, 3) now, its point does not.
    assert counted([(0, (3.0, 3.0))], [(0, host)], [(1, (2.0, 2.0))]) == {"boxes_cut": 1, "candidates_seen": 3}
    # One link breaks, and its object is in the skyline; when it is dominated again it is a candidate in vain, twice.
    assert counted([(0, (5.0, 1.0))]) == {"searches": 1, "candidates_seen": 2}
    assert counted([(0, host)], [], []) == {"demoted": 1, "boxes_cut": 1, "candidates_seen": 5}


def test_the_arrays_of_the_caller_are_not_kept() -> None:
    drawn = of([[(0, (1.0, 2.0)), (1, (2.0, 1.0)), (2, (3.0, 3.0))]], 2)
    for name, make in ENGINES.items():
        engine, rows, slots = make(2), drawn.rows.copy(), drawn.slots.copy()
        engine.run(drawn._replace(rows=rows, slots=slots))
        rows[:] = 0.0
        slots[:] = 2
        points, live = engine.objects()
        other = make(2)
        other.load(points, live)
        points[:] = 9.0
        live[:] = False
        assert set(other.skyline().tolist()) == {0, 1}, name
        assert listed(other.run(of([[(0, None)]], 2))) == {(0, -1, 0)}, name
        assert listed(other.run(of([[(1, None)]], 2))) == {(0, -1, 1), (0, 1, 2)}, name
