"""A coordinator and processes with sites on loopback, a network between them that misbehaves, and readers.

The parts of the benchmark of faults that know of processes and sockets. All faults are reached by name; `heal` ends
those that last.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.network.proxy import Proxy
from skytide.protocols.network.query import Query
from skytide.runtime.network.secrets import issue, new_secret

ROOT = Path(__file__).resolve().parents[2]
PROCESSES, SITES, OBJECTS = 3, 2, 4
"""Processes, sites in each, and objects: of each site, or of all where they are in fragments."""
SNAPSHOT = 30_000
"""Bytes of the log before a snapshot: few, so that restarts read snapshots too."""


@dataclass
class Seen:
    """What readers have seen."""

    states: list[tuple[float, float, dict[str, Any]]] = field(default_factory=list)
    """When each was asked for and when it came, and the state."""
    availability: list[tuple[float, str]] = field(default_factory=list)
    """At moments: exact, stale or away."""
    events: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """By reader: what it got, in order."""
    reconnects: int = 0
    problems: list[str] = field(default_factory=list)


class World:
    """Everything that runs."""

    def __init__(self, query: Query, folder: Path, seed: int, *, secret: bool) -> None:
        self.query, self.folder, self.random = query, folder, random.Random(seed)
        self.seen = Seen()
        self.counts: dict[str, int] = {}
        self.port = _free_port()
        self._secret = new_secret(folder / "secret") if secret else None
        self._coordinator: asyncio.subprocess.Process | None = None
        self._sites: list[asyncio.subprocess.Process | None] = [None] * PROCESSES
        self._proxies = [Proxy(self.port, seed + number) for number in range(PROCESSES)]
        self._ports: list[int] = []
        self._busy = [asyncio.Lock() for _ in range(PROCESSES + 1)]  # of each process, the coordinator's the last
        self._lives = 0
        self._readers: list[asyncio.Task[None]] = []
        self._running = True

    # -- processes -----------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start all of them."""
        await self._start_coordinator()
        self._ports = [await proxy.start() for proxy in self._proxies]
        for number in range(PROCESSES):
            await self._start_sites(number, memory=False)
        follow = [self._follow("sse"), self._follow("ndjson")]
        self._readers = [asyncio.create_task(work) for work in (self._poll(), *follow)]

    async def stop(self) -> None:
        """End all of them."""
        self._running = False
        for reader in self._readers:
            reader.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)
        for process in (*self._sites, self._coordinator):
            if process is not None:
                await _killed(process)
        for proxy in self._proxies:
            await proxy.stop()

    async def _start_coordinator(self) -> None:
        options = {"data": self.folder / "state", "listen": f"127.0.0.1:{self.port}", "large": SNAPSHOT}
        options |= {"protocol": self.query.protocol, "method": self.query.method}
        options |= {"patience": "1s", "heartbeat": "1s"}
        if self._secret is not None:
            options["secret_file"] = self.folder / "secret"
        given = [f"--{name}={value}" for name, value in options.items()]
        given += [f"--min={text}" for text in self.query.minimize] + [f"--max={text}" for text in self.query.maximize]
        self._coordinator = await self._process("benchmarks.network.serve", *given)
        assert self._coordinator.stdout is not None
        if not await self._coordinator.stdout.readline():
            self.seen.problems.append("the coordinator did not start")

    async def _start_sites(self, number: int, *, memory: bool) -> None:
        names = self.sites[SITES * number : SITES * (number + 1)]
        shared = [f"o{place}" for place in range(OBJECTS + 2)]
        own = {name: [f"{name}-{place}" for place in range(OBJECTS)] for name in names}
        self._lives += 1
        given = {
            "url": f"ws://127.0.0.1:{self._ports[number]}",
            "sites": own if self.query.protocol == "filtering" else dict.fromkeys(names, shared),
            "tokens": {} if self._secret is None else {name: issue(self._secret, "site", name) for name in names},
            "diary": str(self.diaries[number]),
            "seed": self.random.randrange(1 << 30),
            "memory": memory,
            "rate": 12.0,
        }
        self._sites[number] = await self._process("benchmarks.network.fault_site", json.dumps(given))

    async def _process(self, module: str, *arguments: str) -> asyncio.subprocess.Process:
        error = os.open(self.folder / "errors", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            return await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", module, *arguments),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=error,
                cwd=ROOT,
            )
        finally:
            os.close(error)

    @property
    def sites(self) -> list[str]:
        """The names of all sites, process after process."""
        return [f"site-{number}-{place}" for number in range(PROCESSES) for place in range(SITES)]

    @property
    def diaries(self) -> list[Path]:
        """What the processes have noted."""
        return [self.folder / f"diary-{number}" for number in range(PROCESSES)]

    def look(self) -> None:
        """Note processes that ended of their own accord."""
        for process, lock in zip((*self._sites, self._coordinator), self._busy, strict=True):
            if process is not None and process.returncode is not None and not lock.locked():
                self.seen.problems.append(f"a process ended by itself with {process.returncode}")

    # -- faults --------------------------------------------------------------------------------------------------------

    @property
    def faults(self) -> dict[str, tuple[float, Callable[[], Awaitable[None]]]]:
        """By name: how often it comes, as a weight, and what happens."""
        return {
            "coordinator killed": (2.0, self._kill_coordinator),
            "sites killed, memory kept": (2.0, lambda: self._kill_sites(memory=True)),
            "sites killed, memory lost": (2.0, lambda: self._kill_sites(memory=False)),
            "coordinator stopped": (1.0, self._stop_coordinator),
            "sites stopped": (2.0, self._stop_sites),
            "sites slow": (2.0, self._slow_sites),
            "connections cut": (3.0, self._cut),
            "connections stalled": (2.0, self._stall),
            "connections delayed": (2.0, self._delay),
            "writes split": (2.0, self._split),
            "network split": (2.0, self._divide),
        }

    async def fault(self, *, spared: bool = False) -> None:
        """Let one of them happen, from its beginning to its end; where it is spared, none to the coordinator itself."""
        faults = {name: one for name, one in self.faults.items() if not (spared and name.startswith("coordinator"))}
        (name,) = self.random.choices(list(faults), [weight for weight, _ in faults.values()])
        self.counts[name] = self.counts.get(name, 0) + 1
        await faults[name][1]()

    def heal(self) -> None:
        """Have the network behave."""
        for proxy in self._proxies:
            proxy.heal()

    def _one(self) -> int:
        return self.random.randrange(PROCESSES)

    async def _pause(self, most: float) -> None:
        await asyncio.sleep(self.random.uniform(0.0, most))

    async def _kill_coordinator(self) -> None:
        async with self._busy[-1]:
            assert self._coordinator is not None
            await _killed(self._coordinator)
            await self._pause(1.0)
            await self._start_coordinator()

    async def _kill_sites(self, *, memory: bool) -> None:
        number = self._one()
        async with self._busy[number]:
            process = self._sites[number]
            assert process is not None
            await _killed(process)
            await self._pause(1.5)
            await self._start_sites(number, memory=memory)

    async def _stop_coordinator(self) -> None:
        async with self._busy[-1]:
            await self._stopped(self._coordinator, 2.5)

    async def _stop_sites(self) -> None:
        number = self._one()
        async with self._busy[number]:
            await self._stopped(self._sites[number], 3.5)

    async def _stopped(self, process: asyncio.subprocess.Process | None, most: float) -> None:
        assert process is not None
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGSTOP)
            await self._pause(most)
            process.send_signal(signal.SIGCONT)

    async def _slow_sites(self) -> None:
        number = self._one()
        for _ in range(4):
            async with self._busy[number]:
                await self.tell(number, f"slow {self.random.uniform(0.05, 0.8):.3f}")
            await self._pause(1.0)

    async def tell(self, number: int, command: str) -> None:
        """Tell a process of sites something."""
        process = self._sites[number]
        assert process is not None and process.stdin is not None
        with contextlib.suppress(ConnectionError):
            process.stdin.write(command.encode() + b"\n")
            await process.stdin.drain()

    async def rest(self) -> None:
        """Have all sites put no more rows."""
        for number in range(PROCESSES):
            await self.tell(number, "rest")

    async def _cut(self) -> None:
        self._proxies[self._one()].cut(self.random.choice((0.5, 1.0)))

    async def _stall(self) -> None:
        proxy = self._proxies[self._one()]
        proxy.stall()
        await self._pause(4.0)
        proxy.heal()

    async def _delay(self) -> None:
        proxy = self._proxies[self._one()]
        proxy.delay = self.random.choice((0.01, 0.1, 0.5))
        await self._pause(4.0)
        proxy.heal()

    async def _split(self) -> None:
        proxy = self._proxies[self._one()]
        proxy.split = True
        await self._pause(4.0)
        proxy.heal()

    async def _divide(self) -> None:
        """Nothing gets through, and nobody is told; later the old connections break."""
        chosen = self.random.sample(self._proxies, self.random.randint(1, PROCESSES))
        for proxy in chosen:
            proxy.stall()
            proxy.refusing = True
        await self._pause(3.0)
        for proxy in chosen:
            proxy.cut(self.random.choice((0.0, 1.0)))
            proxy.heal()

    # -- readers -------------------------------------------------------------------------------------------------------

    def _headers(self) -> str:
        token = "" if self._secret is None else f"Authorization: Bearer {issue(self._secret, 'reader', 'bench')}\r\n"
        return f"Host: 127.0.0.1\r\n{token}"

    async def state(self) -> dict[str, Any]:
        """The state now."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(f"GET /skyline HTTP/1.0\r\n{self._headers()}\r\n".encode())
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200") or not body:
                raise ConnectionError(head[:40])
            found: dict[str, Any] = json.loads(body)
            return found
        finally:
            writer.transport.abort()

    async def _poll(self) -> None:
        while self._running:
            asked = time.time()
            try:
                async with asyncio.timeout(10):
                    state = await self.state()
            except (OSError, TimeoutError, ValueError):
                self.seen.availability.append((asked, "away"))
            else:
                self.seen.states.append((asked, time.time(), state))
                self.seen.availability.append((asked, "exact" if state["exact"] else "stale"))
            self.look()
            await asyncio.sleep(0.01)

    async def _follow(self, form: str) -> None:
        """Read the change stream through all faults: reconnect where it ends, and now and then without a reason."""
        events = self.seen.events.setdefault(form, [])
        while self._running:
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(self.random.expovariate(0.2)):
                    await self._stream(form, events)
            self.seen.reconnects += 1
            await asyncio.sleep(0.02)

    async def _stream(self, form: str, events: list[dict[str, Any]]) -> None:
        last = events[-1]["number"] if events else 0
        where = f"Last-Event-ID: {last}\r\n" if form == "sse" and last else ""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 22)
        try:
            path = f"/changes?format={form}&after={last}"
            writer.write(f"GET {path} HTTP/1.0\r\n{self._headers()}{where}\r\n".encode())
            if b" 200 " not in await reader.readline():
                return
            while line := await reader.readline():
                text = line.removeprefix(b"data: ")
                if text.startswith(b"{") and line.endswith(b"\n"):
                    events.append(json.loads(text))
        finally:
            writer.transport.abort()


async def _killed(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    await process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
