"""The server of the method Filter: boxes that keep clients quiet as long as the skyline cannot change.

Each client that reports or answers in a timestamp gets a new box at its end. That is all traffic, so that the cost is
that of Theorem 4.1: up, failures + probes + inserts + deletes; down, failures + 2 probes + inserts.

`kernel.filtering` has the paper's algorithms and says where they differ from print. With each report a client tells its
recent reach; one that never moved has none, gets a box of no extent, and is never asked: its point is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Self

import numpy as np

from skytide.kernel.filtering import (
    BELOW,
    INSIDE,
    NOBODY,
    OPEN,
    Records,
    accept_below,
    accept_members,
    best_dominators,
    judge,
    keep_below,
    set_apart,
    share_room,
)
from skytide.model import Booleans, Floats, Integers
from skytide.monitors.storage import Parts
from skytide.protocols.arrays import grown, room_for
from skytide.protocols.filtering.messages import Boxes, Message, Order, Reports
from skytide.protocols.filtering.offers import Offers, together
from skytide.protocols.filtering.server import Said, gathered
from skytide.protocols.stored import Contents, dump, must, restore, used

Boundaries = Literal["cost", "middle"]
LOG = 64
"""So many of the latest probe sources are remembered: the paper's M, which it does not tell."""
MARGIN, DOUBT = 0.2, 2.0
"""A box with nothing in its way goes beyond the recent reach by a share of its width: the first, and the second over
the number of timestamps since the client first moved, in which the reach has come about."""


