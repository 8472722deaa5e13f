"""A site: it has rows, absorbs what it may, and says what it must. Bytes in, bytes out; no socket, no clock.

Each session begins with all that the site has (a fresh SAY). Afterwards rows are absorbed as they come, as long as
nothing has to be said of them. What must be said goes out in a SAY, and the site holds its next rows until the
dialogue is settled; of several rows of an object the last counts. It also holds them from a TELL on until the dialogue
is settled: so what is published is true of all rows that are acknowledged, at every moment.

A site that was started anew may be held: then it says nothing before it is released, and what it says first is all that
it had put back by then. The answer stays stale that long, and never shows a part of what the site has.

A TELL that does not reckon with the last SAY has crossed it. The coordinator will not take that SAY; the site goes back
to where it was before, obeys, and tries its rows again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from skytide.errors import InputError
from skytide.protocols.network.frames import (
    NOBODY,
    Hello,
    Id,
    Names,
    Numbers,
    Reply,
    Say,
    Settled,
    Tell,
    Welcome,
    decode,
    encode,
    refuse,
    usable_id,
)
from skytide.protocols.network.local import Part, part_of
from skytide.protocols.network.query import Query

MOST_NAMES = 10_000
"""Objects whose numbers are asked for in one frame."""
MOST_TIME = (1 << 32) - 1


class _Session:
    """What belongs to one connection."""

    def __init__(self, welcome: Welcome, query: Query, now: float) -> None:
        self.part: Part = part_of(query, welcome.site, paired=welcome.paired)
        self.began, self.now = now, welcome.now
        self.numbers: dict[Id, int] = {}
        self.nameless: dict[Id, None] = {}
        """The open objects whose numbers are still to be asked for, in order."""
        self.asked: deque[tuple[Id, ...]] = deque()
        self.unknown: set[Id] = set()
        self.fresh = True
        self.held = False
        self.number = 0
        self.heard = 0
        self.said: dict[Id, int] | None = None
        """The rows of a SAY that is not settled: of each object the first that is not acknowledged."""
        self.taken = False
        self.before: Part | None = None
        self.last = False


class Member:
    """A site by its name; the key tells it from another that takes the same name.

    >>> member = Member("here", key=bytes(16))
    >>> hello, = member.connected()
    >>> member.receive(encode(Welcome(0, 0.0, Query("filtering", minimize=("a",)).plain())), now=0.0)
    >>> member.put("x", {"a": 3})
    True
    >>> [type(decode(frame)).__name__ for frame in member.advance(0.0)], member.acknowledged
    (['Names'], 0)
    """

    def __init__(self, name: str, key: bytes, *, hold: bool = False) -> None:
        """With `hold` nothing is told before `release`."""
        self.name, self._key = name, key
        self._holding, self._known = hold, False
        self.query: Query | None = None
        self.rows = 0
        """Rows that were put."""
        self.refused = 0
        """Rows of these that cannot compete, since a value is missing or the object belongs to another site."""
        self.finished = False
        """Whether the last words are said and settled."""
        self._latest: dict[Id, tuple[float, ...]] = {}
        self._open: dict[Id, int] = {}  # what the part does not have yet: the first row that is not acknowledged
        self._ending = False
        self._time = 0
        self._session: _Session | None = None
        self._out: list[bytes] = []

    # -- the connection ------------------------------------------------------------------------------------------------

    def connected(self) -> list[bytes]:
        """Begin a session: the frames to send."""
        self.lost()
        return [encode(Hello(self.name, self._key))]

    def lost(self) -> None:
        """End the session: whatever the site has is to be told again. O(objects)."""
        said = self._session.said if self._session is not None else None
        for one, row in (said or {}).items():
            self._open[one] = min(row, self._open.get(one, row))
        for one in self._latest:
            self._open.setdefault(one, self.rows + 1)
        self._session, self._out = None, []

    @property
    def settled(self) -> bool:
        """Whether the coordinator knows all that this site has put, or that it keeps to what it was told."""
        session = self._session
        return session is not None and not session.fresh and session.said is None and not self._open

    @property
    def acknowledged(self) -> int:
        """So many rows, the first ones, are acknowledged: whatever is published is true of them. O(open objects).

        None is before the coordinator knows what this site has, for it may know of more from a time before.
        """
        if not self._known:
            return 0
        session = self._session
        said = session.said if session is not None and session.said else {}
        return min([self.rows, *(row - 1 for row in self._open.values()), *(row - 1 for row in said.values())])

    # -- rows ----------------------------------------------------------------------------------------------------------

    def put(self, one: Id, values: Mapping[str, Any] | Sequence[Any] | None) -> bool:
        """New values of an object, by column or in the order of the query's; None, or all missing: it leaves. O(d).

        False where the row cannot compete; it is counted, and what was known of the object stays.
        """
        if self.query is None:
            raise InputError("rows came before the query is known", remedy="wait for the coordinator first")
        if not usable_id(one):
            raise InputError("is not an id", value=one, remedy="use whole numbers of 64 bits or texts up to 1024 bytes")
        row = self.query.row(values)
        if self._ending:
            raise InputError("rows came after the end", remedy="put all rows before the end")
        self.rows += 1
        if row is not None and self.query.refused(row):
            self.refused += 1
            return False
        if row is not None:
            self._latest[one] = row
        elif self._latest.pop(one, None) is None:
            return True
        self._open.setdefault(one, self.rows)
        session = self._session
        if session is not None and one not in session.numbers and one not in session.unknown:
            session.nameless[one] = None
        return True

    def release(self) -> None:
        """What was put is all that there is for now, and may be told."""
        self._holding = False

    @property
    def holding(self) -> bool:
        """Whether nothing is told yet."""
        return self._holding

    def end(self) -> None:
        """There are no more rows: once all are acknowledged, the last words are said."""
        self._ending = True

    def snapshot(self) -> dict[Id, tuple[float, ...]]:
        """What the site has: the values of each object, in the order of the query's columns. O(objects)."""
        return dict(self._latest)

    # -- frames --------------------------------------------------------------------------------------------------------

    def advance(self, now: float) -> list[bytes]:
        """Absorb or tell what was put; the frames to send. `now` is in seconds. O(open objects)."""
        session = self._session
        if session is not None:
            self._tick(session, now)
            if session.nameless:
                self._ask(session)
            if session.said is None and not session.held:
                self._speak(session)
        out, self._out = self._out, []
        return out

    def receive(self, data: bytes, now: float) -> None:
        """Take a frame; `advance` has what is to be sent then. An `InputError` ends the session."""
        frame, session = decode(data), self._session
        if isinstance(frame, Welcome) and session is None:
            self._welcomed(frame, now)
        elif session is None:
            refuse("it comes before the welcome")
        elif isinstance(frame, Numbers):
            self._numbered(session, frame)
        elif isinstance(frame, Tell):
            self._told(session, frame, now)
        elif isinstance(frame, Settled):
            self._settled(session, frame)
        else:
            refuse("it is not for a site")

    def _welcomed(self, welcome: Welcome, now: float) -> None:
        query = Query.read(welcome.query)
        if self.query is not None and query.columns != self.query.columns:
            raise InputError("the coordinator asks for other columns than before", remedy="start the site anew")
        self.query, self._session = query, _Session(welcome, query, now)
        self._session.nameless = dict.fromkeys(self._open)

    def _tick(self, session: _Session, now: float) -> None:
        assert self.query is not None
        passed = session.now + (now - session.began) / self.query.every
        self._time = min(MOST_TIME, max(self._time, int(passed)))

    def _ask(self, session: _Session) -> None:
        """Ask for the numbers of objects that have none."""
        new, session.nameless = list(session.nameless), {}
        for start in range(0, len(new), MOST_NAMES):
            ids = tuple(new[start : start + MOST_NAMES])
            session.asked.append(ids)
            session.unknown.update(ids)
            self._out.append(encode(Names(ids)))

    def _numbered(self, session: _Session, frame: Numbers) -> None:
        ids = session.asked.popleft() if session.asked else ()
        if len(ids) != len(frame.numbers):
            refuse("its numbers were not asked for")
        session.unknown.difference_update(ids)
        for one, number in zip(ids, frame.numbers, strict=True):
            session.numbers[one] = number
            if number == NOBODY:
                self.refused += one in self._latest
                self._latest.pop(one, None)
                self._open.pop(one, None)
                del session.numbers[one]

    # -- saying --------------------------------------------------------------------------------------------------------

    def _speak(self, session: _Session) -> None:
        if session.fresh:
            if not session.unknown and not self._holding:
                rows = self._rows(session, self._open)
                self._say(session, rows, session.part.take(self._time, *rows[1:]), fresh=True)
            return
        rows = self._rows(session, [one for one in self._open if one in session.numbers])
        if rows[0]:
            if session.part.absorb(self._time, *rows[1:]):
                self._close(rows[0])
            else:
                self._tell(session, rows)
        elif self._ending and not self._open and not session.last:
            before, session.last = session.part.copy(), True
            self._say(session, rows, session.part.last(self._time), last=True)
            session.before = before

    def _rows(self, session: _Session, ids: Iterable[Id]) -> tuple[list[Id], Any, Any, Any]:
        """The ids, numbers and values of objects, and which of them leave."""
        assert self.query is not None
        ids, nothing = list(ids), (np.nan,) * len(self.query.columns)
        numbers = np.array([session.numbers[one] for one in ids], np.int64)
        values = np.array([self._latest.get(one, nothing) for one in ids], np.float64)
        gone = np.array([one not in self._latest for one in ids], np.bool_)
        return ids, numbers, values.reshape(len(ids), len(nothing)), gone

    def _tell(self, session: _Session, rows: tuple[list[Id], Any, Any, Any]) -> None:
        """Take rows of which something may have to be said, and say it."""
        before = session.part.copy()
        messages = session.part.take(self._time, *rows[1:])
        if messages:
            self._say(session, rows, messages)
            session.before = before
        elif session.held:
            session.part = before
        else:
            self._close(rows[0])

    def _say(
        self, session: _Session, rows: tuple[list[Id], Any, Any, Any], messages: list[bytes], **flags: bool
    ) -> None:
        session.number += 1
        session.said = {one: self._open.pop(one) for one in rows[0]}
        session.before, session.taken = None, False
        taken = max(0, self.rows - self.refused)
        self._out.append(encode(Say(session.number, session.heard, tuple(messages), **flags, rows=taken)))

    def _close(self, ids: Iterable[Id]) -> None:
        for one in ids:
            del self._open[one]

    # -- hearing -------------------------------------------------------------------------------------------------------

    def _told(self, session: _Session, frame: Tell, now: float) -> None:
        if frame.number != session.heard + 1 or frame.taken > session.number:
            refuse("its number does not follow")
        crossed = session.said is not None and not session.taken and frame.taken < session.number
        if crossed:
            self._back(session)
        elif session.said is not None:
            session.taken = True
        self._time = max(self._time, frame.time)
        session.heard, session.held = frame.number, True
        replies = session.part.obey(frame.messages)
        self._out.append(encode(Reply(frame.number, tuple(replies))))
        if crossed:
            self._tick(session, now)
            rows = self._rows(session, [one for one in self._open if one in session.numbers])
            if rows[0]:
                self._tell(session, rows)

    def _back(self, session: _Session) -> None:
        """Undo a SAY that will not be taken."""
        assert session.said is not None
        if session.before is None:
            refuse("an order came before the coordinator knew what this site has")
        for one, row in session.said.items():
            self._open[one] = min(row, self._open.get(one, row))
        session.part, session.said, session.before, session.last = session.before, None, None, False

    def _settled(self, session: _Session, frame: Settled) -> None:
        if frame.taken > session.number:
            refuse("its number does not follow")
        session.held = False
        if session.said is not None and frame.taken == session.number:
            session.said, session.before, session.fresh = None, None, False
            self._known = True
            self.finished = session.last
