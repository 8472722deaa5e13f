"""The method Hybrid: right at sampled timestamps whatever the modes, and each client in the mode that suits it."""

from __future__ import annotations

import numpy as np
import pytest

from skytide.model import Booleans
from skytide.protocols.filtering.hybrid import HybridServer
from skytide.protocols.filtering.messages import Boxes, Kind, Message, Schedules
from skytide.protocols.filtering.schedule import Schedule
from tests.protocols.filtering.series import Step, watch

NONE = np.zeros(0, np.int64)


def walks(seed: int, length: int, grid: bool) -> list[Step]:
    """Clients that rest, tremble, wander and jump, change their temper half-way, and come and go."""
    rng, n, d = np.random.default_rng(seed), 24, 2
    temper = rng.integers(0, 4, n)
    now: dict[int, np.ndarray] = {}
    steps = []
    for time in range(length):
        if time == length // 2:
            temper = rng.permutation(temper)
        gone = [one for one in now if rng.random() < 0.005]
        for one in gone:
            del now[one]
        moved = []
        for one in range(n):
            if one not in now:
                if time == 0 or rng.random() < 0.05:
                    now[one] = rng.random(d)
                    moved.append(one)
            elif temper[one]:
                now[one] = (
                    rng.random(d) if temper[one] == 3 else now[one] + rng.normal(0, [0, 0.003, 0.05][temper[one]], d)
                )
                moved.append(one)
            if one in moved and grid:
                now[one] = np.round(now[one] * 6) / 6
        points = np.array([now[one] for one in moved]).reshape(-1, d)
        steps.append(Step(np.array(moved, np.int64), points, np.array(gone, np.int64)))
    return steps


@pytest.mark.parametrize("seed", range(8))
def test_sampled_skylines_are_right_while_clients_change_their_modes(seed: int) -> None:
    schedule = Schedule(seed, 0.3)
    kinds: dict[Kind, int] = {}
    scheduled, returned = set[int](), 0
    for seen in watch(HybridServer(2, schedule), walks(seed, 240, grid=seed % 2 == 1)):
        sampled = schedule.sampled(seen.time)
        assert (None if seen.skyline is None else seen.skyline.tolist()) == (seen.truth if sampled else None)
        for order in seen.orders:
            kinds[order.kind] = kinds.get(order.kind, 0) + len(order.clients)
            who = set(order.clients.tolist())
            if isinstance(order, Schedules):
                scheduled |= who
            elif isinstance(order, Boxes):
                returned += len(scheduled & who)
                scheduled -= who
    assert {Kind.FILTER, Kind.MIXED, Kind.SCHEDULE} <= kinds.keys() and returned > 0


def modes_after(steps: list[Step], schedule: Schedule) -> tuple[set[int], list[int]]:
    """Who is sampled only, after a series, and how many messages each timestamp took."""
    sampled, messages = set[int](), []
    for seen in watch(HybridServer(steps[0].points.shape[1], schedule), steps):
        blocks: list[Message] = [*seen.said, *seen.asked, *seen.asked, *seen.orders]
        messages.append(sum(len(block.clients) for block in blocks))
        for order in seen.orders:
            who = set(order.clients.tolist())
            sampled = sampled | who if isinstance(order, Schedules) else sampled - who
    return sampled, messages


def test_who_jumps_is_sampled_and_who_rests_is_filtered() -> None:
    rng, n = np.random.default_rng(3), 30
    x = np.linspace(0, 1, 20)
    home = np.concatenate((np.stack((x, 1 - x), axis=1), np.zeros((10, 2))))
    jumpy = np.arange(n) >= 20
    steps = []
    for _ in range(150):
        points = home + rng.uniform(-1e-3, 1e-3, (n, 2))
        points[jumpy] = rng.random((10, 2))
        steps.append(Step(np.arange(n), points, NONE))
    sampled, _ = modes_after(steps, Schedule(1, 0.2))
    assert len(sampled & set(range(20, n))) >= 8 and len(sampled & set(range(20))) <= 2


def test_who_comes_to_rest_gets_a_box_again_and_silence_follows() -> None:
    rng, n = np.random.default_rng(5), 20
    steps = [Step(np.arange(n), rng.random((n, 2)), NONE) for _ in range(100)]
    home = rng.random((n, 2))
    steps += [Step(np.arange(n), home + rng.uniform(-1e-4, 1e-4, (n, 2)), NONE) for _ in range(200)]
    restless, _ = modes_after(steps[:100], Schedule(2, 0.2))
    rested, messages = modes_after(steps, Schedule(2, 0.2))
    assert len(restless) > n / 2 and not rested
    assert sum(messages[-50:]) < 50 * n * 0.2


def test_the_boxes_given_hold_the_points() -> None:
    for seen in watch(HybridServer(2, Schedule(4, 0.4)), walks(11, 120, grid=False)):
        for order in seen.orders:
            if isinstance(order, Boxes):
                points = np.array([seen.points[one] for one in order.clients.tolist()])
                held: Booleans = (order.low <= points) & (points <= order.high)
                # A client that said nothing may be told of its mode with the box it has; it is in it, too.
                assert held.all()
