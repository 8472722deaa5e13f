"""The method Auto: exact, never much dearer than the better of Filter and Naive, and it tries again."""

from __future__ import annotations

import numpy as np
import pytest

from skytide.model import Floats
from skytide.protocols.filtering.auto import AutoServer
from skytide.protocols.filtering.messages import Boxes, Releases
from skytide.runtime.simulate import Simulation
from tests.protocols.filtering.series import Step, watch

NONE = np.zeros(0, np.int64)


def jumps(n: int, length: int, d: int, seed: int) -> Floats:
    return np.random.default_rng(seed).random((length, n, d))


def trembles(n: int, length: int, d: int, seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    return rng.random((n, d)) + rng.uniform(-0.01, 0.01, (length, n, d))


def messages(method: str, points: Floats) -> int:
    simulation = Simulation(points.shape[2], method)
    for each in points:
        simulation.step(np.arange(len(each)), each)
    return int(simulation.cost()["messages"])


@pytest.mark.parametrize("seed", range(3))
def test_skylines_are_exact_while_clients_are_released_and_boxed_again(seed: int) -> None:
    points = np.concatenate((jumps(12, 60, 3, seed), trembles(12, 300, 3, seed)))
    released, boxed_again = set[int](), 0
    for seen in watch(AutoServer(3), [Step(np.arange(12), each, NONE) for each in points]):
        assert seen.skyline is not None and seen.skyline.tolist() == seen.truth
        for order in seen.orders:
            if isinstance(order, Releases):
                released |= set(order.clients.tolist())
            elif isinstance(order, Boxes):
                boxed_again += len(released & set(order.clients.tolist()))
                released -= set(order.clients.tolist())
    assert boxed_again > 0


def test_where_boxes_are_in_vain_it_costs_little_more_than_naive() -> None:
    points = jumps(40, 200, 4, seed=1)
    naive = messages("naive", points)
    assert messages("filter", points) > 1.5 * naive
    assert messages("auto", points) < 1.2 * naive


def test_where_boxes_help_it_costs_what_filter_does() -> None:
    points = trembles(200, 60, 2, seed=2)
    assert messages("auto", points) <= 1.05 * messages("filter", points) < 0.5 * messages("naive", points)


def test_a_released_client_that_does_not_move_says_nothing() -> None:
    points = jumps(10, 40, 3, seed=3)
    steps = [Step(np.arange(10), each, NONE) for each in points] + [Step(NONE, np.zeros((0, 3)), NONE)] * 5
    for seen in watch(AutoServer(3), steps):
        assert seen.time < 40 or not (seen.said or seen.orders)
