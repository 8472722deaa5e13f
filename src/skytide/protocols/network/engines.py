"""The coordinator's part of a protocol behind one interface: what sites say in, what they are told out, in steps.

What a site says is checked before it is taken: it speaks of itself, of objects it has, in the query's columns. So a
site that is broken can be wrong about its own values, and about nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Protocol, Self

import numpy as np

from skytide.errors import InputError
from skytide.kernel.functions import values as values_at
from skytide.model import Booleans, Floats, Integers
from skytide.monitors.storage import Parts
from skytide.protocols.arrays import grown, room_for
from skytide.protocols.filtering import messages as filtering
from skytide.protocols.filtering.filter import FilterServer
from skytide.protocols.filtering.server import NaiveServer, joined
from skytide.protocols.fragmented import messages as fragmented
from skytide.protocols.fragmented.methods import coordinator_of, pairs_of
from skytide.protocols.network.query import Query
from skytide.protocols.stored import Contents, dump, restore

NONE: Integers = np.zeros(0, np.int64)

Said = Mapping[int, Sequence[Any]]
"""What sites say, by their numbers: messages as `Engine.read` gives them."""
Told = dict[int, list[bytes]]
"""What sites are told, by their numbers."""


class Engine(Protocol):
    """A dialogue: `begin`, then `go_on` with what the told sites reply, until nobody is told anything."""

    exclusive: bool
    """Whether an object is at one site only."""
    paired: bool
    row_bytes: int
    """How many bytes a message takes that tells a move."""

    def read(self, site: int, messages: Sequence[bytes], *, reply: bool) -> list[Any]:
        """What a site says, checked for itself, and a reply against what is known; else an `InputError`."""
        ...

    def check(self, site: int, messages: Sequence[Any], objects: int, *, fresh: bool) -> None:
        """Check what a site says against what is known, when so many objects have numbers."""
        ...

    def elsewhere(self, site: int, objects: Integers) -> Booleans:
        """Which objects are at another site, though each is at one only."""
        ...

    def named(self, messages: Sequence[Any]) -> Integers:
        """The objects that messages speak of."""
        ...

    def begin(self, time: int, said: Said, fresh: Iterable[int]) -> Told:
        """Take what sites say of their own accord; of fresh ones it is all they have."""
        ...

    def go_on(self, replies: Said) -> Told:
        """Take the replies of sites that were told something; who does not reply is passed over."""
        ...

    def skyline(self) -> Integers:
        """The objects in the skyline, in order, when the dialogue is over."""
        ...

    def at(self, site: int) -> Integers:
        """The objects at a site, in order."""
        ...

    def present(self) -> Integers:
        """The objects that any site has, in order."""
        ...

    def values(self, objects: Integers) -> tuple[Floats, tuple[Floats, Floats] | None]:
        """What is known of present objects: where each was last, and between which bounds it is, if there are any."""
        ...

    def fits(self, sites: int, objects: int) -> bool:
        """Whether it knows of no more than so many sites and objects."""
        ...

    def count(self, message: bytes) -> tuple[str, int]:
        """The kind of a message, and how many it is."""
        ...

    def to_bytes(self) -> bytes:
        """The engine between two dialogues."""
        ...


def engine_of(query: Query) -> Engine:
    """The engine of a query that nobody has said anything to."""
    return FilteringEngine(query) if query.protocol == "filtering" else FragmentedEngine(query)


def stored_engine(query: Query, blob: bytes) -> Engine:
    """The engine that `to_bytes` gave; a `StateError` for any other bytes."""
    return FilteringEngine.from_bytes(blob) if query.protocol == "filtering" else FragmentedEngine.from_bytes(blob)


def _refused(reason: str) -> InputError:
    return InputError(f"the site says what it cannot: {reason}", remedy="restart the site")


# -- objects at one site each ------------------------------------------------------------------------------------------


class FilteringEngine:
    """The filtering protocol: objects are its clients, each at one site."""

    exclusive, paired = True, False

    def __init__(self, query: Query) -> None:
        self._query, self._dimensions = query, len(query.columns)
        self.row_bytes = filtering.size_of(filtering.Kind.UPDATE, self._dimensions)
        server = FilterServer if query.method == "filter" else NaiveServer
        self._server: FilterServer | NaiveServer = server(self._dimensions)
        self._owner: Integers = np.zeros(0, np.int64)
        self._here: Booleans = np.zeros(0, np.bool_)
        empty: Floats = np.zeros((0, self._dimensions))
        self._reach = [empty, empty, empty]  # the last point that was told, with its floor and roof
        self._time = 0
        self._asked: Integers = NONE

    def read(self, site: int, messages: Sequence[bytes], *, reply: bool) -> list[Any]:
        """See `Engine`."""
        found: list[Any] = [filtering.decode(message) for message in messages]
        for message in found:
            told = isinstance(message, filtering.Reports)
            if message.kind == filtering.Kind.SAMPLE or not (told or isinstance(message, filtering.Departures)):
                raise _refused("a message that only the coordinator sends, or that no method here knows")
            if reply and not (
                message.kind == filtering.Kind.ANSWER and np.isin(message.clients, self._questions(site)).all()
            ):
                raise _refused("something else than an answer")
            if told and message.points.shape[1] != self._dimensions:
                raise _refused("points with other columns than the query's")
        return found

    def check(self, site: int, messages: Sequence[Any], objects: int, *, fresh: bool) -> None:
        """See `Engine`."""
        who = np.concatenate([NONE, *(message.clients for message in messages)])
        if len(np.unique(who)) < len(who):
            raise _refused("two things of one object at once")
        self._reserve(objects)
        if len(who) and who.max() >= objects:
            raise _refused("something of an object that nobody has")
        for message in messages:
            new = message.kind == filtering.Kind.INSERT
            if not new and (fresh or not self._has(site, message.clients).all()):
                raise _refused("something of an object of which it has not told yet")

    def _has(self, site: int, objects: Integers) -> Booleans:
        found: Booleans = self._here[objects] & (self._owner[objects] == site)
        return found

    def elsewhere(self, site: int, objects: Integers) -> Booleans:
        """See `Engine`."""
        self._reserve(room_for(objects))
        found: Booleans = self._here[objects] & (self._owner[objects] != site)
        return found

    def named(self, messages: Sequence[Any]) -> Integers:
        """See `Engine`."""
        return np.concatenate([NONE, *(message.clients for message in messages)])

    def _questions(self, site: int) -> Integers:
        found: Integers = self._asked[self._owner[self._asked] == site]
        return found

    def _reserve(self, room: int) -> None:
        self._owner, self._here = grown(self._owner, room), grown(self._here, room)
        self._reach = [grown(each, room) for each in self._reach]

    def begin(self, time: int, said: Said, fresh: Iterable[int]) -> Told:
        """See `Engine`."""
        self._time = time
        blocks = [message for messages in said.values() for message in messages]
        self._reserve(room_for(NONE, *(block.clients for block in blocks)))
        named = np.zeros(len(self._here), np.bool_)
        for site, messages in said.items():
            for message in messages:
                self._note(site, message)
                named[message.clients] = True
        for site in fresh:
            left = np.flatnonzero(self._here & (self._owner == site) & ~named)
            if len(left):
                blocks.append(filtering.Departures(time, left))
                self._here[left] = False
        return self._goes_on(self._server.begin(time, blocks))

    def _note(self, site: int, message: Any) -> None:
        who = message.clients
        if isinstance(message, filtering.Departures):
            self._here[who] = False
            return
        self._here[who], self._owner[who] = True, site
        for column, told in zip(self._reach, (message.points, message.floor, message.roof), strict=True):
            column[who] = told

    def _goes_on(self, whom: Integers) -> Told:
        self._asked = whom
        if len(whom):
            return self._by_site([filtering.Questions(self._time, whom)])
        return self._by_site(self._server.settle())

    def _by_site(self, orders: Sequence[Any]) -> Told:
        told: Told = {}
        for order in orders:
            owners = self._owner[order.clients]
            for site in np.unique(owners).tolist():
                part = _rows(order, owners == site)
                told.setdefault(site, []).append(filtering.encode(part, self._dimensions))
        return told

    def go_on(self, replies: Said) -> Told:
        """See `Engine`. Who does not answer is taken to be where it was when it last spoke."""
        if not len(self._asked):
            return {}
        for site, messages in replies.items():
            for message in messages:
                self._note(site, message)
        who = self._asked
        points, floor, roof = (column[who] for column in self._reach)
        answers = filtering.Reports(filtering.Kind.ANSWER, self._time, who, points, floor, roof)
        return self._goes_on(self._server.answered(joined([answers])))

    def skyline(self) -> Integers:
        """See `Engine`."""
        found = self._server.skyline()
        return NONE if found is None else found

    def at(self, site: int) -> Integers:
        """See `Engine`."""
        return np.flatnonzero(self._here & (self._owner == site))

    def present(self) -> Integers:
        """See `Engine`."""
        return np.flatnonzero(self._here)

    def values(self, objects: Integers) -> tuple[Floats, tuple[Floats, Floats] | None]:
        """See `Engine`. The bounds are the boxes in which objects keep quiet. O(objects)."""
        points, query = self._query.rows(self._reach[0][objects]), self._query
        if isinstance(self._server, NaiveServer):
            return points, None
        one, other = (query.turned(ends[objects]) for ends in (self._server.records.low, self._server.records.high))
        return points, (np.minimum(one, other), np.maximum(one, other))

    def fits(self, sites: int, objects: int) -> bool:
        """See `Engine`."""
        here = np.flatnonzero(self._here)
        inside = max(here.max(initial=-1), self.skyline().max(initial=-1)) < objects
        return bool(inside and self._owner[here].max(initial=-1) < sites)

    def count(self, message: bytes) -> tuple[str, int]:
        """See `Engine`."""
        kind = filtering.Kind(message[1])
        return kind.name.lower(), len(message) // filtering.size_of(kind, self._dimensions)

    def to_bytes(self) -> bytes:
        """See `Engine`."""
        return dump(self)

    @classmethod
    def from_bytes(cls, blob: bytes) -> Self:
        """The engine that `to_bytes` gave; a `StateError` for any other bytes."""
        return restore(blob, cls)

    def _contents(self) -> Contents:
        blob = np.frombuffer(self._server.to_bytes(), np.uint8)
        parts: Parts = {"server": blob, "owner": self._owner, "here": self._here}
        parts |= dict(zip(("points", "floor", "roof"), self._reach, strict=True))
        return Contents({"query": self._query.plain(), "room": len(self._here), "time": self._time}, parts)

    @classmethod
    def _restored(cls, contents: Contents) -> Self:
        made, room = cls(Query.read(contents.meta["query"])), contents.whole("room")
        made._server = type(made._server).from_bytes(contents.blob("server"))
        made._owner, made._here = contents.integers("owner", room, 0, 1 << 32), contents.flags("here", room)
        made._reach = [contents.floats(name, room, made._dimensions) for name in ("points", "floor", "roof")]
        made._time = contents.whole("time")
        return made


def _rows(block: Any, which: Booleans) -> Any:
    """Some of the rows of a block of messages."""
    columns = {field.name: getattr(block, field.name) for field in fields(block)}
    chosen = {name: column[which] for name, column in columns.items() if isinstance(column, np.ndarray)}
    return replace(block, **chosen)


# -- objects in fragments ----------------------------------------------------------------------------------------------


class FragmentedEngine:
    """The protocol of objects in fragments, each at some of the sites."""

    exclusive = False

    def __init__(self, query: Query) -> None:
        self._query, functions = query, query.functions
        self.paired = pairs_of(query.method, functions)
        self._shape = functions.d, functions.k
        self.row_bytes = sum(fragmented.sizes(fragmented.Kind.UPDATE, *self._shape))
        self._coordinator = coordinator_of(query.method, functions, nulls=query.nulls)
        self._time = 0

    def read(self, site: int, messages: Sequence[bytes], *, reply: bool) -> list[Any]:
        """See `Engine`."""
        found: list[Any] = [fragmented.decode(message) for message in messages]
        for message in found:
            if not message.kind.up or (message.sites != site).any():
                raise _refused("something that only another sends")
            if hasattr(message, "vectors") and message.vectors.shape[1] != self._shape[0]:
                raise _refused("vectors with other components than the query's")
            if message.kind == fragmented.Kind.JOIN and (message.weights != 1.0).any():
                raise _refused("that it counts more or less than others")
            if reply and message.kind in (fragmented.Kind.JOIN, fragmented.Kind.LEAVE):
                raise _refused("something else than what orders make necessary")
        if reply:
            self.check(site, found, 1 << 32, fresh=False)
        return found

    def check(self, site: int, messages: Sequence[Any], objects: int, *, fresh: bool) -> None:
        """See `Engine`."""
        for message in messages:
            if message.objects.max() >= objects:
                raise _refused("something of an object that nobody has")
            new = message.kind == fragmented.Kind.JOIN
            if not new and (fresh or not self._coordinator.known.there(message.sites, message.objects).all()):
                raise _refused("something of an object of which it has not told yet")

    def elsewhere(self, site: int, objects: Integers) -> Booleans:
        """See `Engine`."""
        return np.zeros(len(objects), np.bool_)

    def named(self, messages: Sequence[Any]) -> Integers:
        """See `Engine`."""
        return np.concatenate([NONE, *(message.objects for message in messages)])

    def begin(self, time: int, said: Said, fresh: Iterable[int]) -> Told:
        """See `Engine`."""
        self._time = time
        blocks = [message for messages in said.values() for message in messages]
        for site in fresh:
            named = np.concatenate([NONE, *(message.objects for message in said[site])])
            left = np.setdiff1d(self.at(site), named)
            if len(left):
                blocks.append(fragmented.Departures(time, np.full(len(left), site), left))
        return self._told(blocks)

    def go_on(self, replies: Said) -> Told:
        """See `Engine`. Who does not reply is taken to have nothing to say."""
        return self._told([message for messages in replies.values() for message in messages])

    def _told(self, blocks: list[Any]) -> Told:
        told: Told = {}
        reports = fragmented.merged([replace(block, time=self._time) for block in blocks])
        for order in fragmented.merged(self._coordinator.take(self._time, reports)):
            for message in fragmented.encode(order, *self._shape):
                told.setdefault(fragmented.site_of(message), []).append(message)
        return told

    def skyline(self) -> Integers:
        """See `Engine`."""
        return self._coordinator.skyline()

    def at(self, site: int) -> Integers:
        """See `Engine`."""
        return self._coordinator.known.at(site)

    def present(self) -> Integers:
        """See `Engine`."""
        return np.flatnonzero(self._coordinator.known.members)

    def values(self, objects: Integers) -> tuple[Floats, tuple[Floats, Floats] | None]:
        """See `Engine`. These are the functions at the averages of what sites told. O(objects' sites)."""
        means = self._coordinator.known.means(objects)
        return self._query.turned(values_at(self._query.functions.programs, means)), None

    def fits(self, sites: int, objects: int) -> bool:
        """See `Engine`."""
        known = self._coordinator.known
        owners, there = known.index.pairs()
        alive = known.there(owners, there)
        inside = max(there[alive].max(initial=-1), self.skyline().max(initial=-1)) < objects
        return bool(inside and owners[alive].max(initial=-1) < sites)

    def count(self, message: bytes) -> tuple[str, int]:
        """See `Engine`."""
        return fragmented.Kind(message[1]).name.lower(), 1

    def to_bytes(self) -> bytes:
        """See `Engine`."""
        return dump(self)

    @classmethod
    def from_bytes(cls, blob: bytes) -> Self:
        """The engine that `to_bytes` gave; a `StateError` for any other bytes."""
        return restore(blob, cls)

    def _contents(self) -> Contents:
        blob = np.frombuffer(self._coordinator.to_bytes(), np.uint8)
        return Contents({"query": self._query.plain(), "time": self._time}, {"coordinator": blob})

    @classmethod
    def _restored(cls, contents: Contents) -> Self:
        made = cls(Query.read(contents.meta["query"]))
        made._coordinator = type(made._coordinator).from_bytes(contents.blob("coordinator"))
        made._time = contents.whole("time")
        return made
