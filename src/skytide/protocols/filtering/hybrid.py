"""The method Hybrid of zhang09c (Algorithm 7): each client is filtered, sampled or both, as costs it least.

Clients with boxes (the paper's FM and MM) run the method Filter among themselves; those of them in the skyline of this
part are sampled too (MM), and all others (SM) are only sampled. At a sampled timestamp the skyline is that of MM and SM
(Lemma 6.1): a client in FM hangs on one in MM.

A client whose messages exceed twice the sampling rate goes from boxes to sampling, whether it is in the skyline or not:
else the method would cost what Filter does where most clients are in it. If others hang on it, the bar is as many times
higher, or the boxed part would be peeled from its skyline inwards until nothing is left of it. Back a client goes when
the box it would have had needed no change for two sampled timestamps.

Where the paper is silent: messages per timestamp are a moving average over about 4 / R timestamps. A client that comes
into the skyline of the boxed part without having said anything is told so, and asked if the timestamp is sampled; taken
for one in FM, it would break Lemma 6.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from skytide.kernel.batch import skyline_mask
from skytide.kernel.filtering import NOBODY, Records, best_dominators, fitting, recall, share_room, stand_apart
from skytide.kernel.filtering_clients import outside
from skytide.model import Floats, Integers
from skytide.protocols.arrays import grown, room_for
from skytide.protocols.filtering.client import BOXED, SAMPLED
from skytide.protocols.filtering.filter import MARGIN, FilterServer, widen
from skytide.protocols.filtering.messages import Boxes, Kind, Message, Order, Reports, Schedules
from skytide.protocols.filtering.schedule import Schedule, stored_schedule
from skytide.protocols.filtering.server import NONE, Said, gathered
from skytide.protocols.stored import Contents, dump, restore, used

MIXED = BOXED | SAMPLED
FACTOR = 2.0
"""Messages per timestamp beyond this multiple of the rate send a client from boxes to sampling."""
PATIENCE = 2
"""After so many sampled timestamps in its would-be box a client gets one."""
MEMORY = 4.0
"""Messages are averaged over this many sampled timestamps' worth of timestamps."""
FAILURE, PROBE, TOLD = 2.0, 3.0, 1.0
"""What a failure, a probe and an order out of turn add to a client's messages."""


