"""Series of timestamps for all tests of the protocol, and a run of a server against clients that watches both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from skytide.model import Floats, Integers
from skytide.protocols.filtering.client import ClientBlock
from skytide.protocols.filtering.messages import Boxes, Message, Order, Questions
from skytide.protocols.filtering.server import Server
from skytide.reference.batch import skyline

EXTREMES = [float("inf"), float("-inf"), 1.797e308, -1.797e308, 5e-324, -0.0]


class Step(NamedTuple):
    """The new points of some clients, and those that go."""

    clients: Integers
    points: Floats
    gone: Integers


@st.composite
def series(draw: st.DrawFn, clients: int = 6, most: int = 12, extremes: bool = True) -> list[Step]:
    """Timestamps on a small grid: small steps, jumps, values that stay, equal points, comings and goings."""
    d = draw(st.integers(1, 3))
    value = st.integers(0, 3).map(float)
    if extremes and draw(st.booleans()):
        value = value | st.sampled_from(EXTREMES)
    now: dict[int, list[float]] = {}
    steps = []
    for _ in range(draw(st.integers(1, most))):
        gone, moved = [], []
        for one in range(clients):
            what = draw(st.sampled_from(["stay", "move", "step", "step", "go", "return"]))
            if one in now and what in ("go", "return"):
                gone.append(one)
                del now[one]
            if one not in now and what in ("move", "return"):
                now[one] = draw(st.lists(value, min_size=d, max_size=d))
                moved.append(one)
            elif one in now and what != "stay":
                k = draw(st.integers(0, d - 1))
                near = now[one][k] + draw(st.sampled_from([-1.0, 1.0, 0.25]))
                now[one] = [*now[one][:k], near if what == "step" else draw(value), *now[one][k + 1 :]]
                moved.append(one)
        points = np.array([now[one] for one in moved]).reshape(-1, d)
        steps.append(Step(np.array(moved, np.int64), points, np.array(gone, np.int64)))
    return steps


class Watched(NamedTuple):
    """A timestamp as it went: what is true, and what was said."""

    time: int
    points: dict[int, tuple[float, ...]]
    skyline: Integers | None
    said: list[Message]
    asked: list[Questions]
    orders: list[Order]

    @property
    def truth(self) -> list[int]:
        """The skyline by definition."""
        numbers = sorted(self.points)
        return [numbers[position] for position in skyline([self.points[one] for one in numbers])]


def watch(server: Server, steps: list[Step]) -> Iterator[Watched]:
    """Run a series and give each timestamp after it is settled."""
    block, points = ClientBlock(steps[0].points.shape[1]), dict[int, tuple[float, ...]]()
    for time, step in enumerate(steps):
        for one in step.gone.tolist():
            del points[one]
        points.update(zip(step.clients.tolist(), map(tuple, step.points.tolist()), strict=True))
        said, asked = block.observe(time, *step), list[Questions]()
        whom = server.begin(time, said)
        while len(whom):
            asked.append(Questions(time, whom))
            whom = server.answered(block.answer(asked[-1]))
        orders = server.settle()
        for order in orders:
            block.obey(order)
        yield Watched(time, dict(points), server.skyline(), said, asked, orders)


def boxes_of(orders: list[Order]) -> dict[int, tuple[Floats, Floats]]:
    """The boxes given out, by client."""
    return {
        one: (low, high)
        for order in orders
        if isinstance(order, Boxes)
        for one, low, high in zip(order.clients.tolist(), order.low, order.high, strict=True)
    }
