"""What all methods of the server have in common, and the two that need no boxes: naive and sampling.

A timestamp is a dialogue. `begin` takes what clients say of their own accord, `answered` the answers to questions. Each
gives the clients to ask next; when there are none, `settle` gives the orders to send, and `skyline` the members.
Clients are numbers from 0 that the caller gives out, and may give out again once a client is gone. A server holds no
clock and no random source: the time is told, and so is the schedule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, Self

import numpy as np

from skytide.kernel.batch import skyline_mask
from skytide.model import Booleans, Floats, Integers
from skytide.protocols.arrays import grown, room_for
from skytide.protocols.filtering.messages import Departures, Kind, Message, Order, Reports, Schedules
from skytide.protocols.filtering.schedule import Schedule, stored_schedule
from skytide.protocols.stored import Contents, dump, restore, used

NONE: Integers = np.zeros(0, np.int64)


class Server(Protocol):
    """A method of the server: message blocks in, questions and orders out."""

    def begin(self, time: int, said: Sequence[Message]) -> Integers:
        """Take what clients say in a timestamp; whom to ask."""
        ...

    def answered(self, answers: Reports) -> Integers:
        """Take the answers of all that were asked; whom to ask next."""
        ...

    def settle(self) -> list[Order]:
        """End the timestamp: what to tell clients."""
        ...

    def skyline(self) -> Integers | None:
        """The clients in the skyline, in order; None in a timestamp of which the method does not know it."""
        ...

    @property
    def points(self) -> Floats:
        """Where each client was when it last told; the rows of clients that are not here are anybody's."""
        ...

    def to_bytes(self) -> bytes:
        """The server as it is between two timestamps; every kind of server has `from_bytes`."""
        ...


class Said(NamedTuple):
    """What was said in a timestamp, in one piece: who tells his point, who is new among them, who goes."""

    clients: Integers
    points: Floats
    floor: Floats
    roof: Floats
    new: Integers
    gone: Integers


def gathered(said: Sequence[Message], dimensions: int) -> Said:
    """Blocks of one timestamp in one piece. O(clients d)."""
    reports = [block for block in said if isinstance(block, Reports)]
    empty = np.zeros((0, dimensions))
    new = [block.clients for block in reports if block.kind == Kind.INSERT]
    gone = [block.clients for block in said if isinstance(block, Departures)]
    return Said(
        np.concatenate([NONE, *(block.clients for block in reports)]),
        np.concatenate([empty, *(block.points for block in reports)]),
        np.concatenate([empty, *(block.floor for block in reports)]),
        np.concatenate([empty, *(block.roof for block in reports)]),
        np.concatenate([NONE, *new]),
        np.concatenate([NONE, *gone]),
    )


def joined(blocks: Sequence[Message]) -> Reports:
    """Reports of one kind and timestamp as one block. O(clients d)."""
    reports = [block for block in blocks if isinstance(block, Reports)]
    return Reports(
        reports[0].kind,
        reports[0].time,
        np.concatenate([block.clients for block in reports]),
        np.concatenate([block.points for block in reports]),
        np.concatenate([block.floor for block in reports]),
        np.concatenate([block.roof for block in reports]),
    )


class NaiveServer:
    """Every client tells every move: no questions, no orders.

    >>> server, points = NaiveServer(dimensions=1), np.array([[2.0], [1.0]])
    >>> _ = server.begin(0, [Reports(Kind.INSERT, 0, np.array([0, 1]), points, points, points)])
    >>> server.settle(), server.skyline().tolist()
    ([], [1])
    """

    def __init__(self, dimensions: int) -> None:
        self._dimensions = dimensions
        self._points: Floats = np.zeros((0, dimensions))
        self._alive: Booleans = np.zeros(0, np.bool_)
        self._skyline: Integers = NONE
        self._time = 0

    def begin(self, time: int, said: Sequence[Message]) -> Integers:
        """Take what clients say; nobody is asked. O(clients told), and a fresh skyline where anything is told."""
        self._time = time
        self._take(gathered(said, self._dimensions))
        return NONE

    def _take(self, told: Said) -> None:
        room = room_for(told.clients, told.gone)
        self._points, self._alive = grown(self._points, room), grown(self._alive, room)
        self._alive[told.gone] = False
        self._alive[told.clients] = True
        self._points[told.clients] = told.points
        if len(told.clients) or len(told.gone):
            living = np.flatnonzero(self._alive)
            self._skyline = living[skyline_mask(self._points[living])] if len(living) else NONE

    def answered(self, answers: Reports) -> Integers:
        """Take answers, of which there are none. O(answers)."""
        return NONE

    def settle(self) -> list[Order]:
        """No orders."""
        return []

    def skyline(self) -> Integers | None:
        """The clients in the skyline, in order."""
        return self._skyline

    @property
    def points(self) -> Floats:
        """Where each client was when it last told; the rows of clients that are not here are anybody's."""
        return self._points

    def to_bytes(self) -> bytes:
        """The server as it is between two timestamps, versioned and without pickle. O(clients)."""
        return dump(self)

    @classmethod
    def from_bytes(cls, blob: bytes) -> Self:
        """The server that `to_bytes` gave; a `StateError` says what is wrong with any other bytes."""
        return restore(blob, cls)

    def _contents(self) -> Contents:
        room = used(self._alive)
        parts = {"points": self._points[:room], "alive": self._alive[:room], "skyline": self._skyline}
        return Contents({"dimensions": self._dimensions, "time": self._time}, parts)

    @classmethod
    def _restored(cls, contents: Contents) -> Self:
        made = cls(contents.whole("dimensions", 1))
        made._fill(contents)
        return made

    def _fill(self, contents: Contents) -> None:
        self._time = contents.whole("time")
        self._points = contents.floats("points", -1, self._dimensions)
        self._alive = contents.flags("alive", len(self._points))
        self._skyline = contents.members("skyline", len(self._points))


class SamplingServer(NaiveServer):
    """Every client tells its point at sampled timestamps: the method Sampling (Algorithm 6 without the counters).

    >>> server = SamplingServer(1, Schedule(seed=7, rate=0.25))
    >>> point = np.array([[2.0]])
    >>> _ = server.begin(2, [Reports(Kind.INSERT, 2, np.array([0]), point, point, point)])
    >>> [order.kind.name for order in server.settle()], server.skyline() is None
    (['SCHEDULE'], True)
    """

    def __init__(self, dimensions: int, schedule: Schedule) -> None:
        super().__init__(dimensions)
        self._schedule = schedule
        self._new: Integers = NONE

    def _take(self, told: Said) -> None:
        super()._take(told)
        self._new = told.new

    def settle(self) -> list[Order]:
        """New clients learn the schedule; the time they know."""
        return [Schedules(self._time, self._new, self._schedule)] if len(self._new) else []

    def skyline(self) -> Integers | None:
        """The clients in the skyline, in order; None if the timestamp is not sampled."""
        return self._skyline if self._schedule.sampled(self._time) else None

    def _contents(self) -> Contents:
        meta, parts = super()._contents()
        return Contents({**meta, "schedule": list(self._schedule)}, parts)

    @classmethod
    def _restored(cls, contents: Contents) -> Self:
        made = cls(contents.whole("dimensions", 1), stored_schedule(contents))
        made._fill(contents)
        return made
