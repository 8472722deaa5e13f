"""Lives of the pipeline, what befalls them, and a network of sites beside it; everything in one event loop.

Faults come one after the other, each when the pipeline has gone on since the one before. Every kind comes at least
once, and they come at random until the time is up. For the last part of it driver and coordinator are left alone, so
that their memory can be seen over one long life. At the end sites rest, and a last life processes what is left.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.network import faults
from benchmarks.network.fault_world import World
from benchmarks.network.proxy import Proxy
from benchmarks.soak import processes
from benchmarks.soak.job import Settings
from benchmarks.soak.memory import Memory, Verdict
from benchmarks.soak.processes import Process, below

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 150.0
"""Seconds in which a micro-batch must end, whatever has happened."""
QUIET_SHARE = 0.4
"""Of the time, at its end, in which driver and coordinator are left alone."""
DRIVER_KILLED = "driver killed"
ENDED = "driver ended by itself, and was started again"
MOST_ENDED = 3
"""So often it may end by itself: on a machine that is too busy Spark loses its own Python processes."""
MORE_ROWS = 2_000
"""Rows of the last life, beside those that were under way."""


@dataclass
class Outcome:
    """What has happened."""

    faults: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    """Of load and faults."""
    lives: int = 0
    batches: Counter[str] = field(default_factory=Counter)
    rows: int = 0
    recovered: list[float] = field(default_factory=list)
    """Seconds from each fault to the next micro-batch of the window."""
    memory: list[Verdict] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    network: dict[str, Any] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)


class Pipeline:
    """One life of the pipeline after the other, each a process group of its own."""

    def __init__(self, settings: Settings, errors: Path, outcome: Outcome) -> None:
        self.settings, self._errors, self._outcome = settings, errors, outcome
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self.done = Counter[str]()
        """Micro-batches of this life, by query."""
        self._news = asyncio.Event()

    async def start(self, rows: int | None = None) -> None:
        """Begin another life; one whose rows end is in one process, since little is left for it."""
        asked = self.settings if rows is None else replace(self.settings, rows=rows, master="local[2]")
        self.done = Counter()
        self._outcome.lives += 1
        with self._errors.open("ab") as errors:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "benchmarks.soak.job", asked.json()),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                cwd=ROOT,
                start_new_session=True,
            )
        self._reader = asyncio.create_task(self._read(self._process))

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        while line := await process.stdout.readline():
            with contextlib.suppress(ValueError, KeyError):
                told = json.loads(line)
                self.done[told["query"]] += 1
                self._outcome.batches[told["query"]] += 1
                self._news.set()
        self._news.set()

    async def gone_on(self, query: str, batches: int = 1) -> bool:
        """Wait for so many more micro-batches of a query; whether they came."""
        wanted, end = self.done[query] + batches, time.monotonic() + PATIENCE
        while self.done[query] < wanted and self.running and time.monotonic() < end:
            self._news.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), 1.0)
        return self.done[query] >= wanted

    @property
    def running(self) -> bool:
        """Whether this life goes on."""
        return self._process is not None and self._process.returncode is None

    def parts(self, role: str) -> list[Process]:
        """Its processes of a role."""
        return [] if self._process is None else [one for one in below(self._process.pid) if one.role == role]

    async def kill(self) -> None:
        """End it, with all that it has started, at once."""
        if self._process is None:
            return
        started = below(self._process.pid)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await self.ended()
        # Spark's Python processes have groups of their own. They end by themselves, but not always soon.
        for _ in range(20):
            if not any(one.resident() for one in started):
                return
            await asyncio.sleep(0.1)
        for one in started:
            one.kill()

    async def ended(self) -> int:
        """Wait until it has ended; its exit status."""
        assert self._process is not None and self._reader is not None
        status = await self._process.wait()
        self._reader.cancel()
        return status


# -- what befalls it ---------------------------------------------------------------------------------------------------


class Fate:
    """Faults by name."""

    def __init__(self, pipeline: Pipeline, proxy: Proxy, seed: int) -> None:
        self._pipeline, self._proxy, self._random = pipeline, proxy, random.Random(seed)
        kinds: dict[str, Callable[[], Awaitable[bool]]] = {
            "executor killed": lambda: self._killed(processes.EXECUTOR),
            DRIVER_KILLED: self._driver,
            "connection to the coordinator cut": self._cut,
            "Python worker killed": lambda: self._killed(processes.WORKER),
        }
        if not pipeline.settings.master.startswith("local-cluster"):
            # In the driver's own process a task that fails is not tried again: that is a driver lost.
            del kinds["executor killed"], kinds["Python worker killed"]
        if not pipeline.settings.url:
            del kinds["connection to the coordinator cut"]
        self._kinds = kinds
        # The last life begins where the one before it was killed: a driver is killed in any case.
        self._first = [name for name in kinds if name != DRIVER_KILLED]

    async def fault(self, *, quiet: bool) -> str | None:
        """Let one happen; its name, or None where there was nothing to break."""
        kinds = [name for name in self._kinds if not quiet or name != DRIVER_KILLED]
        name = self._first[0] if self._first else self._random.choice(kinds)
        if not await self._kinds[name]():
            return None
        self._first = [other for other in self._first if other != name]
        return name

    @property
    def complete(self) -> bool:
        """Whether every kind has come."""
        return not self._first

    async def _killed(self, role: str) -> bool:
        found = self._pipeline.parts(role)
        if role == processes.WORKER:  # a worker is a child of a daemon that is its like
            found = [one for one in found if one.parent in {other.id for other in found}]
        return bool(found) and self._random.choice(found).kill()

    async def _driver(self) -> bool:
        await self._pipeline.kill()
        await asyncio.sleep(self._random.uniform(0.0, 1.0))
        await self._pipeline.start()
        return True

    async def _cut(self) -> bool:
        self._proxy.refusing = True
        self._proxy.cut()
        await asyncio.sleep(self._random.uniform(0.0, 2.0))
        self._proxy.heal()
        return True


async def _lives(
    pipeline: Pipeline, fate: Fate, outcome: Outcome, seconds: float, pause: float, chance: random.Random
) -> None:
    """Faults until the time is up and each kind has come; the pipeline must go on after each."""
    await pipeline.start()
    began = time.monotonic()
    if not await _going_on(pipeline, outcome):
        outcome.problems.append("the pipeline did not begin")
        return
    while (past := time.monotonic() - began) < seconds or not fate.complete:
        if past > seconds + 2 * PATIENCE:
            outcome.problems.append("there was nothing to break for a fault that was to come")
            break
        if fate.complete:
            await asyncio.sleep(min(chance.expovariate(1 / pause), max(0.0, seconds - past)))
        if not pipeline.running and not await _going_on(pipeline, outcome):
            outcome.problems.append("the pipeline ended by itself, again and again")
            break
        last = time.monotonic()
        name = await fate.fault(quiet=fate.complete and past > (1 - QUIET_SHARE) * seconds)
        if name is None:
            await asyncio.sleep(0.5)
            continue
        outcome.faults[name] += 1
        if not await _going_on(pipeline, outcome):
            outcome.problems.append(f"no micro-batch came after: {name}")
            break
        outcome.recovered.append(time.monotonic() - last)


async def _going_on(pipeline: Pipeline, outcome: Outcome) -> bool:
    """Wait for two micro-batches; a driver that ended by itself is started again, as whoever runs it would do."""
    while not (found := await pipeline.gone_on("window", 2)) and not pipeline.running:
        outcome.faults[ENDED] += 1
        if outcome.faults[ENDED] > MOST_ENDED:
            break
        await pipeline.start()
    return found


# -- all of it ---------------------------------------------------------------------------------------------------------


async def played(settings: Settings, seconds: float, pause: float, seed: int, memory: Memory) -> Outcome:
    """Everything, from the first start to the last row; what is in the folder is then to be compared.

    Without a `url` in the settings there is no network beside the pipeline; with one, it is replaced by a proxy's.
    """
    folder, outcome = Path(settings.folder), Outcome()
    (folder / "network").mkdir(parents=True)
    world = World(faults.QUERIES["filtering"], folder / "network", seed, secret=False)
    proxy = Proxy(world.port, seed)
    address = f"http://127.0.0.1:{await proxy.start()}"
    pipeline = Pipeline(replace(settings, url=address if settings.url else ""), folder / "errors", outcome)
    resting, drained = asyncio.Event(), asyncio.Event()

    async def at_rest(_: dict[str, Any]) -> None:
        resting.set()
        await drained.wait()

    async def spark() -> None:
        await _lives(pipeline, Fate(pipeline, proxy, seed), outcome, seconds, pause, random.Random(seed))
        await resting.wait()
        await _last_life(pipeline, outcome)
        drained.set()

    sampling = asyncio.create_task(_sampled(memory))
    try:
        if settings.url:
            # A failure of one must not leave the other waiting.
            async with asyncio.TaskGroup() as both:
                network = both.create_task(faults.played(world, seconds, seed, at_rest, spared=QUIET_SHARE))
                both.create_task(spark())
            outcome.network = await asyncio.to_thread(faults.judged, world, network.result())
            outcome.network["at rest"] = network.result()["last"]["number"]
            outcome.events = world.seen.events["ndjson"]
        else:
            resting.set()
            await spark()
    finally:
        sampling.cancel()
        await pipeline.kill()
        await proxy.stop()
    outcome.memory = memory.verdicts()
    outcome.seconds = seconds
    return outcome


async def _last_life(pipeline: Pipeline, outcome: Outcome) -> None:
    """Kill the pipeline, and let another life process what is left, and some rows more."""
    await pipeline.kill()
    outcome.faults[DRIVER_KILLED] += 1
    outcome.rows = planned(Path(pipeline.settings.folder, "window-checkpoint")) + MORE_ROWS
    for _ in range(1 + MOST_ENDED):
        await pipeline.start(outcome.rows)
        try:
            if await asyncio.wait_for(pipeline.ended(), 2 * PATIENCE) == 0:
                return
            outcome.faults[ENDED] += 1
        except TimeoutError:
            break
    outcome.problems.append("the last life did not come to its end")


async def _sampled(memory: Memory) -> None:
    while True:
        memory.sample(time.monotonic(), below(os.getpid()))
        await asyncio.sleep(2.0)


def planned(checkpoint: Path) -> int:
    """The position of the last row that any micro-batch of the window was to take."""
    offsets = [path for path in (checkpoint / "offsets").iterdir() if path.name.isdigit()]
    newest = max(offsets, key=lambda path: int(path.name))
    return int(json.loads(newest.read_text().splitlines()[-1])["row"])
