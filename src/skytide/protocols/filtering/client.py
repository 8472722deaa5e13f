"""The clients' side: a block of clients as arrays; one client alone is a block of one.

A client tells its point when it comes, and every move until it hears from the server. A box keeps it quiet as long as
its point stays inside; a schedule keeps it quiet except at sampled timestamps, when it tells its point if it has moved
since it last did (silence says that it has not; in the paper it tells it anyway).
"""

from __future__ import annotations

import numpy as np

from skytide.kernel.filtering import outside, recall
from skytide.model import Booleans, Floats, Integers
from skytide.protocols.filtering.arrays import grown, room_for
from skytide.protocols.filtering.messages import Boxes, Departures, Kind, Message, Order, Questions, Reports, Schedules
from skytide.protocols.filtering.schedule import Schedule

FREE, BOXED, SAMPLED = 0, 1, 2
"""What keeps a client quiet: nothing, a box, a schedule; or both of the latter (the paper's mixed mode)."""


class ClientBlock:
    """Clients that see the same timestamps; each is a number from 0.

    >>> block = ClientBlock(dimensions=1)
    >>> block.observe(0, np.array([4]), np.array([[1.0]]), gone=np.array([], int))[0].kind.name
    'INSERT'
    >>> block.obey(Boxes(0, np.array([4]), np.array([[0.0]]), np.array([[2.0]])))
    >>> [message.kind.name for x in (1.5, 2.5) for message in block.observe(1, np.array([4]), [[x]], np.array([], int))]
    ['FAILURE']
    """

    def __init__(self, dimensions: int) -> None:
        self._points, self._low, self._high, self._floor, self._roof = (np.zeros((0, dimensions)) for _ in range(5))
        self._alive: Booleans = np.zeros(0, np.bool_)
        self._lost: Booleans = self._alive  # has forgotten everything
        self._stale: Booleans = self._alive  # moved since the point was told
        self._mode = np.zeros(0, np.int8)
        self._schedule: Schedule | None = None

    def _reserve(self, room: int) -> None:
        self._points, self._low = grown(self._points, room), grown(self._low, room)
        self._high, self._floor = grown(self._high, room), grown(self._floor, room)
        self._roof, self._mode = grown(self._roof, room), grown(self._mode, room)
        self._alive, self._lost = grown(self._alive, room), grown(self._lost, room)
        self._stale = grown(self._stale, room)

    def observe(self, time: int, clients: Integers, points: Floats, gone: Integers) -> list[Message]:
        """Let a timestamp come with new points of some clients, and some that go; what is told. O(clients known)."""
        points = np.asarray(points, np.float64)
        self._reserve(room_for(clients, gone))
        leaving = gone[self._alive[gone]]
        self._alive[leaving] = False
        known = self._alive[clients] & ~self._lost[clients]
        new, old = clients[~known], clients[known]
        moved = old[(self._points[old] != points[known]).any(axis=1)]
        self._points[clients] = points
        self._floor[new] = self._roof[new] = self._points[new]
        self._alive[new], self._lost[new], self._mode[new] = True, False, FREE
        recall(self._points, self._floor, self._roof)
        self._stale[moved] = True
        said: list[Message] = [Departures(time, leaving)] if len(leaving) else []
        for kind, who in ((Kind.INSERT, new), *self._due(time, moved)):
            if len(who):
                said.append(self._report(kind, time, who))
        return said

    def _due(self, time: int, moved: Integers) -> list[tuple[Kind, Integers]]:
        modes = self._mode[moved]
        boxed = moved[modes & BOXED > 0]
        failed = boxed[outside(self._low[boxed], self._high[boxed], self._points[boxed])]
        due = [(Kind.UPDATE, moved[modes == FREE]), (Kind.FAILURE, failed)]
        if self._schedule is not None and self._schedule.sampled(time):
            sampled = self._alive & self._stale & (self._mode & SAMPLED > 0)
            sampled[failed] = False
            due.append((Kind.SAMPLE, np.flatnonzero(sampled)))
        return due

    def forget(self, clients: Integers) -> None:
        """Let clients lose all they know, as after a crash; with their next points they come as new. O(clients)."""
        self._lost[clients] = True

    def answer(self, questions: Questions) -> Reports:
        """What clients say when asked where they are. O(questions)."""
        return self._report(Kind.ANSWER, questions.time, questions.clients)

    def _report(self, kind: Kind, time: int, who: Integers) -> Reports:
        self._stale[who] = False
        return Reports(kind, time, who, self._points[who], self._floor[who], self._roof[who])

    def obey(self, order: Order) -> None:
        """Take boxes, schedules and releases. O(clients told)."""
        who = order.clients
        if isinstance(order, Boxes):
            self._low[who], self._high[who] = order.low, order.high
            self._mode[who] = BOXED if order.schedule is None else BOXED | SAMPLED
        else:
            self._mode[who] = SAMPLED if isinstance(order, Schedules) else FREE
        if isinstance(order, Boxes | Schedules):
            self._schedule = order.schedule or self._schedule
