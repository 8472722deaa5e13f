"""A server in a thread of its own over a hub without sites, for tests that talk to it through real sockets."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from starlette.routing import BaseRoute

from skytide.runtime.network.config import Config
from skytide.runtime.network.feed import Event, Feed
from skytide.runtime.network.metrics import Metrics
from skytide.runtime.network.secrets import Tokens
from skytide.runtime.network.server import application, serve

Result = TypeVar("Result")


class FakeHub:
    """A hub whose answer is the ids that were published last."""

    def __init__(self, keep: int = 1000, secret: bytes | None = None) -> None:
        self.feed, self.metrics, self.tokens = Feed(keep), Metrics(), Tokens(secret)
        self.is_ready = True

    def state(self) -> dict[str, Any]:
        stale = [{"site": "b", "since": 1.5, "objects": 2}]
        return {"number": self.feed.newest, "time": 2.0, "exact": False, "stale": stale, "skyline": ["é", 7]}

    def objects(self, everything: bool) -> dict[str, Any]:
        return {"objects": ["é", 7, 8] if everything else ["é", 7]}

    def ledger(self) -> dict[str, Any]:
        return {"messages": 3}

    def ready(self) -> bool:
        return self.is_ready


class Served:
    """A running server: where it is, and calls into its loop."""

    def __init__(self, hub: FakeHub) -> None:
        self.hub, self.host, self.port = hub, "127.0.0.1", 0
        self.loop = asyncio.new_event_loop()
        self.stop = asyncio.Event()
        self.up = threading.Event()

    def call(self, function: Callable[[], Result]) -> Result:
        """What a function says inside of the server's loop."""

        async def inside() -> Result:
            return function()

        return asyncio.run_coroutine_threadsafe(inside(), self.loop).result(30)

    def publish(self, count: int = 1, kind: str = "change", **fields: Any) -> None:
        def inside() -> None:
            first = self.hub.feed.newest + 1
            self.hub.feed.publish([Event(number, 0.5, kind, fields) for number in range(first, first + count)])

        self.call(inside)

    def metric(self, name: str) -> float:
        """The value of a line of the metrics; 0 where it is missing."""
        text = self.call(self.hub.metrics.text)
        found = [float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(name + " ")]
        return found[0] if found else 0.0

    def connect(self) -> socket.socket:
        return socket.create_connection((self.host, self.port), timeout=30)

    def get(self, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=30)
        try:
            connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def json(self, path: str, **headers: str) -> Any:
        status, _, body = self.get(path, **headers)
        assert status == 200, body
        return json.loads(body)

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for what must come; a test that waits in vain fails here."""
        pause = threading.Event()
        for _ in range(3000):
            if condition():
                return
            pause.wait(0.01)
        raise AssertionError("it did not come")


@contextmanager
def served(
    hub: FakeHub | None = None, *, routes: Sequence[BaseRoute] = (), heartbeat: float = 5.0, **options: Any
) -> Iterator[Served]:
    """A server that runs; options are those of the configuration."""
    server = Served(hub or FakeHub())
    config = Config(data=Path("unused"), min=("a",), heartbeat=heartbeat, listen="127.0.0.1:0", **options)
    app = application(server.hub, routes=routes, readers=config.readers, heartbeat=heartbeat, host=config.host)
    problems: list[BaseException] = []

    def started(host: str, port: int) -> None:
        server.host, server.port = host, port
        server.up.set()

    def run() -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: server.loop) as runner:
                runner.run(serve(config, app, stop=server.stop, started=started, grace=2))
        except BaseException as problem:
            problems.append(problem)
            server.up.set()

    thread = threading.Thread(target=run)
    thread.start()
    assert server.up.wait(30)
    if not problems:
        try:
            yield server
        finally:
            server.loop.call_soon_threadsafe(server.stop.set)
            thread.join(30)
            assert not thread.is_alive()
    thread.join(30)
    if problems:
        raise problems[0]
