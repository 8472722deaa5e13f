"""The sites' side: what is told and when, and that orders which are older than what a site knows change nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from skytide.model import Floats, Integers
from skytide.protocols.fragmented.functions import Functions
from skytide.protocols.fragmented.messages import (
    Arrivals,
    Centrings,
    Departures,
    Order,
    Pairings,
    Partings,
    Releases,
    Report,
    Shifts,
    Updates,
    Violations,
    Zonings,
)
from skytide.protocols.fragmented.site import SiteBlock


def whole(*numbers: int) -> Integers:
    return np.array(numbers, np.int64)


def real(*numbers: float) -> Floats:
    return np.array(numbers).reshape(-1, 1)


def zoning(version: int, low: float, high: float, *sites: int, centre: float = 5.0, stretch: float = 1.0) -> Zonings:
    """A zone of object 0 at sites."""
    n = len(sites)
    objects, versions = np.zeros(n, np.int64), np.full(n, version)
    centres, ends = np.full((n, 1), centre), (np.full((n, 1), low), np.full((n, 1), high))
    return Zonings(1, whole(*sites), objects, versions, np.full(n, stretch), centres, *ends)


def shifting(version: int, amount: float, *sites: int) -> Shifts:
    n = len(sites)
    return Shifts(1, whole(*sites), np.zeros(n, np.int64), np.full(n, version), np.full((n, 1), amount))


def block_at(*values: float) -> SiteBlock:
    """Sites 0, 1, ... where object 0 has these values."""
    block = SiteBlock(Functions(["x"]))
    block.join(0, np.arange(len(values)), np.zeros(len(values), np.int64), real(*values))
    return block


def moved(block: SiteBlock, site: int, value: float) -> list[Report]:
    return block.take(2, whole(site), whole(0), real(value))[1]


def test_all_is_told_until_a_zone_comes_and_again_after_a_release() -> None:
    block = block_at(5.0)
    assert isinstance(moved(block, 0, 5.5)[0], Updates)
    assert block.obey(zoning(1, 3.0, 7.0, 0)) == []
    assert moved(block, 0, 6.0) == [] and moved(block, 0, 5.5) == []
    block.obey(Releases(1, whole(0), whole(0), whole(2)))
    assert isinstance(moved(block, 0, 5.6)[0], Updates)


def test_a_violation_has_the_vector_and_what_happened_since_the_site_last_spoke() -> None:
    block = block_at(5.0)
    block.obey(zoning(1, 3.0, 7.0, 0))
    for value in (6.0, 5.0):
        assert moved(block, 0, value) == []
    (told,) = moved(block, 0, 9.0)
    assert isinstance(told, Violations)
    assert (told.vectors.tolist(), told.updates.tolist(), told.moved.tolist()) == ([[9.0]], [3], [[6.0]])
    # What was told is the base now, and drift begins anew.
    assert moved(block, 0, 10.0) == []
    (told,) = moved(block, 0, 12.0)
    assert isinstance(told, Violations) and told.updates.tolist() == [2]


def test_drift_is_stretched() -> None:
    block = block_at(5.0)
    block.obey(zoning(1, 3.0, 7.0, 0, stretch=2.0))
    assert moved(block, 0, 5.9) == [] and len(moved(block, 0, 6.1)) == 1


def test_rows_that_change_nothing_are_not_updates() -> None:
    block = block_at(5.0)
    assert moved(block, 0, 5.0) == []
    block.obey(zoning(1, 3.0, 7.0, 0))
    moved(block, 0, 5.0)
    (told,) = moved(block, 0, 9.0)
    assert isinstance(told, Violations) and told.updates.tolist() == [1]


@pytest.mark.parametrize(
    "stale",
    [
        zoning(2, 0.0, 100.0, 0, centre=50.0),
        zoning(3, 0.0, 100.0, 0, centre=50.0),
        Releases(1, whole(0), whole(0), whole(3)),
        shifting(2, 1.5, 0),
        shifting(4, 1.5, 0),
        Centrings(1, whole(0), whole(0), whole(2), real(50.0)),
    ],
    ids=lambda order: f"{type(order).__name__}-{order.versions[0]}",
)
def test_orders_of_other_versions_change_nothing(stale: Order) -> None:
    block, untouched = block_at(5.0), block_at(5.0)
    for each in (block, untouched):
        each.obey(zoning(3, 3.0, 7.0, 0))
        assert moved(each, 0, 6.0) == []
    assert block.obey(stale) == []
    assert block.to_bytes() == untouched.to_bytes()


def test_a_shift_of_the_zone_that_a_site_has_becomes_its_drift() -> None:
    block = block_at(5.0, 5.0)
    block.obey(zoning(3, 3.0, 7.0, 0, 1))
    assert block.obey(shifting(3, 1.5, 0)) == []
    assert len(moved(block, 0, 5.6)) == 1 and moved(block, 1, 5.6) == []


def test_a_site_that_is_out_of_its_new_zone_says_so_at_once_and_others_do_not() -> None:
    block = block_at(5.0, 5.0, 5.0)
    block.obey(zoning(1, 3.0, 7.0, 0, 1, 2))
    assert moved(block, 1, 6.5) == []
    (told,) = block.obey(zoning(2, 4.5, 5.5, 0, 1, 2))
    assert isinstance(told, Violations) and told.sites.tolist() == [1] and told.vectors.tolist() == [[6.5]]


def test_objects_come_with_their_weights_leave_once_and_return_as_new() -> None:
    block = SiteBlock(Functions(["x"]))
    row, told = block.take(0, whole(0), whole(0), real(5.0), weights=np.array([0.5]))
    assert row == 1 and isinstance(told[0], Arrivals) and told[0].weights.tolist() == [0.5]
    block.obey(zoning(1, 3.0, 7.0, 0))
    gone = np.array([True])
    assert isinstance(block.take(1, whole(0), whole(0), real(np.nan), gone)[1][0], Departures)
    assert block.take(1, whole(0), whole(0), real(np.nan), gone)[1] == []
    assert block.take(1, whole(3), whole(0), real(np.nan), gone)[1] == []
    assert isinstance(moved(block, 0, 5.0)[0], Arrivals)
    assert isinstance(moved(block, 0, 5.1)[0], Updates), "nobody told it of a zone since it returned"


def test_updates_are_taken_up_to_the_first_that_must_be_told() -> None:
    block = block_at(5.0, 5.0)
    block.obey(zoning(1, 3.0, 7.0, 0, 1))
    sites, values = whole(0, 1, 1, 0), real(6.0, 6.0, 9.0, 9.0)
    row, told = block.take(2, sites, np.zeros(4, np.int64), values)
    assert row == 3 and told[0].sites.tolist() == [1]
    row, told = block.take(2, sites, np.zeros(4, np.int64), values, None, row)
    assert row == 4 and told[0].sites.tolist() == [0]


def pairing(column: int = 0) -> Pairings:
    """Sites 0 and 1 watch that object 0 stays better than object 1."""
    return Pairings(1, whole(0, 1), whole(0, 0), whole(1, 1), whole(column, column), whole(0, 0), np.ones((2, 2)))


def paired_block() -> SiteBlock:
    block = SiteBlock(Functions(["x"]), paired=True)
    block.join(0, whole(0, 1, 0, 1), whole(0, 0, 1, 1), real(2.0, 2.0, 8.0, 8.0))
    centres = Centrings(1, whole(0, 1, 0, 1), whole(0, 0, 1, 1), whole(1, 1, 1, 1), real(2.0, 2.0, 8.0, 8.0))
    assert block.obey(centres, pairing()) == []
    return block


def test_a_pair_is_quiet_while_it_is_in_order_wherever_its_objects_are() -> None:
    block = paired_block()
    assert moved(block, 0, 7.0) == []
    assert block.take(2, whole(0), whole(1), real(7.5))[1] == []
    (told,) = block.take(2, whole(0), whole(1), real(6.5))[1]
    assert isinstance(told, Violations) and set(told.objects.tolist()) <= {0, 1}


def test_both_directions_are_told_so_that_they_add_up_to_nothing() -> None:
    assert len(moved(paired_block(), 0, -9.0)) == 1


def test_after_a_parting_nothing_is_watched() -> None:
    block = paired_block()
    block.obey(Partings(1, whole(0, 1), whole(0, 0), whole(1, 1), whole(0, 0)))
    assert moved(block, 0, 99.0) == []


def test_an_instant_is_told_in_one_block_of_each_kind() -> None:
    block = block_at(5.0, 5.0)
    block.obey(zoning(1, 3.0, 7.0, 0, 1))
    times, sites, values = whole(4, 6, 6, 6, 7), whole(0, 0, 1, 2, 0), real(6.0, 9.0, 9.0, 1.0, 2.0)
    none = np.zeros(5, np.bool_)
    row, told = block.instant(times, sites, np.zeros(5, np.int64), values, none)
    assert row == 4 and [(type(one), one.time, one.sites.tolist()) for one in told] == [
        (Arrivals, 6, [2]),
        (Violations, 6, [0, 1]),
    ]


def test_a_stored_block_goes_on_as_the_one_it_was() -> None:
    block = block_at(5.0, 5.0)
    block.obey(zoning(1, 3.0, 7.0, 0, 1))
    moved(block, 0, 6.0)
    again = SiteBlock.from_bytes(block.to_bytes())
    for each in (block, again):
        (told,) = moved(each, 0, 9.0)
        assert isinstance(told, Violations) and told.updates.tolist() == [2]
        assert each.obey(replace(zoning(1, 0.0, 1.0, 0), time=3)) == []


def test_what_left_within_an_instant_is_not_told_of_at_its_end() -> None:
    block = SiteBlock(Functions(["x"]))
    first, both = np.array([0, 0]), np.array([0, 1])
    block.join(0, first, both, np.array([[1.0], [2.0]]))
    vectors, gone = np.array([[5.0], [6.0], [np.nan]]), np.array([False, False, True])
    row, said = block.instant(np.array([3, 3, 3]), np.zeros(3, np.int64), np.array([0, 1, 1]), vectors, gone)
    told = {type(report).__name__: report.objects.tolist() for report in said}
    assert row == 3 and told == {"Updates": [0], "Departures": [1]}
