"""The methods by name: which coordinator each is, and when pairs are left for zones."""

from __future__ import annotations

import numpy as np
import pytest

from skytide.errors import InputError, OptionError, StateError
from skytide.protocols.fragmented.direct import LASTING, DirectCoordinator
from skytide.protocols.fragmented.functions import Functions
from skytide.protocols.fragmented.messages import Arrivals, Departures, Order, Report
from skytide.protocols.fragmented.methods import METHODS, coordinator_of, pairs_of
from skytide.protocols.fragmented.pivot import PivotCoordinator
from skytide.protocols.fragmented.tuning import CROWDED, Tuning
from skytide.runtime.fragmented import FragmentSimulation

TWO, THREE = Functions(["a", "b"]), Functions(["a", "b", "a * b"])


def arrivals(sites: list[int], objects: list[int], rows: list[list[float]]) -> Arrivals:
    return Arrivals(0, np.array(sites), np.array(objects), np.ones(len(sites)), np.array(rows))


def kinds(orders: list[Order]) -> set[str]:
    return {type(order).__name__ for order in orders}


@pytest.mark.parametrize("method", METHODS)
def test_sites_watch_pairs_where_the_coordinator_gives_them(method: str) -> None:
    for functions in (TWO, THREE):
        made = coordinator_of(method, functions)
        assert isinstance(made, DirectCoordinator if pairs_of(method, functions) else PivotCoordinator)
    assert pairs_of("direct", THREE) and pairs_of("auto", TWO) and not pairs_of("auto", THREE)


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(OptionError, match="'best' is not a method; use one of central, pivot, direct, auto"):
        coordinator_of("best", TWO)


def start(method: str, rows: list[list[float]], sites: int = 4) -> tuple[set[str], list[int]]:
    """What a coordinator orders when all objects come to all sites, and the skyline then."""
    coordinator = coordinator_of(method, TWO, nulls="drop")
    n = len(rows)
    where, who = np.repeat(np.arange(sites), n).tolist(), list(range(n)) * sites
    orders = coordinator.take(0, [arrivals(where, who, rows * sites)])
    return kinds(orders), coordinator.skyline().tolist()


def test_central_orders_nothing_pivot_zones_and_direct_pairs() -> None:
    rows = [[1.0, 9.0], [5.0, 5.0], [9.0, 1.0], [8.0, 8.0]]
    assert start("central", rows) == (set(), [0, 1, 2])
    assert start("pivot", rows) == ({"Zonings"}, [0, 1, 2])
    assert start("direct", rows) == start("auto", rows) == ({"Centrings", "Pairings"}, [0, 1, 2])


def test_direct_hands_over_to_pivot_where_objects_are_equal_or_without_a_value() -> None:
    equal = [[1.0, 9.0], [1.0, 9.0], [9.0, 1.0]]
    found, skyline = start("direct", equal)
    assert "Pairings" not in found and skyline == [0, 1, 2]
    found, skyline = start("direct", [[1.0, np.inf], [2.0, 1.0]])
    assert "Pairings" not in found and skyline == [0, 1]


def test_auto_leaves_objects_at_different_sites_to_pivot_and_direct_does_not() -> None:
    apart = arrivals([0, 1, 2, 3], [0, 0, 1, 1], [[1.0, 9.0]] * 2 + [[9.0, 1.0]] * 2)
    assert kinds(coordinator_of("auto", TWO).take(0, [apart])) == {"Zonings"}
    assert kinds(coordinator_of("direct", TWO).take(0, [apart])) == {"Centrings", "Pairings"}


@pytest.mark.parametrize(("many", "crowded"), [(CROWDED, False), (CROWDED + 1, True)])
def test_auto_leaves_a_crowded_skyline_to_pivot_and_direct_does_not(many: int, crowded: bool) -> None:
    rows = [[float(one), float(many - one)] for one in range(many)] + [[50.0, 50.0]] * 3
    assert start("auto", rows) == ({"Zonings"} if crowded else {"Centrings", "Pairings"}, list(range(many)))
    assert start("direct", rows) == ({"Centrings", "Pairings"}, list(range(many)))


def antichain(many: int) -> list[list[float]]:
    return [[float(one), float(many - one)] for one in range(many)]


