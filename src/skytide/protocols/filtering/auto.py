"""The method Auto: exact as Filter and Naive are, and each client does which of the two costs it less.

Clients that speak seldom offer boxes (`offers`), and where one is good, the server says nothing: a failure then costs
one message instead of two, and a probe two instead of three. Naive costs one for a move. A client with more than one
message per timestamp, on average over the last few, is released: it tells every move and hears nothing. For the server
it then has a box of no extent. After a while it gets a box again, and after each vain attempt it waits twice as long.
Not in zhang09c, whose answer to restless clients is sampling, which is not exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from skytide.kernel.filtering import recall
from skytide.model import Booleans, Floats, Integers
from skytide.protocols.arrays import grown, room_for
from skytide.protocols.filtering.filter import FilterServer
from skytide.protocols.filtering.messages import Boxes, Kind, Message, Order, Releases, Reports
from skytide.protocols.filtering.offers import Offers, offers_of, together
from skytide.protocols.filtering.server import NONE, gathered
from skytide.protocols.stored import Contents, dump, restore

BAR = 1.0
"""Messages per timestamp that are too many: a client that tells every move sends no more."""
MEMORY = 16.0
"""Messages are averaged over about so many timestamps."""
AGAIN = 0.5
"""What the average begins with at another attempt: a vain one must end soon."""
CALM = 0.3
"""Messages per timestamp that are few."""
FIRST, LONGEST = 256, 4096
"""How many timestamps a released client waits for its next box, at first and at most."""
FAILURE, PROBE, TOLD = 1.0, 2.0, 1.0
"""What a failure, a probe and an order add to a client's messages."""


