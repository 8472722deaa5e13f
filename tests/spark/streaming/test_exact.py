"""Whatever the parts, the micro-batches, the order and the restarts, the changes are those of the definition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.errors import StateError
from skytide.model import Window
from skytide.monitors.sliding.clock import LOWEST
from skytide.reference.batch import skyline
from tests.spark.streaming.simulated import Simulation, query_of

CELLS = st.one_of(st.integers(0, 3).map(float), st.sampled_from([float("inf"), float("-inf"), -0.0, 1e308]))
Row = tuple[int, int, str, tuple[float, ...]]


@st.composite
def runs(draw: st.DrawFn) -> tuple[list[list[list[Row]]], int]:
    """Rows (time, id, group, values) in micro-batches of partitions, and the number of values."""
    dimensions = draw(st.integers(1, 3))
    n = draw(st.integers(1, 24))
    drift = draw(st.integers(0, 3))
    jitter = draw(st.lists(st.integers(-4, 4), min_size=n, max_size=n))
    values = draw(st.lists(st.tuples(*[CELLS] * dimensions), min_size=n, max_size=n))
    groups = draw(st.lists(st.sampled_from("xyz"), min_size=n, max_size=n))
    rows = [(i * drift // 2 + jitter[i], i, groups[i], values[i]) for i in range(n)]
    batches: list[list[list[Row]]] = [[[]]]
    for row in rows:
        step = draw(st.sampled_from(["same", "same", "same", "partition", "batch"]))
        if step == "partition":
            batches[-1].append([])
        elif step == "batch":
            batches.append([[]])
        draw(st.sampled_from(batches[-1])).append(row)
    return batches, dimensions


def table(rows: list[Row], dimensions: int) -> pa.Table:
    return pa.table(
        {
            "at": pa.array([row[0] for row in rows], pa.int64()),
            "one": pa.array([row[1] for row in rows], pa.int64()),
            "g": pa.array([row[2] for row in rows], pa.string()),
            **{f"x{k}": pa.array([row[3][k] for row in rows], pa.float64()) for k in range(dimensions)},
        }
    )


def oriented(row: Row) -> list[float]:
    return [row[3][0], *(-value for value in row[3][1:])]


def truth(rows: list[Row], lives: dict[int, tuple[int, int]], by: bool, until: int) -> list[tuple[int, str, int]]:
    """The net differences between instants up to the last closed one, from the skyline of what lives at each."""
    found: list[tuple[int, str, int]] = []
    for group in {row[2] for row in rows} if by else {None}:
        mine = [row for row in rows if group is None or row[2] == group]
        before: set[int] = set()
        for at in sorted({time for row in mine for time in lives[row[1]]}):
            if at > until:
                break
            live = [row for row in mine if lives[row[1]][0] <= at < lives[row[1]][1]]
            answer = {live[place][1] for place in skyline([oriented(row) for row in live])}
            found += [(at, "-", one) for one in before - answer] + [(at, "+", one) for one in answer - before]
            before = answer
    return sorted(found)


def played(
    simulation: Simulation,
    batches: list[list[list[Row]]],
    dimensions: int,
    lateness: int,
    restarts: set[int],
    make: Callable[[list[Row], int], pa.Table] = table,
) -> tuple[list[Row], list[int]]:
    """Run the micro-batches and the last one without data; the rows that were in time, and the ids of those late."""
    taken, late, latest = [], [], LOWEST
    clock = simulation.query.clock.keys
    for number, partitions in enumerate(batches):
        if number in restarts:
            simulation.restart()
        rows = [row for partition in partitions for row in partition]
        simulation.batch([make(partition, dimensions) for partition in partitions])
        closed = simulation.closed
        assert closed == (LOWEST if latest == LOWEST else clock.closed_by(latest)), "each row closes what it should"
        latest = max([latest, *(row[0] for row in rows)])
        taken += [row for row in rows if row[0] > closed]
        late += [row[1] for row in rows if row[0] <= closed]
    simulation.idle()
    return taken, late


def changes(simulation: Simulation) -> list[tuple[Any, str, Any]]:
    return sorted((time, change, one) for kind, time, change, one in simulation.out if kind == "change" and change)


@settings(max_examples=400)
@given(runs(), st.integers(1, 12), st.integers(0, 6), st.booleans(), st.booleans(), st.sets(st.integers(0, 8)))
def test_a_time_window_gives_the_changes_of_the_definition(
    run: tuple[list[list[list[Row]]], int],
    duration: int,
    lateness: int,
    by: bool,
    prune: bool,
    restarts: set[int],
) -> None:
    batches, dimensions = run
    query = query_of(dimensions, window=Window(duration=duration, lateness=lateness), by=by, parts=2 if by else 1)
    simulation = Simulation(query, prune=prune)
    taken, late = played(simulation, batches, dimensions, lateness, restarts)
    lives = {row[1]: (row[0], row[0] + duration) for row in taken}
    assert changes(simulation) == truth(taken, lives, by, simulation.closed)
    assert sorted(one for kind, _, _, one in simulation.out if kind == "late") == sorted(late)
    assert not [kind for kind, _, _, _ in simulation.out if kind == "bad"]


@settings(max_examples=200)
@given(runs(), st.integers(1, 6), st.integers(0, 6), st.booleans(), st.sets(st.integers(0, 8)))
def test_a_count_window_ranks_rows_by_time_and_id(
    run: tuple[list[list[list[Row]]], int], count: int, lateness: int, by: bool, restarts: set[int]
) -> None:
    batches, dimensions = run
    query = query_of(dimensions, window=Window(count=count, lateness=lateness), by=by, parts=2 if by else 1)
    simulation = Simulation(query)
    taken, _ = played(simulation, batches, dimensions, lateness, restarts)
    closed = [row for row in sorted(taken, key=lambda row: row[:2]) if row[0] <= simulation.closed]
    expected = []
    for group in {row[2] for row in closed} if by else {None}:
        mine = [row for row in closed if group is None or row[2] == group]
        lives = {row[1]: (rank, rank + count) for rank, row in enumerate(mine, 1)}
        expected += truth(mine, lives, False, len(mine))
    assert changes(simulation) == sorted(expected)


@settings(max_examples=100)
@given(runs(), st.integers(1, 12), st.booleans(), st.sets(st.integers(0, 8)))
def test_net_changes_lead_from_answer_to_answer(
    run: tuple[list[list[list[Row]]], int], duration: int, by: bool, restarts: set[int]
) -> None:
    batches, dimensions = run
    answers = []
    for emit in ("changes", "net"):
        query = query_of(dimensions, window=Window(duration=duration), by=by, emit=emit)
        simulation = Simulation(query)
        states: list[set[Any]] = []
        answer: set[Any] = set()
        for number, partitions in enumerate(batches):
            if number in restarts:
                simulation.restart()
            before = len(simulation.out)
            simulation.batch([table(partition, dimensions) for partition in partitions])
            for kind, _, change, one in simulation.out[before:]:
                if kind == "change":
                    (answer.add if change == "+" else answer.remove)(one)
            states.append(set(answer))
        answers.append(states)
    assert answers[0] == answers[1]


def test_rows_that_cannot_be_used_come_out_as_bad_and_close_nothing() -> None:
    simulation = Simulation(query_of(2, window=Window(duration=5)))
    odd = pa.table(
        {
            "at": pa.array([1, None, 2, 3], pa.int64()),
            "one": pa.array([1, 2, None, 4], pa.int64()),
            "g": pa.array(["x"] * 4),
            "x0": pa.array([1.0, 1.0, 1.0, None]),
            "x1": pa.array([1.0, 1.0, 1.0, float("nan")]),
        }
    )
    simulation.batch([odd])
    simulation.idle()
    assert simulation.closed == 0, "the last row that can be used is at 1"
    simulation.batch([table([(9, 9, "x", (9.0, 9.0))], 2)])
    simulation.idle()
    kinds = [(kind, one) for kind, _, _, one in simulation.out]
    assert sorted(kinds, key=str) == [("bad", 2), ("bad", 4), ("bad", None), ("change", 1), ("change", 1)]


def test_a_second_live_row_with_an_id_is_bad_and_a_later_one_takes_its_place() -> None:
    simulation = Simulation(query_of(1, window=Window(duration=5)))
    rows: list[Row] = [(1, 7, "x", (1.0,)), (3, 7, "x", (0.0,)), (6, 7, "x", (2.0,)), (20, 8, "x", (0.0,))]
    simulation.batch([table(rows[:1], 1), table(rows[1:], 1)])
    simulation.idle()
    # The id leaves and enters at 6: nothing changes for who looks at ids.
    assert simulation.out == [("bad", 3, None, 7), ("change", 1, "+", 7), ("change", 11, "-", 7)]


def test_most_rows_of_a_large_part_are_dropped_where_they_lie() -> None:
    rng = np.random.default_rng(5)
    n = 40_000
    big = pa.table(
        {
            "at": np.arange(n),
            "one": np.arange(n),
            "g": np.repeat("x", n),
            **{f"x{k}": rng.random(n) for k in range(3)},
        }
    )
    simulation = Simulation(query_of(3, window=Window(duration=10 * n)))
    simulation.batch([big])
    assert 0 < simulation.sent < n / 20


def test_a_long_run_is_compacted_and_goes_on_from_what_is_stored() -> None:
    rng = np.random.default_rng(6)
    for window in (Window(duration=300), Window(count=300)):
        plain, restarted = (Simulation(query_of(2, window=window), prune=False) for _ in range(2))
        for number in range(12):
            rows = [
                (number * 1000 + i, number * 1000 + i, "x", tuple(rng.integers(0, 50, 2).astype(float)))
                for i in range(1000)
            ]
            for simulation in (plain, restarted):
                if simulation is restarted:
                    simulation.restart()
                simulation.batch([table(rows, 2)])
        assert restarted.out == plain.out and len(plain.out) > 300
        meta = restarted._tester.peekValueState("meta", 0)
        assert meta is not None and meta[3] > 0, "the log has been compacted"
        assert len(restarted._tester.peekMapState("log", 0)) == meta[4] - meta[3]


def test_a_changed_query_is_refused_and_so_is_another_version() -> None:
    simulation = Simulation(query_of(1, window=Window(duration=5)))
    simulation.batch([table([(1, 1, "x", (1.0,))], 1)])
    simulation.restart(query_of(1, window=Window(duration=6)))
    with pytest.raises(StateError, match=r"made with duration = 5, and the query has 6"):
        simulation.batch([table([(2, 2, "x", (1.0,))], 1)])
    simulation.restart(query_of(1, window=Window(duration=5), emit="net"))
    simulation.batch([table([(2, 2, "x", (1.0,))], 1)])
    meta = simulation._tester.peekValueState("meta", 0)
    assert meta is not None
    simulation._tester.updateValueState("meta", 0, (99, *meta[1:]))
    with pytest.raises(StateError, match=r"99 is the version of the state"):
        simulation.batch([table([(3, 3, "x", (1.0,))], 1)])
