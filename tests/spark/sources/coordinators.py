"""A real coordinator in a thread of its own, in a folder that outlives it, with a site that moves its skyline."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from skytide.protocols.network.frames import Id
from skytide.runtime.network.config import Config
from skytide.runtime.network.coordinator import Coordinator
from skytide.runtime.network.site import Site

IDS: dict[int, Id] = {0: 7, 1: "7", 2: -(1 << 63)}
"""Ids of the first steps: numbers, and a text that looks like one."""


class Running:
    """A coordinator that keeps the objects of which `a` is least; started, stopped and started again at one port."""

    def __init__(self, folder: Path, **config: Any) -> None:
        self.folder, self.port = folder, 0
        self.secure = "certificate" in config
        self._config = config
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        return f"http{'s' if self.secure else ''}://127.0.0.1:{self.port}"

    def start(self) -> None:
        given = {"data": self.folder, "min": ("a",), "method": "naive", "listen": f"127.0.0.1:{self.port}"}
        self.coordinator = Coordinator(Config.of({**given, **self._config}))
        self._up, self._stop, self._loop = threading.Event(), asyncio.Event(), asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        assert self._up.wait(30) and self.port

    def _run(self) -> None:
        def started(_: str, port: int) -> None:
            self.port = port
            self._up.set()

        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self.coordinator.run(stop=self._stop, started=started))
        finally:
            self._up.set()

    def stop(self) -> None:
        if self._thread is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(30)
            assert not self._thread.is_alive()
            self._thread = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def newest(self) -> int:
        return self.coordinator.feed.newest

    def events(self) -> list[dict[str, Any]]:
        """All that the coordinator keeps."""
        found = self.coordinator.feed.read(self.coordinator.feed.oldest - 1)
        assert isinstance(found, list)
        return [json.loads(event.ndjson) for event in found]

    def move(self, steps: Iterable[int], name: str = "one", **options: Any) -> None:
        """One better object after the other: each takes the place of the one before it, two events a step."""
        with Site(self.url, name, **options) as site:
            for step in steps:
                site.put(IDS.get(step, f"é{step}"), [float(-step)])
                site.flush()
        self.until_away(name)

    def until_away(self, name: str) -> None:
        """Wait until the coordinator has said that the site is gone: from then on nothing changes."""
        pause = threading.Event()
        for _ in range(6000):
            last = self.events()[-1]
            if last["kind"] == "stale" and last["site"] == name:
                return
            pause.wait(0.01)
        raise AssertionError("it did not come")


EPOCH = datetime.fromtimestamp(0, UTC)


def rows_of(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the source makes of events, said once more and more simply."""

    def moment(seconds: float | None) -> datetime | None:
        return None if seconds is None else EPOCH + timedelta(microseconds=round(seconds * 1e6))

    return [
        {
            "number": event["number"],
            "time": moment(event["time"]),
            "kind": event["kind"],
            "change": event.get("change"),
            "id": None if "id" not in event else f"{event['id']}",
            "id_number": event["id"] if isinstance(event.get("id"), int) else None,
            "dialogue": event.get("dialogue"),
            "site": event.get("site"),
            "since": moment(event.get("since")),
            "objects": None if "objects" not in event else [f"{one}" for one in event["objects"]],
            "count": event.get("count"),
            "exact": event.get("exact"),
        }
        for event in events
    ]
