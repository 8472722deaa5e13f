"""How rows flow from a window's input to its engines: in arrival order, one engine per group, instants closed in time.

`CountFlow` closes every row at once. `TimeFlow` holds rows back until their instant is closed, puts them in order, and
wakes groups without new rows only when something of theirs expires.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from skytide.model import Booleans, Integers
from skytide.monitors.sliding.clock import HIGHEST, LOWEST, Clock
from skytide.monitors.sliding.engine import Engine, Moves, Rows
from skytide.monitors.sliding.waiting import Arrivals, Waiting

MakeEngine = Callable[[], Engine]


@dataclass
class Flow:
    """What the two flows share: the engines of the groups and what their work adds up to."""

    dimensions: int
    make: MakeEngine
    engines: dict[int, Engine] = field(default_factory=dict)
    work: dict[str, int] = field(default_factory=lambda: {"entered": 0, "left": 0})

    def engine(self, code: int) -> Engine:
        """The engine of a group, made when its first row comes."""
        if code not in self.engines:
            self.engines[code] = self.make()
        return self.engines[code]

    def _count(self, moves: Moves) -> Moves:
        entered = int(np.count_nonzero(moves.signs > 0))
        self.work["entered"] += entered
        self.work["left"] += len(moves.signs) - entered
        return moves

    def drop_engine(self, code: int) -> None:
        """Forget a group that holds nothing; its work stays counted."""
        for name, amount in self.engines.pop(code).counters().items():
            if name != "memory_bytes":
                self.work[name] = self.work.get(name, 0) + amount

    def counters(self) -> dict[str, int]:
        """Work of all groups since the start; memory as of now."""
        total = {"dominance_tests": 0, "node_visits": 0, "memory_bytes": 0, **self.work}
        for engine in self.engines.values():
            for name, amount in engine.counters().items():
                total[name] = total.get(name, 0) + amount
        return total

    def retained(self) -> dict[int, Rows]:
        """The retained rows of every group."""
        return {code: engine.retained() for code, engine in self.engines.items()}


@dataclass
class CountFlow(Flow):
    """A count window: the i-th row of a group lives until row i + N of the group arrives; every row is an instant."""

    length: int = 1
    number: int = 0
    counts: dict[int, int] = field(default_factory=dict)

    def take(self, rows: Arrivals) -> Moves:
        """Take rows in order of arrival; times of the moves are arrival numbers over all groups."""
        numbers = np.arange(self.number + 1, self.number + 1 + len(rows.handles), dtype=np.int64)
        parts = []
        for code, mine in rows._replace(keys=numbers).by_group():
            before = self.counts.get(code, 0)
            local = np.arange(before + 1, before + 1 + len(mine.handles), dtype=np.int64)
            last = before + len(local)
            moves = self.engine(code).run(Rows(mine.values, local, local + self.length, mine.handles), last)
            self.counts[code] = last
            parts.append(Moves(mine.keys[moves.times - before - 1], moves.signs, moves.handles))
        self.number += len(numbers)
        return self._count(Moves.joined(parts))

    def answer_rows(self) -> dict[int, Rows]:
        """The rows among which the answer lies, by group, all alive."""
        return self.retained()


@dataclass
class TimeFlow(Flow):
    """A time window: rows wait until their instant is closed."""

    clock: Clock = field(kw_only=True)
    latest: int = LOWEST
    """The latest time seen."""
    closed: int = LOWEST
    """The last closed instant."""
    waiting: Waiting = field(init=False)
    idle: list[int] = field(default_factory=list)
    """Groups that hold nothing any more, since the list was last emptied."""
    _wakes: list[tuple[int, int]] = field(default_factory=list)
    _wake_of: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.waiting = Waiting(self.dimensions)

    def late(self, keys: Integers) -> Booleans:
        """Which rows come too late, judged row by row in the order in which they come."""
        if not len(keys) or (keys[0] >= self.latest and keys[0] > self.closed and (keys[1:] >= keys[:-1]).all()):
            return np.zeros(len(keys), dtype=bool)
        seen = np.maximum.accumulate(np.concatenate(([self.latest], keys[:-1])))
        return (keys <= self.closed) | self.clock.too_late(keys, seen)

    def take(self, rows: Arrivals) -> Moves:
        """Take rows that are not too late; what they close comes out."""
        if not len(rows.keys):
            return Moves.joined([])
        self.latest = max(self.latest, int(rows.keys.max()))
        bound = self.clock.closed_by(self.latest)
        self.waiting.add(rows, max(bound, self.closed))
        return self.close(bound)

    def close(self, bound: int) -> Moves:
        """Make every instant up to the bound final."""
        if bound <= self.closed:
            return Moves.joined([])
        due = self.waiting.release(bound)
        parts = []
        for code, mine in due.by_group():
            rows = Rows(mine.values, mine.keys, self.clock.expiries(mine.keys), mine.handles)
            parts.append(self._run(code, rows, bound))
        while self._wakes and self._wakes[0][0] <= bound:
            at, code = heapq.heappop(self._wakes)
            if self._wake_of.get(code) != at:
                continue  # an earlier wake took its place
            del self._wake_of[code]
            if self.engines[code].next_event() <= bound:
                parts.append(self._run(code, _no_rows(self.dimensions), bound))
            else:
                self.wake(code, self.engines[code].next_event())
        self.closed = bound
        return self._count(Moves.joined(parts))

    def _run(self, code: int, rows: Rows, bound: int) -> Moves:
        engine = self.engine(code)
        moves = engine.run(rows, bound)
        self.wake(code, engine.next_event())
        return moves

    def wake(self, code: int, at: int) -> None:
        """See to it that the group is run when the instant `at` is closed, or is forgotten if nothing is to come.

        A wake that is too early stays and is put off when it is due: a group has one wake, however often it changes.
        """
        if at == HIGHEST:
            self.drop_engine(code)
            self._wake_of.pop(code, None)
            self.idle.append(code)
        elif at < self._wake_of.get(code, HIGHEST):
            self._wake_of[code] = at
            heapq.heappush(self._wakes, (at, code))

    def answer_rows(self) -> dict[int, Rows]:
        """The rows among which the answer as of the latest row lies, by group, all alive then."""
        at = max(self.latest, self.closed)
        found = self.retained()
        for code, mine in self.waiting.all().by_group():
            waiting = Rows(mine.values, mine.keys, self.clock.expiries(mine.keys), mine.handles)
            found[code] = _appended(found[code], waiting) if code in found else waiting
        return {code: rows.pick(rows.expiries > at) for code, rows in found.items()}


def _no_rows(dimensions: int) -> Rows:
    empty = np.zeros(0, np.int64)
    return Rows(np.zeros((0, dimensions)), empty, empty, empty)


def _appended(rows: Rows, more: Rows) -> Rows:
    return Rows(
        np.concatenate((rows.values, more.values)),
        np.concatenate((rows.arrivals, more.arrivals)),
        np.concatenate((rows.expiries, more.expiries)),
        np.concatenate((rows.handles, more.handles)),
    )
