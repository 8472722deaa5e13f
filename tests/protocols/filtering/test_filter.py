"""The method Filter: exact after every timestamp, robust boxes, and no word more than Theorem 4.1 allows."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings

from skytide.model import Floats
from skytide.protocols.filtering.filter import FilterServer
from skytide.protocols.filtering.messages import Reports
from tests.protocols.filtering.series import Step, boxes_of, series, watch


def assert_robust(
    boxes: dict[int, tuple[Floats, Floats]], points: dict[int, tuple[float, ...]], members: set[int]
) -> None:
    """Every point is in its box, and as long as that is so, the skyline cannot change."""
    for one, point in points.items():
        low, high = boxes[one]
        assert (low <= point).all() and (point <= high).all()
    for one in points:
        low, high = boxes[one]
        others = [boxes[other] for other in points if other != one]
        if one in members:
            assert all((high < at).any() or ((at == end).all() and (at == high).all()) for at, end in others)
        else:
            assert any((end <= low).all() and (end < low).any() for _, end in others)


@settings(max_examples=150, deadline=None)
@given(steps=series())
def test_the_skyline_is_exact_and_the_boxes_are_robust_after_every_timestamp(steps: list[Step]) -> None:
    boxes: dict[int, tuple[Floats, Floats]] = {}
    for seen in watch(FilterServer(steps[0].points.shape[1]), steps):
        boxes |= boxes_of(seen.orders)
        assert seen.skyline is not None and seen.skyline.tolist() == seen.truth
        assert_robust(boxes, seen.points, set(seen.truth))


@settings(max_examples=60, deadline=None)
@given(steps=series())
def test_who_tells_is_told_and_nobody_is_asked_twice_or_without_need(steps: list[Step]) -> None:
    moved: set[int] = set()
    for seen in watch(FilterServer(steps[0].points.shape[1]), steps):
        told = [one for block in seen.said if isinstance(block, Reports) for one in block.clients.tolist()]
        asked = [one for block in seen.asked for one in block.clients.tolist()]
        assert len(asked) == len(set(asked)) and not set(asked) & set(told)
        given_boxes = [one for order in seen.orders for one in order.clients.tolist()]
        assert sorted(given_boxes) == sorted(told + asked)
        moved = (moved | set(steps[seen.time].clients.tolist())) - set(steps[seen.time].gone.tolist())
        assert set(asked) <= moved


def test_a_client_that_never_moves_is_never_heard_of_again() -> None:
    rng, n = np.random.default_rng(4), 40
    start = rng.random((n, 3))
    none = np.zeros(0, np.int64)
    steps = [Step(np.arange(n), start, none)]
    steps += [Step(np.arange(20, n), start[20:] + rng.normal(0, 0.2, (20, 3)), none) for _ in range(30)]
    for seen in watch(FilterServer(3), steps):
        if seen.time:
            heard = [one for block in (*seen.said, *seen.asked) for one in block.clients.tolist()]
            assert min(heard, default=n) >= 20
        assert seen.skyline is not None and seen.skyline.tolist() == seen.truth


def test_small_moves_cost_few_messages_even_where_many_records_are_in_the_skyline() -> None:
    rng, n, heard = np.random.default_rng(1), 60, 0
    # The front x + y = 1, a little apart from each other; the moves are far smaller than the gaps.
    x = np.linspace(0, 1, n)
    home = np.stack((x, 1 - x), axis=1)
    none = np.zeros(0, np.int64)
    steps = [Step(np.arange(n), home + rng.uniform(-1e-3, 1e-3, (n, 2)), none) for _ in range(60)]
    for seen in watch(FilterServer(2), steps):
        assert seen.skyline is not None and len(seen.skyline) == n
        heard += sum(len(block.clients) for block in (*seen.said, *seen.asked)) if seen.time >= 30 else 0
    assert heard < 0.1 * 30 * n


def test_numbers_are_used_again_and_gaps_do_not_matter() -> None:
    none = np.zeros(0, np.int64)
    far, near = np.array([[5.0, 5.0]]), np.array([[1.0, 1.0]])
    steps = [
        Step(np.array([1000]), far, none),
        Step(np.array([3]), near, none),
        Step(np.array([3]), far, np.array([3])),
        Step(none, np.zeros((0, 2)), np.array([1000, 3])),
    ]
    skylines = [seen.skyline.tolist() for seen in watch(FilterServer(2), steps) if seen.skyline is not None]
    assert skylines == [[1000], [3], [3, 1000], []]
