"""The coordinator's one port: what readers ask for by HTTP, and how it is served.

    GET /skyline     the answer now: its number, its time, whether it is exact, which sites are stale
    GET /objects     the answer with values, as far as they are known; ?all=1: and a sample of the others
    GET /ledger      messages and bytes so far
    GET /changes     events as they come: server-sent events, or lines of JSON; after a number, or from now on
    GET /metrics     for Prometheus
    GET /health      the process lives          GET /ready      it has its state and takes sites

With a secret, all but the last two ask for a reader's token. The route of the sites is another part's; it is given.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, Protocol

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from skytide.errors import InputError, OptionError
from skytide.runtime.network.config import Config, is_loopback, is_ours
from skytide.runtime.network.feed import BATCH, Event, Feed
from skytide.runtime.network.guard import Door, Guard, guarded
from skytide.runtime.network.metrics import CONTENT_TYPE, Gauge, Metrics
from skytide.runtime.network.secrets import Tokens

PAUSE = 0.01
"""Seconds between two pieces of a stream: events that come closer together travel together."""
_LARGEST = (1 << 63) - 1
_ACCEPTING, _ROUNDS = 3, 100
"""Rounds of the loop in which a connection that was accepted has a transport, and one that is ended has closed."""
logger = logging.getLogger(__name__)
_INDEX = """Skytide coordinator

/skyline   the answer now, as JSON
/objects   the answer with values, as far as the coordinator knows them; ?all=1: and a sample of the others
/ledger    messages and bytes so far, as JSON
/changes   events as they come. As server-sent events, or ?format=ndjson. ?after=N: those after number N;
           without it those from now on. ?wait=0: end at the newest one; without a number from the oldest one.
           ?most=N: end after N events. The head says which are kept: Skytide-Oldest, Skytide-Newest.