def test_auto_hands_over_when_a_skyline_stays_crowded_also_after_it_was_stored() -> None:
    coordinator = coordinator_of("auto", TWO)
    assert isinstance(coordinator, DirectCoordinator)
    settled(coordinator, arrivals([0] * CROWDED, list(range(CROWDED)), antichain(CROWDED)))
    settled(coordinator, arrivals([0], [CROWDED], [[-1.0, 99.0]]))
    said = [kinds(coordinator.take(1, [])) for _ in range(LASTING // 2)]
    coordinator = DirectCoordinator.from_bytes(coordinator.to_bytes())
    said += [kinds(coordinator.take(1, [])) for _ in range(LASTING)]
    assert said.count({"Zonings"}) == 1 and all(one in (set(), {"Zonings"}) for one in said)
    assert LASTING // 2 < said.index({"Zonings"}) < LASTING and len(coordinator.skyline()) == CROWDED + 1


def test_auto_bears_a_crowd_that_does_not_last() -> None:
    coordinator = coordinator_of("auto", TWO)
    settled(coordinator, arrivals([0] * CROWDED, list(range(CROWDED)), antichain(CROWDED)))
    for turn in range(3):
        settled(coordinator, arrivals([0], [CROWDED], [[-1.0, 99.0]]))
        said = [kinds(coordinator.take(1, [])) for _ in range(LASTING - 2)]
        settled(coordinator, Departures(2, np.array([0]), np.array([CROWDED])))
        assert said.count({"Zonings"}) == 0 and len(coordinator.skyline()) == CROWDED, turn


@pytest.mark.parametrize(("method", "most"), [("auto", CROWDED), ("direct", float("inf"))])
def test_what_was_stored_before_there_was_a_limit_goes_on_with_the_usual_one(method: str, most: float) -> None:
    coordinator = coordinator_of(method, TWO)
    contents = coordinator._contents()
    for name in ("most", "crowd"):
        contents.meta.pop(name)
    assert DirectCoordinator._restored(contents)._most == most
    for wrong in (0, -1, float("nan"), True, "16"):
        with pytest.raises(StateError, match="largest skyline"):
            DirectCoordinator._restored(contents._replace(meta=contents.meta | {"most": wrong}))


def test_direct_hands_over_what_came_in_several_reports() -> None:
    """The room for objects then differs from that of one report with all of them."""
    coordinator = coordinator_of("direct", TWO)
    rows = antichain(12)
    settled(coordinator, arrivals([0] * 6, list(range(6)), rows[:6]), arrivals([0] * 4, list(range(6, 10)), rows[6:10]))
    settled(coordinator, arrivals([0], [10], [rows[10]]))
    assert "Zonings" in kinds(coordinator.take(1, [arrivals([0], [11], [rows[5]])]))  # no pair can hold what is equal
    assert coordinator.skyline().tolist() == list(range(12))


def test_zones_after_a_hand_over_are_as_good_as_those_of_a_beginning() -> None:
    """The zones that a hand-over gives are no loss to begin with, so that objects do not go on by telling all."""
    sites, many, updates = 20, 39, 4000
    where, who = np.repeat(np.arange(sites), many), np.tile(np.arange(many), sites)
    home = np.stack((np.linspace(40.0, 80.0, many), np.linspace(80.0, 40.0, many)), axis=1)
    cost = {}
    for method in ("pivot", "auto"):
        simulation, chance, values = FragmentSimulation(TWO, method), np.random.default_rng(1), home[who]
        simulation.run(0, where, who, values)
        simulation.run(1, np.arange(sites), np.full(sites, many), np.full((sites, 2), 5.0))  # all others need new zones
        before = simulation.cost()["messages"]
        for time, cell in enumerate(chance.integers(len(who), size=updates).tolist(), 2):
            values[cell] += chance.normal(0.0, 0.8, 2)
            simulation.run(time, where[[cell]], who[[cell]], values[[cell]])
        cost[method] = simulation.cost()["messages"] - before
    assert cost["auto"] <= 1.1 * cost["pivot"] < 0.5 * updates, cost


def settled(coordinator: PivotCoordinator | DirectCoordinator, *reports: Report) -> None:
    """Have a dialogue in which sites have no more to say than this."""
    while coordinator.take(0, reports):
        reports = ()


@pytest.mark.parametrize("method", METHODS)
def test_an_object_without_a_value_is_an_error_or_left_out_or_worst(method: str) -> None:
    functions = Functions(["sqrt(a)"])
    rows = arrivals([0, 0], [0, 1], [[-1.0], [4.0]])
    with pytest.raises(InputError, match="a function has no value"):
        settled(coordinator_of(method, functions), rows)
    for nulls in ("drop", "worst"):
        coordinator = coordinator_of(method, functions, nulls=nulls)
        settled(coordinator, rows)
        assert coordinator.skyline().tolist() == [1]
        assert coordinator.undefined().tolist() == ([0] if nulls == "drop" else [])


def test_a_tuning_reaches_the_coordinator_but_central_has_no_zones_in_any() -> None:
    rows = arrivals([0, 1], [0, 0], [[1.0, 9.0]] * 2)
    assert kinds(coordinator_of("pivot", TWO, tuning=Tuning(zones=False)).take(0, [rows])) == set()
    assert kinds(coordinator_of("central", TWO, tuning=Tuning(zones=True)).take(0, [rows])) == set()