class AutoServer:
    """Keeps the exact skyline; restless clients tell every move, the others leave their boxes first.

    >>> server, rng = AutoServer(dimensions=1), np.random.default_rng(1)
    >>> for time in range(40):
    ...     points = rng.random((2, 1))
    ...     blocks = [Reports(Kind.FAILURE, time, np.arange(2), points, points - 0.1, points + 0.1)]
    ...     _ = server.begin(time, blocks)
    ...     kinds = {order.kind.name for order in server.settle()}
    ...     if "RELEASE" in kinds: break
    >>> 5 < time < 20
    True
    """

    def __init__(self, dimensions: int) -> None:
        self._dimensions, self._time = dimensions, 0
        self._filter = FilterServer(dimensions)
        empty = np.zeros((0, dimensions))
        self._floor: Floats = empty  # of free clients
        self._roof: Floats = empty
        self._free: Booleans = np.zeros(0, np.bool_)
        self._traffic: Floats = np.zeros(0)
        self._wait: Integers = np.zeros(0, np.int64)
        self._again: Integers = np.zeros(0, np.int64)  # when a free client gets its next box
        self._offers = list[Offers]()  # of this timestamp

    def _reserve(self, room: int) -> None:
        self._floor, self._roof = grown(self._floor, room), grown(self._roof, room)
        self._free, self._traffic = grown(self._free, room), grown(self._traffic, room)
        self._wait, self._again = grown(self._wait, room), grown(self._again, room)

    def begin(self, time: int, said: Sequence[Message]) -> Integers:
        """Take failures and moves, and the clients that come and go; whom to ask."""
        self._time, told = time, gathered(said, self._dimensions)
        self._reserve(room_for(told.clients, told.gone))
        self._traffic *= 1.0 - 1.0 / MEMORY
        self._free[told.new], self._traffic[told.new], self._wait[told.new] = False, 0.0, FIRST
        failures = [block for block in said if isinstance(block, Reports) and block.kind == Kind.FAILURE]
        self._offers = [self._offered(block) for block in failures]
        for block in failures:
            self._traffic[block.clients] += FAILURE / MEMORY
        free = self._free[told.clients]
        who, points = told.clients[free], told.points[free]
        floor, roof = self._floor[who], self._roof[who]
        recall(points, floor, roof)
        self._floor[who], self._roof[who] = floor, roof
        due = self._again[who] <= time
        self._free[who[due]], self._traffic[who[due]] = False, AGAIN
        # Who stays free has no reach for the server, and so a box of no extent.
        told.floor[free], told.roof[free] = (np.where(due[:, None], reach, points) for reach in (floor, roof))
        return self._filter.start(time, told)

    def answered(self, answers: Reports) -> Integers:
        """Take the answers to all questions; whom to ask next."""
        self._traffic[answers.clients] += PROBE / MEMORY
        self._offers.append(self._offered(answers))
        return self._filter.answered(answers)

    def _offered(self, told: Reports) -> Offers:
        """What boxes clients offer that have some, which for the server are still the old ones."""
        here, records = self._filter.present(told.clients), self._filter.records
        who, matrices = told.clients[here], (told.points[here], told.floor[here], told.roof[here])
        return offers_of(Reports(told.kind, told.time, who, *matrices), records.low[who], records.high[who])

    def _promising(self) -> Offers:
        """The offers that may last: who speaks often needs a box that others give way to, unless it only gets worse."""
        offers, records = together(self._offers, self._dimensions), self._filter.records
        worst = (records.points[offers.clients] == records.roof[offers.clients]).all(axis=1)
        which = worst | (self._traffic[offers.clients] <= CALM)
        return Offers._make(column[which] for column in offers)

    def settle(self) -> list[Order]:
        """End the timestamp: boxes for those who told their points, unless theirs are good or they tell all anyway."""
        found = self._filter.conclude(self._promising())
        told = np.concatenate([NONE, *(order.clients for order in found)])
        self._traffic[told] += TOLD / MEMORY
        leaving = told[~self._free[told] & (self._traffic[told] > BAR)]
        self._free[leaving] = True
        self._again[leaving] = self._time + self._wait[leaving]
        self._wait[leaving] = np.minimum(2 * self._wait[leaving], LONGEST)
        records, boxed = self._filter.records, told[~self._free[told]]
        self._floor[leaving], self._roof[leaving] = records.floor[leaving], records.roof[leaving]
        orders: list[Order] = [Releases(self._time, leaving)] if len(leaving) else []
        if len(boxed):
            orders.append(Boxes(self._time, boxed, records.low[boxed], records.high[boxed]))
        return orders

    def skyline(self) -> Integers:
        """The clients in the skyline, in order."""
        return self._filter.skyline()

    @property
    def points(self) -> Floats:
        """Where each client was when it last told; the rows of clients that are not here are anybody's."""
        return self._filter.points

    def to_bytes(self) -> bytes:
        """The server as it is between two timestamps, versioned and without pickle. O(clients)."""
        return dump(self)

    @classmethod
    def from_bytes(cls, blob: bytes) -> Self:
        """The server that `to_bytes` gave; a `StateError` says what is wrong with any other bytes."""
        return restore(blob, cls)

    def _contents(self) -> Contents:
        inner = self._filter._contents()
        names = ("floor", "roof", "free", "traffic", "wait", "again")
        parts = {name: getattr(self, f"_{name}")[: inner.meta["room"]] for name in names}
        return Contents({"time": self._time}, parts).within("filter", inner)

    @classmethod
    def _restored(cls, contents: Contents) -> Self:
        inner = contents.inner("filter")
        made, room = cls(inner.whole("dimensions", 1)), inner.whole("room")
        made._filter, made._time = FilterServer._restored(inner), contents.whole("time")
        made._floor, made._roof = (contents.floats(name, room, made._dimensions) for name in ("floor", "roof"))
        made._free, made._traffic = contents.flags("free", room), contents.floats("traffic", room)
        made._wait = contents.integers("wait", room, 0, LONGEST)
        made._again = contents.integers("again", room, 0, made._time + LONGEST)
        return made
