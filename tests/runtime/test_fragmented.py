"""Objects in fragments in simulation: after every single update the coordinator's skyline is that of the definition.

SKYTIDE_SCENARIOS=5000 in the environment draws so many scenarios for each method.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from skytide.protocols.fragmented.functions import Functions
from skytide.protocols.fragmented.messages import Message, Pairings, Partings, Shifts, encode
from skytide.protocols.fragmented.methods import METHODS
from skytide.protocols.fragmented.tuning import Tuning
from skytide.runtime.fragmented import FragmentSimulation
from tests.protocols.fragmented.scenarios import TUNINGS, Row, Scenario, check, scenarios, send, walk

SCENARIOS = int(os.environ.get("SKYTIDE_SCENARIOS", "60"))
MANY = settings(max_examples=SCENARIOS, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@pytest.mark.parametrize("method", METHODS)
@MANY
@given(scenario=scenarios(), wire=st.booleans())
def test_the_skyline_is_exact_after_every_update(method: str, scenario: Scenario, wire: bool) -> None:
    check(scenario, method, wire=wire)


@pytest.mark.parametrize("method", ["pivot", "direct"])
@MANY
@given(scenario=st.one_of(scenarios(), st.builds(walk, st.integers(0, 10**9), st.just(60))), tuning=TUNINGS)
def test_the_skyline_is_exact_whatever_is_done_to_save_messages(
    method: str, scenario: Scenario, tuning: Tuning
) -> None:
    check(scenario, method, tuning=tuning)


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=max(SCENARIOS // 6, 1))
@example(seed=7783, wire=False)  # a site that counts more for one object of a pair than for the other
@given(seed=st.integers(0, 10**9), wire=st.booleans())
def test_the_skyline_is_exact_along_walks_that_sites_absorb(method: str, seed: int, wire: bool) -> None:
    check(walk(seed, 120), method, wire=wire)


@pytest.mark.parametrize("method", METHODS)
def test_a_missing_value_is_worse_than_infinity_under_the_policy_worst(method: str) -> None:
    # At -inf the distance is inf - inf, which is missing; at 1e300 it is too large, which is infinite.
    missing, endless, fine = (-np.inf, 0.0, -np.inf, 0.0), (0.0, 1e300, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0)
    rows = [Row(0, one, values, 1.0) for one, values in enumerate([missing, fine])]
    updates = [Row(0, 1, endless, 1.0), Row(0, 1, fine, 1.0), Row(0, 1, endless, 1.0)]
    scenario = Scenario(("a", "distance(a, b, c, d)"), (), "worst", rows, updates)
    assert check(scenario, method).skyline().tolist() == [0, 1]


class Recorded(FragmentSimulation):
    """A simulation that keeps all messages, by round."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.rounds: list[tuple[bool, list[Message]]] = []

    def _carried(self, messages: Sequence[Any], time: int) -> list[Any]:
        found = super()._carried(messages, time)
        self.rounds.append((time == 0, found))
        return found

    def later(self) -> list[Message]:
        """All blocks after the initialisation."""
        return [block for initial, blocks in self.rounds if not initial for block in blocks]


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=max(SCENARIOS // 6, 1))
@given(seed=st.integers(0, 10**9))
def test_the_ledger_is_what_was_encoded_and_no_site_says_a_thing_twice(method: str, seed: int) -> None:
    scenario = walk(seed, 60)
    simulation = Recorded(scenario.functions, method, nulls=scenario.nulls)
    for time, rows in enumerate([scenario.start, scenario.updates]):
        list(send(simulation, time, rows))
    cost, shape = simulation.cost(), (simulation.functions.d, simulation.functions.k)
    for start, wanted in ((True, cost["initial"]), (False, cost)):
        blocks = [block for first, blocks in simulation.rounds if first == start for block in blocks]
        sent = [(block, list(encode(block, *shape))) for block in blocks]
        for up, messages, size in ((True, "uplink", "bytes_up"), (False, "downlink", "bytes_down")):
            data = [each for block, each in sent if block.kind.up == up]
            assert wanted[messages] == sum(map(len, data))
            assert wanted[size] == sum(len(one) for each in data for one in each)
        assert wanted["messages"] == wanted["uplink"] + wanted["downlink"]
    for _, blocks in simulation.rounds:
        assert len({block.kind for block in blocks}) == len(blocks)
        for block in blocks:
            more = [block.others, block.columns] if isinstance(block, Pairings | Partings) else []
            rows = list(zip(*(column.tolist() for column in (block.sites, block.objects, *more)), strict=True))
            assert len(set(rows)) == len(rows)
    assert cost["updates"] == len(scenario.updates)


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=max(SCENARIOS // 4, 1))
@given(seed=st.integers(0, 10**9))
def test_a_site_where_nothing_changes_says_nothing_after_it_came(method: str, seed: int) -> None:
    scenario = walk(seed, 60)
    quiet = {row.site for row in scenario.start if row.site % 2}
    updates = [row for row in scenario.updates if row.site not in quiet]
    simulation = Recorded(scenario.functions, method, nulls=scenario.nulls)
    for time, rows in enumerate([scenario.start, updates]):
        list(send(simulation, time, rows))
    shifted = {site for block in simulation.later() if isinstance(block, Shifts) for site in block.sites.tolist()}
    spoke = {site for block in simulation.later() if block.kind.up for site in block.sites.tolist()}
    assert not spoke & (quiet - shifted)


@pytest.mark.parametrize("method", METHODS)
def test_a_quiet_stream_costs_nothing_but_for_central(method: str) -> None:
    source = np.random.default_rng(1)
    home = np.array([[1.0, 9.0], [5.0, 5.0], [9.0, 1.0], [8.0, 8.0]])
    simulation = FragmentSimulation(Functions(["a", "b"]), method)
    sites, objects = np.repeat(np.arange(10), 4), np.tile(np.arange(4), 10)
    simulation.run(0, sites, objects, home[objects])
    picked = source.integers(0, 40, 400)
    moved = home[objects[picked]] + source.uniform(-0.05, 0.05, (400, 2))
    simulation.run(1, sites[picked], objects[picked], moved)
    assert simulation.skyline().tolist() == [0, 1, 2]
    assert simulation.cost()["messages"] == (400 if method == "central" else 0)


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=max(SCENARIOS // 6, 1))
@given(seed=st.integers(0, 10**9))
def test_many_rows_at_once_are_the_same_rows_one_by_one(method: str, seed: int) -> None:
    scenario = walk(seed, 80)
    once, single = (FragmentSimulation(scenario.functions, method, nulls="drop") for _ in range(2))
    for simulation in (once, single):
        list(send(simulation, 0, scenario.start))
    done = 0
    for row in send(once, 1, scenario.updates):
        for one in scenario.updates[done:row]:
            list(send(single, 1, [one]))
        done = row
        assert once.skyline().tolist() == single.skyline().tolist()
        assert once.cost() | {"updates": 0} == single.cost() | {"updates": 0}
