"""The coordinator as a process: connections of sites in, dialogues made durable, events published.

One task (`_pump`) moves the table on, and is the only one that does. Whatever it publishes is in the log before: a
dialogue's record, and the events that no record implies. So numbers of events mean the same after a crash.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import struct
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from skytide.errors import InputError, SkytideError, StateError
from skytide.model import Direction
from skytide.monitors.storage import HOSTILE, pack, unpack
from skytide.protocols.filtering.answers import ExactAnswers
from skytide.protocols.network.frames import Hello, Id, decode
from skytide.protocols.network.query import Query
from skytide.protocols.network.seats import DIALOGUE, Action, Close, Commit, Publish, Record, Send
from skytide.protocols.network.table import Table, TooManyError
from skytide.runtime.network.config import Config
from skytide.runtime.network.feed import Event, Feed
from skytide.runtime.network.log import Log
from skytide.runtime.network.log_files import LARGEST, REMEDY
from skytide.runtime.network.metrics import Metrics
from skytide.runtime.network.objects import known_objects
from skytide.runtime.network.secrets import Tokens
from skytide.runtime.network.server import application, serve

QUERY, MOMENT, NOTICE, TICK, PIECE, WHOLE = 64, 65, 66, 67, 68, 69
"""Kinds of entries in the log, beside those of the table: the query; when the next dialogue was; an event; a tick; a
piece of the record of a dialogue that is too long for an entry, with its place, and the last piece.
"""
LARGE_LOG = 64 << 20
"""When the log has so many bytes, a snapshot takes its place."""
MOST_WAITING = 1000
"""Frames that wait for a slow site."""
MOST_WAITING_BYTES = 1 << 24
"""Bytes that wait for a slow site, besides the last frame."""
MOST_NAMED = 1000
"""Objects that are named in one event."""
_KIND, _VERSION = "NetworkCoordinator", 1
_PROTOCOL_ERROR, _TOO_SLOW, _GOING, _REPLACED, _AGAIN = 1008, 4001, 1001, 4002, 4003
_TOO_LARGE = 1009

logger = logging.getLogger(__name__)


class Connection:
    """A site's connection: frames wait here until they are sent."""

    def __init__(self, socket: WebSocket) -> None:
        self.socket = socket
        self.waiting: asyncio.Queue[bytes] = asyncio.Queue(MOST_WAITING)
        self.waiting_bytes = 0
        self.closing: asyncio.Task[None] | None = None

    def put(self, data: bytes) -> bool:
        """Have a frame sent; False where too much waits already."""
        if self.waiting.full() or self.waiting_bytes > MOST_WAITING_BYTES:
            return False
        self.waiting.put_nowait(data)
        self.waiting_bytes += len(data)
        return True

    def close(self, code: int, reason: str) -> None:
        """End it, soon."""
        if self.closing is None:
            self.closing = asyncio.create_task(self._close(code, reason))

    async def _close(self, code: int, reason: str) -> None:
        with contextlib.suppress(RuntimeError, WebSocketDisconnect):
            await self.socket.close(code, reason.encode()[:120].decode(errors="ignore"))


