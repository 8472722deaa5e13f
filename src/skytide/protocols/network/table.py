"""The coordinator: sites that come and go, and one dialogue after the other. Frames in, actions out; no socket.

A dialogue takes what all sites have said by then, and runs the protocol with them until nobody has anything to say. Its
record is then to be made durable (`Commit`); after that its outcome is published and all who took part are released
(`committed`). A site that goes, or is awaited too long, is passed over: what it last told counts, and the answer is
stale until it has come back and told all that it has. So is the answer after a restart, until all sites are back.

The engine is deterministic: a record holds what was said, and `replay` comes to the same state.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from skytide.errors import InputError, StateError
from skytide.model import Floats, Integers, Ledger
from skytide.monitors.storage import HOSTILE, pack, unpack
from skytide.protocols.network.engines import Engine, Told, engine_of, stored_engine
from skytide.protocols.network.frames import (
    NOBODY,
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
)
from skytide.protocols.network.query import Query
from skytide.protocols.network.seats import (
    DIALOGUE,
    NAMES,
    SITE,
    Action,
    Close,
    Commit,
    Dialogue,
    Publish,
    Record,
    Seat,
    Send,
    Stale,
    read_dialogue,
    read_seat,
)

MOST_TIME = (1 << 32) - 1
MOST_OBJECTS = 10_000_000
"""So many objects get numbers, unless another limit is given."""
MOST_SAID = 1 << 26
"""Bytes that a dialogue begins with, besides what the last site said that was taken: others wait for the next one."""
_KIND, _VERSION = "NetworkTable", 1


class TooManyError(InputError):
    """A limit is reached."""


class Table:
    """Keeps the skyline of what sites tell.

    >>> table = Table(Query("filtering", minimize=("a",)))
    >>> table.arrive("here", bytes(16), now=0.0)
    0
    >>> [type(action).__name__ for action in table.step(now=0.0)]
    ['Record', 'Send']
    """

    def __init__(self, query: Query, *, patience: float = 2.0, objects: int = MOST_OBJECTS) -> None:
        """`patience` is how many seconds a dialogue waits for a site, `objects` how many may get numbers."""
        self.query, self._patience, self._most = query, patience, objects
        self._engine: Engine = engine_of(query)
        self.seats: list[Seat] = []
        self._by_name: dict[str, Seat] = {}
        self._names: dict[Id, int] = {}
        self._ids: list[Id] = []
        self._skyline: Integers = np.zeros(0, np.int64)
        self._away: dict[int, float] = {}  # since when sites with objects are out of touch
        self._speaking: set[int] = set()  # the sites that have said something
        self._dialogue: Dialogue | None = None
        self._out: list[Action] = []
        self._time = 0
        self._origin: float | None = None
        self.dialogues = 0
        self.crossed = 0
        """SAYs that were not taken, since they crossed a TELL."""
        self.moves = 0
        """Rows that sites have taken besides those they began a session with, as far as they said so: telling all of
        them would take as many messages."""
        self.ledger = Ledger()

    # -- what is known -------------------------------------------------------------------------------------------------

    def skyline(self) -> list[Id]:
        """The published skyline, by id, in the order of the objects' numbers. O(its members)."""
        return [self._ids[one] for one in self._skyline.tolist()]

    def members(self) -> Integers:
        """The published skyline, by the objects' numbers. O(1)."""
        return self._skyline

    def present(self) -> Integers:
        """The numbers of the objects that any site has, in order. O(objects)."""
        return self._engine.present()

    @property
    def row_bytes(self) -> int:
        """How many bytes it takes to tell a row."""
        return self._engine.row_bytes

    def values(self, objects: Integers) -> tuple[Floats, tuple[Floats, Floats] | None]:
        """What is known of present objects, for those who look on; see `Engine.values`."""
        return self._engine.values(objects)

    @property
    def ids(self) -> list[Id]:
        """The ids of objects, by their numbers; not to be changed."""
        return self._ids

    @property
    def resting(self) -> bool:
        """Whether no dialogue is going on and all records are given out: then `to_bytes` may take the log's place."""
        return self._dialogue is None and not any(isinstance(action, Record) for action in self._out)

    def stale(self) -> list[Stale]:
        """The sites out of touch, for which the answer is stale: none if it is exact. O(sites), O(objects) for each."""
        return [self.staleness(site) for site in sorted(self._away)]

    def staleness(self, site: int) -> Stale:
        """Of a site that is out of touch: since when, and its objects. O(objects)."""
        ids = tuple(self._ids[one] for one in self._engine.at(site).tolist())
        return Stale(self.seats[site].name, self._away[site], ids)

    @property
    def away(self) -> Mapping[int, float]:
        """The sites out of touch for which the answer is stale, and since when. O(1)."""
        return self._away

    @property
    def exact(self) -> bool:
        """Whether the answer is true of all that sites have acknowledged. O(1)."""
        return not self._away

    @property
    def idle(self) -> bool:
        """Whether nobody is waiting for anything."""
        return self._dialogue is None and not self._speaking

    @property
    def objects(self) -> int:
        """How many objects have numbers."""
        return len(self._ids)

    # -- sites come and go ---------------------------------------------------------------------------------------------

    def arrive(self, name: str, key: bytes, now: float, *, trusted: bool = False) -> int:
        """A site comes; its number. The name is free, or it is that site's own: by its key, or since it is `trusted`.

        An `InputError` where another site of that name is here. If it is here itself, its old session is over.
        """
        seat = self._by_name.get(name)
        if seat is None:
            seat = Seat(name, key, len(self.seats))
            self.seats.append(seat)
            self._by_name[name] = seat
            self._out.append(Record(SITE, seat.record()))
        elif seat.here and not trusted and seat.key != key:
            raise InputError("is the name of a site that is here", value=name, remedy="choose another name")
        elif seat.here:
            self.leave(seat.number, now)
        self._hush(seat)  # it may be about to be forgotten
        seat.key, seat.here, seat.synced, seat.done = key, True, False, False
        seat.told = seat.spoken = seat.taken = 0
        welcome = Welcome(seat.number, self._ticks(now), self.query.plain(), self._engine.paired)
        self._out.append(Send(seat.number, encode(welcome)))
        return seat.number

    def leave(self, site: int, now: float) -> None:
        """A site's connection is gone. What it last told counts, and is stale unless it was final."""
        seat = self.seats[site]
        if not seat.here:
            return
        seat.here = seat.synced = False
        self._hush(seat)
        self._out = [action for action in self._out if not (isinstance(action, Send | Close) and action.site == site)]
        if not seat.done and len(self._engine.at(site)):
            self._away.setdefault(site, now)
        if self._dialogue is not None:
            self._dialogue.awaited.pop(site, None)

    def forget(self, site: int) -> None:
        """Take all objects off a site that is not here: it is not waited for any more."""
        seat = self.seats[site]
        if not seat.here:
            seat.said, seat.messages = Say(0, 0, (), fresh=True), []
            self._speaking.add(site)

    def _hush(self, seat: Seat) -> None:
        seat.said, seat.messages = None, []
        self._speaking.discard(seat.number)

    def _ticks(self, now: float) -> float:
        """The time in timestamps; after a restart it goes on where it was."""
        if self._origin is None:
            self._origin = now - self._time * self.query.every
        return min(float(MOST_TIME), max((now - self._origin) / self.query.every, float(self._time)))

    # -- frames --------------------------------------------------------------------------------------------------------

    def receive(self, site: int, data: bytes, now: float, most: int) -> None:
        """Take a frame of a site, of so many bytes at most; `step` has what follows.

        An `InputError` ends its session.
        """
        seat, frame = self.seats[site], decode(data, most)
        if isinstance(frame, Names):
            self._name(seat, frame)
        elif isinstance(frame, Say):
            self._hear(seat, frame)
        elif isinstance(frame, Reply):
            self._answer(seat, frame)
        else:
            refuse("it is not for a coordinator that knows the site")

    def _name(self, seat: Seat, frame: Names) -> None:
        new = dict.fromkeys(one for one in frame.ids if one not in self._names)
        if len(self._ids) + len(new) > self._most:
            reason = f"objects are too many: {self._most} have numbers, or would have"
            raise TooManyError(reason, remedy="raise the limit of objects, or use fewer")
        if new:
            self._give(new)
            self._out.append(Record(NAMES, encode(Names(tuple(new)))))
        numbers = [self._names[one] for one in frame.ids]
        if self._engine.exclusive:
            others = self._engine.elsewhere(seat.number, np.array(numbers, np.int64))
            numbers = [NOBODY if other else number for number, other in zip(numbers, others.tolist(), strict=True)]
        self._out.append(Send(seat.number, encode(Numbers(tuple(numbers)))))

    def _give(self, ids: Mapping[Id, Any]) -> None:
        for one in ids:
            self._names[one] = len(self._ids)
            self._ids.append(one)

    def _hear(self, seat: Seat, frame: Say) -> None:
        if frame.number != seat.spoken + 1:
            refuse("its number does not follow")
        if frame.fresh == seat.synced or frame.heard > seat.told:
            refuse("it is not what the session has come to")
        messages = self._engine.read(seat.number, frame.messages, reply=False)
        seat.spoken = frame.number
        self.moves += 0 if frame.fresh else max(0, frame.rows - seat.rows)
        seat.rows = frame.rows
        if frame.heard == seat.told:
            seat.said, seat.messages = frame, messages
            self._speaking.add(seat.number)
        else:
            self.crossed += 1
        for message in frame.messages:
            kind, count = self._engine.count(message)
            self._count("up", kind, "coordinator", count, len(message), frame.fresh)

    def _answer(self, seat: Seat, frame: Reply) -> None:
        dialogue = self._dialogue
        if dialogue is None or seat.number not in dialogue.awaited or frame.number != seat.told:
            refuse("it replies to nothing")
        dialogue.replies[seat.number] = self._engine.read(seat.number, frame.messages, reply=True)
        dialogue.raw[seat.number] = frame.messages
        del dialogue.awaited[seat.number]
        for message in frame.messages:
            kind, count = self._engine.count(message)
            self._count("up", kind, "coordinator", count, len(message), seat.number in dialogue.fresh)

    def _count(self, way: str, kind: str, receiver: str, count: int, size: int, initial: bool) -> None:
        entry = self.ledger.entries.setdefault((initial, way, kind, receiver), [0, 0])
        entry[0] += count
        entry[1] += size

    # -- dialogues -----------------------------------------------------------------------------------------------------

    def step(self, now: float) -> list[Action]:
        """Go on as far as possible; what is to be done, in this order. O(what was received)."""
        while self._dialogue is None or not (self._dialogue.over or self._dialogue.awaited):
            if self._dialogue is None:
                if not self._begin(now):
                    break
            else:
                dialogue = self._dialogue
                dialogue.steps.append(dialogue.raw)
                replies, dialogue.replies, dialogue.raw = dialogue.replies, {}, {}
                self._tell(self._engine.go_on(replies), now)
        out, self._out = self._out, []
        return out

    def late(self, now: float) -> list[int]:
        """The sites that a dialogue has waited for too long: their connections are to be closed. O(awaited)."""
        if self._dialogue is None:
            return []
        return [site for site, until in self._dialogue.awaited.items() if until <= now]

    def _begin(self, now: float) -> bool:
        """Begin a dialogue with what sites have said, if there is anything."""
        said: dict[int, Say] = {}
        messages: dict[int, list[Any]] = {}
        claimed: set[int] = set()
        size = 0
        for seat in [self.seats[site] for site in sorted(self._speaking)]:
            if size > MOST_SAID:
                break
            if seat.said is not None and self._checked(seat, seat.said) and self._free(seat, claimed):
                size += sum(map(len, seat.said.messages))
                said[seat.number], messages[seat.number] = seat.said, seat.messages
                seat.taken = seat.said.number
            self._hush(seat)
        if not said:
            return False
        self._time = int(self._ticks(now))
        fresh = {site for site, frame in said.items() if frame.fresh}
        lasting = {site for site, frame in said.items() if frame.last}
        steps = [{site: frame.messages for site, frame in said.items()}]
        self._dialogue = Dialogue(self._time, set(said), lasting, fresh, steps)
        for site in fresh:
            self.seats[site].synced = self.seats[site].here
        self._tell(self._engine.begin(self._time, messages, fresh), now)
        return True

    def _checked(self, seat: Seat, frame: Say) -> bool:
        try:
            self._engine.check(seat.number, seat.messages, len(self._ids), fresh=frame.fresh)
        except InputError as error:
            self._out.append(Close(seat.number, str(error)))
            return False
        return True

    def _free(self, seat: Seat, claimed: set[int]) -> bool:
        """Whether what a site speaks of has not become another's since it asked for the numbers."""
        free = self._unclaimed(seat.number, seat.messages, claimed)
        if not free:
            self._out.append(Close(seat.number, "an object has come to another site first", again=True))
        return free

    def _unclaimed(self, site: int, messages: list[Any], claimed: set[int]) -> bool:
        """Whether a site may speak of what it does, where others have claimed objects in this dialogue; it does too."""
        if not self._engine.exclusive:
            return True
        objects = self._engine.named(messages)
        mine = set(objects.tolist())
        if self._engine.elsewhere(site, objects).any() or not claimed.isdisjoint(mine):
            return False
        claimed |= mine
        return True

    def _tell(self, told: Told, now: float) -> None:
        """Tell sites what the engine has for them; nothing to anybody ends the dialogue."""
        dialogue = self._dialogue
        assert dialogue is not None
        if not told:
            dialogue.over = True
            self._out.append(Commit(dialogue.record()))
            return
        for site, messages in told.items():
            seat = self.seats[site]
            if not (seat.here and seat.synced):
                continue
            if seat.said is not None:
                self._hush(seat)
                self.crossed += 1
            seat.told += 1
            dialogue.parties.add(site)
            dialogue.awaited[site] = now + self._patience
            tell = Tell(seat.told, seat.taken, dialogue.time, tuple(messages))
            self._out.append(Send(site, encode(tell)))
            for message in messages:
                kind, count = self._engine.count(message)
                self._count("down", kind, seat.name, count, len(message), site in dialogue.fresh)

    def committed(self) -> list[Action]:
        """The record of the dialogue is durable: publish, and release all who took part. O(objects)."""
        dialogue = self._dialogue
        assert dialogue is not None and dialogue.over
        out: list[Action] = [self._published()]
        for site in sorted(dialogue.parties):
            seat = self.seats[site]
            if seat.here and seat.synced:
                out.append(Send(site, encode(Settled(seat.taken))))
            self._settle(seat, fresh=site in dialogue.fresh, last=site in dialogue.lasting)
        self._dialogue = None
        self.dialogues += 1
        return out

    def _published(self) -> Publish:
        before, self._skyline = self._skyline, self._engine.skyline()
        left, entered = np.setdiff1d(before, self._skyline), np.setdiff1d(self._skyline, before)
        return Publish(*(tuple(self._ids[one] for one in each.tolist()) for each in (left, entered)))

    def _settle(self, seat: Seat, *, fresh: bool, last: bool) -> None:
        if fresh and (seat.synced or not len(self._engine.at(seat.number))):
            self._away.pop(seat.number, None)
        if last and (seat.synced or not seat.here):
            seat.done = True
            self._away.pop(seat.number, None)

    # -- the log -------------------------------------------------------------------------------------------------------

    def replay(self, kind: int, data: bytes) -> Publish | None:
        """Take a record of the log; what a dialogue changed. A `StateError` for a record that is none."""
        try:
            if kind == SITE:
                seat = read_seat(data, len(self.seats))
                self.seats.append(seat)
                self._by_name[seat.name] = seat
            elif kind == NAMES:
                frame = decode(data, most=1 << 40)
                assert isinstance(frame, Names)
                self._give(dict.fromkeys(frame.ids))
            elif kind == DIALOGUE:
                return self._repeat(data)
            return None
        except (InputError, AssertionError, struct.error, *HOSTILE) as error:
            raise StateError(f"a record cannot be read ({error})", remedy="restore the folder from a copy") from None

    def _repeat(self, data: bytes) -> Publish:
        time, flags, steps = read_dialogue(data)
        fresh = [site for site, flag in flags.items() if flag & 1]
        if max((site for step in steps for site in step), default=0) >= len(self.seats):
            raise InputError("a site says something that never came", remedy="restore the folder from a copy")
        read = self._engine.read
        said = {site: read(site, messages, reply=False) for site, messages in steps[0].items()}
        claimed: set[int] = set()
        for site, messages in said.items():
            self._engine.check(site, messages, len(self._ids), fresh=site in fresh)
            if not self._unclaimed(site, messages, claimed):
                raise InputError("two sites speak of one object", remedy="restore the folder from a copy")
        self._time = time
        self._engine.begin(time, said, fresh)
        for step in steps[1:]:
            self._engine.go_on({site: read(site, said, reply=True) for site, said in step.items()})
        self.dialogues += 1
        for site, flag in flags.items():
            self.seats[site].done = bool(flag & 2)
        return self._published()

    def restarted(self, now: float, since: Mapping[int, float] | None = None) -> None:
        """After all records are replayed: nobody is here, and what is not final is stale; for some it is known since
        when.
        """
        known = [seat.number for seat in self.seats if not seat.done and len(self._engine.at(seat.number))]
        self._away = {site: (since or {}).get(site, now) for site in known}

    def to_bytes(self) -> bytes:
        """Everything, between two dialogues: versioned, without pickle. O(objects)."""
        assert self.resting
        ids = np.frombuffer(encode(Names(tuple(self._ids))), np.uint8)
        sites = [[seat.name, seat.key.hex(), seat.done] for seat in self.seats]
        meta: dict[str, Any] = {"query": self.query.plain(), "sites": sites, "time": self._time}
        meta |= {
            "dialogues": self.dialogues,
            "moves": self.moves,
            "ledger": [[*key, *entry] for key, entry in self.ledger.entries.items()],
        }
        engine = np.frombuffer(self._engine.to_bytes(), np.uint8)
        return pack(_KIND, _VERSION, meta, {"ids": ids, "engine": engine, "skyline": self._skyline})

    @classmethod
    def from_bytes(cls, blob: bytes, query: Query, *, patience: float = 2.0, objects: int = MOST_OBJECTS) -> Self:
        """What `to_bytes` gave, for the same query; a `StateError` for any other bytes."""
        meta, parts = unpack(blob, _KIND, _VERSION)
        try:
            if Query.read(meta["query"]) != query:
                raise StateError("the folder belongs to another query", remedy="use another folder, or that query")
            made = cls(query, patience=patience, objects=objects)
            made._engine = stored_engine(query, parts["engine"].tobytes())
            frame = decode(parts["ids"].tobytes(), most=1 << 40)
            assert isinstance(frame, Names)
            made._give(dict.fromkeys(frame.ids))
            for name, key, done in meta["sites"]:
                seat = Seat(str(name), bytes.fromhex(key), len(made.seats), done=bool(done))
                made.seats.append(seat)
                made._by_name[seat.name] = seat
            made._time, made.dialogues = int(meta["time"]), int(meta["dialogues"])
            made.moves = int(meta.get("moves", 0))
            made._skyline = parts["skyline"].astype(np.int64)
            if not np.isin(made._skyline, np.arange(len(made._ids))).all():
                raise StateError("the answer is of objects without names", remedy="restore it from a copy")
            if not made._engine.fits(len(made.seats), len(made._ids)):
                raise StateError("it knows of sites or objects without names", remedy="restore it from a copy")
            for initial, way, kind, receiver, count, size in meta["ledger"]:
                made.ledger.entries[bool(initial), str(way), str(kind), str(receiver)] = [int(count), int(size)]
            return made
        except (InputError, AssertionError, *HOSTILE) as error:
            raise StateError(f"the snapshot cannot be read ({error})", remedy="restore it from a copy") from None
