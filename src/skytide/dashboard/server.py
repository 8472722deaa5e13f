"""Serves a board: the page, its files, and what it asks for. Nothing that it needs comes from elsewhere.

On a loopback address whoever is on this machine may look. On any other one a token is asked for, which is part of the
address that is printed; a browser that came with it once has it as a cookie.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hmac
import json
import math
import re
import secrets
import socket
import threading
import time
from collections.abc import AsyncIterator
from importlib import resources
from typing import Any, Self
from urllib.parse import parse_qs

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from skytide.dashboard.board import Board
from skytide.dashboard.recording import plotly_file
from skytide.errors import OptionError, OutputError, SkytideError
from skytide.runtime.network.config import is_loopback, is_ours
from skytide.runtime.network.server import Server

PORT = 8760
TICK = 0.1
"""Seconds between two ticks, at least."""
HEARTBEAT = 5.0
MOST_READERS = 100
COOKIE = "skytide"
"""With the port after it: browsers send cookies to every port of a host."""
_POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; worker-src 'self' blob:"
_POLICY += "; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": _POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_NAME = re.compile(r"[a-z.]{1,40}")
_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


class Page:
    """Serves a board in a thread of its own, from `start` to `close`; also a context manager.

    A port of 0 is any free one; with `search`, so is one that is taken.
    """

    def __init__(
        self, board: Board, host: str = "127.0.0.1", port: int = PORT, *, token: str | None = None, search: bool = False
    ) -> None:
        self.board, self.host = board, host
        self.token = token or (None if is_loopback(host) else secrets.token_urlsafe(24))
        self._socket = _listening(host, port, search)
        self.port = int(self._socket.getsockname()[1])
        self._thread: threading.Thread | None = None
        self._server: uvicorn.Server | None = None
        self._stopping = threading.Event()

    @property
    def url(self) -> str:
        """Where to look, with the token where one is needed."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/" + (f"?token={self.token}" if self.token else "")

    def start(self) -> Self:
        """Begin to serve; returns when the page can be asked for."""
        settings = uvicorn.Config(
            application(self.board, self.token, self.host, self._stopping),
            lifespan="off",
            log_config=None,
            log_level="error",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=None,  # whose page is gone ends by itself, or when its thread has
            limit_concurrency=4 * MOST_READERS,
        )
        server = self._server = Server(settings, grace=1)
        self._thread = threading.Thread(
            target=lambda: asyncio.run(server.serve([self._socket])), name="skytide-dashboard", daemon=True
        )
        self._thread.start()
        while not server.started and self._thread.is_alive():
            self._thread.join(0.005)
        return self

    def close(self) -> None:
        """Stop serving; readers get an end."""
        self._stopping.set()
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join(10)
        self._socket.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()


def _listening(host: str, port: int, search: bool) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        try:
            made.bind((host, port))
        except OSError:
            if not search:
                raise
            made.bind((host, 0))
        made.listen(128)
    except (OSError, OverflowError) as problem:
        made.close()
        reason = f"cannot listen there: {getattr(problem, 'strerror', None) or problem}"
        taken = isinstance(problem, OSError) and problem.errno == errno.EADDRINUSE
        remedy = (
            "stop who does, or choose another port" if taken else "choose an address of this machine, and a free port"
        )
        raise OutputError(reason, value=f"{host}:{port}", remedy=remedy) from None
    return made


def application(
    board: Board, token: str | None = None, host: str = "127.0.0.1", stopping: threading.Event | None = None
) -> Starlette:
    """The application over a board; its streams end when `stopping` is set."""
    pages = _Pages(board, stopping or threading.Event())
    routes = [
        Route("/", pages.index),
        Route("/assets/{name}", pages.asset),
        Route("/api/state", pages.state),
        Route("/api/events", pages.events),
        Route("/api/at", pages.at),
        Route("/api/sizes", pages.sizes),
        Route("/api/stays", pages.stays),
        Route("/api/rest", pages.rest),
        Route("/api/explain", pages.explain),
        Route("/api/recording", pages.recording),
    ]
    return Starlette(
        routes=routes,
        middleware=[Middleware(_Door, token=token, host=host)],
        exception_handlers={SkytideError: _refusal, HTTPException: _unknown},
    )


