"""Follows a coordinator: its answer, with the values it knows, its changes, who is out of touch, and what was sent.

By the numbers of events nothing is shown twice and nothing is left out, over restarts of the coordinator and lost
connections. Where events are gone in between, the answer is read as a whole, and what differs is shown.
"""

from __future__ import annotations

import time
from typing import Any, Self

import numpy as np
import pyarrow as pa

from skytide.dashboard.board import Board
from skytide.dashboard.following import Follower
from skytide.dashboard.values import moment_text, number_of, texts
from skytide.errors import InputError
from skytide.model import Preference
from skytide.spark.sources.coordinator import Coordinator, access_of

PATIENCE = 3.0
"""Seconds without an answer after which the coordinator is said to be away."""
MOST_EVENTS = 5_000
PAUSE = 1.0
"""Seconds between two looks at values and at the ledger."""
_KINDS = {"filtering": "monitor", "fragmented": "fragments"}
_EVERYTHING = "/objects?all=1"


class CoordinatorFollower(Follower):
    """Feeds a board from a coordinator."""

    def __init__(self, coordinator: Coordinator, board: Board, columns: list[str]) -> None:
        super().__init__(board)
        self._coordinator, self._columns = coordinator, columns
        self._last: tuple[int, float | None] | None = None
        self._members: set[str] = set()
        self._others: set[str] = set()
        self._looked = -PAUSE
        self._stale = True

    @classmethod
    def of(
        cls, url: str, *, token: str | None = None, token_file: str | None = None, certificate: str | None = None
    ) -> Self:
        """The follower of an address; an error where no coordinator answers, or not to this token."""
        access = access_of(url, token=token, token_file=token_file, certificate=certificate, timeout=PATIENCE)
        coordinator = Coordinator(access)
        try:
            query = coordinator.json("/objects")["query"]
            preference = Preference(query["min"], query["max"])
            kind = "frequent" if "theta" in query else _KINDS[query["protocol"]]
        except InputError as problem:
            if "token" in problem.reason:
                problem.remedy = "give a reader's token with --token-file"
            raise
        except (KeyError, TypeError):
            raise InputError("does not say what it asks for", value=url, remedy="use the same version") from None
        finally:
            coordinator.close()
        parameters = {name: query[name] for name in ("protocol", "method", "theta", "over") if name in query}
        board = Board(preference, title=access.url, kind=kind, parameters=parameters)
        return cls(coordinator, board, [str(name) for name in preference.names])

    def look(self) -> bool:
        """Take events that are new; from time to time values and numbers."""
        oldest, newest = self._coordinator.bounds()
        if self._last is None or not self._same(oldest, newest):
            self._begin(oldest)
            self.go_on()
            return True
        number = self._last[0]
        due = time.monotonic() - self._looked >= PAUSE
        if newest > number or due:
            self._values()
        if newest > number:
            self._events(number, min(newest, number + MOST_EVENTS))
        if due:
            self._numbers()
        self.go_on()
        return newest > number

    def release(self) -> None:
        """End the connection."""
        self._coordinator.close()

    def _same(self, oldest: int, newest: int) -> bool:
        """Whether events go on from the last one: none are missing, and it is still the same coordinator."""
        assert self._last is not None
        number, moment = self._last
        if not oldest - 1 <= number <= newest:
            return False
        if newest == number or number < oldest or moment is None:
            return True
        return bool(self._coordinator.event(number)["time"] == moment)

    # -- the answer ----------------------------------------------------------------------------------------------------

    def _begin(self, oldest: int) -> None:
        """Begin with the first event, where it is kept; else read the whole answer, and show what differs."""
        self._values()
        state = self._coordinator.json("/skyline")
        self._note(state)
        self._numbers()
        if self._last is None and oldest == 1:
            self._last = (0, None)
            return
        skyline = texts(state["skyline"])
        moment = _moment(state["time"])
        gone, new = sorted(self._members.difference(skyline)), sorted(set(skyline) - self._members)
        if gone or new:
            signs = ["-"] * len(gone) + ["+"] * len(new)
            self.board.change(np.full(len(signs), moment), signs, [*gone, *new])
        self._members = set(skyline)
        number = int(state["number"])
        kept = self._coordinator.bounds()[0] <= number
        self._last = (number, self._coordinator.event(number)["time"] if kept else None)

    def _events(self, after: int, last: int) -> None:
        for some in self._coordinator.events(after, last):
            changes = [event for event in some if event["kind"] == "change"]
            if changes:
                times = np.array([_moment(event["time"]) for event in changes])
                self.board.change(times, [event["change"] for event in changes], [event["id"] for event in changes])
                for event in changes:
                    (self._members.add if event["change"] == "+" else self._members.discard)(str(event["id"]))
            self._stale = self._stale or len(changes) < len(some)
            self._last = (some[-1]["number"], some[-1]["time"])
        if self._stale:
            self._note(self._coordinator.json("/skyline"))

    def _values(self) -> None:
        """What the coordinator knows of objects: first, so that who enters has values."""
        found = self._coordinator.json(_EVERYTHING)
        rows = found["objects"]
        ids = texts([row["id"] for row in rows])
        numbers = np.array([[number_of(value) for value in row["values"]] for row in rows], np.float64)
        columns = numbers.reshape(len(rows), len(self._columns)).T
        self.board.see(pa.table(dict(zip(self._columns, columns, strict=True))), ids)
        if len(rows) == found["count"]:  # all that there are: who is not among them is gone
            self.board.forget(sorted(self._others.difference(ids)))
            self._others = set()
        self._others.update(ids)
        self.board.clock(_moment(found["time"]))
        self.board.meter(objects=found["count"], dialogues=found["dialogue"])

    # -- beside it -----------------------------------------------------------------------------------------------------

    def _note(self, state: dict[str, Any]) -> None:
        """Say who is out of touch."""
        self._stale = False
        lines = [
            f"site {one['site']} is out of touch since {_text(one['since'])}: {len(one['objects'])} objects"
            for one in state["stale"]
        ]
        self.board.notice(bool(state["exact"]), lines)

    def _numbers(self) -> None:
        self._looked = time.monotonic()
        ledger = self._coordinator.json("/ledger")
        kinds = [
            {"way": way, "kind": kind, "messages": count, "bytes": ledger["kind_bytes"][way][kind]}
            for way in ("up", "down")
            for kind, count in ledger["kinds"][way].items()
        ]
        size = ledger["bytes_up"] + ledger["bytes_down"]
        naive = {f"naive_{what}": ledger["naive"][what] for what in ("messages", "bytes")}
        self.board.ledger({"messages": ledger["messages"], "bytes": size, **naive, "kinds": kinds})


def _moment(seconds: float) -> np.datetime64:
    return np.datetime64(round(seconds * 1e6), "us")


def _text(seconds: float) -> str:
    return moment_text(1000.0 * round(seconds), "time") + " UTC"
