"""The filtering protocol in one process: a server, its clients, and a ledger of what they say.

Every message goes through its encoding, so that its bytes are counted and not guessed. A timestamp is over when nobody
has anything to say, as in the paper: messages take no time. The first timestamp is the initialisation, counted apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from skytide.errors import InputError
from skytide.kernel.batch import skyline_mask
from skytide.model import Booleans, Changes, Floats, Integers, Ledger
from skytide.monitors.frequent.changes import PairChange, PairChanges
from skytide.monitors.frequent.pairs import Theta, pairs_of
from skytide.protocols.arrays import grown, room_for
from skytide.protocols.filtering.answers import SNAPSHOT, ExactAnswers
from skytide.protocols.filtering.client import ClientBlock
from skytide.protocols.filtering.filter import Boundaries
from skytide.protocols.filtering.messages import (
    Boxes,
    Kind,
    Message,
    Questions,
    Releases,
    Schedules,
    decode,
    encode,
    size_of,
)
from skytide.protocols.filtering.methods import method_of
from skytide.protocols.filtering.server import joined
from skytide.runtime.faults import Faults, Network

NONE: Integers = np.zeros(0, np.int64)


class Tally:
    """How many messages of each kind went to or came from each client, and how many bytes that is."""

    def __init__(self, dimensions: int) -> None:
        self._dimensions = dimensions
        self._counts: dict[tuple[bool, Kind], Integers] = {}

    def record(self, kind: Kind, clients: Integers, *, initial: bool) -> None:
        """Count one message for each client, of whom each is named once. O(clients)."""
        counts = grown(self._counts.get((initial, kind), NONE), room_for(clients))
        counts[clients] += 1
        self._counts[initial, kind] = counts

    def kinds(self) -> list[dict[str, Any]]:
        """Messages and bytes after the initialisation by way and kind, as a board shows them. O(clients kinds)."""
        found = [(kind, int(counts.sum())) for (initial, kind), counts in self._counts.items() if not initial]
        return [
            {
                "way": "up" if kind.up else "down",
                "kind": kind.name.lower(),
                "messages": told,
                "bytes": told * size_of(kind, self._dimensions),
            }
            for kind, told in sorted(found)
        ]

    def messages(self, *kinds: Kind, initial: bool = False) -> int:
        """How many messages of these kinds. O(clients)."""
        return sum(int(self._counts.get((initial, kind), NONE).sum()) for kind in kinds)

    def ledger(self, names: Sequence[Any] | None = None) -> Ledger:
        """The same as a ledger; what clients send is received by the server. O(clients kinds).

        `names` are the clients' names; without them they are called by their numbers.
        """
        ledger = Ledger()
        for (initial, kind), counts in self._counts.items():
            size, word = size_of(kind, self._dimensions), kind.name.lower()
            if kind.up:
                told = int(counts.sum())
                ledger.entries[initial, "up", word, "server"] = [told, told * size]
                continue
            for client in np.flatnonzero(counts).tolist():
                told, name = int(counts[client]), str(client if names is None else names[client])
                ledger.entries[initial, "down", word, name] = [told, told * size]
        return ledger


class Quality:
    """Recall and precision of answers, averaged over queries and the timestamps from the `over`-th on; 0/0 is 1."""

    def __init__(self, pairs: Sequence[tuple[Theta, int]]) -> None:
        self._pairs = pairs_of(None, None, pairs)
        self._truth: dict[tuple[float, int], set[int]] = {}
        self._given: dict[tuple[float, int], set[int]] = {}
        self._exact = ExactAnswers(pairs)
        self._recall, self._precision = list[float](), list[float]()

    def observe(self, skyline: Integers, given: Changes | PairChanges, time: int) -> None:
        """Take the true skyline of a timestamp and the changes that were given for it. O(answers)."""
        self._follow(self._truth, self._exact.observe(skyline, time))
        self._follow(self._given, given)
        for pair in self._pairs:
            if time + 1 >= pair.over:
                true, said = (kept.get((float(pair.theta), pair.window), set()) for kept in (self._truth, self._given))
                both = len(true & said)
                self._recall.append(both / len(true) if true else 1.0)
                self._precision.append(both / len(said) if said else 1.0)

    def _follow(self, kept: dict[tuple[float, int], set[int]], changes: Changes | PairChanges) -> None:
        only = (float(self._pairs[0].theta), self._pairs[0].window)
        for change in changes:
            key = (change.theta, change.over) if isinstance(change, PairChange) else only
            kept.setdefault(key, set()).symmetric_difference_update({change.id})

    @property
    def recall(self) -> float | None:
        """The mean share of the true answer that was given; None before there is any."""
        return float(np.mean(self._recall)) if self._recall else None

    @property
    def precision(self) -> float | None:
        """The mean share of what was given that is true; None before there is any."""
        return float(np.mean(self._precision)) if self._precision else None


class Simulation:
    """Runs a method over a series of timestamps; clients are numbers from 0, timestamps are counted from 0.

    `quality` also computes every true skyline, for recall and precision. `everything` also counts what clients would
    send who tell every move. `faults` let messages be lost, doubled, late and out of order; the link layer sees to it
    that none is missing, and counts what it sends apart, in
    `network.counts`. Options are those of `method_of`.

    >>> simulation = Simulation(2, "filter")
    >>> points = np.array([[1.0, 4.0], [2.0, 2.0], [3.0, 3.0]])
    >>> for moved in (points, points[:0], points + [[0.0], [2.0], [0.0]]):
    ...     for change in simulation.step(np.arange(len(moved)), moved):
    ...         print(*change)
    0 + 0
    0 + 1
    2 - 1
    2 + 2
    >>> cost = simulation.cost()
    >>> cost["uplink"], cost["downlink"], cost["failures"], cost["probes"]
    (1, 1, 1, 0)
    """

    def __init__(
        self,
        dimensions: int,
        method: str = "filter",
        *,
        pairs: Sequence[tuple[Theta, int]] = SNAPSHOT,
        epsilon: float = 0.2,
        delta: float = 0.1,
        seed: int = 1,
        boundaries: Boundaries = "cost",
        quality: bool = False,
        everything: bool = False,
        faults: Faults | None = None,
    ) -> None:
        self._dimensions = dimensions
        made = partial(method_of, method, dimensions, pairs=pairs, epsilon=epsilon, delta=delta, seed=seed)
        self._made = partial(made, boundaries=boundaries)
        self._server, self._answers, self.exact = self._made()
        self.network = Network(faults or Faults())
        self._faulty = faults is not None
        self._block = ClientBlock(dimensions)
        self._quality = Quality(pairs) if quality and not self.exact else None
        self._points: Floats = np.zeros((0, dimensions))
        self._alive: Booleans = np.zeros(0, np.bool_)
        self._crashed: Integers = NONE
        self.tally = Tally(dimensions)
        self.everything = Tally(dimensions) if everything else None
        self.timestamps = 0

    def step(self, clients: Integers, points: Floats, gone: Integers = NONE) -> Changes | PairChanges:
        """Let a timestamp come: new points of some clients, each once, and some clients that go; what changes.

        A client that goes and has a new point has gone and come back.
        """
        points = np.ascontiguousarray(points, np.float64).reshape(-1, self._dimensions)
        clients, gone = np.asarray(clients, np.int64), np.unique(np.asarray(gone, np.int64))
        once = len(points) == len(clients) == len(np.unique(clients))
        if not once or np.isnan(points).any() or min(clients.min(initial=0), gone.min(initial=0)) < 0:
            raise InputError(
                "a timestamp is not usable", remedy="number clients from 0, and give each one point of numbers"
            )
        time = self.timestamps
        self.timestamps += 1
        if self.everything is not None:
            self._told_naively(self.everything, clients, points, gone)
        clients, points = self._world(clients, points, gone)
        whom = self._server.begin(time, self._carried(self._block.observe(time, clients, points, gone)))
        while len(whom):
            asked = self._carried([Questions(time, whom)])
            answers = self._carried([self._block.answer(block) for block in asked if isinstance(block, Questions)])
            whom = self._server.answered(joined(answers))
        for order in self._carried(self._server.settle()):
            assert isinstance(order, Boxes | Schedules | Releases)
            self._block.obey(order)
        changes = self._answers.observe(self._server.skyline(), time)
        if self._quality is not None:
            living = np.flatnonzero(self._alive)
            truth = living[skyline_mask(self._points[living])] if len(living) else NONE
            self._quality.observe(truth, changes, time)
        return changes

    def skyline(self) -> Integers | None:
        """The skyline of the latest timestamp; None if the method does not know it."""
        return self._server.skyline()

    def crash(self, clients: Integers) -> None:
        """Let clients lose all they know; in the next timestamp they come as new ones, with the points they have."""
        clients = clients[self._alive[clients]]
        self._block.forget(clients)
        self._crashed = np.union1d(self._crashed, clients)

    def crash_server(self) -> None:
        """Let the server lose all it knows of the clients, who notice and come as new ones. Its counts are durable."""
        self._server = self._made().server
        self.crash(np.flatnonzero(self._alive))

    def _carried(self, messages: Sequence[Message]) -> list[Message]:
        """The messages as they arrive, counted; over a faulty network one by one, in any order."""
        for block in messages:
            self.tally.record(block.kind, block.clients, initial=block.time == 0)
        blocks = [(encode(block, self._dimensions), size_of(block.kind, self._dimensions)) for block in messages]
        if not self._faulty:
            return [decode(block) for block, _ in blocks]
        single = [block[at : at + size] for block, size in blocks for at in range(0, len(block), size)]
        return [decode(message) for message in self.network.carry(single)]

    def _world(self, clients: Integers, points: Floats, gone: Integers) -> tuple[Integers, Floats]:
        """Remember where clients are; those who move or have crashed, with their points."""
        room = room_for(clients, gone)
        self._points, self._alive = grown(self._points, room), grown(self._alive, room)
        self._alive[gone] = False
        self._alive[clients], self._points[clients] = True, points
        back = np.setdiff1d(self._crashed[self._alive[self._crashed]], clients)
        self._crashed = NONE
        return np.concatenate((clients, back)), np.concatenate((points, self._points[back]))

    def _told_naively(self, tally: Tally, clients: Integers, points: Floats, gone: Integers) -> None:
        """Count what clients tell who tell every move. O(clients that move or go)."""
        room, initial = room_for(clients, gone), self.timestamps == 1
        alive, before = grown(self._alive, room).copy(), grown(self._points, room)
        tally.record(Kind.DELETE, gone[alive[gone]], initial=initial)
        alive[gone] = False
        here = alive[clients]
        moved = here & (before[clients] != points).any(axis=1)
        tally.record(Kind.INSERT, clients[~here], initial=initial)
        tally.record(Kind.UPDATE, clients[moved], initial=initial)

    def points(self, clients: Integers) -> tuple[Integers, Floats]:
        """Those of the clients that are there, and their points. O(clients)."""
        here = clients[clients < len(self._alive)]
        here = here[self._alive[here]]
        return here, self._points[here]

    def ledger(self) -> dict[str, Any]:
        """What was sent after the initialisation, as a board shows it; with `everything` beside what that takes."""
        kinds = self.tally.kinds()
        sums = {name: sum(one[name] for one in kinds) for name in ("messages", "bytes")}
        naive = None if self.everything is None else self.everything.kinds()
        more = {f"naive_{name}": None if naive is None else sum(one[name] for one in naive) for name in sums}
        return {**sums, **more, "kinds": kinds}

    def cost(self) -> dict[str, Any]:
        """What was sent after the initialisation, what was sent in it, and how good the answers were.

        With Theorem 4.1, for `filter`: uplink = failures + probes + inserts + deletes, downlink = failures + 2 probes +
        inserts. Recall and precision of an exact method are 1; of another, None unless `quality` was asked for.
        """
        ledger, tally = self.tally.ledger(), self.tally

        def totals(initial: bool) -> dict[str, int]:
            up, down = ledger.messages("up", initial=initial), ledger.messages("down", initial=initial)
            sizes = {way: ledger.bytes(way, initial=initial) for way in ("up", "down")}
            found = {"uplink": up, "downlink": down, "messages": up + down}
            return {**found, "bytes_up": sizes["up"], "bytes_down": sizes["down"]}

        quality = self._quality
        return {
            **totals(False),
            "failures": tally.messages(Kind.FAILURE),
            "probes": tally.messages(Kind.ANSWER),
            "inserts": tally.messages(Kind.INSERT),
            "deletes": tally.messages(Kind.DELETE),
            "recall": 1.0 if self.exact else quality and quality.recall,
            "precision": 1.0 if self.exact else quality and quality.precision,
            "timestamps": self.timestamps,
            "kinds": ledger.by_kind(),
            "initial": totals(True),
        }
