"""The change stream that the coordinator publishes: events with numbers, kept in a ring, read by anyone at any pace.

A reader is a number: that of the last event it has. It has no queue, so a slow one costs nothing; when the ring went
on without it, it gets one event of kind `gap`, which says from which number to go on and where the whole state is. The
state read after that is of this number or a later one: a reader drops the events that the state already tells of.

Each event is put into JSON once, when it is made; what readers and the log get are those bytes.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Any

from skytide.errors import OptionError, StateError

GAP = "gap"
KEEP = 100_000
_RESERVED = frozenset(("number", "time", "kind"))
_KIND = re.compile(r"[a-z][a-z_]{0,30}")
_LARGEST = (1 << 63) - 1
BATCH = 512
"""Events that a reader gets at once, at most: between two batches others have their turn."""


class Event:
    """One event: its number, its time in seconds since 1970 (UTC), what it is, and fields that JSON can say.

    >>> event = Event(7, 1.5, "change", {"change": "+", "id": "a"})
    >>> event.ndjson
    b'{"number":7,"time":1.5,"kind":"change","change":"+","id":"a"}\\n'
    >>> print(event.sse.decode(), end="")
    id: 7
    event: change
    data: {"number":7,"time":1.5,"kind":"change","change":"+","id":"a"}
    <BLANKLINE>
    >>> Event.from_bytes(event.to_bytes()) == event
    True
    """

    __slots__ = ("_start", "kind", "number", "sse", "time")

    def __init__(self, number: int, time: float, kind: str, fields: dict[str, Any] | None = None) -> None:
        fields = {} if fields is None else fields
        least = 0 if kind == GAP else 1
        if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= _LARGEST:
            raise OptionError("is not the number of an event", value=number, remedy="count from 1")
        if not _KIND.fullmatch(kind):
            raise OptionError("is not a kind of event", value=kind, remedy="use small letters and _")
        if not _RESERVED.isdisjoint(fields):
            raise OptionError("is a field that each event has", value=min(_RESERVED & set(fields)), remedy="rename it")
        self.number, self.time, self.kind = number, time, kind
        try:
            text = _encode({"number": number, "time": time, "kind": kind, **fields})
        except (TypeError, ValueError, RecursionError) as problem:
            reason = f"an event of kind {kind} cannot be said in JSON: {problem}"
            raise OptionError(reason, remedy="use text, finite numbers, lists and tables") from None
        head = f"id: {number}\nevent: {kind}\ndata: "
        self._start = len(head)
        self.sse = f"{head}{text}\n\n".encode("ascii")
        """The event as a server-sent event."""

    @property
    def ndjson(self) -> bytes:
        """The event as a line of JSON."""
        return self.sse[self._start : -1]

    @property
    def fields(self) -> dict[str, Any]:
        """What the event says besides its number, time and kind. O(bytes): an event keeps its bytes alone."""
        return {key: value for key, value in json.loads(self.ndjson).items() if key not in _RESERVED}

    def to_bytes(self) -> bytes:
        """The event for the log."""
        return self.ndjson

    @classmethod
    def from_bytes(cls, data: bytes) -> Event:
        """What `to_bytes` gave; a StateError for any other bytes."""
        try:
            record = json.loads(data)
            number, time, kind = record.pop("number"), record.pop("time"), record.pop("kind")
            if not isinstance(time, float | int) or isinstance(time, bool):
                raise ValueError("its time is no number")
            return cls(number, time, kind, record)
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as problem:
            reason = f"these bytes are not a stored event ({' '.join(str(problem).split())[:120]})"
            raise StateError(reason, remedy="restore from bytes that to_bytes() gave") from None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Event) and self.sse == other.sse

    def __hash__(self) -> int:
        return hash(self.sse)

    def __repr__(self) -> str:
        return f"Event({self.number}, {self.time}, {self.kind!r}, {self.fields})"


_encode = json.JSONEncoder(allow_nan=False, separators=(",", ":"), check_circular=False).encode


@dataclass(frozen=True)
class Gap:
    """The events after `after` are not there any more; `restart` is the number from which reading can go on."""

    after: int
    restart: int

    def event(self, time: float) -> Event:
        """The gap as a reader gets it. Its number is `restart`, so that a reader that comes again goes on there."""
        fields = {"after": self.after, "restart": self.restart, "state": "/skyline"}
        return Event(self.restart, time, GAP, fields)


class Feed:
    """The last `keep` events; one task publishes, any number of tasks of the same loop read.

    >>> feed = Feed(keep=2)
    >>> feed.publish([Event(1, 0.0, "change", {"id": "a"}), Event(2, 0.0, "change"), Event(3, 0.5, "exact")])
    >>> feed.oldest, feed.newest
    (2, 3)
    >>> [event.number for event in feed.read(after=2)]
    [3]
    >>> feed.read(after=0)
    Gap(after=0, restart=3)
    """

    def __init__(self, keep: int = KEEP, *, newest: int = 0) -> None:
        if keep < 1:
            raise OptionError("is no number of events to keep", value=keep, remedy="give 1 or more")
        if not 0 <= newest < _LARGEST:
            raise OptionError("is not the number of an event", value=newest, remedy="give that of the last one, or 0")
        self._keep = keep
        self._ring: list[Event] = []  # once full, event n lies at n % keep
        self._first = newest + 1  # the number of the first event that this feed was given
        self._newest = newest
        self._news = asyncio.Event()
        self._ended = False

    @property
    def newest(self) -> int:
        """The number of the last event; 0 before the first."""
        return self._newest

    @property
    def oldest(self) -> int:
        """The number of the first event that can still be read; newest + 1 where there is none."""
        return self._newest - len(self._ring) + 1

    def publish(self, events: Iterable[Event]) -> None:
        """Add events, numbered on from the last; those that follow wake up. O(events)."""
        added = False
        try:
            for event in events:
                if event.number != self._newest + 1:
                    reason = f"is not the number after {self._newest}"
                    raise OptionError(reason, value=event.number, remedy="number events one after another")
                if event.kind == GAP:
                    raise OptionError("is the feed's own kind of event", value=GAP, remedy="choose another")
                if len(self._ring) < self._keep:
                    self._ring.append(event)
                else:
                    self._ring[(event.number - self._first) % self._keep] = event
                self._newest = event.number
                added = True
        finally:
            if added:
                self._wake()

    def read(self, after: int, most: int | None = None) -> list[Event] | Gap:
        """Up to `most` events after a number, or a `Gap` where some of them are gone, or never were. O(events)."""
        if after == self._newest:
            return []
        if not self.oldest - 1 <= after <= self._newest:
            return Gap(after, self._newest)
        count = self._newest - after if most is None else min(most, self._newest - after)
        start = (after + 1 - self._first) % self._keep
        events = self._ring[start : start + count]
        return events + self._ring[: count - len(events)] if len(events) < count else events

    async def follow(self, after: int) -> AsyncIterator[Event]:
        """All events after a number, as they come, without an end until `end`; for gaps see `Gap`."""
        async for events in self.batches(after):
            for event in events:
                yield event

    async def batches(self, after: int, *, wait: bool = True, idle: float | None = None) -> AsyncIterator[list[Event]]:
        """The same, many at a time; without `wait` up to the newest event. O(events), and nothing while none come.

        With `idle`, an empty list says that for so many seconds nothing came.
        """
        while True:
            news = self._news
            found = self.read(after, BATCH)
            if isinstance(found, Gap):
                after = found.restart
                yield [found.event(self._time_of_gap())]
            elif found:
                after = found[-1].number
                yield found
                if len(found) == BATCH:
                    await asyncio.sleep(0)
            elif not wait or self._ended:
                return
            else:
                try:
                    async with asyncio.timeout(idle):
                        await news.wait()
                except TimeoutError:
                    yield []

    def end(self) -> None:
        """No more events come: those that follow get what there is, and then an end."""
        self._ended = True
        self._wake()

    def _wake(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    def _time_of_gap(self) -> float:
        return self._ring[(self._newest - self._first) % self._keep].time if self._ring else 0.0