/metrics   for Prometheus
/health    200 while the process lives
/ready     200 when it has its state, 503 before
"""


class Hub(Protocol):
    """What the server shows: the coordinator as its readers see it."""

    feed: Feed
    metrics: Metrics
    tokens: Tokens

    def state(self) -> dict[str, Any]:
        """The answer: number, time, exact, stale (site, since, objects) and skyline (ids)."""
        ...

    def objects(self, everything: bool) -> dict[str, Any]:
        """Objects with what is known of their values: those in the answer, or also others."""
        ...

    def ledger(self) -> dict[str, Any]:
        """Messages and bytes, up and down."""
        ...

    def ready(self) -> bool:
        """Whether the state is restored."""
        ...


def application(
    hub: Hub, *, routes: Sequence[BaseRoute] = (), readers: int = 100, heartbeat: float = 5.0, host: str = "127.0.0.1"
) -> Starlette:
    """The application over a hub, with routes of others beside those for readers.

    At most `readers` follow the changes at a time; a quiet stream says every `heartbeat` seconds that it lives.
    """
    turned_away = _TurnedAway(hub.metrics)
    pages = _Pages(hub, readers, heartbeat, turned_away)
    ours = [
        Route("/", pages.index),
        Route("/skyline", pages.skyline),
        Route("/objects", pages.objects),
        Route("/ledger", pages.ledger),
        Route("/changes", pages.changes),
        Route("/metrics", pages.metrics),
        Route("/health", pages.health),
        Route("/ready", pages.ready),
    ]
    made = Starlette(
        routes=[*ours, *routes],
        middleware=[Middleware(_Strangers, hub=hub, host=host, turned_away=turned_away)],
        exception_handlers={HTTPException: _refusal},
    )
    made.state.hub = hub
    return made


class _Pages:
    """The answers to readers."""

    def __init__(self, hub: Hub, readers: int, heartbeat: float, turned_away: _TurnedAway) -> None:
        self._hub, self._most, self._heartbeat = hub, readers, heartbeat
        self._readers: Gauge = hub.metrics.gauge("skytide_readers", "Readers that follow the changes.")
        self._turned_away = turned_away

    def _admit(self, request: Request) -> None:
        identity = self._hub.tokens.identity(request.headers.get("authorization"), "reader")
        if identity is None or identity.role != "reader":
            self._turned_away.count("token")
        if identity is None:
            raise HTTPException(401, "a reader's token is needed", {"WWW-Authenticate": "Bearer"})
        if identity.role != "reader":
            raise HTTPException(403, f"this is the token of a {identity.role}")

    async def index(self, request: Request) -> Response:
        self._admit(request)
        return PlainTextResponse(_INDEX)

    async def skyline(self, request: Request) -> Response:
        self._admit(request)
        return _json(self._hub.state())

    async def objects(self, request: Request) -> Response:
        self._admit(request)
        return _json(self._hub.objects(_choice(request, "all", {"0": False, "1": True}, default=False)))

    async def ledger(self, request: Request) -> Response:
        self._admit(request)
        return _json(self._hub.ledger())

    async def metrics(self, request: Request) -> Response:
        self._admit(request)
        return Response(self._hub.metrics.text(), headers={"Content-Type": CONTENT_TYPE, "Cache-Control": "no-store"})

    async def health(self, _: Request) -> Response:
        return _json({"status": "ok"})

    async def ready(self, _: Request) -> Response:
        ready = self._hub.ready()
        return _json({"ready": ready}, 200 if ready else 503)

    async def changes(self, request: Request) -> Response:
        self._admit(request)
        lines = _wants_lines(request)
        wait = _choice(request, "wait", {"0": False, "1": True}, default=True)
        after = _position(request)
        most = _number(request, "most")
        feed = self._hub.feed
        if after is None:
            after = feed.newest if wait else feed.oldest - 1
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        headers |= {"Skytide-Oldest": str(feed.oldest), "Skytide-Newest": str(feed.newest)}
        kind = "application/x-ndjson" if lines else "text/event-stream"
        if request.method == "HEAD" or most == 0:
            return Response(headers=headers, media_type=kind)
        if self._readers.value() >= self._most:
            raise HTTPException(503, f"{self._most} readers follow already", {"Retry-After": "5"})
        stream = self._stream(after, wait, most, _lines if lines else _sse, b"" if lines else b":\n\n")
        return _Stream(stream, self._readers, headers, kind)

    async def _stream(
        self, after: int, wait: bool, most: int | None, encode: Callable[[list[Event]], bytes], alive: bytes
    ) -> AsyncIterator[bytes]:
        left = _LARGEST if most is None else most
        if wait and alive:
            yield alive  # so that the head of the answer is on its way before the first event
        async for events in self._hub.feed.batches(after, wait=wait, idle=self._heartbeat):
            if events:
                yield encode(events[:left])
                left -= len(events)
                if left <= 0:
                    return
            elif alive:
                yield alive
            if wait and len(events) < BATCH:
                await asyncio.sleep(PAUSE)


class _TurnedAway:
    """Counts who was turned away; of each reason the first is logged."""

    def __init__(self, metrics: Metrics) -> None:
        about = "Requests that were refused, by the reason."
        self._counter = metrics.counter("skytide_requests_refused_total", about, ["reason"])

    def count(self, reason: str) -> None:
        """Count one more."""
        if not self._counter.value(reason):
            logger.warning("requests are refused (%s); counted in the metrics, not logged again", reason)
        self._counter.add(1, reason)


class _Stream(StreamingResponse):
    """An answer without an end, which counts as a reader for as long as it is sent."""

    def __init__(self, content: AsyncIterator[bytes], readers: Gauge, headers: dict[str, str], kind: str) -> None:
        super().__init__(content, headers=headers, media_type=kind)
        self._readers = readers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._readers.add(1)
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._readers.add(-1)


class _Strangers:
    """Keeps web pages of others out, which a browser on this machine would let in.

    Without a secret, a page whose name was made to point here could read everything: the name that is asked for must be
    ours. And any page can open a WebSocket to anywhere: those that come from a page are refused, as sites are no pages.
    """

    def __init__(self, app: ASGIApp, hub: Hub, host: str, turned_away: _TurnedAway) -> None:
        self._app, self._hub, self._own = app, hub, host
        self._turned_away = turned_away

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            reason = self._stranger(scope)
            if reason is not None:
                self._turned_away.count("stranger")
                if scope["type"] == "websocket":
                    await send({"type": "websocket.close", "code": 1008, "reason": reason})
                else:
                    await _said(421, reason)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _stranger(self, scope: Scope) -> str | None:
        headers = Headers(scope=scope)
        if scope["type"] == "websocket" and "origin" in headers:
            return "sites are not web pages"
        if self._hub.tokens.secret is None and not is_ours(headers.get("host", self._own), self._own):
            return "this is not a name of the coordinator"
        return None


# -- requests and answers ----------------------------------------------------------------------------------------------


def _json(content: Any, status: int = 200) -> Response:
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    return Response(text, status, headers, "application/json")


def _said(status: int, reason: str, headers: Any = None) -> Response:
    return JSONResponse({"error": reason}, status, headers)


async def _refusal(_: Request, problem: Exception) -> Response:
    assert isinstance(problem, HTTPException)
    return _said(problem.status_code, problem.detail, problem.headers)


def _sse(events: list[Event]) -> bytes:
    return b"".join([event.sse for event in events])


def _lines(events: list[Event]) -> bytes:
    return b"".join([event.ndjson for event in events])


def _wants_lines(request: Request) -> bool:
    accepted = request.headers.get("accept", "")
    lines = "application/x-ndjson" in accepted and "text/event-stream" not in accepted
    return _choice(request, "format", {"sse": False, "ndjson": True}, default=lines)


def _choice(request: Request, name: str, choices: dict[str, bool], *, default: bool) -> bool:
    given = request.query_params.get(name)
    if given is not None and given not in choices:
        raise HTTPException(400, f"{name}={given[:40]} is not allowed; use {' or '.join(choices)}")
    return default if given is None else choices[given]


def _position(request: Request) -> int | None:
    """The number to go on from: of the last event that a stream had when it broke off, or else as asked for."""
    given = request.headers.get("last-event-id")
    return _whole("Last-Event-ID", given) if given else _number(request, "after")


def _number(request: Request, name: str) -> int | None:
    given = request.query_params.get(name)
    return _whole(name, given) if given else None


def _whole(name: str, given: str) -> int:
    if not (given.isascii() and given.isdecimal() and len(given) <= 19 and int(given) <= _LARGEST):
        raise HTTPException(400, f"{name} {given[:40]} is not the number of an event, nor of events")
    return int(given)


# -- serving -----------------------------------------------------------------------------------------------------------


class Server(uvicorn.Server):
    """uvicorn's server, which leaves signals to the caller, and no connection open when it ends.

    At the end connections have `grace` seconds to take what is theirs. Whoever has not by then is gone as if it had
    left itself, so that all that works for it ends by itself: what uvicorn would cancel complains.
    """

    def __init__(self, config: uvicorn.Config, grace: float, door: Door | None = None) -> None:
        super().__init__(config)
        self._grace, self._door = grace, door

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take none."""
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End what is open, the slow at last."""
        loop = asyncio.get_running_loop()
        for one in sockets or []:
            with contextlib.suppress(NotImplementedError):  # not all loops have readers
                loop.remove_reader(one.fileno())
        for _ in range(_ACCEPTING):  # who is let in when asyncio's server has ended is closed by nobody
            await asyncio.sleep(0)
        enough = loop.call_later(self._grace, self._end_all)
        try:
            await super().shutdown(sockets)
        finally:
            enough.cancel()
            self._end_all()
        for _ in range(_ROUNDS):  # a connection that is ended closes in one of the next rounds of the loop
            if not self.server_state.connections and (self._door is None or not self._door.count):
                break
            await asyncio.sleep(0)

    def _end_all(self) -> None:
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        if self._door is not None:
            self._door.dismiss()


async def serve(
    config: Config,
    app: Starlette,
    *,
    stop: asyncio.Event,
    started: Callable[[str, int], None] = lambda host, port: None,
    grace: int = 5,
) -> None:
    """Serve the application on the configured address until `stop` is set; `started` is told the address.

    Then the feed ends, so that its readers get what there is, and connections have `grace` seconds to close.
    """
    hub: Hub = app.state.hub
    if hub.tokens.secret is None and not is_loopback(config.host):
        # Said of a configuration already; but nothing else stands between the hub and other machines.
        reason = "is open to other machines, and there is no secret"
        raise OptionError(reason, value=config.listen, remedy="give the hub a secret, or listen on 127.0.0.1")
    context = None if config.certificate is None else _tls(config)
    guard = Guard(
        connections=config.connections,
        new_connections=config.new_connections,
        header=config.header,
        stalled=config.stalled,
        metrics=hub.metrics,
    )
    with Door(config.host, config.port, guard) as door:
        http, websocket = guarded(guard, door)
        settings = uvicorn.Config(
            app,
            http=http,
            ws=websocket,
            ws_max_size=config.frame,
            ws_per_message_deflate=False,  # a small frame must not become a large message
            ws_ping_interval=config.heartbeat,
            ws_ping_timeout=config.heartbeat,
            lifespan="off",
            log_config=None,
            log_level="error",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=2 * grace,  # for what goes on without its connection
        )
        settings.load()
        settings.ssl = context
        server = Server(settings, grace, door)
        address = door.getsockname()
        running = asyncio.create_task(server.serve(sockets=[door]))
        stopping = asyncio.create_task(_stopped(server, stop, hub.feed))
        try:
            while not server.started and not running.done():
                await asyncio.sleep(0.005)
            if not running.done():
                started(str(address[0]), int(address[1]))
            await asyncio.shield(running)  # who cancels us must not cancel the end of the connections, too
        finally:
            server.should_exit = True
            stopping.cancel()
            if not running.done():
                hub.feed.end()
                await running


async def _stopped(server: uvicorn.Server, stop: asyncio.Event, feed: Feed) -> None:
    await stop.wait()
    feed.end()
    server.should_exit = True


def _tls(config: Config) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    assert config.certificate is not None and config.key is not None
    try:
        context.load_cert_chain(config.certificate, config.key, password=lambda: "")  # never asks at the terminal
    except (OSError, ssl.SSLError) as problem:
        reason = f"the certificate and its key cannot be used: {' '.join(str(problem).split())}"
        raise InputError(reason, file=str(config.certificate), remedy="give both as PEM, without a password") from None
    return context
