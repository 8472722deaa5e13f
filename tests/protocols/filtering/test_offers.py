"""Offers: what a client takes when it hears nothing, when that is so, and that nothing goes wrong by it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skytide.model import Floats, Integers
from skytide.protocols.filtering.auto import AutoServer
from skytide.protocols.filtering.client import ClientBlock
from skytide.protocols.filtering.messages import Boxes, Kind, Questions, Reports
from skytide.protocols.filtering.offers import offers_of, together
from skytide.reference.batch import skyline
from tests.protocols.filtering.series import EXTREMES, Step, series
from tests.protocols.filtering.test_filter import assert_robust
from tests.protocols.filtering.test_hybrid import walks

NONE = np.zeros(0, np.int64)
INF = np.inf
VALUE = st.integers(-3, 3).map(float) | st.sampled_from(EXTREMES)
Box = tuple[Floats, Floats]


class Town:
    """A server, its clients, and the boxes that clients must have by what was said, of no extent for those released."""

    def __init__(self, d: int) -> None:
        self.server, self.block = AutoServer(d), ClientBlock(d)
        self.points: dict[int, tuple[float, ...]] = {}
        self.boxes: dict[int, Box] = {}
        self.free: set[int] = set()
        self.offered = self.accepted = 0

    def step(self, time: int, step: Step) -> None:
        for one in step.gone.tolist():
            del self.points[one]
        self.points.update(zip(step.clients.tolist(), map(tuple, step.points.tolist()), strict=True))
        said = self.block.observe(time, *step)
        taken = self.offers([block for block in said if isinstance(block, Reports)])
        whom = self.server.begin(time, said)
        while len(whom):
            answers = self.block.answer(Questions(time, whom))
            taken |= self.offers([answers])
            whom = self.server.answered(answers)
        orders = self.server.settle()
        told = {one for order in orders for one in order.clients.tolist()}
        self.offered += len(taken)
        self.accepted += len(set(taken) - told)
        self.boxes |= taken
        for order in orders:
            self.block.obey(order)
            named = set(order.clients.tolist())
            self.free = self.free - named if isinstance(order, Boxes) else self.free | named
            if isinstance(order, Boxes):
                rows = zip(order.clients.tolist(), order.low, order.high, strict=True)
                self.boxes |= {one: (low, high) for one, low, high in rows}
        self.free &= set(self.points)
        for one in self.free:
            self.boxes[one] = np.array(self.points[one]), np.array(self.points[one])
        self.boxes = {one: box for one, box in self.boxes.items() if one in self.points}

    def offers(self, reports: list[Reports]) -> dict[int, Box]:
        found: dict[int, Box] = {}
        for told in reports:
            if told.kind in (Kind.FAILURE, Kind.ANSWER):
                old = [self.boxes[one] for one in told.clients.tolist()]
                made = offers_of(told, *(np.array([box[side] for box in old]) for side in (0, 1)))
                rows = zip(made.clients.tolist(), made.low, made.high, strict=True)
                found |= {one: (low, high) for one, low, high in rows}
        return found

    def check(self) -> None:
        numbers = sorted(self.points)
        truth = [numbers[place] for place in skyline([self.points[one] for one in numbers])]
        assert self.server.skyline().tolist() == truth
        assert_robust(self.boxes, self.points, set(truth))


@settings(max_examples=200, deadline=None)
@given(steps=series())
def test_with_offers_and_orders_boxes_are_robust_after_every_timestamp(steps: list[Step]) -> None:
    town = Town(steps[0].points.shape[1])
    for time, step in enumerate(steps):
        town.step(time, step)
        town.check()


@pytest.mark.parametrize("grid", [False, True])
def test_long_runs_accept_some_offers_and_refuse_others_and_stay_robust(grid: bool) -> None:
    steps = walks(3, 150, grid=grid)
    town = Town(steps[0].points.shape[1])
    for time, step in enumerate(steps):
        town.step(time, step)
        town.check()
    assert 0 < town.accepted < town.offered


@settings(max_examples=200, deadline=None)
@given(
    rows=st.lists(st.tuples(*[VALUE] * 5), min_size=1, max_size=4), kind=st.sampled_from([Kind.FAILURE, Kind.ANSWER])
)
def test_an_offer_is_a_box_that_holds_the_point(rows: list[tuple[float, ...]], kind: Kind) -> None:
    columns = np.array(rows)
    reach, box = np.sort(columns[:, :3], axis=1), np.sort(columns[:, 3:], axis=1)
    floor, points, roof = (reach[:, [place]] for place in range(3))
    told = Reports(kind, 1, np.arange(len(rows)), points, floor, roof)
    _, low, high = offers_of(told, box[:, :1], box[:, 1:])
    assert (low <= points).all() and (points <= high).all()


def test_who_gets_better_has_its_old_box_and_more_and_who_gets_worse_or_is_asked_begins_anew() -> None:
    def offer(kind: Kind, point: float, low: float, high: float) -> list[float]:
        at = np.array([[point]])
        told = Reports(kind, 1, np.array([0]), at, at - 2, at + 2)
        found = offers_of(told, np.array([[low]]), np.array([[high]]))
        return [float(found.low[0, 0]), float(found.high[0, 0])]

    assert offer(Kind.FAILURE, 0.0, 5.0, 6.0) == [-8.0, 6.0]
    assert offer(Kind.FAILURE, 0.0, 5.0, INF) == [-8.0, INF]
    assert offer(Kind.FAILURE, 0.0, 5.0, 5.0) == [-8.0, INF]
    assert offer(Kind.FAILURE, 0.0, -9.0, -1.0) == [0.0, INF]
    assert offer(Kind.ANSWER, 0.0, -9.0, 9.0) == [0.0, INF]


def test_a_crowd_far_below_one_that_stays_tells_its_first_moves_and_hears_nothing() -> None:
    server, block, crowd = AutoServer(2), ClientBlock(2), np.arange(1, 40)
    rng = np.random.default_rng(1)

    def timestamp(time: int, who: Integers, points: Floats) -> tuple[list[str], int]:
        said = block.observe(time, who, points, NONE)
        assert not len(server.begin(time, said))
        orders = server.settle()
        for order in orders:
            block.obey(order)
        return [one.kind.name for one in said for _ in one.clients], sum(len(order.clients) for order in orders)

    timestamp(0, np.arange(40), np.concatenate((np.full((1, 2), -90.0), np.zeros((39, 2)))))
    said, orders = timestamp(1, crowd, -1.0 - rng.random((39, 2)))
    assert said == ["FAILURE"] * 39 and orders == 0
    for time in range(2, 30):
        assert timestamp(time, crowd, -2.0 * rng.random((39, 2))) == ([], 0)


def test_no_offers_together_are_none() -> None:
    assert [part.shape for part in together([], 3)] == [(0,), (0, 3), (0, 3)]
