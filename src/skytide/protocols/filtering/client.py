"""The clients' side: a block of clients as arrays; one client alone is a block of one.

A client tells its point when it comes, and every move until it hears from the server. A box keeps it quiet as long as
its point stays inside; a schedule keeps it quiet except at sampled timestamps, when it tells its point if it has moved
since it last did (silence says that it has not; in the paper it tells it anyway). With a failure or an answer it takes
the box that `offers` says, which holds until it hears of another.
"""

from __future__ import annotations

import copy
from typing import Self

import numpy as np

from skytide.kernel.filtering_clients import BOXED, FREE, SAMPLED, Clients, absorb, catch_up, move, outside
from skytide.model import Booleans, Floats, Integers
from skytide.protocols.arrays import grown, room_for
from skytide.protocols.filtering.messages import (
    MOST_TIMESTAMPS,
    Boxes,
    Departures,
    Kind,
    Message,
    Order,
    Questions,
    Reports,
    Schedules,
)
from skytide.protocols.filtering.offers import offers_of
from skytide.protocols.filtering.schedule import Schedule, stored_schedule
from skytide.protocols.stored import Contents, dump, restore, used

__all__ = ["BOXED", "FREE", "SAMPLED", "ClientBlock"]


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
        empty, none = np.zeros((0, dimensions)), np.zeros(0, np.bool_)
        whole, mode = np.zeros(0, np.int64), np.zeros(0, np.int8)
        self._state = Clients(empty, empty, empty, empty, empty, whole, mode, none, none)
        self._alive: Booleans = none  # here, or crashed
        self._schedule: Schedule | None = None

    def _reserve(self, room: int) -> None:
        self._state = Clients._make(grown(column, room) for column in self._state)
        self._alive = grown(self._alive, room)

    def observe(self, time: int, clients: Integers, points: Floats, gone: Integers) -> list[Message]:
        """Let a timestamp come with new points of some clients, and some that go; what is told.

        O(clients that move or go), and O(clients known) at a sampled timestamp.
        """
        points = np.ascontiguousarray(points, np.float64)
        clients = np.ascontiguousarray(clients, np.int64)
        self._reserve(room_for(clients, gone))
        state = self._state
        leaving = gone[self._alive[gone]]
        self._alive[leaving] = state.here[leaving] = False
        known = state.here[clients]
        new, old = clients[~known], clients[known]
        moved = old[(state.points[old] != points[known]).any(axis=1)]
        for column in (state.points, state.floor, state.roof):
            column[new] = points[~known]
        state.since[new], state.mode[new] = time, FREE
        self._alive[new] = state.here[new] = True
        move(state, old, points[known], time)
        said: list[Message] = [Departures(time, leaving)] if len(leaving) else []
        for kind, who in ((Kind.INSERT, new), *self._due(time, moved)):
            if len(who):
                said.append(self._report(kind, time, who))
        return said

    def _due(self, time: int, moved: Integers) -> list[tuple[Kind, Integers]]:
        state = self._state
        modes = state.mode[moved]
        boxed = moved[modes & BOXED > 0]
        failed = boxed[outside(state.low[boxed], state.high[boxed], state.points[boxed])]
        due = [(Kind.UPDATE, moved[modes == FREE]), (Kind.FAILURE, failed)]
        if self._schedule is not None and self._schedule.sampled(time):
            sampled = state.here & state.stale & (state.mode & SAMPLED > 0)
            sampled[failed] = False
            due.append((Kind.SAMPLE, np.flatnonzero(sampled)))
        return due

    def absorb(self, time: int, cuts: Integers, clients: Integers, points: Floats) -> int:
        """Take the timestamps from `time` on in which nobody has anything to say; how many they are.

        The rows of timestamp `time + i` are cuts[i]:cuts[i + 1] of `clients` and `points`; nobody goes. The first
        timestamp that is not taken has left no trace: it is for `observe`. O(rows taken), compiled; O(clients) a call.

        >>> block, none = ClientBlock(dimensions=1), np.array([], int)
        >>> _ = block.observe(0, np.array([0]), np.array([[1.0]]), none)
        >>> block.obey(Boxes(0, np.array([0]), np.array([[0.0]]), np.array([[2.0]])))
        >>> block.absorb(1, np.arange(5), np.zeros(4, int), np.array([[0.5], [1.5], [2.5], [1.0]]))
        2
        """
        times = range(time, time + len(cuts) - 1)
        sampled = np.zeros(len(times), np.bool_)
        if self._schedule is not None:
            sampled[:] = [self._schedule.sampled(one) for one in times]
        clients, points = np.ascontiguousarray(clients, np.int64), np.ascontiguousarray(points, np.float64)
        return int(absorb(self._state, time, np.ascontiguousarray(cuts, np.int64), clients, points, sampled))

    def present(self) -> Integers:
        """The clients that are here, in order. O(clients)."""
        return np.flatnonzero(self._state.here)

    def forget(self, clients: Integers) -> None:
        """Let clients lose all they know, as after a crash; with their next points they come as new. O(clients)."""
        self._state.here[clients] = False

    def answer(self, questions: Questions) -> Reports:
        """What clients say when asked where they are. O(questions)."""
        return self._report(Kind.ANSWER, questions.time, questions.clients)

    def _report(self, kind: Kind, time: int, who: Integers) -> Reports:
        state = self._state
        catch_up(state, who, time)
        state.stale[who] = False
        told = Reports(kind, time, who, state.points[who], state.floor[who], state.roof[who])
        if kind in (Kind.FAILURE, Kind.ANSWER):
            _, state.low[who], state.high[who] = offers_of(told, state.low[who], state.high[who])
        return told

    def obey(self, order: Order) -> None:
        """Take boxes, schedules and releases. O(clients told)."""
        who, state = order.clients, self._state
        if isinstance(order, Boxes):
            state.low[who], state.high[who] = order.low, order.high
            state.mode[who] = BOXED if order.schedule is None else BOXED | SAMPLED
        else:
            state.mode[who] = SAMPLED if isinstance(order, Schedules) else FREE
        if isinstance(order, Boxes | Schedules):
            self._schedule = order.schedule or self._schedule

    def copy(self) -> Self:
        """The same clients again, to look ahead with. O(clients)."""
        other = copy.copy(self)
        other._state = Clients._make(column.copy() for column in self._state)
        other._alive = self._alive.copy()
        return other

    def to_bytes(self) -> bytes:
        """The clients as they are between two timestamps, versioned and without pickle. O(clients)."""
        return dump(self)

    @classmethod
    def from_bytes(cls, blob: bytes) -> Self:
        """The clients that `to_bytes` gave; a `StateError` says what is wrong with any other bytes."""
        return restore(blob, cls)

    def _contents(self) -> Contents:
        room = used(self._alive)
        parts = {name: column[:room] for name, column in self._state._asdict().items()}
        schedule = None if self._schedule is None else list(self._schedule)
        meta = {"dimensions": self._state.points.shape[1], "schedule": schedule}
        return Contents(meta, {**parts, "alive": self._alive[:room]})

    @classmethod
    def _restored(cls, contents: Contents) -> Self:
        d = contents.whole("dimensions", 1)
        made, points = cls(d), contents.floats("points", -1, d)
        room = len(points)
        boxes = [contents.floats(name, room, d) for name in ("low", "high", "floor", "roof")]
        since, mode = contents.integers("since", room, 0, MOST_TIMESTAMPS), contents.modes("mode", room)
        here, stale = contents.flags("here", room), contents.flags("stale", room)
        made._state = Clients(points, boxes[0], boxes[1], boxes[2], boxes[3], since, mode, here, stale)
        made._alive = contents.flags("alive", room)
        made._schedule = None if contents.meta["schedule"] is None else stored_schedule(contents)
        return made