class FilterServer:
    """Keeps the exact skyline of clients that report only when they leave their boxes.

    >>> from skytide.protocols.filtering.messages import Kind
    >>> server = FilterServer(dimensions=2)
    >>> points = np.array([[1.0, 4.0], [2.0, 2.0], [3.0, 3.0]])
    >>> server.begin(0, [Reports(Kind.FAILURE, 0, np.arange(3), points, points - 0.1, points + 0.1)]).tolist()
    []
    >>> boxes, = server.settle()
    >>> server.skyline().tolist(), bool((boxes.high[1] <= boxes.low[2]).all())
    ([0, 1], True)
    """

    def __init__(self, dimensions: int, *, boundaries: Boundaries = "cost") -> None:
        """`boundaries` lie where the cost model says, or midway between two points: what the model is held against."""
        self._dimensions, self._time = dimensions, 0
        self._middle = boundaries == "middle"
        self._log: Floats = np.zeros((0, dimensions))
        empty = np.zeros((0, dimensions))
        self._records = Records(empty, empty, empty, empty, empty, np.zeros(0, np.bool_))
        self._alive: Booleans = np.zeros(0, np.bool_)
        self._member: Booleans = self._alive
        self._told: Booleans = self._alive  # in this timestamp
        self._known: Booleans = self._alive  # told, or a box of no extent
        self._dominator: Integers = np.zeros(0, np.int64)
        self._still: Integers = np.zeros(0, np.int64)  # when it had not moved yet

    def _reserve(self, room: int) -> None:
        self._records = Records._make(grown(column, room) for column in self._records)
        self._alive, self._member = grown(self._alive, room), grown(self._member, room)
        self._told, self._known = grown(self._told, room), grown(self._known, room)
        self._dominator, self._still = grown(self._dominator, room, NOBODY), grown(self._still, room)

    # -- a timestamp ---------------------------------------------------------------------------------------------------

    def begin(self, time: int, said: Sequence[Message]) -> Integers:
        """Take the reports of a timestamp, from new clients too, and the clients that go; whom to ask."""
        return self.start(time, gathered(said, self._dimensions))

    def start(self, time: int, told: Said) -> Integers:
        """`begin` with what was said in one piece."""
        self._time = time
        self._reserve(room_for(told.clients, told.gone))
        self._told[:] = False
        self._alive[told.gone] = self._member[told.gone] = False
        self._dominator[told.gone] = NOBODY
        self._alive[told.clients] = True
        self._tell(told)
        self._still[told.new] = time
        loose = self._loosened(np.concatenate((told.clients, told.gone)))
        candidates = np.concatenate((np.flatnonzero(self._member), loose))
        with np.errstate(invalid="ignore", over="ignore"):
            candidates = candidates[np.argsort(self._records.high[candidates].sum(axis=1), kind="stable")]
        # The boxes of the old skyline are apart; those of who reported are not boxes any more.
        self._settled = self._member[candidates] & ~self._told[candidates]
        self._candidates = candidates
        self._verdicts = np.full(len(candidates), OPEN, np.int8)
        self._witness = np.full(len(candidates), NOBODY, np.int64)
        return self._judged()

    def answered(self, answers: Reports) -> Integers:
        """Take the answers to all questions; whom to ask next."""
        self._log = np.concatenate((self._log, answers.points))[-LOG:]
        self._tell(answers)
        # An answer lies in its box, so what hung on the box hangs on the point: nobody is loosened.
        return self._judged()

    def settle(self) -> list[Order]:
        """After the last question: settle the skyline, and make boxes for everybody who told his point."""
        return self.conclude(together([], self._dimensions))

    def conclude(self, offers: Offers) -> list[Order]:
        """`settle`, but who offers a box that is as good gets that one, and no order."""
        self._member[self._candidates] = self._verdicts == INSIDE
        self._dominator[self._candidates] = np.where(self._verdicts == BELOW, self._witness, NOBODY)
        clients = np.flatnonzero(self._told)
        accepted = self._construct(clients, offers)
        self._known[clients] = (self._records.low[clients] == self._records.high[clients]).all(axis=1)
        clients = np.setdiff1d(clients, accepted)
        low, high = self._records.low[clients], self._records.high[clients]
        return [Boxes(self._time, clients, low, high)] if len(clients) else []

    def skyline(self) -> Integers:
        """The clients in the skyline, in order. O(clients)."""
        return np.flatnonzero(self._member)

    @property
    def points(self) -> Floats:
        """Where each client was when it last told; the rows of clients that are not here are anybody's."""
        return self._records.points

    def to_bytes(self) -> bytes:
        """The server as it is between two timestamps, versioned and without pickle. O(clients)."""
        return dump(self)

    @classmethod
    def from_bytes(cls, blob: bytes) -> Self:
        """The server that `to_bytes` gave; a `StateError` says what is wrong with any other bytes."""
        return restore(blob, cls)

    def _contents(self) -> Contents:
        return self.contents(used(self._alive))

    def contents(self, room: int) -> Contents:
        """What is stored of so many clients."""
        meta = {"dimensions": self._dimensions, "time": self._time, "middle": self._middle, "room": room}
        parts: Parts = {name: column[:room] for name, column in self._records._asdict().items() if name != "fresh"}
        for name in ("alive", "member", "known", "dominator", "still"):
            parts[name] = getattr(self, f"_{name}")[:room]
        return Contents(meta, {**parts, "log": self._log})

    @classmethod
    def _restored(cls, contents: Contents) -> Self:
        middle, room = contents.meta["middle"], contents.whole("room")
        must(type(middle) is bool, "boundaries")
        made = cls(contents.whole("dimensions", 1), boundaries="middle" if middle else "cost")
        made._time = contents.whole("time")
        columns = (contents.floats(name, room, made._dimensions) for name in Records._fields[:5])
        made._records = Records._make([*columns, np.zeros(room, np.bool_)])
        made._alive, made._member = contents.flags("alive", room), contents.flags("member", room)
        made._known, made._told = contents.flags("known", room), np.zeros(room, np.bool_)
        made._dominator = contents.integers("dominator", room, NOBODY, room - 1)
        made._still = contents.integers("still", room, -1, made._time)
        made._log = contents.floats("log", -1, made._dimensions)
        must(len(made._log) <= LOG, "log")
        return made

    # -- for methods that build on this one ----------------------------------------------------------------------------

    @property
    def records(self) -> Records:
        """The rows of all clients; those of clients that are not here are anybody's."""
        return self._records

    def present(self, clients: Integers) -> Booleans:
        """Which clients are here. O(clients)."""
        found = clients < len(self._alive)
        found[found] = self._alive[clients[found]]
        return found

    def emerging(self) -> Integers:
        """After the last question: who will be in the skyline, in order. O(clients)."""
        return np.sort(self._candidates[self._verdicts == INSIDE])

    def unknown(self, clients: Integers) -> Integers:
        """Those clients whose points are not known now. O(clients)."""
        return clients[~self._known[clients]]

    def burdens(self) -> Integers:
        """How many clients hang on each. O(clients)."""
        return np.bincount(self._dominator[self._dominator >= 0], minlength=len(self._alive))

    def remove(self, clients: Integers) -> None:
        """Take clients out between two timestamps; what hangs on them is judged in the next one. O(all clients)."""
        self._alive[clients] = self._member[clients] = False
        self._dominator[clients] = NOBODY
        self._dominator[(self._dominator >= 0) & ~self._alive[self._dominator]] = NOBODY

    # -- details -------------------------------------------------------------------------------------------------------

    def _tell(self, told: Said | Reports) -> None:
        clients, records = told.clients, self._records
        records.points[clients] = records.low[clients] = records.high[clients] = told.points
        rested = clients[(records.floor[clients] == records.roof[clients]).all(axis=1)]
        self._still[rested] = self._time - 1
        records.floor[clients], records.roof[clients] = told.floor, told.roof
        self._told[clients] = self._known[clients] = True

    def _loosened(self, changed: Integers) -> Integers:
        """The clients outside the skyline that hang on nothing, after those that changed; new ones are among them."""
        touched = np.zeros(len(self._alive), np.bool_)
        touched[changed] = True
        hanging = np.flatnonzero(self._dominator >= 0)
        concerned = hanging[touched[hanging] | touched[self._dominator[hanging]]]
        holders = self._dominator[concerned]
        corners, lows = self._records.high[holders], self._records.low[concerned]
        held = self._alive[holders] & (corners <= lows).all(axis=1) & (corners < lows).any(axis=1)
        self._dominator[concerned[~held]] = NOBODY
        return np.flatnonzero(self._alive & ~self._member & (self._dominator < 0))

    def _judged(self) -> Integers:
        records, asked = self._records, np.zeros(len(self._alive), np.bool_)
        judge(
            records.low,
            records.high,
            self._known,
            self._settled,
            self._candidates,
            self._verdicts,
            self._witness,
            asked,
        )
        return np.flatnonzero(asked)

    def _construct(self, clients: Integers, offers: Offers) -> Integers:
        """FilterConstruction: from the widest boxes that make sense to robust ones; who gets what he offers."""
        fresh = self._records.fresh
        widen(self._records, clients, MARGIN + DOUBT / np.maximum(1, self._time - self._still[clients]))
        members = self.skyline()
        within = self._member[offers.clients]
        outer, inner = (Offers._make(column[which] for column in offers) for which in (~within, within))
        accepted = outer.clients[accept_below(self._records, self._dominator, members, *outer)]
        below = np.setdiff1d(clients[~self._member[clients]], accepted)
        chosen = np.empty(len(below), np.int64)
        best_dominators(self._records, members, below, chosen)
        self._dominator[below] = chosen
        # To get worse is no news: what dominates such a client still does.
        self._records.high[below[fresh[below]]] = np.inf
        keep_below(self._records, self._dominator, np.flatnonzero((self._dominator >= 0) & ~fresh))
        set_apart(self._records, members, self._log, self._middle)
        below = below[fresh[below]]
        below = below[np.argsort(self._dominator[below], kind="stable")]
        holders, starts = np.unique(self._dominator[below], return_index=True)
        share_room(self._records, holders, np.append(starts, len(below)), below, self._middle)
        kept = accept_members(self._records, self._dominator, members, *inner)
        return np.concatenate((accepted, inner.clients[kept]))


def widen(records: Records, clients: Integers, margins: Floats) -> None:
    """Boxes as wide as makes sense for the clients among these that have a reach, and nobody else. O(all clients)."""
    _, low, high, floor, roof, fresh = records
    reaching = (roof[clients] > floor[clients]).any(axis=1)
    moving = clients[reaching]
    fresh[:] = False
    fresh[moving] = True
    with np.errstate(invalid="ignore", over="ignore"):
        more = (roof[moving] - floor[moving]) * margins[reaching, None]
        low[moving] = np.where(np.isfinite(more), floor[moving] - more, -np.inf)
        high[moving] = np.where(np.isfinite(more), roof[moving] + more, np.inf)