class _Pages:
    """The answers to the page."""

    def __init__(self, board: Board, stopping: threading.Event) -> None:
        self._board, self._stopping = board, stopping
        self._readers = 0
        self._walked: tuple[int, float, list[list[Any]]] = (0, 0.0, [])

    async def index(self, _: Request) -> Response:
        return _file("index.html")

    async def asset(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name == "plotly.min.js":
            kept = {**_HEADERS, "Cache-Control": "max-age=3600"}
            return FileResponse(plotly_file(), headers=kept, media_type="text/javascript")
        return _file(name)

    async def state(self, _: Request) -> Response:
        return _json(await asyncio.to_thread(self._board.state))

    async def at(self, request: Request) -> Response:
        time = _number(request, "time")
        return _json({"time": time, "rows": await asyncio.to_thread(self._board.at, time)})

    async def sizes(self, _: Request) -> Response:
        return _json(await asyncio.to_thread(self._board.sizes))

    async def stays(self, request: Request) -> Response:
        key, most = request.query_params.get("key"), _count(request, 60, 1_000)
        if key is not None:
            return _json({"stays": await asyncio.to_thread(self._board.stays, key, most)})
        # A long history takes a while to walk through: many pages share one walk, and no tenth of the time goes there.
        began = time.monotonic()
        if most != self._walked[0] or began >= self._walked[1]:
            found = await asyncio.to_thread(self._board.stays, None, most)
            now = time.monotonic()
            self._walked = (most, now + 10 * (now - began), found)
        return _json({"stays": self._walked[2]})

    async def rest(self, request: Request) -> Response:
        return _json(await asyncio.to_thread(self._board.rest, _count(request, 2_000, 20_000)))

    async def explain(self, request: Request) -> Response:
        key = request.query_params.get("key", "")
        return _json(await asyncio.to_thread(self._board.explain, key))

    async def recording(self, _: Request) -> Response:
        return _json(await asyncio.to_thread(self._board.recording))

    async def events(self, request: Request) -> Response:
        if self._readers >= MOST_READERS:
            return _json({"error": f"{MOST_READERS} pages are open already"}, 503)
        given = request.headers.get("last-event-id") or request.query_params.get("after") or ""
        headers = {**_HEADERS, "X-Accel-Buffering": "no"}
        if request.method == "HEAD":  # nothing to stay for
            return Response(headers=headers, media_type="text/event-stream")
        return StreamingResponse(self._stream(given), headers=headers, media_type="text/event-stream")

    async def _stream(self, given: str) -> AsyncIterator[bytes]:
        """Ticks as long as the reader stays: the net difference since the last one, or the state to begin anew."""
        board = self._board
        self._readers += 1
        try:
            number, told = _position(given, board.epoch)
            beat, waited = -1, 0.0
            while not self._stopping.is_set():
                if board.beat == beat and number >= 0:
                    waited += TICK
                    if waited >= HEARTBEAT:
                        waited = 0.0
                        yield b":\n\n"
                else:
                    waited, before, beat = 0.0, beat, board.beat
                    number, told, event = await asyncio.to_thread(self._event, number, told, before)
                    yield event
                    event = b""  # a reader that does not read keeps no more than what is on its way to it
                await asyncio.sleep(TICK)
        finally:
            self._readers -= 1

    def _event(self, number: int, told: int, beat: int) -> tuple[int, int, bytes]:
        """What a reader gets next, and what it knows then."""
        tick = None if number < 0 else self._board.since(number, told, beat)
        found = self._board.state() if tick is None else tick
        head = f"event: {'state' if tick is None else 'tick'}\nid: {found['position']}\ndata: "
        return found["number"], found["meters"]["changes"], f"{head}{_text(found)}\n\n".encode()


class _Door:
    """Who may look: names of this machine, and, where a token is asked for, who has it."""

    def __init__(self, app: ASGIApp, token: str | None, host: str) -> None:
        self._app, self._token, self._host = app, token, host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        refused = self._refused(scope)
        await (self._app if refused is None else refused)(scope, receive, send)

    def _refused(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if self._token is None:
            known = is_ours(headers.get("host", self._host), self._host)
            return None if known else _json({"error": "this is not a name of the page"}, 421)
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[-1]
        if given and self._is(given):
            answer = RedirectResponse(scope["path"], 303)
            answer.set_cookie(self._cookie(scope), given, httponly=True, samesite="strict")
            return answer if scope["path"] == "/" else None
        # Other programs of this host have cookies of any form: only the one that is looked for is read.
        cookies = (part.strip().partition("=") for part in headers.get("cookie", "").split(";"))
        if any(name == self._cookie(scope) and self._is(value) for name, _, value in cookies):
            return None
        return _json({"error": "a token is needed: use the address that was printed"}, 401)

    def _cookie(self, scope: Scope) -> str:
        return f"{COOKIE}-{(scope.get('server') or ('', 0))[1]}"

    def _is(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), (self._token or "").encode())


def _position(given: str, epoch: str) -> tuple[int, int]:
    """What a reader of this board knows, as a position says it: a number, and how many changes; else less than 0.

    >>> _position("ab.17.40", "ab"), _position("cd.17.40", "ab"), _position("", "ab")
    ((17, 40), (-1, 0), (-1, 0))
    """
    found = re.fullmatch(r"([0-9a-f]+)\.([0-9]{1,18})\.([0-9]{1,18})", given)
    return (int(found[2]), int(found[3])) if found is not None and found[1] == epoch else (-1, 0)


async def _refusal(_: Request, problem: Exception) -> Response:
    return _json({"error": str(problem)}, 400 if isinstance(problem, OptionError) else 404)


async def _unknown(_: Request, problem: Exception) -> Response:
    assert isinstance(problem, HTTPException)
    return _json({"error": str(problem.detail)}, problem.status_code)


def _file(name: str) -> Response:
    kind = _KINDS.get(name[name.rfind(".") :])
    place = resources.files("skytide.dashboard") / "page" / name
    if kind is None or not _NAME.fullmatch(name) or not place.is_file():
        return _json({"error": "there is no such file"}, 404)
    return Response(place.read_bytes(), headers=_HEADERS, media_type=kind)


def _text(content: Any) -> str:
    return json.dumps(content, allow_nan=False, separators=(",", ":"))


def _json(content: Any, status: int = 200) -> Response:
    return Response(_text(content), status, _HEADERS, "application/json")


def _number(request: Request, name: str) -> float:
    given = request.query_params.get(name, "")
    with contextlib.suppress(ValueError):
        if math.isfinite(found := float(given)):
            return found
    raise OptionError(f"is not a {name}", value=given[:40], remedy="give a number")


def _count(request: Request, default: int, most: int) -> int:
    given = request.query_params.get("most", str(default))
    if not (given.isascii() and given.isdecimal()) or len(given) > 9:
        raise OptionError("is not a number of rows", value=given[:40], remedy="give a whole number")
    return min(int(given), most)