class Coordinator:
    """Keeps a table in a folder and serves it; see `skytide.runtime.network.server.Hub`.

    The wall clock is injected: seconds since 1970.
    """

    def __init__(self, config: Config, *, clock: Callable[[], float] = time.time, large: int = LARGE_LOG) -> None:
        self._config, self._clock, self._large = config, clock, large
        self.query = Query(config.protocol, config.min, config.max, config.method, config.nulls, config.every or 1.0)
        self.tokens = Tokens.of(config.secret_file, config.revoked)
        self.metrics = Metrics()
        self._meters()
        self._connections: dict[int, Connection] = {}
        self._wake = asyncio.Event()
        self._known_away: set[int] = set()
        self._known_since: dict[str, float] = {}
        self._complained: set[str] = set()
        self._failed: BaseException | None = None
        self._moment = 0.0
        self._pieces: list[bytes] = []
        self._table = Table(self.query, patience=config.patience, objects=config.objects)
        self.feed = Feed(config.keep)
        self._pairs = [] if config.theta is None else [(config.theta, config.over or 1)]
        self._answers = ExactAnswers(self._pairs) if self._pairs else None
        self._frequent: set[int] = set()
        self._next_tick = self._after(clock())
        self._log = Log.open(config.data)
        try:
            self._restore()
        except BaseException:
            self._log.close()
            raise

    def _meters(self) -> None:
        metrics = self.metrics
        self._frames = metrics.counter("skytide_frames_total", "Frames of sites.", ["way"])
        self._bytes = metrics.counter("skytide_frame_bytes_total", "Bytes of these frames.", ["way"])
        self._refused = metrics.counter("skytide_refused_total", "What sites were refused.", ["reason"])
        self._dialogues = metrics.counter("skytide_dialogues_total", "Dialogues that were settled.")
        self._lasted = metrics.histogram("skytide_dialogue_seconds", "How long dialogues take, until published.")
        self._synced = metrics.histogram("skytide_log_sync_seconds", "How long it takes to make the log durable.")
        self._changed = metrics.counter("skytide_changes_total", "Changes of the answer.", ["change"])
        metrics.gauge("skytide_sites", "Sites that are connected.").ask(lambda: len(self._connections))
        metrics.gauge("skytide_stale_sites", "Sites that are out of touch.").ask(lambda: len(self._table.away))
        metrics.gauge("skytide_objects", "Objects that have numbers.").ask(lambda: self._table.objects)
        metrics.gauge("skytide_skyline", "Objects in the answer.").ask(lambda: len(self._answer()))
        metrics.gauge("skytide_log_bytes", "Bytes of the log since its snapshot.").ask(lambda: self._log.size)
        metrics.gauge("skytide_crossed", "Words of sites that crossed an order.").ask(lambda: self._table.crossed)

    # -- what readers see ----------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """The answer now: exact for all rows that sites have acknowledged, or stale and for whom."""
        stale = [{"site": one.site, "since": one.since, "objects": list(one.objects)} for one in self._table.stale()]
        found = {"number": self.feed.newest, "time": self._clock(), "exact": self._table.exact, "stale": stale}
        return {**found, "dialogue": self._table.dialogues, "skyline": sorted(self._answer(), key=str)}

    def _answer(self) -> list[Id]:
        return self._table.skyline() if self._answers is None else [self._ids()[one] for one in sorted(self._frequent)]

    def objects(self, everything: bool) -> dict[str, Any]:
        """The answer with values, as far as they are known; with `everything` also others, a sample. O(objects)."""
        members = self._table.members().tolist() if self._answers is None else self._frequent
        moment = {"number": self.feed.newest, "time": self._clock(), "dialogue": self._table.dialogues}
        found = known_objects(self._table, members, everything)
        found["query"] |= {} if not self._pairs else {"theta": self._config.theta, "over": self._config.over or 1}
        return {**moment, **found}

    def ledger(self) -> dict[str, Any]:
        """Messages and bytes of the protocol, by kind; and frames and bytes on the wire since the start."""
        ledger = self._table.ledger
        ways: tuple[Direction, ...] = ("up", "down")
        found: dict[str, Any] = {"uplink": ledger.messages("up"), "downlink": ledger.messages("down")}
        found |= {"messages": sum(found.values())} | {f"bytes_{way}": ledger.bytes(way) for way in ways}
        initial = {f"{way}link": ledger.messages(way, initial=True) for way in ways}
        initial |= {f"bytes_{way}": ledger.bytes(way, initial=True) for way in ways}
        wire = {f"{what}_{way}": int(meter.value(way)) for what, meter in self._wire() for way in ways}
        kinds, sizes = ledger.by_kind(), ledger.by_kind(sizes=True)
        naive = {"messages": self._table.moves, "bytes": self._table.moves * self._table.row_bytes}
        return {**found, "naive": naive, "kinds": kinds, "kind_bytes": sizes, "initial": initial, "wire": wire}

    def _wire(self) -> tuple[tuple[str, Any], ...]:
        return ("frames", self._frames), ("bytes", self._bytes)

    def ready(self) -> bool:
        """Whether sites and readers are served."""
        return self._failed is None

    # -- the process ---------------------------------------------------------------------------------------------------

    async def run(self, *, stop: asyncio.Event, started: Callable[[str, int], None] = lambda host, port: None) -> None:
        """Serve until `stop` is set; whatever fails in between ends it with the reason."""
        config = self._config
        app = application(
            self,
            routes=[WebSocketRoute("/site", self._site)],
            readers=config.readers,
            heartbeat=config.heartbeat,
            host=config.host,
        )
        self._wake.set()  # who is away since the start is said at once
        pump = asyncio.create_task(self._pump())
        pump.add_done_callback(lambda _: stop.set())
        try:
            await serve(config, app, stop=stop, started=started)
        finally:
            pump.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await pump
            for connection in list(self._connections.values()):
                connection.close(_GOING, "the coordinator goes")
            await asyncio.to_thread(self._log.close)

    async def _pump(self) -> None:
        """Move the table on, as soon as there is something to do, and at least as often as somebody may be late."""
        try:
            while True:
                # Not wait_for, which until Python 3.12 forgets that it is cancelled where it is woken too.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._pause()):
                        await self._wake.wait()
                self._wake.clear()
                await self._turn()
        except asyncio.CancelledError:
            raise
        except BaseException as problem:
            self._failed = problem
            raise

    def _pause(self) -> float:
        pause = self._config.patience / 4
        if self._answers is not None:
            pause = min(pause, max(0.001, self._next_tick - self._clock()))
        return pause

    async def _turn(self) -> None:
        now = self._clock()
        for site in self._table.late(now):
            self._end(site, _TOO_SLOW, "it does not answer in time", "too slow")
        self._forget(now)
        began = time.perf_counter()
        while True:
            commit = self._do(self._table.step(self._clock()))
            notices = self._notices()
            if commit is None and not notices and not self._ticks():
                return
            for event in notices:
                self._log.append(NOTICE, event.to_bytes())
            moment = self._clock()
            if commit is not None:
                self._log.append(MOMENT, struct.pack("<d", moment))
                self._append(commit.data)
            ticked = self._ticks()
            if ticked:
                self._log.append(TICK, struct.pack("<d", moment))
                self._next_tick = self._after(moment)
            with self._synced_in():
                await asyncio.to_thread(self._log.sync)
            for event in notices:
                self._remember(event)
            self.feed.publish(notices)
            if commit is not None:
                self._do(self._table.committed(), moment)
                self._dialogues.add()
                self._lasted.observe(time.perf_counter() - began)
            if ticked:
                self._publish(self._tick(), moment)
            await self._shorten()

    @contextlib.contextmanager
    def _synced_in(self) -> Any:
        began = time.perf_counter()
        yield
        self._synced.observe(time.perf_counter() - began)

    def _do(self, actions: Sequence[Action], moment: float = 0.0) -> Commit | None:
        commit = None
        for action in actions:
            if isinstance(action, Send):
                self._send(action.site, action.data)
            elif isinstance(action, Close):
                self._end(action.site, _AGAIN if action.again else _PROTOCOL_ERROR, action.reason, "message")
            elif isinstance(action, Record):
                self._log.append(action.kind, action.data)
            elif isinstance(action, Publish):
                if self._answers is None:
                    self._publish(_changes(action.left, action.entered), moment)
            else:
                commit = action
        return commit

    def _publish(self, changes: Iterable[dict[str, Any]], moment: float) -> None:
        fields = [{**change, "dialogue": self._table.dialogues} for change in changes]
        numbers = range(self.feed.newest + 1, self.feed.newest + 1 + len(fields))
        self.feed.publish([Event(n, moment, "change", each) for n, each in zip(numbers, fields, strict=True)])
        for each in fields:
            self._changed.add(1, each["change"])

    def _notices(self) -> list[Event]:
        """Events of sites that are out of touch since, and of those that are back."""
        away = set(self._table.away)
        if away == self._known_away:
            return []
        now, found = self._clock(), list[tuple[str, dict[str, Any]]]()
        for site in sorted(away - self._known_away):
            one = self._table.staleness(site)
            objects = {"objects": list(one.objects[:MOST_NAMED]), "count": len(one.objects)}
            found.append(("stale", {"site": one.site, "since": one.since, **objects}))
        for site in sorted(self._known_away - away):
            found.append(("fresh", {"site": self._table.seats[site].name, "exact": not away}))
        self._known_away = away
        first = self.feed.newest + 1
        return [Event(first + place, now, kind, fields) for place, (kind, fields) in enumerate(found)]

    def _remember(self, event: Event) -> None:
        """Keep in mind who is out of touch by what was said of it."""
        fields = event.fields
        if event.kind == "stale":
            self._known_since[str(fields["site"])] = float(fields["since"])
        else:
            self._known_since.pop(str(fields["site"]), None)

    def _forget(self, now: float) -> None:
        limit = self._config.forget_after
        if limit is not None:
            for site, since in list(self._table.away.items()):
                if now - since >= limit:
                    self._table.forget(site)

    # -- frequent skylines ---------------------------------------------------------------------------------------------

    @property
    def ticks(self) -> int:
        """How many ticks were counted for frequent skylines."""
        return 0 if self._answers is None else self._answers.seen

    def _ticks(self) -> bool:
        return self._answers is not None and self._clock() >= self._next_tick

    def _after(self, moment: float) -> float:
        return (moment // self.query.every + 1) * self.query.every

    def _ids(self) -> list[Id]:
        return self._table.ids

    def _tick(self) -> list[dict[str, Any]]:
        """Count the skyline of a tick; what changes of the frequent one."""
        assert self._answers is not None
        changes = self._answers.observe(self._table.members(), self._answers.seen)
        left = [change.id for change in changes if change.change == "-"]
        entered = [change.id for change in changes if change.change == "+"]
        self._frequent = (self._frequent - set(left)) | set(entered)
        return _changes(*([self._ids()[one] for one in each] for each in (left, entered)))

    # -- the log -------------------------------------------------------------------------------------------------------

    def _append(self, record: bytes) -> None:
        """A dialogue into the log, in pieces where it is too long."""
        cuts = range(0, len(record), LARGEST - 4)
        if len(cuts) < 2:
            self._log.append(DIALOGUE, record)
            return
        for place, start in enumerate(cuts):
            piece = struct.pack("<I", place) + record[start : start + LARGEST - 4]
            self._log.append(PIECE if place < len(cuts) - 1 else WHOLE, piece)

    def _restore(self) -> None:
        snapshot = self._log.snapshot
        if snapshot is not None:
            try:
                self._read(snapshot)
            except HOSTILE as problem:
                raise StateError(f"the snapshot cannot be read ({problem})", remedy=REMEDY) from None
        asked = self._asked()
        empty = snapshot is None
        for kind, data in self._log.entries:
            if empty and (kind != QUERY or data != asked):
                raise _foreign()
            empty = False
            self._replay(kind, data)
        if empty:
            self._log.append(QUERY, asked)
        names = {seat.name: seat.number for seat in self._table.seats}
        since = {names[name]: moment for name, moment in self._known_since.items() if name in names}
        self._table.restarted(self._clock(), since)
        self._known_away = set(since)

    def _asked(self) -> bytes:
        return json.dumps({"query": self.query.plain(), "pairs": self._pairs}, sort_keys=True).encode()

    def _replay(self, kind: int, data: bytes) -> None:
        if kind == MOMENT:
            (self._moment,) = struct.unpack("<d", data)
        elif kind == NOTICE:
            event = Event.from_bytes(data)
            self._remember(event)
            self.feed.publish([event])
        elif kind in (PIECE, WHOLE):
            (place,) = struct.unpack_from("<I", data)
            self._pieces = [*self._pieces[:place], data[4:]]
            if kind == WHOLE:
                self._replay(DIALOGUE, b"".join(self._pieces))
        elif kind == TICK:
            self._publish(self._tick(), *struct.unpack("<d", data))
        elif kind != QUERY:
            found = self._table.replay(kind, data)
            if found is not None and self._answers is None:
                self._publish(_changes(found.left, found.entered), self._moment)

    async def _shorten(self) -> None:
        """Put a snapshot in place of a long log."""
        if self._log.size >= self._large and self._table.resting:
            await asyncio.to_thread(self._log.checkpoint, self._snapshot())

    def _snapshot(self) -> bytes:
        events = self.feed.read(self.feed.oldest - 1)
        assert isinstance(events, list)
        tail = b"".join(struct.pack("<I", len(data)) + data for data in (event.to_bytes() for event in events))
        blobs = {"table": self._table.to_bytes(), "events": tail}
        if self._answers is not None:
            blobs["answers"] = self._answers.to_bytes()
        asked = self._asked().decode()
        meta = {"newest": self.feed.newest, "frequent": sorted(self._frequent), "asked": asked}
        meta["away"] = self._known_since
        return pack(_KIND, _VERSION, meta, {name: np.frombuffer(blob, np.uint8) for name, blob in blobs.items()})

    def _read(self, snapshot: bytes) -> None:
        meta, parts = unpack(snapshot, _KIND, _VERSION)
        if meta["asked"] != self._asked().decode():
            raise _foreign()
        table, config = parts["table"].tobytes(), self._config
        self._table = Table.from_bytes(table, self.query, patience=config.patience, objects=config.objects)
        self._known_since = {str(name): float(since) for name, since in meta["away"].items()}
        if self._answers is not None:
            self._answers = ExactAnswers.from_bytes(parts["answers"].tobytes())
            self._frequent = {int(one) for one in meta["frequent"]}
        events, data, at = list[Event](), parts["events"].tobytes(), 0
        while at < len(data):
            (size,) = struct.unpack_from("<I", data, at)
            events.append(Event.from_bytes(data[at + 4 : at + 4 + size]))
            at += 4 + size
        self.feed = Feed(self._config.keep, newest=int(meta["newest"]) - len(events))
        self.feed.publish(events)

    # -- sites ---------------------------------------------------------------------------------------------------------

    async def _site(self, socket: WebSocket) -> None:
        """A site's connection, from its first word to its last."""
        identity = self.tokens.identity(socket.headers.get("authorization"), "site")
        if identity is None or identity.role != "site":
            self._complain("token", "a site without a token for sites")
            await socket.close(_PROTOCOL_ERROR)
            return
        await socket.accept()
        connection = Connection(socket)
        site: int | None = None
        try:
            site = await self._welcome(connection, None if self.tokens.secret is None else identity.name)
            await self._talk(site, connection)
        except WebSocketDisconnect:
            pass
        except TimeoutError:
            self._complain("hello", "a connection that does not say who comes")
            connection.close(_PROTOCOL_ERROR, "no site has said its name")
        except SkytideError as problem:
            self._complain(_reason(problem, site), str(problem))
            connection.close(_AGAIN if isinstance(problem, _TakenError) else _PROTOCOL_ERROR, str(problem))
        finally:
            if site is not None and self._connections.get(site) is connection:
                del self._connections[site]
                self._table.leave(site, self._clock())
                self._wake.set()
            if connection.closing is not None:
                await connection.closing

    async def _welcome(self, connection: Connection, named: str | None) -> int:
        async with asyncio.timeout(self._config.header):
            data = await self._receive(connection)
        hello = decode(data, self._config.frame)
        if not isinstance(hello, Hello):
            raise InputError("the first frame does not say who comes", remedy="use the same version on both sides")
        if named is not None and hello.site != named:
            raise InputError("is not the site of this token", value=hello.site, remedy=f"use {named}, or its own token")
        try:
            site = self._table.arrive(hello.site, hello.key, self._clock(), trusted=named is not None)
        except InputError as problem:
            raise _TakenError(problem.reason, value=problem.value, remedy=problem.remedy) from None
        before = self._connections.get(site)
        if before is not None:
            before.close(_REPLACED, "the site has come again")
        self._connections[site] = connection
        self._wake.set()
        return site

    async def _receive(self, connection: Connection) -> bytes:
        data = await connection.socket.receive()
        if data["type"] == "websocket.disconnect":
            if data.get("code") == _TOO_LARGE:
                self._complain("frame", "a frame is larger than the limit")
            raise WebSocketDisconnect(data.get("code", 1006))
        if data.get("bytes") is None:
            raise InputError("a frame is text", remedy="use the same version of Skytide on both sides")
        self._frames.add(1, "up")
        self._bytes.add(len(data["bytes"]), "up")
        found: bytes = data["bytes"]
        return found

    async def _talk(self, site: int, connection: Connection) -> None:
        """Take a site's frames and send it others, until either ends."""
        sending = asyncio.create_task(self._deliver(connection))
        try:
            while True:
                data = await self._receive(connection)
                if self._connections.get(site) is not connection:
                    return
                self._table.receive(site, data, self._clock(), self._config.frame)
                self._wake.set()
        finally:
            sending.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await sending

    async def _deliver(self, connection: Connection) -> None:
        while True:
            data = await connection.waiting.get()
            try:
                await connection.socket.send_bytes(data)
            except (RuntimeError, WebSocketDisconnect):
                return
            connection.waiting_bytes -= len(data)

    def _send(self, site: int, data: bytes) -> None:
        connection = self._connections.get(site)
        if connection is None:
            return
        if not connection.put(data):
            self._end(site, _TOO_SLOW, "it does not take what it is sent", "too slow")
            return
        self._frames.add(1, "down")
        self._bytes.add(len(data), "down")

    def _end(self, site: int, code: int, reason: str, kind: str) -> None:
        """End a site's session."""
        self._complain(kind, f"{self._table.seats[site].name}: {reason}")
        connection = self._connections.pop(site, None)
        self._table.leave(site, self._clock())
        if connection is not None:
            connection.close(code, reason)
        self._wake.set()

    def _complain(self, kind: str, text: str) -> None:
        """Count what was refused; of each kind the first is logged."""
        self._refused.add(1, kind)
        if kind not in self._complained:
            self._complained.add(kind)
            logger.warning("refused (%s), more of the kind are only counted: %s", kind, text)


class _TakenError(InputError):
    """Another site has the name; it may be the same one, whose old connection nobody has missed yet."""


def _reason(problem: SkytideError, site: int | None) -> str:
    """Under which reason a refusal is counted."""
    if isinstance(problem, _TakenError):
        return "name"
    return "hello" if site is None else "objects" if isinstance(problem, TooManyError) else "frame"


def _foreign() -> StateError:
    return StateError("the folder belongs to another query", remedy="use another folder, or the query it belongs to")


def _changes(left: Iterable[Id], entered: Iterable[Id]) -> list[dict[str, Any]]:
    """Changes in the order of change streams."""
    found = [{"change": sign, "id": one} for sign, ids in (("-", left), ("+", entered)) for one in sorted(ids, key=str)]
    return found
