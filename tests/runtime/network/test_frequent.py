"""Over a network too, a frequent skyline is who was in at least a share of the skylines of the last ticks."""

from __future__ import annotations

import asyncio
import random
from functools import partial
from pathlib import Path

import pytest

from skytide.runtime.network.config import Config
from skytide.runtime.network.coordinator import Coordinator
from skytide.runtime.network.site import AsyncSite

OVER, NEEDED = 4, 2


@pytest.mark.parametrize("large", [1 << 30, 1])
def test_after_every_tick_the_answer_is_that_of_the_definition_and_outlives_a_restart(
    tmp_path: Path, large: int
) -> None:
    flags = {"data": str(tmp_path), "min": ("p",), "listen": "127.0.0.1:0", "theta": "0.5", "over": OVER, "every": "1s"}
    asyncio.run(_ticks(Config.of(flags), large))


async def _ticks(config: Config, large: int) -> None:
    now, source, values, skylines = [1000.5], random.Random(3), dict[str, int](), list[set[str]]()
    answer: list[str] = []
    for part in range(2):
        coordinator = Coordinator(config, clock=lambda: now[0], large=large)
        assert coordinator.state()["skyline"] == answer
        stop, started = asyncio.Event(), list[int]()
        running = asyncio.create_task(coordinator.run(stop=stop, started=partial(_note, started)))
        async with asyncio.timeout(10):
            while not started:
                await asyncio.sleep(0.005)
        async with AsyncSite(f"ws://127.0.0.1:{started[0]}", "one", hold=True) as site:
            for one, value in values.items():
                await site.put(one, [value])
            await site.flush()
            for tick in range(8):
                for _ in range(source.randint(0, 2)):
                    one = source.choice("abc")
                    values[one] = source.randint(0, 2)
                    await site.put(one, [values[one]])
                await site.flush()
                now[0] += 1.0
                async with asyncio.timeout(10):
                    while coordinator.ticks < 8 * part + tick + 1:
                        await asyncio.sleep(0.005)
                skylines.append({one for one, value in values.items() if value == min(values.values())})
                latest = skylines[-OVER:]
                answer = sorted(one for one in values if sum(one in each for each in latest) >= NEEDED)
                assert coordinator.state()["skyline"] == answer, (part, tick)
        stop.set()
        await running


def _note(started: list[int], host: str, port: int) -> None:
    started.append(port)
