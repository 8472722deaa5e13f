"""Accounts of zones: what is a loss, how long it keeps zones away, and that accounts survive being stored."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from skytide.protocols.fragmented.functions import Functions
from skytide.protocols.fragmented.messages import Updates, Violations
from skytide.protocols.fragmented.worth import FIRST, LAST, UNHEARD, Worth
from skytide.runtime.fragmented import FragmentSimulation

SITES = 10
ONE = np.array([0])


def account() -> Worth:
    worth = Worth()
    worth.reserve(1)
    return worth


def zone(worth: Worth, times: int = 1) -> None:
    for _ in range(times):
        worth.give(ONE, ONE + SITES)


def violation(worth: Worth, updates: int) -> None:
    worth.hear(Violations(0, ONE, ONE, np.zeros((1, 1)), ONE + updates, np.zeros((1, 1))))


@pytest.mark.parametrize(("updates", "loss"), [(1, True), (2, False)])
def test_a_zone_pays_when_sites_were_quiet_for_more_updates_than_it_cost(updates: int, loss: bool) -> None:
    """One of ten sites speaks: the zone cost 11 messages, and all sites are taken to have seen as many updates."""
    worth = account()
    zone(worth)
    violation(worth, updates)
    assert worth.losing(0, SITES) is loss


def test_each_loss_keeps_zones_away_for_twice_as_long_up_to_a_limit() -> None:
    worth, waits = account(), []
    for _ in range(12):
        zone(worth)
        violation(worth, 1)
        assert worth.losing(0, SITES)
        waits.append(int(worth.wait[0]))
    assert waits[:2] == [FIRST * SITES, 2 * FIRST * SITES]
    assert waits[-1] == waits[-2] == LAST * SITES


def test_a_gain_shortens_the_wait_once_something_was_paid_for() -> None:
    worth = account()
    zone(worth)
    violation(worth, 1)
    assert worth.losing(0, SITES)
    violation(worth, 50)
    assert not worth.losing(0, SITES) and worth.wait[0] == FIRST * SITES
    zone(worth)
    assert not worth.losing(0, SITES) and worth.wait[0] == FIRST * SITES // 2


def test_zones_given_again_and_again_to_silent_sites_are_a_loss() -> None:
    worth = account()
    for _ in range(int(UNHEARD)):
        zone(worth)
        assert not worth.losing(0, SITES)
    zone(worth)
    assert worth.losing(0, SITES)


def test_what_is_told_anyway_is_not_on_the_account() -> None:
    worth = account()
    worth.hear(Updates(0, ONE, ONE, np.zeros((1, 1))))
    zone(worth, 3)
    assert worth.losing(0, SITES)


def test_accounts_are_stored() -> None:
    worth = account()
    zone(worth)
    violation(worth, 1)
    assert worth.losing(0, SITES)
    zone(worth)
    found = Worth.restored(copy.deepcopy(worth).contents())
    violation(worth, 1)
    violation(found, 1)
    assert worth.losing(0, SITES) and found.losing(0, SITES)
    assert found.wait.tolist() == worth.wait.tolist() == [2 * FIRST * SITES]


def test_sites_that_swing_together_cost_little_more_than_telling_everything() -> None:
    """Two objects that come close to each other and part again, every few updates of each site."""
    hours, rng = 1500, np.random.default_rng(1)
    sites, objects = np.arange(SITES), np.arange(SITES) % 2
    simulation = FragmentSimulation(Functions(["a"]), "pivot")
    for hour in range(hours):
        swing = 5.0 * np.sin(hour / 4.0 + objects)
        values = (20.0 + objects + swing + rng.normal(0.0, 0.3, SITES))[:, None]
        simulation.run(hour, sites, objects, values)
        means = [values[objects == one].mean() for one in (0, 1)]
        assert simulation.skyline().tolist() == [int(np.argmin(means))]
    assert simulation.cost()["messages"] < 1.15 * SITES * hours
