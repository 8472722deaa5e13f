"""The simulation: changes by definition, Theorem 4.1 to the message, bytes that add up, recall and precision."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.errors import InputError
from skytide.model import Changes
from skytide.protocols.filtering.filter import FilterServer
from skytide.protocols.filtering.messages import Kind, Reports, encode, size_of
from skytide.protocols.filtering.methods import METHODS, SAMPLED
from skytide.reference.frequent import frequent_changes
from skytide.runtime.simulate import Quality, Simulation, Tally
from tests.protocols.filtering.series import Step, series, watch

NONE = np.zeros(0, np.int64)


def truth_of(steps: list[Step]) -> list[tuple[int, set[int]]]:
    return [(seen.time, set(seen.truth)) for seen in watch(FilterServer(steps[0].points.shape[1]), steps)]


@settings(max_examples=60, deadline=None)
@given(series(), st.sampled_from(METHODS), st.sampled_from([("1", 1), ("0.5", 3), ("0.8", 5)]))
def test_every_method_gives_the_exact_changes_where_all_is_sampled(
    steps: list[Step], method: str, pair: tuple[str, int]
) -> None:
    simulation = Simulation(steps[0].points.shape[1], method, pairs=[pair], quality=True)
    found = [change for step in steps for change in simulation.step(*step)]
    assert found == frequent_changes(truth_of(steps), *pair)
    assert simulation.cost()["recall"] in (1.0, None) and simulation.cost()["precision"] in (1.0, None)


@settings(max_examples=60, deadline=None)
@given(series())
def test_the_cost_of_filter_is_that_of_theorem_4_1_message_by_message(steps: list[Step]) -> None:
    d = steps[0].points.shape[1]
    simulation = Simulation(d, "filter")
    for step in steps:
        simulation.step(*step)
    kinds: dict[Kind, int] = {}
    for seen in watch(FilterServer(d), steps):
        for block in (*seen.said, *seen.asked, *seen.orders):
            if seen.time:
                kinds[block.kind] = kinds.get(block.kind, 0) + len(block.clients)
    cost = simulation.cost()
    x, y = kinds.get(Kind.FAILURE, 0), kinds.get(Kind.QUESTION, 0)
    inserts, deletes = kinds.get(Kind.INSERT, 0), kinds.get(Kind.DELETE, 0)
    assert (cost["failures"], cost["probes"], cost["inserts"], cost["deletes"]) == (x, y, inserts, deletes)
    assert cost["uplink"] == x + y + inserts + deletes
    assert cost["downlink"] == x + 2 * y + inserts
    assert cost["messages"] == cost["uplink"] + cost["downlink"]
    sizes = {kind: size_of(kind, d) for kind in Kind}
    assert (
        cost["bytes_up"] == sum(sizes[kind] * many for kind, many in kinds.items() if kind.up) + y * sizes[Kind.ANSWER]
    )
    assert cost["bytes_down"] == sum(sizes[kind] * many for kind, many in kinds.items() if not kind.up)


def test_initialisation_is_counted_apart_and_receivers_are_named() -> None:
    simulation = Simulation(1, "filter")
    simulation.step(np.arange(2), np.array([[1.0], [2.0]]))
    assert simulation.cost()["messages"] == 0
    assert simulation.cost()["initial"]["uplink"] == simulation.cost()["initial"]["downlink"] == 2
    simulation.step(np.array([1]), np.array([[3.0]]))
    ledger = simulation.tally.ledger(["a", "b"])
    assert ledger.messages("down", receiver="a") == 0 and ledger.messages("down", receiver="b") == 1
    assert ledger.messages("up", receiver="server", kind="failure") == 1
    assert ledger.bytes("up") == size_of(Kind.FAILURE, 1)


def test_a_tally_counts_the_bytes_of_the_encoding() -> None:
    tally, point = Tally(2), np.array([[1.0, 2.0]] * 3)
    sent = Reports(Kind.FAILURE, 5, np.array([0, 4, 9]), point, point, point)
    tally.record(sent.kind, sent.clients, initial=False)
    tally.record(sent.kind, sent.clients, initial=True)
    assert tally.ledger().bytes("up") == len(encode(sent, 2))
    assert tally.messages(Kind.FAILURE) == 3


@pytest.mark.parametrize("method", SAMPLED)
def test_sampling_costs_the_rate_and_is_right_most_of_the_time(method: str) -> None:
    rng, n, steps, over = np.random.default_rng(2), 80, 700, 300
    home = rng.random((n, 2))
    simulation = Simulation(2, method, pairs=[("0.8", over)], epsilon=0.3, delta=0.2, seed=5, quality=True)
    for _ in range(steps):
        simulation.step(np.arange(n), home + rng.uniform(-0.02, 0.02, (n, 2)))
    cost = simulation.cost()
    assert cost["uplink"] < 0.35 * n * steps
    assert cost["recall"] > 0.85 and cost["precision"] > 0.85


def test_quality_counts_nothing_over_nothing_as_right_and_waits_for_a_full_window() -> None:
    quality = Quality([("1", 2)])
    empty = Changes.concatenate([])
    quality.observe(NONE, empty, 0)
    assert quality.recall is None
    quality.observe(NONE, empty, 1)
    assert quality.recall == quality.precision == 1.0
    quality.observe(np.array([7]), empty, 2)
    quality.observe(np.array([7]), Changes.of([3, 3], [1, 1], [7, 8]), 3)
    assert quality.recall == 1.0 and quality.precision == pytest.approx((1 + 1 + 0.5) / 3)
    quality.observe(np.array([7]), Changes.of([4], [-1], [7]), 4)
    assert quality.recall == pytest.approx(3 / 4)


def test_the_same_seed_gives_the_same_run() -> None:
    rng = np.random.default_rng(1)
    points = rng.random((50, 20, 2))
    runs = []
    for seed in (1, 1, 2):
        simulation = Simulation(2, "sampling", pairs=[("0.5", 900)], seed=seed)
        found = [tuple(change) for each in points for change in simulation.step(np.arange(20), each)]
        runs.append((found, simulation.cost()["messages"]))
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.parametrize(
    ("clients", "points"),
    [([0, 0], [[1.0], [2.0]]), ([0], [[1.0], [2.0]]), ([0], [[float("nan")]]), ([-1], [[1.0]])],
)
def test_a_timestamp_that_is_not_usable_is_refused_and_leaves_no_trace(
    clients: list[int], points: list[list[float]]
) -> None:
    simulation = Simulation(1)
    with pytest.raises(InputError, match="not usable"):
        simulation.step(np.array(clients), np.array(points))
    assert simulation.timestamps == 0
