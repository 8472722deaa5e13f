"""The methods by name: which coordinator each is, and when pairs are left for zones."""

from __future__ import annotations

import numpy as np
import pytest

from skytide.errors import InputError, OptionError
from skytide.protocols.fragmented.direct import DirectCoordinator
from skytide.protocols.fragmented.functions import Functions
from skytide.protocols.fragmented.messages import Arrivals, Order
from skytide.protocols.fragmented.methods import CROWDED, METHODS, coordinator_of, pairs_of
from skytide.protocols.fragmented.pivot import PivotCoordinator
from skytide.protocols.fragmented.tuning import Tuning

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


def test_auto_hands_over_when_a_skyline_becomes_crowded_also_after_it_was_stored() -> None:
    rows = [[float(one), float(CROWDED - one)] for one in range(CROWDED)]
    coordinator = coordinator_of("auto", TWO)
    settled(coordinator, arrivals([0] * CROWDED, list(range(CROWDED)), rows))
    again = DirectCoordinator.from_bytes(coordinator.to_bytes())
    for one in (coordinator, again):
        orders = one.take(1, [arrivals([0], [CROWDED], [[-1.0, 99.0]])])
        assert kinds(orders) == {"Zonings"} and len(one.skyline()) == CROWDED + 1


def settled(coordinator: PivotCoordinator | DirectCoordinator, *reports: Arrivals) -> None:
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
