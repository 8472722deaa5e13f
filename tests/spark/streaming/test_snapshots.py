"""Snapshots without Spark: whatever the parts, micro-batches, order and restarts, what comes is by definition."""

from __future__ import annotations

from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.errors import InputError, StateError
from skytide.model import Window
from skytide.spark.streaming import processor
from skytide.spark.streaming.snapshots.merge import UpdateMerge
from tests.spark.streaming.simulated import Simulation, query_of
from tests.spark.streaming.updated import (
    Batches,
    Truth,
    Update,
    found,
    played,
    simulated,
    table,
    tags,
    update_query,
    updates,
)

OPS = st.sampled_from(["set", "set", "column", "add", "multiply", "average"])
SHARES = st.sampled_from([(Fraction("0.5"), 2), (Fraction("0.6"), 5), (Fraction(1), 1), (Fraction("0.25"), 4)])
FEW = st.sampled_from([1024, 3, 0])
"""From how many superfluous rows on a log is compacted."""


def check(run: tuple[Batches, int], restarts: set[int], few: int, **asked: Any) -> None:
    batches, dimensions = run
    query = update_query(dimensions, **asked)
    simulation = simulated(query)
    with patch.object(UpdateMerge, "few", few):
        taken, late, bad = played(simulation, batches, dimensions, restarts)
    truth = Truth(query, taken, simulation.closed)
    assert found(simulation) == truth.changes
    assert tags(simulation, "late") == late
    assert tags(simulation, "bad") == sorted(bad + truth.bad)


@settings(max_examples=150)
@given(
    updates(),
    st.sets(st.integers(0, 8)),
    FEW,
    OPS,
    st.booleans(),
    st.booleans(),
    st.integers(0, 4),
    st.sampled_from(["drop", "worst"]),
    st.sampled_from(["auto", "mbr", "recompute"]),
)
def test_the_changes_are_those_of_the_definition(
    run: tuple[Batches, int],
    restarts: set[int],
    few: int,
    op: str,
    order: bool,
    by: bool,
    lateness: int,
    nulls: str,
    method: str,
) -> None:
    parts = 2 if by else 1
    check(run, restarts, few, op=op, order=order, by=by, lateness=lateness, nulls=nulls, method=method, parts=parts)


@settings(max_examples=80)
@given(updates(), st.sets(st.integers(0, 8)), FEW, OPS, SHARES, st.booleans(), st.integers(0, 3))
def test_frequent_changes_are_those_of_the_definition(
    run: tuple[Batches, int],
    restarts: set[int],
    few: int,
    op: str,
    share: tuple[Fraction, int],
    by: bool,
    lateness: int,
) -> None:
    check(run, restarts, few, op=op, frequent=share, by=by, lateness=lateness, parts=2 if by else 1)


@settings(max_examples=30)
@given(updates(), st.sets(st.integers(0, 8)), st.booleans())
def test_net_changes_lead_from_answer_to_answer(run: tuple[Batches, int], restarts: set[int], by: bool) -> None:
    batches, dimensions = run
    answers = []
    for emit in ("changes", "net"):
        simulation = simulated(update_query(dimensions, by=by, emit=emit))
        answer: set[Any] = set()
        states = []
        for number, partitions in enumerate(batches):
            if number in restarts:
                simulation.restart()
            before = len(simulation.out)
            simulation.batch([table(partition, dimensions) for partition in partitions])
            groups = {row.tag: row.group for batch in batches for part in batch for row in part} if by else {}
            told = [
                (change, (one, groups.get(tag[0])))
                for kind, _, change, one, tag in simulation.out[before:]
                if kind == "change"
            ]
            for change, one in told:
                (answer.add if change == "+" else answer.remove)(one)
            assert emit == "changes" or len({one for _, one in told}) == len(told)
            states.append(set(answer))
        answers.append(states)
    assert answers[0] == answers[1]


