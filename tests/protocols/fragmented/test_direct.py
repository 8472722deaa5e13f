"""DIRECT's dialogue: pairs without a boundary between them, chains, the hand-over to PIVOT."""

from __future__ import annotations

import numpy as np

from skytide.kernel.fragmented import ALL
from skytide.protocols.fragmented.direct import DirectCoordinator
from skytide.protocols.fragmented.functions import Functions
from skytide.protocols.fragmented.messages import Arrivals, Pairings
from tests.protocols.fragmented.coordinated import Dialogue

TWO = Functions(["a", "b"])
HOME = [[1.0, 9.0], [9.0, 1.0], [12.0, 12.0]]


def dialogue(sites: int = 20, home: list[list[float]] | None = None) -> Dialogue:
    return Dialogue(DirectCoordinator(TWO), TWO, home or HOME, sites)


def pairs_of(talk: Dialogue) -> set[tuple[int, int, int]]:
    return {
        (left, right, column)
        for message in talk.said
        if isinstance(message, Pairings)
        for left, right, column in zip(
            message.objects.tolist(), message.others.tolist(), message.columns.tolist(), strict=True
        )
    }


def test_neighbours_are_pairs_on_each_function_and_others_hang_on_one_that_dominates_them() -> None:
    found = pairs_of(dialogue())
    assert {(0, 1, 0), (1, 0, 1)} <= found
    hanging = found - {(0, 1, 0), (1, 0, 1)}
    assert len(hanging) == 1
    ((holder, one, column),) = hanging
    assert (one, column) == (2, ALL) and holder in (0, 1)


def test_objects_that_move_together_say_nothing_wherever_they_go() -> None:
    talk = dialogue(sites=2)
    for step in range(1, 60):
        for site in range(2):
            for one, home in enumerate(HOME):
                assert talk.move(site, one, *(value + 0.05 * step for value in home)) == []
    assert talk.skyline() == [0, 1]


def test_a_violation_that_the_reserve_can_hold_is_one_message() -> None:
    assert dialogue().move(0, 0, 20.0, 9.0) == ["Violations"]


def test_who_rises_is_in_and_what_it_dominates_hangs_on_it() -> None:
    talk = dialogue(sites=3)
    for site in range(3):
        talk.move(site, 2, 0.5, 0.25)
    assert talk.skyline() == [2]
    for site in range(3):
        talk.move(site, 2, 30.0, 30.0)
    assert talk.skyline() == [0, 1]


def test_equal_objects_are_handed_over_to_pivot_and_stay_exact() -> None:
    talk = dialogue(sites=2)
    kinds = [kind for site in range(2) for kind in talk.move(site, 1, 1.0, 9.0)]
    assert "Zonings" in kinds and talk.skyline() == [0, 1]
    for site in range(2):
        talk.move(site, 1, 1.0, 9.5)
    assert talk.skyline() == [0]


def test_a_single_object_may_do_what_it_likes_unless_it_has_no_value() -> None:
    functions = Functions(["sqrt(a)"])
    talk = Dialogue(DirectCoordinator(functions, nulls="drop"), functions, [[4.0]], 2)
    assert talk.move(0, 0, 400.0) == [] and talk.skyline() == [0]
    talk.move(0, 0, -1.0)
    assert talk.skyline() == [0]
    talk.move(1, 0, -1.0)
    assert talk.skyline() == [] and talk.coordinator.undefined().tolist() == [0]


def test_drift_is_stretched_where_objects_are_not_at_the_same_sites() -> None:
    coordinator = DirectCoordinator(TWO)
    rows = np.array([[1.0, 9.0], [1.0, 9.0], [9.0, 1.0]])
    orders = coordinator.take(0, [Arrivals(0, np.array([0, 1, 1]), np.array([0, 0, 1]), np.ones(3), rows)])
    (pairs,) = [order for order in orders if isinstance(order, Pairings)]
    by_side = {(left, *pair.tolist()) for left, pair in zip(pairs.objects.tolist(), pairs.stretches, strict=True)}
    assert by_side == {(0, 1.0, 2.0), (1, 2.0, 1.0)}
