"""Sites and a coordinator in one process, with a scheduler that is free to do what networks and machines do.

Frames of a connection stay in order; everything else is up to the scheduler: which one comes next, when a connection
breaks, who crashes. The coordinator's log is a list of which only what was made durable survives a crash.
"""

from __future__ import annotations

import itertools
import random
from collections import deque
from typing import Any

from skytide.expressions import parse
from skytide.protocols.network.frames import Hello, Id, decode
from skytide.protocols.network.member import Member
from skytide.protocols.network.query import Query
from skytide.protocols.network.seats import DIALOGUE, Close, Commit, Publish, Record, Send
from skytide.protocols.network.table import Table
from skytide.reference.batch import skyline
from skytide.reference.functional import expression, functional_skyline

Values = tuple[float, ...] | None
MOST_CHOICES = 500


class Source:
    """A site with the rows it was given, which outlive it: its member may crash and start anew with all of them."""

    def __init__(self, number: int) -> None:
        self.name = f"site-{number}"
        self.key = bytes([number]) * 16
        self.member = Member(self.name, self.key)
        self.rows: list[tuple[Id, Values]] = []  # put into this member, in order
        self.lost: list[tuple[Id, Values]] = []  # put into members before, and never acknowledged: they may count
        self.known: dict[Id, Values] = {}  # of the coordinator, by what was acknowledged
        self.up: deque[bytes] = deque()
        self.down: deque[bytes] = deque()
        self.connected = False
        self.seat: int | None = None

    def put(self, one: Id, values: Values) -> None:
        before = self.member.rows
        self.member.put(one, values)
        assert self.member.rows == before + 1
        self.rows.append((one, values))

    def note(self) -> None:
        """Take over what has been acknowledged."""
        done = self.member.acknowledged - (self.member.rows - len(self.rows))
        for one, values in self.rows[:done]:
            self.known[one] = values
        del self.rows[:done]
        if done:
            self.lost = []

    def choices(self) -> list[dict[Id, list[Values]]]:
        """For each object what the coordinator may reckon with: the acknowledged values, or newer ones."""
        found = {one: [values] for one, values in self.known.items()}
        for one, values in (*self.lost, *self.rows):
            found.setdefault(one, [None]).append(values)
        return [found]