# -- state -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [None, (Fraction("0.3"), 40)], ids=["snapshots", "frequent"])
def test_a_long_run_is_compacted_and_goes_on_from_what_is_stored(share: tuple[Fraction, int] | None) -> None:
    """Objects come and go for good, so who remembered all of them would hold thousands."""
    rng = np.random.default_rng(6)
    query = update_query(2, op="add", by=True, frequent=share)
    plain, restarted = simulated(query), simulated(query)
    for number in range(12):
        rows: list[Update] = []
        for i in range(600):
            tag = 600 * number + i
            one, values = int(rng.integers(0, 25)), tuple(rng.integers(-9, 9, 2).astype(float))
            if i >= 550:
                one, values = i // 2 % 25, (None, None)
            rows.append(Update(tag // 20, 25 * number + one, "xy"[i % 2], values, "", 0, tag))
        for simulation in (plain, restarted):
            if simulation is restarted:
                simulation.restart()
            simulation.batch([table(rows[::2], 2), table(rows[1::2], 2)])
    assert restarted.out == plain.out and len(plain.out) > 50
    meta = restarted._tester.peekValueState("meta", 0)
    assert meta is not None and meta[3] > 0, "the log has been compacted"
    assert len(restarted._tester.peekMapState("log", 0)) == meta[4] - meta[3]
    held = processor._merges[meta[6]]
    assert isinstance(held, UpdateMerge)
    assert len(held) < 3000 and len(held.identities) < 300, "objects that are gone are forgotten"


def test_a_changed_query_is_refused() -> None:
    rows = [Update(1, 1, "x", (1.0,), "set", 0, 0)]
    for changed, message in (
        (update_query(1, op="add"), r'made with op = "set", and the query has "add"'),
        (update_query(1, frequent=(Fraction(1, 2), 3)), r'made with kind = "snapshots", and the query has "frequent"'),
    ):
        simulation = simulated(update_query(1))
        simulation.batch([table(rows, 1)])
        simulation.restart(changed)
        with pytest.raises(StateError, match=message):
            simulation.batch([table(rows, 1)])
    simulation.restart(update_query(1, method="recompute", emit="net"))
    simulation.batch([table(rows, 1)])


def test_the_state_of_a_window_is_refused() -> None:
    simulation = Simulation(query_of(1, window=Window(duration=5)))
    simulation.batch([table([Update(1, 1, "x", (1.0,), "set", 0, 0)], 1)])
    simulation.restart(update_query(1))
    with pytest.raises(StateError, match=r'made with kind = "window", and the query has "snapshots"'):
        simulation.batch([table([Update(2, 2, "x", (1.0,), "set", 0, 0)], 1)])


# -- rows that cannot be used ------------------------------------------------------------------------------------------


def odd_rows() -> pa.Table:
    """Rows that lack something, and one (tag 5) whose value is no float: it must not pass for one that deletes."""
    return pa.table(
        {
            "at": pa.array([1, None, 1, 1, 2, 2], pa.int64()),
            "one": pa.array([1, 2, None, 4, 5, 1], pa.int64()),
            "g": pa.array(["x"] * 6),
            "x0": pa.array([7, 7, 7, 7, None, 2**53 + 1], pa.int64()),
            "op": pa.array(["add", "add", "add", "plus", None, "set"]),
            "order": pa.array([0] * 6, pa.int32()),
            "tag": pa.array([[tag] for tag in range(6)]),
        }
    )


def test_rows_that_cannot_be_used_come_out_as_bad() -> None:
    simulation = simulated(update_query(1, op="column"))
    simulation.batch([odd_rows()])
    simulation.batch([odd_rows().slice(0, 1).set_column(0, "at", pa.array([9], pa.int64()))])
    simulation.idle()
    assert tags(simulation, "bad") == [1, 2, 3, 5]
    assert found(simulation) == [(1, "+", 1, [0], 7.0)]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (1, "column 'at': the time is missing"),
        (2, "column 'one': the id is missing"),
        (3, "column 'op': is not one of"),
    ],
)
def test_under_the_policy_error_they_end_the_run(row: int, message: str) -> None:
    simulation = simulated(update_query(1, op="column", nulls="error"))
    with pytest.raises(InputError, match=message):
        simulation.batch([odd_rows().slice(row, 1)])


def test_under_the_policy_error_a_result_that_is_no_number_ends_the_run() -> None:
    simulation = simulated(update_query(1, op="add", nulls="error"))
    infinite = [Update(1, 7, "x", (float("inf"),), "", 0, 0), Update(2, 7, "x", (float("-inf"),), "", 0, 1)]
    simulation.batch([table(infinite, 1)])
    simulation.batch([table([Update(3, 8, "x", (1.0,), "", 0, 2)], 1)])
    with pytest.raises(InputError, match="7 the result of an update is not a number"):
        simulation.idle()
