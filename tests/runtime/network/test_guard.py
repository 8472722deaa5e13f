"""The guard of the port: the slow, the many and the greedy are ended, and the others do not notice."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import select
import socket
import ssl
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket
from websockets.sync.client import connect

from skytide.runtime.network.config import Config
from skytide.runtime.network.guard import BUFFER, Guard
from skytide.runtime.network.metrics import Metrics
from skytide.runtime.network.server import Server, application, serve
from tests.runtime.network.serving import FakeHub, Served, served

HEAD = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
CERTIFICATE, KEY = Path(__file__).parent / "certificate.pem", Path(__file__).parent / "key.pem"


def _ended(peer: socket.socket) -> bool:
    """Whether the other side ends the connection, at last."""
    peer.settimeout(30)
    with contextlib.suppress(ConnectionError):
        while peer.recv(1 << 16):
            pass
    return True


def _comes(server: Served) -> bool:
    """Whether a connection comes in; one that is refused may end while it is still being made."""
    with contextlib.suppress(ConnectionError), server.connect() as peer:
        peer.sendall(HEAD + b"Connection: close\r\n\r\n")
        return peer.recv(100) != b""
    return False


def _dropped(server: Served, reason: str) -> float:
    return server.metric(f'skytide_connections_dropped_total{{reason="{reason}"}}')


def _refused(server: Served, limit: str) -> float:
    return server.metric(f'skytide_connections_refused_total{{limit="{limit}"}}')


@given(st.integers(1, 5), st.integers(1, 5), st.lists(st.tuples(st.floats(0, 3), st.booleans()), max_size=40))
def test_no_second_lets_in_more_than_its_share(limit: int, rate: int, steps: list[tuple[float, bool]]) -> None:
    """A full bucket may come at once, and after it no more than the rate."""
    metrics = Metrics()
    guard = Guard(connections=limit, new_connections=rate, header=1, stalled=1, metrics=metrics)
    now, there, admitted = 100.0, 0, list[float]()
    for gap, leaves in steps:
        now += gap
        there -= leaves and there > 0
        if guard.admits(there, now):
            there += 1
            admitted.append(now)
        assert there <= limit
    for place, first in enumerate(admitted):
        for count, last in enumerate(admitted[place:], 1):
            assert count <= rate + (last - first) * rate + 1e-6
    assert guard.refused("connections") + guard.refused("new_connections") + len(admitted) == len(steps)


@pytest.mark.parametrize("sent", [b"", b"G", HEAD])
def test_who_does_not_finish_the_head_of_a_request_is_dropped(sent: bytes) -> None:
    with served(header=0.5) as server, server.connect() as slow:
        slow.sendall(sent)
        assert _ended(slow)
        server.until(lambda: server.metric("skytide_connections") == 0)
        assert _dropped(server, "header") == 1
        server.until(lambda: _comes(server))


@pytest.mark.parametrize("first", [b"", HEAD + b"\r\n", HEAD + b"Content-Length: 100000\r\n\r\n"])
def test_one_byte_at_a_time_does_not_keep_a_connection(first: bytes) -> None:
    """Neither in the first head, nor in a later one, nor in a body that nobody reads."""
    with served(header=0.3) as server, server.connect() as slow:
        slow.sendall(first)
        pause = threading.Event()
        with contextlib.suppress(ConnectionError):
            for _ in range(2000):
                slow.sendall(b"x")
                readable, _, _ = select.select([slow], [], [], 0)
                if readable and not slow.recv(1 << 16):
                    break
                pause.wait(0.02)
            else:
                raise AssertionError("the connection was kept")
        server.until(lambda: _dropped(server, "header") == 1)


def test_a_handshake_that_is_not_finished_counts_and_is_dropped() -> None:
    with served(header=2.0, connections=3, certificate=CERTIFICATE, key=KEY) as server:
        slow = [server.connect() for _ in range(3)]
        slow[0].sendall(b"\x16\x03\x01")
        server.until(lambda: server.metric("skytide_connections") == 3)
        assert not _comes(server) and _refused(server, "connections") == 1
        assert all(map(_ended, slow))
        for one in slow:
            one.close()
        server.until(lambda: server.metric("skytide_connections") == 0)
        assert _dropped(server, "header") == 3
        context = ssl.create_default_context(cafile=str(CERTIFICATE))
        with context.wrap_socket(server.connect(), server_hostname="localhost") as good:
            good.sendall(HEAD + b"Connection: close\r\n\r\n")
            assert good.recv(100).startswith(b"HTTP/1.1 200")


def test_connections_above_the_limit_are_refused_until_others_end() -> None:
    with served(connections=5) as server:
        inside = [server.connect() for _ in range(5)]
        server.until(lambda: server.metric("skytide_connections") == 5)
        assert not any(_comes(server) for _ in range(4))
        assert _refused(server, "connections") == 4 and server.metric("skytide_connections") == 5
        for one in inside:
            one.close()
        server.until(lambda: server.metric("skytide_connections") == 0)
        assert server.get("/health")[0] == 200


def test_a_flood_is_refused_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), served(new_connections=5) as server:
        came = 0
        for number in range(1, 2000):
            came += _comes(server)
            refused = _refused(server, "new_connections")
            assert came + refused == number
            if refused >= 100:
                break
        assert came >= 5 and refused >= 100
        server.until(lambda: _comes(server))
    said = [record.getMessage() for record in caplog.records if "refused" in record.getMessage()]
    assert said == [
        "connections are refused: the limit of new_connections is reached (counted in the metrics, not logged again)"
    ]


@pytest.mark.parametrize("nonsense", [b"\x00\x01\x02\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"a" * 100_000])
def test_nonsense_is_answered_and_ended(nonsense: bytes, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), served() as server:
        for _ in range(3):
            with server.connect() as peer:
                with contextlib.suppress(ConnectionError):
                    peer.sendall(nonsense)
                assert _ended(peer)
        assert _dropped(server, "malformed") == 3
    assert len(caplog.records) == 1


def test_a_reader_that_takes_nothing_is_dropped_and_costs_no_memory() -> None:
    with served(FakeHub(keep=2000), stalled=0.5) as server:
        peer = socket.socket()
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        peer.connect((server.host, server.port))
        with peer:
            peer.sendall(b"GET /changes?after=0 HTTP/1.1\r\nHost: localhost\r\n\r\n")
            server.until(lambda: server.metric("skytide_readers") == 1)
            # The ring is full before the measurement, and what is published has the same size after it.
            server.publish(2000, text="x" * 2000)
            tracemalloc.start()
            try:
                before = tracemalloc.get_traced_memory()[0]
                for _ in range(5):
                    server.publish(2000, text="x" * 2000)
                server.until(lambda: _dropped(server, "stalled") == 1)
                held = tracemalloc.get_traced_memory()[1] - before
            finally:
                tracemalloc.stop()
            # 20 MB were published; a new ring is 4.6 MB of it, and a batch on its way 1.2 MB.
            assert held < 12_000_000 + BUFFER
            assert _ended(peer)
        server.until(lambda: server.metric("skytide_readers") == 0)
        assert server.get("/health")[0] == 200


def test_a_reader_that_is_slow_but_takes_something_stays() -> None:
    with served(FakeHub(keep=100_000), stalled=2.0) as server, socket.socket() as peer:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        peer.connect((server.host, server.port))
        peer.sendall(b"GET /changes?after=0&format=ndjson HTTP/1.1\r\nHost: localhost\r\n\r\n")
        server.until(lambda: server.metric("skytide_readers") == 1)
        server.publish(20_000, text="x" * 1000)
        pause, taken = threading.Event(), 0
        for _ in range(30):
            pause.wait(0.1)
            taken += len(peer.recv(1 << 19))
        assert taken > 0 and _dropped(server, "stalled") == 0 and server.metric("skytide_readers") == 1


def test_the_end_of_the_server_reaches_all_who_are_inside(caplog: pytest.LogCaptureFixture) -> None:
    """Who sends nothing, who stays within a head, and who takes nothing of what it asked for."""
    asking = (b"", HEAD, b"GET /changes?after=0 HTTP/1.1\r\nHost: localhost\r\n\r\n")
    with contextlib.ExitStack() as stack:
        with served(FakeHub(keep=2000)) as server:
            server.publish(2000, text="x" * 20_000)
            peers = [stack.enter_context(server.connect()) for _ in asking]
            for peer, sent in zip(peers, asking, strict=True):
                peer.sendall(sent)
            server.until(lambda: server.metric("skytide_readers") == 1)
        assert all(map(_ended, peers))
    assert caplog.records == []


async def _ends(cancelled: bool, sent: bytes, **options: Any) -> None:
    """Nobody is inside any more when `serve` ends, though its loop goes on."""
    hub, stop, up = FakeHub(), asyncio.Event(), asyncio.Future[tuple[str, int]]()
    config = Config(data=Path("unused"), min=("a",), listen="127.0.0.1:0", **options)
    app = application(hub, readers=config.readers, heartbeat=5.0, host=config.host)
    serving = asyncio.create_task(
        serve(config, app, stop=stop, started=lambda host, port: up.set_result((host, port)), grace=1)
    )
    reader, writer = await asyncio.open_connection(*await up)
    writer.write(sent)
    while "skytide_connections 1" not in hub.metrics.text():
        await asyncio.sleep(0.01)
    if sent.endswith(b"\r\n\r\n"):
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
    if cancelled:
        serving.cancel()
    stop.set()
    with pytest.raises(asyncio.CancelledError) if cancelled else contextlib.nullcontext():
        await serving
    assert "skytide_connections 0" in hub.metrics.text()
    with contextlib.suppress(ConnectionError):
        await asyncio.wait_for(reader.read(), 5)
    writer.close()


@pytest.mark.parametrize("cancelled", [False, True])
@pytest.mark.parametrize(
    ("sent", "options"),
    [
        (HEAD, {}),
        (HEAD + b"\r\n", {}),
        (b"\x16\x03\x01", {"certificate": CERTIFICATE, "key": KEY}),
    ],
    ids=["within a head", "after an answer", "within a handshake"],
)
def test_nobody_is_inside_when_a_server_has_ended(cancelled: bool, sent: bytes, options: dict[str, Any]) -> None:
    asyncio.run(_ends(cancelled, sent, **options))


@pytest.mark.parametrize("options", [{}, {"certificate": CERTIFICATE, "key": KEY}], ids=["plain", "tls"])
def test_who_comes_in_at_the_last_moment_is_ended_too(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """In the round of the loop in which a server ends there are connections that it has accepted and does not know."""
    shutdown, peers = Server.shutdown, list[socket.socket]()

    async def last_moment(self: Server, sockets: list[socket.socket] | None = None) -> None:
        assert sockets is not None
        peers.extend(socket.create_connection(sockets[0].getsockname()) for _ in range(3))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await shutdown(self, sockets)

    monkeypatch.setattr(Server, "shutdown", last_moment)
    asyncio.run(_ends(False, b"", **options))
    assert len(peers) == 3 and all(map(_ended, peers))
    for peer in peers:
        peer.close()


async def _talks(websocket: WebSocket) -> None:
    await websocket.accept()
    with contextlib.suppress(Exception):
        while True:
            await websocket.send_bytes(bytes(1 << 16))


def test_a_site_that_takes_nothing_is_dropped() -> None:
    with served(routes=[WebSocketRoute("/site", _talks)], stalled=0.3) as server:
        raw = server.connect()
        with connect(
            f"ws://{server.host}:{server.port}/site", sock=raw, max_queue=1, ping_interval=None, close_timeout=0.1
        ):
            server.until(lambda: _dropped(server, "stalled") == 1)
        server.until(lambda: server.metric("skytide_connections") == 0)


def test_a_site_stays_longer_than_a_head_may_take() -> None:
    async def waits(websocket: WebSocket) -> None:
        await websocket.accept()
        await websocket.receive_bytes()
        await websocket.send_bytes(b"here")
        await websocket.close()

    with served(routes=[WebSocketRoute("/site", waits)], header=1.0) as server:
        with connect(f"ws://{server.host}:{server.port}/site") as site:
            threading.Event().wait(1.5)
            site.send(b"?")
            assert site.recv() == b"here"
        assert _dropped(server, "header") == 0