class World:
    """A coordinator and sites."""

    def __init__(self, query: Query, sites: int, seed: int) -> None:
        self.query = query
        self.random = random.Random(seed)
        self.table = Table(query)
        self.sources = [Source(number) for number in range(sites)]
        self.log: list[tuple[int, bytes]] = []
        self.durable = 0
        self.snapshot: bytes | None = None
        self.committing = False
        self.now = 0.0
        self.published: set[Id] = set()
        self.checked = 0
        self.drifting = self.random.random() < 0.7
        self.returning = self.random.choice((1.0, 0.1))
        """How soon a site that is away comes back."""

    # -- what happens --------------------------------------------------------------------------------------------------

    def act(self) -> None:
        """Let something happen."""
        self.now += self.random.choice((0.0, 0.01, 0.3))
        source = self.random.choice(self.sources)
        roll = self.random.random()
        if roll < 0.25:
            self.put(source)
        elif roll < 0.55:
            self.deliver_up(source)
        elif roll < 0.85:
            self.deliver_down(source)
        elif roll < 0.95:
            if not source.connected and self.random.random() < self.returning:
                self.connect(source)
            if self.committing and self.random.random() < 0.8:
                self.commit()
        elif roll < 0.97:
            self.cut(source)
        elif roll < 0.98:
            self.crash_site(source)
        elif roll < 0.985:
            self.crash_coordinator()
        elif roll < 0.99 and not self.committing and self.table.idle:
            self.snapshot, self.log, self.durable = self.table.to_bytes(), [], 0
        self.check()

    def put(self, source: Source) -> None:
        if source.member.query is None or source.member.finished:
            return
        if not source.connected and self.random.random() < 0.9:
            return  # what is put and not acknowledged may count or not, and much of it would allow any answer
        pool: list[Id] = ["a", "b", 3, 4]
        if self.query.protocol == "filtering":
            pool = [f"{source.name}-{one}" for one in pool[:2]]
        one = self.random.choice(pool)
        source.put(one, self.drawn(dict(source.known) | dict(source.rows), one))
        self.flush(source)

    def drawn(self, latest: dict[Id, Values], one: Id) -> Values:
        """An object's next values: a step from where it is, which a site may absorb, or a jump; or it leaves."""
        roll, before = self.random.random(), latest.get(one)
        if roll < 0.05:
            return None
        if roll < 0.08:
            return tuple(self.random.choice((1e300, -1e300, 0.5, 0.0)) for _ in self.query.columns)
        if self.drifting and before is not None and roll < 0.8:
            return tuple(value + self.random.choice((-0.25, 0.0, 0.25)) for value in before)
        return tuple(float(self.random.randint(-4, 4)) for _ in self.query.columns)

    def flush(self, source: Source) -> None:
        out = source.member.advance(self.now)
        if source.connected:
            source.up.extend(out)

    def connect(self, source: Source) -> None:
        source.connected, source.seat = True, None
        source.up, source.down = deque(source.member.connected()), deque()

    def cut(self, source: Source) -> None:
        if source.connected:
            source.connected = False
            source.up, source.down = deque(), deque()
            source.member.lost()
            if source.seat is not None:
                self.table.leave(source.seat, self.now)
                source.seat = None
                self.go()

    def crash_site(self, source: Source) -> None:
        """All memory is lost; the rows are where they were, and the values they come to are put again."""
        self.cut(source)
        source.note()
        latest = {**source.known, **dict(source.lost), **dict(source.rows)}
        query, source.member = source.member.query, Member(source.name, source.key)
        source.member.query = query
        source.lost, source.rows = source.lost + source.rows, []
        for one, values in latest.items():
            if query is not None:
                source.put(one, values)

    def crash_coordinator(self) -> None:
        """What is not durable is lost, or not."""
        kept = self.random.randint(self.durable, len(self.log))
        del self.log[kept:]
        self.durable, self.committing = kept, False
        make = Table.from_bytes if self.snapshot is not None else None
        self.table = make(self.snapshot, self.query) if make and self.snapshot is not None else Table(self.query)
        for kind, data in self.log:
            self.table.replay(kind, data)
        self.table.restarted(self.now)
        self.published = set(self.table.skyline())
        for source in self.sources:
            source.connected, source.seat = False, None
            source.up, source.down = deque(), deque()
            source.member.lost()

    def deliver_up(self, source: Source) -> None:
        if not source.up:
            return
        data = source.up.popleft()
        frame = decode(data)
        if isinstance(frame, Hello):
            source.seat = self.table.arrive(frame.site, frame.key, self.now)
        else:
            assert source.seat is not None
            self.table.receive(source.seat, data, self.now, 1 << 24)
        self.go()

    def deliver_down(self, source: Source) -> None:
        if source.down:
            source.member.receive(source.down.popleft(), self.now)
            self.flush(source)

    def go(self) -> None:
        if not self.committing:
            self.do(self.table.step(self.now))

    def commit(self) -> None:
        self.durable, self.committing = len(self.log), False
        self.do(self.table.committed())
        self.go()

    def do(self, actions: list[Any]) -> None:
        for action in actions:
            assert not isinstance(action, Close), action
            if isinstance(action, Send):
                self.at(action.site).down.append(action.data)
            elif isinstance(action, Record):
                self.log.append((action.kind, action.data))
            elif isinstance(action, Commit):
                self.log.append((DIALOGUE, action.data))
                self.committing = True
            elif isinstance(action, Publish):
                assert not set(action.left) - self.published and not set(action.entered) & self.published
                self.published = (self.published - set(action.left)) | set(action.entered)

    def at(self, seat: int) -> Source:
        return next(
            source
            for source in self.sources
            if source.seat == seat or (source.connected and self.number(source) == seat)
        )

    def number(self, source: Source) -> int | None:
        return next((seat.number for seat in self.table.seats if seat.name == source.name), None)

    # -- what must hold ------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """While it is not stale, the answer is true of what is acknowledged, and of what may be known besides."""
        for source in self.sources:
            source.note()
        assert set(self.table.skyline()) == self.published
        if not self.table.exact:
            return
        options = [(source, one, each) for source in self.sources for one, each in source.choices()[0].items()]
        size = 1
        for *_, each in options:
            size *= len(each)
        if size > MOST_CHOICES:
            return
        wrong = []
        for chosen in itertools.product(*(each for *_, each in options)):
            held = [(source, one, values) for (source, one, _), values in zip(options, chosen, strict=True)]
            wanted = self.reference([(s, one, values) for s, one, values in held if values is not None])
            if wanted == self.published:
                self.checked += 1
                return
            wrong.append(wanted)
        raise AssertionError((self.published, wrong))

    def reference(self, held: list[tuple[Source, Id, tuple[float, ...]]]) -> set[Id]:
        if self.query.protocol == "filtering":
            signs = [1] * len(self.query.minimize) + [-1] * len(self.query.maximize)
            rows = [tuple(sign * x for sign, x in zip(signs, values, strict=True)) for _, _, values in held]
            return {held[place][1] for place in skyline(rows)}
        objects: dict[Id, list[Any]] = {}
        for _, one, values in held:
            objects.setdefault(one, []).append(dict(zip(self.query.columns, values, strict=True)))
        functions = [expression(parse(text)) for text in (*self.query.minimize, *self.query.maximize)]
        signs = [1] * len(self.query.minimize) + [-1] * len(self.query.maximize)
        return functional_skyline(objects, functions, signs=signs, nulls=self.query.nulls)

    def heal(self) -> None:
        """Let everybody come back and everything arrive; then the answer is exact, of all rows."""
        for _ in range(100_000):
            moved = False
            for source in self.sources:
                if not source.connected:
                    self.connect(source)
                    moved = True
                while source.up:
                    self.deliver_up(source)
                    moved = True
                if self.committing:
                    self.commit()
                    moved = True
                while source.down:
                    self.deliver_down(source)
                    moved = True
                self.flush(source)
                moved |= bool(source.up)
            self.check()
            if not moved:
                break
        else:
            raise AssertionError("it does not come to rest")
        assert self.table.exact and self.table.idle
        for source in self.sources:
            assert source.member.settled and not source.rows, source.rows
