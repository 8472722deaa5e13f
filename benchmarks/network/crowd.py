"""Many sites in one process: what a worker of the load benchmark does, told by lines of JSON on its standard input.

Each site is a whole site with a connection of its own; they share an event loop, as a thousand processes would not fit.
Every command is answered by one line of JSON on standard output.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from typing import Any

os.environ.setdefault("SKYTIDE_PLAIN", "1")

import numpy as np

from skytide.runtime.network.site import AsyncSite


class Crowd:
    """Sites with objects that move."""

    def __init__(self, url: str, sites: list[str], objects: dict[str, list[str]], columns: int, seed: int) -> None:
        self._sites = [AsyncSite(url, name) for name in sites]
        self._objects = objects
        self._rng = np.random.default_rng([seed, *sites[0].encode()])
        self._columns = columns
        self._values: dict[tuple[str, str], Any] = {}
        self._cells = [(site, one) for site in self._sites for one in objects[site.name]]

    async def begin(self) -> dict[str, Any]:
        """Connect all, put the first values, and wait until they are settled."""
        for site in self._sites:
            await site.__aenter__()
        await asyncio.gather(*(site.query() for site in self._sites))
        for site, one in self._cells:
            self._values[site.name, one] = self._rng.uniform(0.2, 1.0, self._columns)
            await site.put(one, self._values[site.name, one].tolist())
        await self._flushed()
        return self._counts()

    async def _flushed(self) -> None:
        await asyncio.gather(*(site.flush() for site in self._sites))

    def _counts(self) -> dict[str, Any]:
        return {
            "rows": sum(site.rows for site in self._sites),
            "acknowledged": sum(site.acknowledged for site in self._sites),
            "sent": sum(site.sent for site in self._sites),
            "received": sum(site.received for site in self._sites),
        }

    def _step(self, change: float) -> tuple[AsyncSite, str, list[float]]:
        site, one = self._cells[self._rng.integers(len(self._cells))]
        values = self._values[site.name, one]
        values *= 1.0 + self._rng.uniform(-change, change, self._columns)
        np.clip(values, 0.1, 10.0, out=values)
        return site, one, values.tolist()

    async def run(self, seconds: float, change: float, rate: float) -> dict[str, Any]:
        """Move objects at random for a while: so many rows a second, or as many as possible."""
        began = time.monotonic()
        rows = 0
        while (now := time.monotonic() - began) < seconds:
            if rate and rows >= rate * now:
                await asyncio.sleep(min(0.01, rows / rate - now))
                continue
            for _ in range(50 if not rate else 1):
                site, one, values = self._step(change)
                await site.put(one, values)
                rows += 1
            await asyncio.sleep(0)
        elapsed = time.monotonic() - began
        await self._flushed()
        return {"put": rows, "seconds": elapsed, "settled": time.monotonic() - began, **self._counts()}

    async def probe(self, count: int, pause: float, best: list[float], worst: list[float]) -> dict[str, Any]:
        """Have an object of its own enter and leave the skyline: when each row was put, on the clock of the machine."""
        site, moments = self._sites[0], []
        name = f"probe-{site.name}"
        for place in range(2 * count):
            await asyncio.sleep(pause)
            moments.append(time.monotonic())
            await site.put(name, worst if place % 2 else best)
            await site.flush()
        await site.put(name, None)
        await site.flush()
        return {"id": name, "moments": moments}

    def values(self) -> dict[str, Any]:
        """Where everything is."""
        return {"values": [[site, one, values.tolist()] for (site, one), values in self._values.items()]}

    async def end(self) -> dict[str, Any]:
        """Close all."""
        await asyncio.gather(*(site.close() for site in self._sites))
        return self._counts()


async def main() -> None:
    """Follow commands until there are none."""
    loop = asyncio.get_running_loop()
    crowd: Crowd | None = None
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        command, arguments = json.loads(line)
        if command == "crowd":
            crowd, answer = Crowd(**arguments), {}
        else:
            answer = getattr(crowd, command)(**arguments)
            answer = await answer if asyncio.iscoroutine(answer) else answer
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
