"""What stands between the coordinator's port and all who can reach it: limits, deadlines, and no memory for the slow.

- `Door` is the listening socket. It counts connections from their first moment, so before any handshake of TLS; it
  refuses what is above the limits, and drops who has not sent the head of a request in time.
- `guarded` makes the protocols that uvicorn runs on those connections: a deadline for the heads of later requests too,
  and an end for who does not take what it asked for.

What is refused or dropped is counted, and logged the first time for each reason.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import struct
from collections.abc import Callable
from functools import partial
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from skytide.errors import OutputError
from skytide.runtime.network.metrics import Metrics

BUFFER = 1 << 16
"""Bytes that wait for a slow peer at most, besides the last piece that was written."""
_SYSTEM_BUFFER = (
    1 << 18
)  # and in the system; with more there, a slow peer that takes a little looks like one that stalls
_RESET = struct.pack("ii", 1, 0)

logger = logging.getLogger(__name__)


class Guard:
    """The limits of a port, and what was counted there."""

    def __init__(
        self, *, connections: int, new_connections: int, header: float, stalled: float, metrics: Metrics
    ) -> None:
        self.connections, self.new_connections = connections, new_connections
        self.header, self.stalled = header, stalled
        self._refused = metrics.counter(
            "skytide_connections_refused_total", "Connections that were refused, by the limit.", ["limit"]
        )
        self._dropped = metrics.counter(
            "skytide_connections_dropped_total", "Connections that were ended by us, by the reason.", ["reason"]
        )
        self._open = metrics.gauge("skytide_connections", "Open connections.")
        self._logged: set[str] = set()
        self._tokens, self._filled = float(new_connections), 0.0

    def watch(self, door: Door) -> None:
        """Tell how many connections a door has let in."""
        self._open.ask(lambda: door.count)

    def admits(self, open_now: int, now: float) -> bool:
        """Whether one more connection may come, `now` in seconds of any steady clock. O(1)."""
        if open_now >= self.connections:
            self.refuse("connections")
            return False
        gained = max(0.0, now - self._filled) * self.new_connections
        self._tokens, self._filled = min(float(self.new_connections), self._tokens + gained), now
        if self._tokens < 1:
            self.refuse("new_connections")
            return False
        self._tokens -= 1
        return True

    def refuse(self, limit: str) -> None:
        """Count a connection that was refused."""
        self._refused.add(1, limit)
        self._log_once(f"connections are refused: the limit of {limit} is reached")

    def drop(self, reason: str) -> None:
        """Count a connection that was ended."""
        self._dropped.add(1, reason)
        self._log_once(f"connections are dropped: {reason}")

    def refused(self, limit: str) -> float:
        """How many were refused for a limit."""
        return self._refused.value(limit)

    def dropped(self, reason: str) -> float:
        """How many were ended for a reason."""
        return self._dropped.value(reason)

    def _log_once(self, text: str) -> None:
        if text not in self._logged:
            self._logged.add(text)
            logger.warning("%s (counted in the metrics, not logged again)", text)


class _Guest(socket.socket):
    """An accepted connection: it says when it is closed, and has a time by which its first request must be there."""

    on_close: Callable[[], None] | None = None
    deadline: asyncio.TimerHandle | None = None

    def close(self) -> None:
        self.relieve()
        told, self.on_close = self.on_close, None
        if told is not None:
            told()
        super().close()

    def relieve(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None


class Door(socket.socket):
    """A listening socket for asyncio's own loop that lets in as many as the guard allows."""

    def __init__(self, host: str, port: int, guard: Guard) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__(family, socket.SOCK_STREAM)
        self._guard = guard
        self._guests: dict[int, _Guest] = {}
        try:
            self.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.bind((host, port))
        except OSError as problem:
            self.close()
            reason = f"cannot listen there: {problem.strerror or problem}"
            raise OutputError(reason, value=f"{host}:{port}", remedy="stop who does, or choose another port") from None
        guard.watch(self)

    @property
    def count(self) -> int:
        """Open connections."""
        return len(self._guests)

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection that may come in; asyncio takes the error as that there is none just now."""
        plain, address = super().accept()
        guest = _Guest(self.family, self.type, self.proto, fileno=plain.detach())
        number = guest.fileno()
        loop = asyncio.get_running_loop()
        if not self._guard.admits(self.count, loop.time()):
            with contextlib.suppress(OSError):
                guest.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)  # nothing of it stays in the system
            guest.close()
            raise ConnectionAbortedError
        guest.on_close = partial(self._left, number)
        guest.deadline = loop.call_later(self._guard.header, self._too_slow, guest)
        self._guests[number] = guest
        with contextlib.suppress(OSError):
            guest.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # finds peers that went without a word
            guest.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SYSTEM_BUFFER)
        return guest, address

    def relieve(self, transport: asyncio.BaseTransport) -> None:
        """The first request of a connection is there."""
        known = transport.get_extra_info("socket")
        guest = None if known is None else self._guests.get(known.fileno())
        if guest is not None:
            guest.relieve()

    def dismiss(self) -> None:
        """End all who are inside, such as those within a handshake, whom uvicorn does not know yet."""
        for guest in list(self._guests.values()):
            _end(guest)

    def _left(self, number: int) -> None:
        self._guests.pop(number, None)

    def _too_slow(self, guest: _Guest) -> None:
        guest.deadline = None
        self._guard.drop("header")
        _end(guest)


def _end(guest: _Guest) -> None:
    with contextlib.suppress(OSError):
        guest.shutdown(socket.SHUT_RDWR)  # its transport sees an end, whatever it was doing


def guarded(guard: Guard, door: Door) -> tuple[type[H11Protocol], type[WebSocketsSansIOProtocol]]:
    """The protocols for uvicorn, of HTTP and of WebSockets."""

    class Http(_Stalling, H11Protocol):
        head_timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            transport.set_write_buffer_limits(high=BUFFER)
            super().connection_made(transport)

        def data_received(self, data: bytes) -> None:
            # Bytes while nothing is asked begin a head, or are the rest of a body that nobody waits for.
            if self.head_timer is None and self.cycle is not None and self.cycle.response_complete:
                self.head_timer = self.loop.call_later(guard.header, self.head_too_slow)
            before = self.cycle
            super().data_received(data)
            if self.cycle is not before:
                door.relieve(self.transport)
                self.unset_head_timer()

        def handle_websocket_upgrade(self, event: Any) -> None:
            door.relieve(self.transport)
            self.unset_head_timer()
            super().handle_websocket_upgrade(event)

        def send_400_response(self, msg: str) -> None:
            guard.drop("malformed")
            super().send_400_response(msg)

        def connection_lost(self, exc: Exception | None) -> None:
            self.unset_head_timer()
            super().connection_lost(exc)

        def unset_head_timer(self) -> None:
            if self.head_timer is not None:
                self.head_timer.cancel()
                self.head_timer = None

        def head_too_slow(self) -> None:
            self.head_timer = None
            guard.drop("header")
            self.transport.abort()

    class WebSocket(_Stalling, WebSocketsSansIOProtocol):
        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self.writable.set()  # who waits to write must hear of it; older versions of uvicorn leave them waiting

    Http.guard = WebSocket.guard = guard
    return Http, WebSocket


class _Stalling(asyncio.Protocol):
    """Ends a connection whose peer takes nothing while something waits for it."""

    guard: Guard
    transport: asyncio.Transport
    stall_timer: asyncio.TimerHandle | None = None

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._relax()

    def connection_lost(self, exc: Exception | None) -> None:
        self._relax()
        super().connection_lost(exc)

    def _watch(self) -> None:
        waiting = self.transport.get_write_buffer_size()
        loop = asyncio.get_running_loop()
        self.stall_timer = loop.call_later(self.guard.stalled, self._look, waiting)

    def _relax(self) -> None:
        if self.stall_timer is not None:
            self.stall_timer.cancel()
            self.stall_timer = None

    def _look(self, waiting: int) -> None:
        self.stall_timer = None
        if self.transport.get_write_buffer_size() < waiting:
            self._watch()  # it is slow, but it takes something
            return
        self.guard.drop("stalled")
        self.transport.abort()
