"""What honest sites and an honest coordinator say to each other, recorded: where the fuzzer's inputs come from."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field

from skytide.protocols.network.frames import Hello, Id, Reply, Say, Tell, decode
from skytide.protocols.network.member import Member
from skytide.protocols.network.query import Query
from skytide.protocols.network.seats import DIALOGUE, Action, Close, Commit, Record, Send
from skytide.protocols.network.table import Table

QUERIES = (
    Query("filtering", ("p",), ("q",)),
    Query("filtering", ("p",), ("q",), method="naive"),
    Query("fragmented", ("norm(p, q)",), ("p / q",), nulls="worst"),
    Query("fragmented", ("p", "var(q)"), (), method="direct"),
    Query("fragmented", ("p",), ("q",), method="pivot"),
)


@dataclass
class Recorded:
    """The frames, messages, records and snapshots of a conversation."""

    query: Query
    up: list[bytes] = field(default_factory=list)
    down: list[bytes] = field(default_factory=list)
    messages: list[bytes] = field(default_factory=list)
    records: list[tuple[int, bytes]] = field(default_factory=list)
    snapshots: list[bytes] = field(default_factory=list)


class Conversation:
    """A table and members, whose frames all arrive at once and in order."""

    def __init__(self, query: Query, sites: int, seed: int) -> None:
        self.random, self.table = random.Random(seed), Table(query)
        self.members = [Member(f"site-{number}", bytes([number]) * 16) for number in range(sites)]
        self.recorded = Recorded(query)
        self._inboxes: dict[int, deque[bytes]] = {}
        self._seats: dict[int, Member] = {}
        self.strange: dict[int, list[bytes]] = {}
        """What was sent to sites that are none of the members."""

    def begin(self) -> None:
        """Let all members come."""
        for member in self.members:
            self._come(member)
        self.settle()

    def _come(self, member: Member) -> None:
        (hello,) = member.connected()
        self._note(self.recorded.up, hello)
        found = decode(hello)
        assert isinstance(found, Hello)
        seat = self.table.arrive(found.site, found.key, 0.0)
        self._seats[seat], self._inboxes[seat] = member, deque()

    def _note(self, where: list[bytes], frame: bytes) -> None:
        where.append(frame)
        found = decode(frame)
        if isinstance(found, Say | Reply | Tell):
            self.recorded.messages += found.messages

    def settle(self) -> None:
        """Deliver until nobody has anything to say."""
        moved = True
        while moved:
            moved = self._act(self.table.step(1.0))
            for seat, member in self._seats.items():
                while self._inboxes[seat]:
                    member.receive(self._inboxes[seat].popleft(), 1.0)
                for frame in member.advance(1.0):
                    self._note(self.recorded.up, frame)
                    self.table.receive(seat, frame, 1.0, 1 << 24)
                    moved = True

    def _act(self, actions: list[Action]) -> bool:
        todo = deque(actions)
        while todo:
            action = todo.popleft()
            if isinstance(action, Send) and action.site in self._inboxes:
                self._note(self.recorded.down, action.data)
                self._inboxes[action.site].append(action.data)
            elif isinstance(action, Send):
                self.strange.setdefault(action.site, []).append(action.data)
            elif isinstance(action, Record):
                self.recorded.records.append((action.kind, action.data))
            elif isinstance(action, Commit):
                self.recorded.records.append((DIALOGUE, action.data))
                todo.extend(self.table.committed())
            elif isinstance(action, Close):
                self.table.leave(action.site, 1.0)
                if action.site in self._inboxes:
                    assert action.again, action
                    self._come(self._seats[action.site])
        return bool(actions)

    def put(self) -> None:
        """A random row at a random site."""
        number = self.random.randrange(len(self.members))
        names: list[Id] = ["a", "b", 3, 4, "é"]
        one = self.random.choice(names)
        own: Id = f"{number}-{one}" if self.table.query.protocol == "filtering" else one
        values = [float(self.random.randint(-4, 4)) for _ in self.table.query.columns]
        self.members[number].put(own, values if self.random.random() < 0.9 else None)


def recorded(query: Query, seed: int, rows: int = 60) -> Recorded:
    """A conversation of three sites."""
    talk = Conversation(query, 3, seed)
    talk.begin()
    for row in range(rows):
        talk.put()
        talk.settle()
        if not row % 20:
            talk.recorded.snapshots.append(talk.table.to_bytes())
    talk.members[0].end()
    talk.settle()
    talk.recorded.snapshots.append(talk.table.to_bytes())
    return talk.recorded
