"""A process with a few sites whose rows are random, and which may be killed at any moment; for the benchmark of faults.

Everything that it does is in a file, a line of JSON each, written before a row is put and after it is known to be
acknowledged. That file is its memory too: with it a process that starts puts back what the one before it had.

    ["start", site, time, with memory]   ["put", site, time, row, id, values]   ["ack", site, time, rows]

Commands on standard input, a line each: `slow SECONDS` blocks it now and then, `rest` ends the rows; with the input
ends the process.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("SKYTIDE_PLAIN", "1")

from skytide.runtime.network import site as site_module
from skytide.runtime.network.site import AsyncSite

MOST_OPEN = 3
"""Rows of a site that are not acknowledged: with more, the checker would not know what to expect."""
GRID = 7


class Diary:
    """A file that survives the process."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(self, kind: str, site: str, *rest: Any) -> None:
        """Append a line, in one piece; the time is that of this call."""
        os.write(self._file, json.dumps([kind, site, time.time(), *rest]).encode() + b"\n")


class Driver:
    """Puts rows into a site, and notes what happens."""

    def __init__(self, site: AsyncSite, pool: list[str], seed: int, diary: Diary, rate: float) -> None:
        self._site, self._pool, self._random = site, pool, random.Random(seed)
        self._diary, self._rate = diary, rate
        self._acknowledged = 0
        self.resting = False

    async def put(self, one: str, values: list[float] | None) -> None:
        """Put a row, and note it before."""
        await self._site.query()
        self._diary.note("put", self._site.name, self._site.rows + 1, one, values)
        await self._site.put(one, values)
        self.look()

    def look(self) -> None:
        """Note what is acknowledged since."""
        found = self._site.acknowledged
        if found > self._acknowledged:
            self._acknowledged = found
            self._diary.note("ack", self._site.name, found)

    async def run(self, known: dict[str, list[float]]) -> None:
        """Put back what was known, then random rows."""
        for one, values in known.items():
            await self.put(one, values)
        await self._site.flush()
        self.look()
        while not self.resting:
            await asyncio.sleep(self._random.expovariate(self._rate))
            if self._site.rows - self._site.acknowledged < MOST_OPEN:
                await self.put(self._random.choice(self._pool), self._values())
        await self._site.flush()
        self.look()
        self._diary.note("rest", self._site.name)

    def _values(self) -> list[float] | None:
        if self._random.random() < 0.08:
            return None
        return [float(self._random.randint(1, GRID)) for _ in range(2)]


def remembered(path: Path) -> dict[str, dict[str, list[float]]]:
    """The latest values of each site's objects, by a process's diary."""
    found: dict[str, dict[str, list[float]]] = {}
    for line in path.read_bytes().splitlines() if path.exists() else ():
        kind, site, _, *rest = json.loads(line)
        if kind == "start" and not rest[0]:
            found[site] = {}
        elif kind == "put" and rest[2] is None:
            found.setdefault(site, {}).pop(rest[1], None)
        elif kind == "put":
            found.setdefault(site, {})[rest[1]] = rest[2]
    return found


async def main(given: dict[str, Any]) -> None:
    """Run the sites until the input ends."""
    site_module.LONGEST_PAUSE = 0.5  # faults come often here, and are over soon
    path = Path(given["diary"])
    known = remembered(path) if given["memory"] else {}
    diary = Diary(path)
    drivers, tasks = [], []
    for place, (name, pool) in enumerate(given["sites"].items()):
        diary.note("start", name, given["memory"])
        site = AsyncSite(given["url"], name, token=given["tokens"].get(name), hold=True)
        await site.__aenter__()
        driver = Driver(site, pool, given["seed"] * 1000 + place, diary, given["rate"])
        drivers.append(driver)
        tasks.append(asyncio.create_task(driver.run(known.get(name, {}))))
        tasks[-1].add_done_callback(_ended)
    watching = asyncio.create_task(_watch(drivers))
    commands = await _commands()
    while line := await commands.readline():
        command, *rest = line.decode().split()
        if command == "slow":
            time.sleep(float(rest[0]))  # a busy process answers nobody
        for driver in drivers if command == "rest" else ():
            driver.resting = True
    watching.cancel()


def _ended(task: asyncio.Task[None]) -> None:
    """A driver that fails must not go unnoticed."""
    if not task.cancelled() and task.exception() is not None:
        print("a site has failed:", task.exception(), file=sys.stderr, flush=True)
        os._exit(3)


async def _watch(drivers: list[Driver]) -> None:
    while True:
        await asyncio.sleep(0.003)
        for driver in drivers:
            driver.look()


async def _commands() -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
