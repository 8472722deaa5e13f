"""A coordinator in a thread of its own, real sockets to it, and an honest site beside whatever a test does."""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

from skytide.protocols.network.frames import Frame, Hello, Names, Numbers, Say, Settled, Welcome, decode, encode
from skytide.runtime.network.config import Config
from skytide.runtime.network.coordinator import Coordinator
from skytide.runtime.network.secrets import issue
from skytide.runtime.network.site import Site

SECRET = bytes(range(32))
KEY = bytes(16)


class Coordinated:
    """A running coordinator, as its sites and readers see it."""

    def __init__(self, secret: bool) -> None:
        self.host, self.port, self.secret = "", 0, secret
        self.honest: Site | None = None
        self._put = 0

    @property
    def url(self) -> str:
        return f"ws://{self.host}:{self.port}"

    def token(self, role: str, name: str) -> str | None:
        return issue(SECRET, role, name) if self.secret else None

    def get(self, path: str, token: str | None = None) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=30)
        try:
            connection.request("GET", path, headers={} if token is None else {"Authorization": f"Bearer {token}"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def read(self, path: str) -> bytes:
        status, body = self.get(path, self.token("reader", "test"))
        assert status == 200, body
        return body

    def state(self) -> Any:
        return json.loads(self.read("/skyline"))

    def metric(self, name: str) -> float:
        lines = self.read("/metrics").decode().splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.rpartition(" ")[0] == name)

    def refused(self, reason: str) -> float:
        return self.metric(f'skytide_refused_total{{reason="{reason}"}}')

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait for what must come; a test that waits in vain fails here."""
        end = time.monotonic() + 30
        while not holds():
            assert time.monotonic() < end, "it did not come"
            time.sleep(0.01)

    @contextmanager
    def connect(
        self, name: str | None = None, *, hello: bool = True, token: str | None = None
    ) -> Iterator[ClientConnection]:
        """A connection of a site that is none of ours, with its token; it has said its name, unless not wanted."""
        given = token or (self.token("site", name) if name else None)
        headers = {} if given is None else {"Authorization": f"Bearer {given}"}
        options: dict[str, Any] = {"proxy": None, "compression": None, "ping_interval": None, "close_timeout": 2}
        with connect(f"{self.url}/site", additional_headers=headers, max_size=1 << 26, **options) as socket:
            if hello and name:
                socket.send(encode(Hello(name, KEY)))
                assert isinstance(heard(socket), Welcome)
            yield socket

    @contextmanager
    def synced(self, name: str) -> Iterator[ClientConnection]:
        """A connection of a site that has told all it has, which is nothing."""
        with self.connect(name) as socket:
            socket.send(encode(Say(1, 0, (), fresh=True)))
            assert heard(socket) == Settled(1)
            yield socket

    def serves(self) -> None:
        """The honest site is served on: its next row is acknowledged and published, soon."""
        assert self.honest is not None
        self._put += 1
        done = threading.Event()

        def put() -> None:
            assert self.honest is not None
            self.honest.put(f"row-{self._put % 3}", {"p": -self._put})
            self.honest.flush()
            done.set()

        threading.Thread(target=put, daemon=True).start()
        assert done.wait(10), "an honest site waits"
        assert f"row-{self._put % 3}" in self.state()["skyline"]

    def serves_nobody(self) -> None:
        """Let a site come that has nothing, and go: whatever was to be said at the start is said by then."""
        with self.synced("nobody"):
            pass


def heard(socket: ClientConnection) -> Frame:
    """The next frame."""
    data = socket.recv(30)
    assert isinstance(data, bytes)
    return decode(data)


def numbered(socket: ClientConnection, *ids: int | str) -> tuple[int, ...]:
    """Ask for numbers."""
    socket.send(encode(Names(ids)))
    answer = heard(socket)
    assert isinstance(answer, Numbers)
    return answer.numbers


def complaints(records: list[logging.LogRecord], text: str) -> int:
    """How many warnings say so."""
    return sum(text in record.getMessage() for record in records if record.levelno >= logging.WARNING)


@contextmanager
def coordinated(folder: Path, *, secret: bool = False, honest: bool = True, **options: Any) -> Iterator[Coordinated]:
    """A coordinator that runs; options are those of the configuration."""
    if secret:
        file = folder / "secret"
        file.write_bytes(SECRET)
        file.chmod(0o600)
        options["secret_file"] = file
    given = {"data": folder / "state", "min": ("p",), "listen": "127.0.0.1:0", "header": "1s", "patience": "1s"}
    config = Config.of({**given, **options})
    world, up, problems = Coordinated(secret), threading.Event(), list[BaseException]()
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    def started(host: str, port: int) -> None:
        world.host, world.port = host, port
        up.set()

    async def serve() -> None:
        await Coordinator(config).run(stop=stop, started=started)

    def run() -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                runner.run(serve())
        except BaseException as problem:
            problems.append(problem)
            up.set()

    thread = threading.Thread(target=run)
    thread.start()
    assert up.wait(60)
    try:
        if not problems:
            if honest:
                world.honest = Site(world.url, "honest", token=world.token("site", "honest"))
                world.serves()
            yield world
    finally:
        if world.honest is not None:
            world.honest.close()
        if not problems:
            loop.call_soon_threadsafe(stop.set)
        thread.join(60)
        assert not thread.is_alive()
    if problems:
        raise problems[0]
