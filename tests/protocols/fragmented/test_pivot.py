"""PIVOT's dialogue: what a violation costs while the reserve lasts, shifts, new centres, new boxes, telling all."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.errors import StateError
from skytide.protocols.fragmented.functions import Functions
from skytide.protocols.fragmented.messages import Releases, Shifts, Zonings
from skytide.protocols.fragmented.pivot import PivotCoordinator, function_steps
from skytide.protocols.fragmented.tuning import Tuning, reserve_of, tuning_of
from tests.protocols.fragmented.coordinated import Dialogue

TWO = Functions(["a", "b"])
HOME = [[1.0, 9.0], [9.0, 1.0], [12.0, 12.0]]


def dialogue(sites: int = 20, home: list[list[float]] | None = None, **tuning: Any) -> Dialogue:
    return Dialogue(PivotCoordinator(TWO, tuning=Tuning(**tuning)), TWO, home or HOME, sites)


def steady(sites: int = 256, *, reserve: bool = True, shifting: bool = True) -> Dialogue:
    """Zones are kept even where telling all would be cheaper."""
    return dialogue(sites, streaming=False, reserve=reserve, shifting=shifting)


def test_a_violation_that_the_reserve_can_hold_is_one_message() -> None:
    assert steady().move(0, 0, 1.8, 9.0) == ["Violations"]
    said = steady(reserve=False, shifting=False).move(0, 0, 1.8, 9.0)
    assert said[0] == "Violations" and "Zonings" in said


def drifting(talk: Dialogue) -> list[str]:
    """All sites move in one direction, one after the other; the kinds of orders, each where it comes first."""
    order: list[str] = []
    for site in range(256):
        order += [kind for kind in talk.move(site, 0, 1.8, 9.0) if kind not in ("Violations", *order)]
    return order


def test_what_the_reserve_cannot_hold_goes_to_sites_with_room_before_there_are_new_zones() -> None:
    talk = steady()
    assert drifting(talk) == ["Shifts", "Zonings"] and talk.skyline() == [0, 1]
    assert drifting(steady(shifting=False)) == ["Zonings"]


def test_a_shift_goes_to_few_sites_in_equal_parts() -> None:
    talk = steady()
    for site in range(256):
        if "Shifts" in talk.move(site, 0, 1.8, 9.0):
            break
    (shift,) = [message for message in talk.said if isinstance(message, Shifts)]
    assert 1 <= len(shift.sites) <= 128 and len(set(shift.sites.tolist())) == len(shift.sites)
    assert (shift.amounts == shift.amounts[0]).all() and shift.amounts[0, 0] > 0.0


def test_who_crosses_a_boundary_is_seen_and_only_those_concerned_hear_of_new_boxes() -> None:
    talk = dialogue(sites=3, home=[*HOME, [500.0, 500.0]])
    for site in range(3):
        talk.move(site, 2, 0.5, 0.5)
    assert talk.skyline() == [2]
    told = {one for message in talk.said if isinstance(message, Zonings) for one in message.objects.tolist()}
    assert 3 not in told


@pytest.mark.parametrize(("apart", "also"), [(0.0, True), (0.3, False), (1.0, False)])
def test_an_object_that_leaves_its_box_touches_those_on_it_that_begin_farther_off_only_if_they_are_grouped(
    apart: float, also: bool
) -> None:
    talk = dialogue(sites=1, home=[[10.0, 10.0], [12.0, 12.0], [18.0, 18.0]], streaming=False, apart=apart)
    assert "Zonings" in talk.move(0, 0, 11.5, 11.5) and talk.skyline() == [0]
    told = {one for message in talk.said if isinstance(message, Zonings) for one in message.objects.tolist()}
    assert told == {0, 1, 2} if also else told == {0, 1}


@pytest.mark.parametrize("apart", [0.0, 0.5, 1.0])
def test_the_tuning_is_stored_and_what_was_stored_without_a_distance_goes_on(apart: float) -> None:
    stored = Tuning(walks=False, apart=apart)
    assert tuning_of(list(astuple(stored))) == stored
    assert tuning_of(list(astuple(stored))[:-1]) == Tuning(walks=False)
    again = PivotCoordinator.from_bytes(PivotCoordinator(TWO, tuning=Tuning(apart=apart)).to_bytes())
    assert (again._tuning.apart, again._filter.apart) == (apart, apart)  # type: ignore[attr-defined]


@pytest.mark.parametrize("wrong", [[], [True] * 6, [True] * 7 + [1.5], [True] * 7 + ["0"], [1] * 7, [True] * 9])
def test_a_tuning_that_was_damaged_is_refused(wrong: list[Any]) -> None:
    with pytest.raises(StateError, match="tuning"):
        tuning_of(wrong)


def test_an_object_whose_updates_are_larger_than_its_box_is_told_in_full() -> None:
    talk = dialogue(sites=1, home=[[1.0, 1.1], [1.1, 1.0]])
    kinds: list[str] = []
    for step in range(60):
        kinds += talk.move(0, 0, 1.0 + 0.09 * (step % 2), 1.1 - 0.09 * (step % 2))
    assert "Releases" in kinds and kinds.count("Updates") > 20


def test_a_box_without_extent_cannot_be_watched_so_all_is_told() -> None:
    talk = dialogue(sites=2, home=[[1.0, 1.0], [1.0, 1.0]])
    assert talk.skyline() == [0, 1]
    assert talk.move(0, 0, 0.5, 1.0)[0] == "Updates"
    assert talk.skyline() == [0]


def test_zones_are_inside_boxes_and_hold_their_centres() -> None:
    talk = dialogue()
    zoning = [message for message in talk.said if isinstance(message, Zonings)]
    assert {one for message in zoning for one in message.objects.tolist()} == {0, 1, 2}
    for message in zoning:
        assert (message.low < message.centre).all() and (message.centre < message.high).all()
        assert (message.versions == 1).all() and np.allclose(message.stretch, 1 / (1 - reserve_of(20)))


def test_versions_grow_with_every_zone_and_release() -> None:
    talk, last = steady(sites=2), {0: 1, 1: 1, 2: 1}
    source = np.random.default_rng(5)
    for _ in range(100):
        talk.move(int(source.integers(2)), int(source.integers(3)), *source.uniform(0, 12, 2).tolist())
        for message in talk.said:
            if isinstance(message, Zonings | Releases):
                for one in set(message.objects.tolist()):
                    (version,) = set(message.versions[message.objects == one].tolist())
                    assert version == last[one] + 1
                    last[one] = version
    assert max(last.values()) > 5


@given(st.integers(3, 10**6))
@settings(max_examples=50)
def test_the_reserve_is_where_its_cost_is_least(members: int) -> None:
    def cost(r: float) -> float:
        return (1 - r) ** -2 * (1 + 1 / (r * r * members))

    best = reserve_of(members)
    assert 0 < best < 0.5
    assert all(cost(best) <= cost(other) * (1 + 1e-9) for other in (best * 0.97, best * 1.03))


def test_the_size_of_a_step_is_that_of_the_functions() -> None:
    functions = Functions(["2 * a", "a + b"])
    means, step = np.array([1.0, 1.0]), np.array([0.5, 0.0])
    found = function_steps(functions.programs, step, means, np.array([2.0, 2.0]))
    assert found == pytest.approx([1.0, 0.5])
    assert function_steps(functions.programs, np.zeros(2), means, np.array([2.0, 2.0])).tolist() == [0.0, 0.0]
    assert function_steps(functions.programs, np.array([np.inf, 0.0]), means, np.array([2.0, 2.0])).tolist() == [
        0.0,
        0.0,
    ]
