"""Bad networks and crashes: each message arrives once, and the answers are those of a good network."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.errors import OptionError, OutputError
from skytide.monitors.frequent.pairs import pairs_of
from skytide.protocols.filtering.filter import FilterServer
from skytide.protocols.filtering.methods import METHODS, SAMPLED
from skytide.protocols.filtering.schedule import Schedule, sampling_rate
from skytide.reference.frequent import frequent_changes
from skytide.runtime.faults import Faults, Network
from skytide.runtime.simulate import Simulation
from tests.protocols.filtering.series import Step, series, watch

FAULTS = st.builds(
    Faults,
    loss=st.sampled_from([0.0, 0.1, 0.5]),
    duplicates=st.sampled_from([0.0, 0.5, 1.0]),
    delay=st.integers(0, 6),
    seed=st.integers(0, 999),
)


@settings(max_examples=60, deadline=None)
@given(FAULTS, st.lists(st.lists(st.binary(max_size=3), max_size=6), max_size=5))
def test_every_message_arrives_once_and_in_its_turn(faults: Faults, rounds: list[list[bytes]]) -> None:
    network = Network(faults)
    for messages in rounds:
        assert sorted(network.carry(messages)) == sorted(messages)


def test_all_faults_happen() -> None:
    network = Network(Faults(loss=0.3, duplicates=0.3, delay=5))
    orders = [network.carry([bytes([one]) for one in range(30)]) for _ in range(10)]
    assert any(order != sorted(order) for order in orders)
    assert min(network.counts[what] for what in ("sent", "repeated", "lost", "ignored", "acknowledged")) > 0
    assert network.counts["sent"] == 300


def test_a_network_that_lets_nothing_through_is_said_to() -> None:
    with pytest.raises(OutputError, match="does not get through"):
        Network(Faults(loss=1.0)).carry([b"x"])


@pytest.mark.parametrize("options", [{"loss": 1.5}, {"duplicates": -0.1}, {"delay": -1}])
def test_faults_that_make_no_sense_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(OptionError):
        Faults(**options)  # type: ignore[arg-type]


@settings(max_examples=60, deadline=None)
@given(
    steps=series(clients=5, most=10),
    method=st.sampled_from(METHODS),
    faults=FAULTS,
    pair=st.sampled_from([("1", 1), ("0.5", 3)]),
    crashes=st.lists(st.sets(st.integers(0, 5)), min_size=10, max_size=10),
)
def test_answers_survive_bad_networks_and_crashes_of_clients_and_server(
    steps: list[Step], method: str, faults: Faults, pair: tuple[str, int], crashes: list[set[int]]
) -> None:
    truth = [(seen.time, set(seen.truth)) for seen in watch(FilterServer(steps[0].points.shape[1]), steps)]
    simulation = Simulation(steps[0].points.shape[1], method, pairs=[pair], faults=faults)
    found = []
    for step, down in zip(steps, crashes, strict=False):
        found += list(simulation.step(*step))
        known = np.array(sorted(one for one in down if one < 5 and one <= step.clients.max(initial=-1)), np.int64)
        if 5 in down:
            simulation.crash_server()
        else:
            simulation.crash(known)
    assert found == frequent_changes(truth, *pair)


@settings(max_examples=30, deadline=None)
@given(
    steps=series(clients=5, most=20),
    method=st.sampled_from(SAMPLED),
    seed=st.integers(0, 99),
    faults=st.none() | FAULTS,
    crashes=st.lists(st.sets(st.integers(0, 5), max_size=3), min_size=20, max_size=20),
)
def test_sampled_skylines_survive_crashes_where_not_all_is_sampled(
    steps: list[Step], method: str, seed: int, faults: Faults | None, crashes: list[set[int]]
) -> None:
    d, pairs = steps[0].points.shape[1], [("0.5", 900)]
    schedule = Schedule(seed, sampling_rate(pairs_of(None, None, pairs), 0.2, 0.1))
    assert schedule.rate < 0.5
    simulation = Simulation(d, method, pairs=pairs, seed=seed, faults=faults)
    truth = [seen.truth for seen in watch(FilterServer(d), steps)]
    known = 0
    for time, (step, down) in enumerate(zip(steps, crashes, strict=False)):
        simulation.step(*step)
        found = simulation.skyline()
        assert (None if found is None else found.tolist()) == (truth[time] if schedule.sampled(time) else None)
        known = max(known, step.clients.max(initial=-1) + 1)
        if 5 in down:
            simulation.crash_server()
        else:
            simulation.crash(np.array(sorted(one for one in down if one < known), np.int64))


def test_clients_that_hardly_get_a_message_through_change_no_answer() -> None:
    rng, answers = np.random.default_rng(3), []
    points = rng.random((8, 6, 2))
    for faults in (None, Faults(loss=0.9, duplicates=0.2, delay=20, seed=2)):
        simulation = Simulation(2, "filter", faults=faults)
        answers.append([tuple(one) for each in points for one in simulation.step(np.arange(6), each)])
        if faults is not None:
            assert simulation.network.counts["repeated"] > 20 * simulation.network.counts["sent"]
    assert answers[0] == answers[1]


def test_crashed_clients_are_heard_again_once_and_then_fall_silent() -> None:
    simulation, none = Simulation(2, "filter"), np.zeros(0, np.int64)
    simulation.step(np.arange(3), np.array([[1.0, 2.0], [2.0, 1.0], [3.0, 3.0]]))
    simulation.crash(np.array([1]))
    simulation.step(none, np.zeros((0, 2)))
    assert simulation.cost()["inserts"] == 1
    simulation.crash_server()
    assert not len(simulation.step(none, np.zeros((0, 2))))
    assert simulation.cost()["inserts"] == 4
    simulation.step(none, np.zeros((0, 2)))
    assert simulation.cost()["messages"] == 8


def test_faults_do_not_change_what_the_protocol_costs() -> None:
    rng = np.random.default_rng(7)
    points = rng.random((15, 20, 3))
    costs = []
    for faults in (None, Faults(loss=0.3, duplicates=0.2, delay=4)):
        simulation = Simulation(3, "filter", faults=faults)
        for each in points:
            simulation.step(np.arange(20), each)
        costs.append((simulation.cost()["uplink"], simulation.cost()["downlink"]))
    # The order in which answers come decides which probe sources are remembered, and hardly more.
    assert np.allclose(costs[0], costs[1], rtol=0.1)