class HybridServer:
    """Knows the skylines of sampled timestamps, from clients that are filtered, sampled or both.

    >>> server, point = HybridServer(1, Schedule(seed=7, rate=0.25)), np.array([[2.0], [1.0]])
    >>> _ = server.begin(5, [Reports(Kind.INSERT, 5, np.array([0, 1]), point, point, point)])
    >>> [order.kind.name for order in server.settle()], server.skyline().tolist()
    (['FILTER', 'MIXED'], [1])
    """

    def __init__(self, dimensions: int, schedule: Schedule) -> None:
        self._dimensions, self._schedule = dimensions, schedule
        self._filter = FilterServer(dimensions)
        self._window = max(2.0, MEMORY / schedule.rate)
        self._time, self._sampled = 0, False
        self._skyline: Integers | None = None
        empty = np.zeros((0, dimensions))
        self._points: Floats = empty  # as last told
        self._floor: Floats = empty  # of clients in SM, as their samples show
        self._roof: Floats = empty
        self._mode = np.zeros(0, np.int8)  # as last ordered; 0 is nobody
        self._traffic: Floats = np.zeros(0)
        self._calm: Integers = np.zeros(0, np.int64)

    def _reserve(self, room: int) -> None:
        self._points, self._floor = grown(self._points, room), grown(self._floor, room)
        self._roof, self._mode = grown(self._roof, room), grown(self._mode, room)
        self._traffic, self._calm = grown(self._traffic, room), grown(self._calm, room)

    # -- a timestamp ---------------------------------------------------------------------------------------------------

    def begin(self, time: int, said: Sequence[Message]) -> Integers:
        """Take failures and samples, and the clients that come and go; whom to ask."""
        self._time, self._sampled = time, self._schedule.sampled(time)
        boxed = gathered([block for block in said if block.kind != Kind.SAMPLE], self._dimensions)
        samples = gathered([block for block in said if block.kind == Kind.SAMPLE], self._dimensions)
        self._reserve(room_for(boxed.clients, samples.clients, boxed.gone))
        self._traffic *= 1.0 - 1.0 / self._window
        self._mode[boxed.gone] = 0
        self._mode[boxed.new], self._traffic[boxed.new] = BOXED, 0.0
        failed = np.setdiff1d(boxed.clients, boxed.new)
        self._traffic[failed] += FAILURE / self._window
        for told in (boxed, samples):
            self._points[told.clients] = told.points
        back = self._returning() if self._sampled else NONE
        self._mode[back], self._traffic[back] = BOXED, 0.0
        return self._asked(self._filter.start(time, self._with(boxed, back)))

    def _with(self, told: Said, back: Integers) -> Said:
        """What was said, with clients that get boxes again as if they were new."""
        return told._replace(
            clients=np.concatenate((told.clients, back)),
            points=np.concatenate((told.points, self._points[back])),
            floor=np.concatenate((told.floor, self._floor[back])),
            roof=np.concatenate((told.roof, self._roof[back])),
        )

    def answered(self, answers: Reports) -> Integers:
        """Take the answers to all questions; whom to ask next."""
        who = answers.clients
        self._points[who] = answers.points
        self._traffic[who] += PROBE / self._window
        return self._asked(self._filter.answered(answers))

    def _asked(self, whom: Integers) -> Integers:
        """Of those to ask, whom we must: at a sampled timestamp we know where clients in MM are."""
        while self._sampled:
            known = whom[self._mode[whom] == MIXED]
            if not len(known):
                break
            whom = self._filter.answered(self._as_answers(known))
        if len(whom) or not self._sampled:
            return whom
        fresh = self._filter.emerging()
        return self._filter.unknown(fresh[self._mode[fresh] == BOXED])

    def _as_answers(self, who: Integers) -> Reports:
        points, records = self._points[who], self._filter.records
        self._traffic[who] += TOLD / self._window
        reach = np.minimum(records.floor[who], points), np.maximum(records.roof[who], points)
        return Reports(Kind.ANSWER, self._time, who, points, *reach)

    def settle(self) -> list[Order]:
        """End the timestamp: new boxes, changes of mode, and the skyline if it is sampled."""
        member = np.zeros(len(self._mode), np.bool_)
        member[self._filter.emerging()] = True
        seen = np.flatnonzero(member | (self._mode == SAMPLED))
        self._skyline = seen[skyline_mask(self._points[seen])] if self._sampled and len(seen) else None
        if self._sampled and self._skyline is None:
            self._skyline = NONE
        told = np.concatenate([NONE, *(order.clients for order in self._filter.settle())])
        # Who hangs on a client must be asked when it leaves: with many on it, its own messages matter less.
        bar = FACTOR * self._schedule.rate * (1 + self._filter.burdens()[told])
        leaving = told[self._traffic[told] > bar]
        self._release(leaving)
        silent = np.ones(len(self._mode), np.bool_)
        silent[told] = False
        rising = np.flatnonzero(silent & member & (self._mode == BOXED))
        self._traffic[rising] += TOLD / self._window
        # Who has left the skyline is sampled in vain, but only where that happens is it worth a message.
        falling = np.flatnonzero(silent & ~member & (self._mode == MIXED)) if self._sampled else NONE
        boxed = np.concatenate((told[self._mode[told] != SAMPLED], rising, falling))
        orders: list[Order] = [Schedules(self._time, leaving, self._schedule)] if len(leaving) else []
        orders += self._boxes(boxed[~member[boxed]], None) + self._boxes(boxed[member[boxed]], self._schedule)
        if self._sampled:
            self._imagine()
        return orders

    def skyline(self) -> Integers | None:
        """The clients in the skyline, in order; None if the timestamp is not sampled."""
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
        # Clients that are only sampled are not the filter's, but their would-be boxes lie with its records.
        room = used(self._mode)
        names = ("points", "floor", "roof", "mode", "traffic", "calm")
        parts = {name: getattr(self, f"_{name}")[:room] for name in names}
        parts["skyline"] = NONE if self._skyline is None else self._skyline
        meta = {"time": self._time, "schedule": list(self._schedule), "told": self._skyline is not None}
        return Contents(meta, parts).within("filter", self._filter.contents(room))

    @classmethod
    def _restored(cls, contents: Contents) -> Self:
        inner = contents.inner("filter")
        made, room = cls(inner.whole("dimensions", 1), stored_schedule(contents)), inner.whole("room")
        made._filter, made._time = FilterServer._restored(inner), contents.whole("time")
        reading = (contents.floats(name, room, made._dimensions) for name in ("points", "floor", "roof"))
        made._points, made._floor, made._roof = reading
        made._mode, made._traffic = contents.modes("mode", room), contents.floats("traffic", room)
        made._calm = contents.integers("calm", room, 0, made._time + 1)
        found = contents.members("skyline", room)
        made._skyline = found if contents.meta["told"] is True else None
        return made

    # -- modes ---------------------------------------------------------------------------------------------------------

    def _boxes(self, who: Integers, schedule: Schedule | None) -> list[Order]:
        if not len(who):
            return []
        self._mode[who] = BOXED if schedule is None else MIXED
        records = self._filter.records
        return [Boxes(self._time, who, records.low[who], records.high[who], schedule)]

    def _release(self, leaving: Integers) -> None:
        """From boxes to sampling; the box they would have had is the first would-be box."""
        self._filter.remove(leaving)
        self._mode[leaving], self._calm[leaving] = SAMPLED, 0
        self._floor[leaving], self._roof[leaving] = (
            self._filter.records.floor[leaving],
            self._filter.records.roof[leaving],
        )

    def _returning(self) -> Integers:
        """The clients in SM that have been in their would-be boxes for long enough."""
        who = np.flatnonzero(self._mode == SAMPLED)
        points, floor, roof = self._points[who], self._floor[who], self._roof[who]
        recall(points, floor, roof)
        self._floor[who], self._roof[who] = floor, roof
        records = self._filter.records
        left = outside(records.low[who], records.high[who], points)
        self._calm[who] = np.where(left, 0, self._calm[who] + 1)
        return who[self._calm[who] >= PATIENCE]

    def _imagine(self) -> None:
        """Would-be boxes for clients in SM that have left theirs, or whose boxes do not fit the others any more.

        They are made as if all of the boxed skyline were getting new boxes too: its boxes as they are have taken the
        room that nobody in FM needs, but would give way.
        """
        own, members = self._filter.records, self._filter.skyline()
        who = np.flatnonzero(self._mode == SAMPLED)
        if not len(who):
            return
        ours: Records = Records._make(column.copy() for column in own)
        ours.points[members] = ours.low[members] = ours.high[members] = self._points[members]
        ours.points[who], ours.floor[who], ours.roof[who] = self._points[who], self._floor[who], self._roof[who]
        who = who[(self._calm[who] == 0) | ~fitting(ours.low, ours.high, who, members)]
        self._calm[who] = 0
        ours.low[who] = ours.high[who] = ours.points[who]
        both = np.concatenate((members, who))
        widen(ours, both, np.full(len(both), MARGIN))
        moving = who[ours.fresh[who]]
        holders = np.empty(len(moving), np.int64)
        best_dominators(ours, members, moving, holders)
        stand_apart(ours, moving[holders == NOBODY], members, np.zeros((0, self._dimensions)))
        order = np.argsort(holders, kind="stable")[np.count_nonzero(holders == NOBODY) :]
        distinct, counts = np.unique(holders[order], return_counts=True)
        share_room(ours, distinct, np.concatenate(([0], np.cumsum(counts))), moving[order], False)
        own.low[who], own.high[who] = ours.low[who], ours.high[who]
