"""Attacks on a coordinator through real sockets: refused, counted, logged once, and the honest are served on."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection

from skytide.protocols.filtering import messages as filtering
from skytide.protocols.network.frames import (
    Frame,
    Hello,
    Names,
    Numbers,
    Reply,
    Say,
    Settled,
    Tell,
    Welcome,
    encode,
)
from skytide.runtime.network import coordinator
from skytide.runtime.network.secrets import issue
from tests.runtime.network.coordinating import KEY, Coordinated, complaints, coordinated, heard, numbered

FRAMES: dict[str, Frame] = {
    "HELLO": Hello("evil", KEY),
    "NAMES": Names(("a", 7)),
    "SAY": Say(1, 0, (b"x",), fresh=True),
    "REPLY": Reply(1, ()),
    "WELCOME": Welcome(0, 0.0, {"protocol": "filtering"}),
    "NUMBERS": Numbers((1, 2)),
    "TELL": Tell(1, 0, 0, ()),
    "SETTLED": Settled(0),
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Coordinated]:
    with coordinated(tmp_path_factory.mktemp("attacks"), objects=1000, frame=1 << 16) as found:
        yield found


@pytest.fixture(scope="module")
def closed_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Coordinated]:
    """One with a secret."""
    with coordinated(tmp_path_factory.mktemp("attacks"), secret=True, revoked=("gone",)) as found:
        yield found


def ended(connection: ClientConnection) -> int:
    """By which code the other side ends a connection."""
    with pytest.raises(ConnectionClosed) as caught:
        while True:
            connection.recv(30)
    assert caught.value.rcvd is not None
    return int(caught.value.rcvd.code)


def insert(*ids: int, value: float = 1.0) -> bytes:
    point = np.full((len(ids), 1), value)
    return filtering.encode(filtering.Reports(filtering.Kind.INSERT, 0, np.array(ids), point, point, point), 1)


# -- who somebody is ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "token",
    [
        "junk",
        "site.evil." + "A" * 43,
        issue(bytes(32), "site", "evil"),
        issue(bytes(range(32)), "reader", "evil"),
        issue(bytes(range(32)), "site", "gone"),
    ],
    ids=["junk", "made up", "of another secret", "a reader's", "taken back"],
)
def test_a_site_needs_its_own_token(closed_world: Coordinated, token: str) -> None:
    before = closed_world.refused("token")
    for given in (token, None):
        with pytest.raises(InvalidStatus) as caught, closed_world.connect(token=given):
            pass
        assert caught.value.response.status_code == 403
    assert closed_world.refused("token") == before + 2
    closed_world.serves()


def test_a_refused_token_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with coordinated(tmp_path, secret=True, honest=False) as world:
        for _ in range(3):
            with pytest.raises(InvalidStatus), world.connect(token="junk"):
                pass
        assert world.refused("token") == 3
    assert complaints(caplog.records, "refused (token)") == 1


def test_a_site_cannot_read_and_a_reader_needs_a_token(closed_world: Coordinated) -> None:
    name = 'skytide_requests_refused_total{reason="token"}'
    before = closed_world.metric(name)
    for path in ("/skyline", "/changes", "/metrics", "/ledger", "/"):
        assert closed_world.get(path, closed_world.token("site", "honest"))[0] == 403
        assert closed_world.get(path)[0] == 401
    assert closed_world.metric(name) == before + 10
    assert closed_world.get("/health")[0] == 200
    closed_world.serves()


def test_with_a_token_a_site_cannot_be_another(closed_world: Coordinated) -> None:
    before = closed_world.refused("hello")
    with closed_world.connect("evil", hello=False) as evil:
        evil.send(encode(Hello("honest", KEY)))
        assert ended(evil) == 1008
    assert closed_world.refused("hello") == before + 1
    closed_world.serves()


def test_with_its_token_a_site_takes_the_place_of_its_old_connection(closed_world: Coordinated) -> None:
    with closed_world.connect("twice") as first, closed_world.connect("twice") as second:
        assert ended(first) == 4002
        numbered(second, "a")
    closed_world.serves()


def test_without_tokens_a_name_belongs_to_the_site_that_is_here(world: Coordinated) -> None:
    before = world.refused("name")
    with world.connect() as evil:
        evil.send(encode(Hello("honest", KEY)))
        assert ended(evil) == 4003
    assert world.refused("name") == before + 1
    world.serves()


# -- frames ------------------------------------------------------------------------------------------------------------


@contextmanager
def _asked(world: Coordinated) -> Iterator[ClientConnection]:
    """A connection of a site that has been given an order and has not replied."""
    with world.connect("evil") as connection:
        (number,) = numbered(connection, "mine")
        connection.send(encode(Say(1, 0, (insert(number),), fresh=True)))
        assert isinstance(heard(connection), Tell)
        yield connection


STATES: dict[str, Callable[[Coordinated], AbstractContextManager[ClientConnection]]] = {
    "new": lambda world: world.connect(),
    "welcomed": lambda world: world.connect("evil"),
    "synced": lambda world: world.synced("evil"),
    "asked": _asked,
}


@pytest.mark.parametrize("state", STATES)
def test_malformed_frames_of_each_kind_are_refused_in_each_state(world: Coordinated, state: str) -> None:
    kind = "hello" if state == "new" else "frame"
    bad = [encode(frame)[:-1] for frame in FRAMES.values()]
    bad += [encode(frame)[:2] + b"\xff\xff\xff\x7f" for frame in FRAMES.values()]
    bad += [b"", b"\x01", b"\x02\x03", b"\x01\xee", b"\x00" * 100]
    # A HELLO or WELCOME without its last letter is one still; these are refused by what they are.
    bad = [data for data in bad if not (state == "new" and data == encode(Hello("evi", KEY)))]
    before = world.refused(kind)
    for data in bad:
        with STATES[state](world) as evil:
            evil.send(data)
            assert ended(evil) == 1008
    assert world.refused(kind) == before + len(bad)
    world.serves()


@pytest.mark.parametrize("state", STATES)
def test_texts_are_refused_in_each_state(world: Coordinated, state: str) -> None:
    with STATES[state](world) as evil:
        evil.send("hello")
        assert ended(evil) == 1008
    world.serves()


@pytest.mark.parametrize("name", [name for name in FRAMES if name != "HELLO"])
def test_nothing_is_said_before_the_name(world: Coordinated, name: str) -> None:
    before = world.refused("hello")
    with world.connect() as evil:
        evil.send(encode(FRAMES[name]))
        assert ended(evil) == 1008
    assert world.refused("hello") == before + 1
    world.serves()


@pytest.mark.parametrize("name", ["HELLO", "WELCOME", "NUMBERS", "TELL", "SETTLED"])
def test_a_site_does_not_say_what_is_the_coordinators_or_its_name_again(world: Coordinated, name: str) -> None:
    with world.synced("evil") as evil:
        evil.send(encode(FRAMES[name]))
        assert ended(evil) == 1008
    world.serves()


def test_a_frame_that_is_too_large_is_refused(world: Coordinated) -> None:
    before = world.refused("frame")
    with world.synced("evil") as evil:
        with contextlib.suppress(ConnectionClosed):
            evil.send(bytes(1 << 17))
        assert ended(evil) == 1009
    world.until(lambda: world.refused("frame") == before + 1)
    world.serves()


def test_what_is_said_twice_is_refused(world: Coordinated) -> None:
    before = world.refused("frame")
    with world.synced("evil") as evil:
        evil.send(encode(Say(1, 0, (), fresh=True)))
        assert ended(evil) == 1008
    with _asked(world) as evil:
        evil.send(encode(Reply(1, ())))
        assert heard(evil) == Settled(1)
        evil.send(encode(Reply(1, ())))
        assert ended(evil) == 1008
    assert world.refused("frame") == before + 2
    world.serves()


def test_a_site_speaks_of_its_own_objects_alone(world: Coordinated) -> None:
    before = world.refused("message")
    world.serves()
    skyline = world.state()["skyline"]
    with world.synced("evil") as evil:
        assert numbered(evil, *skyline) == ((1 << 32) - 1,) * len(skyline)
        number = 0  # the honest site's first object
        departures = filtering.encode(filtering.Departures(0, np.array([number])), 1)
        evil.send(encode(Say(2, 0, (departures,))))
        assert ended(evil) == 1008
    with world.synced("evil") as evil:
        evil.send(encode(Say(2, 0, (insert(number, value=-1e9),))))
        assert ended(evil) == 4003
    with world.synced("evil") as evil:
        evil.send(encode(Say(2, 0, (insert((1 << 32) - 5),))))
        assert ended(evil) == 1008
    assert world.refused("message") == before + 3
    assert world.state()["skyline"] == skyline
    world.serves()


def test_names_without_end_are_refused(world: Coordinated) -> None:
    before = world.refused("objects")
    with world.synced("evil") as evil:
        evil.send(encode(Names(tuple(range(1001)))))
        assert ended(evil) == 1008
    assert world.refused("objects") == before + 1
    assert world.metric("skytide_objects") < 1000
    world.serves()


# -- slow, many and greedy ---------------------------------------------------------------------------------------------


def test_a_connection_that_never_says_its_name_is_ended(world: Coordinated) -> None:
    before = world.refused("hello")
    with world.connect() as evil:
        assert ended(evil) == 1008
    assert world.refused("hello") == before + 1
    world.serves()


def test_a_handshake_that_takes_too_long_is_ended(world: Coordinated) -> None:
    name = 'skytide_connections_dropped_total{reason="header"}'
    before = world.metric(name)
    handshake = b"GET /site HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(socket.create_connection((world.host, world.port), 30)) for _ in range(20)]
        stop = threading.Event()

        def trickle() -> None:
            for piece in handshake:
                for one in slow:
                    with contextlib.suppress(OSError):
                        one.sendall(bytes([piece]))
                if stop.wait(0.1):
                    return

        thread = threading.Thread(target=trickle)
        thread.start()
        world.serves()
        for one in slow:
            with contextlib.suppress(ConnectionError):
                assert one.recv(1000) == b""
        stop.set()
        thread.join()
    assert world.metric(name) == before + 20
    world.serves()


def test_a_flood_of_connections_is_refused_and_who_is_here_stays(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with coordinated(tmp_path, connections=60) as world, contextlib.ExitStack() as stack:
        for _ in range(300):
            flooding = stack.enter_context(socket.socket())
            flooding.settimeout(30)
            with contextlib.suppress(ConnectionResetError):  # refused before it knows that it is connected
                flooding.connect((world.host, world.port))
        assert world.honest is not None
        world.honest.put("during", {"p": 1e6})
        world.honest.flush()
        stack.close()
        world.until(lambda: _answers(world))
        assert world.metric('skytide_connections_refused_total{limit="connections"}') >= 100
        world.serves()
    assert complaints(caplog.records, "the limit of connections is reached") == 1


def _answers(world: Coordinated) -> bool:
    try:
        return world.get("/health")[0] == 200
    except OSError:
        return False


def test_what_waits_for_a_site_that_never_reads_is_limited(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator, "MOST_WAITING_BYTES", 1 << 20)
    with coordinated(tmp_path) as world:
        evil = socket.socket()
        with evil:
            evil.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 12)
            evil.settimeout(30)
            evil.connect((world.host, world.port))
            evil.sendall(
                b"GET /site HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
            )
            assert evil.recv(1000).startswith(b"HTTP/1.1 101")
            evil.sendall(_masked(encode(Hello("evil", KEY))))
            many = _masked(encode(Names(("a",) * 100_000)))
            evil.settimeout(1)
            with contextlib.suppress(OSError):
                for _ in range(100):
                    evil.sendall(many)
            world.until(lambda: world.refused("too slow") == 1)
            world.serves()
        world.until(lambda: world.metric("skytide_connections") <= 2)
        world.serves()
    assert complaints(caplog.records, "refused (too slow)") == 1


def _masked(data: bytes) -> bytes:
    """A binary frame of WebSockets, with a mask that changes nothing."""
    length = struct.pack(">BQ", 0xFF, len(data)) if len(data) > 125 else bytes([0x80 | len(data)])
    return b"\x82" + length + bytes(4) + data


def test_a_site_that_never_stops_asking_keeps_nobody_waiting(world: Coordinated) -> None:
    stop = threading.Event()

    def ask() -> None:
        with world.synced("evil") as evil:
            while not stop.is_set():
                for _ in range(50):
                    evil.send(encode(Names(("mine",) * 100)))
                for _ in range(50):
                    heard(evil)

    thread = threading.Thread(target=ask)
    thread.start()
    for _ in range(5):
        world.serves()
    stop.set()
    thread.join(30)
    assert not thread.is_alive()


def test_a_site_that_does_not_reply_is_passed_over(world: Coordinated) -> None:
    before = world.refused("too slow")
    with _asked(world) as evil:
        world.serves()
        assert ended(evil) == 4001
    assert world.refused("too slow") == before + 1
    assert [one["site"] for one in world.state()["stale"]] in ([], ["evil"])
