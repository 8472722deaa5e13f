"""What sites and a coordinator say to each other: frames and their bytes by kind, without sockets and faults."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.work import data, truths
from benchmarks.work.truths import Answer
from skytide.model import Integers
from skytide.protocols.network.frames import Hello, decode
from skytide.protocols.network.member import Member
from skytide.protocols.network.query import Query
from skytide.protocols.network.seats import Close, Commit, Publish, Record, Send
from skytide.protocols.network.table import Table

Runs = dict[str, tuple[Callable[[], tuple[dict[str, int], Answer]], Callable[[], Answer]]]


class World:
    """Sites that connect once and never break off, and a log that is durable at once."""

    def __init__(self, query: Query, sites: int) -> None:
        self._table = Table(query)
        self._members = [Member(f"site-{number}", bytes([number]) * 16) for number in range(sites)]
        self._seats: dict[int, Member] = {}
        self._numbers: dict[int, int] = {}
        self._queue: deque[tuple[int, bytes]] = deque()
        self.counts: Counter[str] = Counter()
        self.answer: set[Any] = set()
        for number, member in enumerate(self._members):
            self._queue.extend((number, frame) for frame in member.connected())
        self.rest(0.0)

    def put(self, site: int, one: Any, values: Any) -> None:
        """Give a site a row."""
        self._members[site].put(one, values)

    def rest(self, now: float) -> None:
        """Let everybody speak until nobody has anything to say."""
        while True:
            for number, member in enumerate(self._members):
                self._queue.extend((number, frame) for frame in member.advance(now))
            if not self._queue:
                return
            while self._queue:
                self._up(*self._queue.popleft(), now)

    def _count(self, way: str, frame: bytes) -> None:
        kind = type(decode(frame)).__name__.lower()
        self.counts[f"{way} {kind}"] += 1
        self.counts[f"{way} {kind} bytes"] += len(frame)

    def _up(self, site: int, frame: bytes, now: float) -> None:
        self._count("up", frame)
        said = decode(frame)
        if isinstance(said, Hello):
            seat = self._table.arrive(said.site, said.key, now)
            self._seats[seat], self._numbers[site] = self._members[site], seat
        else:
            self._table.receive(self._numbers[site], frame, now, 1 << 24)
        self._do(self._table.step(now), now)

    def _do(self, actions: list[Any], now: float) -> None:
        waiting = deque(actions)
        while waiting:
            action = waiting.popleft()
            assert not isinstance(action, Close), action
            if isinstance(action, Send):
                self._count("down", action.data)
                self._seats[action.site].receive(action.data, now)
            elif isinstance(action, Record | Commit):
                self.counts["log bytes"] += len(action.data)
            if isinstance(action, Commit):
                waiting.extend(self._table.committed())
                waiting.extend(self._table.step(now))
            elif isinstance(action, Publish):
                self.answer = (self.answer - set(action.left)) | set(action.entered)


def carried(query: Query, sites: Integers, moves: data.Moves) -> tuple[dict[str, int], Answer]:
    """Rows that sites are given time by time; the answer after each time."""
    world = World(query, int(sites.max()) + 1)
    found: Answer = []
    before: set[Any] = set()
    row = 0
    for time in sorted(set(moves.times.tolist())):
        while row < len(moves.times) and moves.times[row] == time:
            world.put(int(sites[row]), int(moves.ids[row]), tuple(moves.values[row].tolist()))
            row += 1
        world.rest(float(time))
        now = world.answer
        found += [(time, "-", one) for one in sorted(before - now, key=str)]
        found += [(time, "+", one) for one in sorted(now - before, key=str)]
        before = set(now)
    return dict(sorted(world.counts.items())), found


def runs() -> Runs:
    """By name."""
    moves = data.walks(51, 60, 25, 2, stride=2)
    found: Runs = {}
    for method in ("naive", "filter"):
        query = Query("filtering", ("c0", "c1"), method=method)
        found[f"network: filtering, {method}"] = (
            partial(carried, query, moves.ids % 5, moves),
            partial(truths.updates, moves),
        )
    local = data.Moves(moves.times, moves.ids // 4, moves.values)
    functions = ("c0", "norm(c0, c1)")
    for method in ("central", "auto"):
        query = Query("fragmented", functions, method=method)
        found[f"network: fragmented, {method}"] = (
            partial(carried, query, moves.ids % 4, local),
            partial(truths.fragments, local, moves.ids % 4, functions),
        )
    return found
