"""Faults at random, for minutes: does the coordinator ever say that it is exact while it is not?

`python -m benchmarks.network.faults --seconds 300 --seed 1` runs a coordinator and processes with sites, half of the
time for each protocol, kills, stops, cuts and delays them, and compares every state that it reads, and every one that
the change stream tells of, with the definition. Two readers follow the change stream through all of it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.network.fault_world import World
from benchmarks.network.truth import Truth
from skytide.protocols.network.query import Query

QUERIES = {
    "filtering": Query("filtering", minimize=("p",), maximize=("q",)),
    "fragmented": Query("fragmented", minimize=("p * q",), maximize=("p",)),
}
ROUND = 12.0
"""Seconds of faults before everything may heal."""
PATIENCE = 90.0
"""Seconds in which it must have healed."""
Line = dict[str, Any]


# -- a run -------------------------------------------------------------------------------------------------------------


async def played(
    world: World,
    seconds: float,
    seed: int,
    last: Callable[[Line], Awaitable[None]] | None = None,
    *,
    spared: float = 0.0,
) -> Line:
    """Faults and peace in turns, and rest at the end; how long it took to be exact again.

    `last` gets the state at rest, before everything ends. For the share `spared` of the time, at its end, the
    coordinator itself is left alone: its memory can be seen over one long life.
    """
    chance = random.Random(seed)
    healed: list[float] = []
    await world.start()
    try:
        await _noted(world, lambda kinds: "ack" in kinds, "the first rows were not acknowledged in time")
        began = time.monotonic()
        while (left := seconds - (time.monotonic() - began)) > 0:
            running: set[asyncio.Task[None]] = set()
            end = time.monotonic() + min(ROUND, left)
            while time.monotonic() < end:
                late = time.monotonic() - began >= (1 - spared) * seconds
                running.add(asyncio.create_task(world.fault(spared=late)))
                await asyncio.sleep(chance.expovariate(1.2))
            await asyncio.gather(*running)
            world.heal()
            healed.append(await _exact(world, moment=time.monotonic()))
            await asyncio.sleep(0.5)
        await world.rest()
        await _noted(world, lambda kinds: kinds[-1] == "rest", "rows were not acknowledged in time")
        state = await world.state()
        await _caught_up(world, state["number"])
        world.seen.states.append((state["time"], state["time"], state))
        if last is not None:
            await last(state)
    finally:
        await world.stop()
    return {"healed": healed, "last": state}


async def _exact(world: World, moment: float) -> float:
    """Wait until the answer is exact; for how long."""
    while time.monotonic() - moment < PATIENCE:
        world.look()
        try:
            async with asyncio.timeout(5):
                if (await world.state())["exact"]:
                    return time.monotonic() - moment
        except (OSError, TimeoutError):
            pass
        await asyncio.sleep(0.02)
    world.seen.problems.append("it did not become exact again")
    return PATIENCE


async def _noted(world: World, holds: Callable[[list[str]], bool], problem: str) -> None:
    """Wait until the notes of all sites, by their kinds, are so."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        kinds: dict[str, list[str]] = {name: [""] for name in world.sites}
        for path in world.diaries:
            for line in path.read_bytes().splitlines() if path.exists() else ():
                kind, site, *_ = json.loads(line)
                kinds[site].append(kind)
        if all(map(holds, kinds.values())):
            return
        await asyncio.sleep(0.2)
    world.seen.problems.append(problem)


async def _caught_up(world: World, number: int) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if all(events and events[-1]["number"] >= number for events in world.seen.events.values()):
            return
        await asyncio.sleep(0.05)
    world.seen.problems.append("a reader of the change stream did not get all of it")


# -- what must hold ----------------------------------------------------------------------------------------------------


def judged(world: World, outcome: Line) -> Line:
    """Compare all that was seen with the rows, and count."""
    truth, seen = Truth(world.query, world.diaries), world.seen
    tally = {"right": 0, "wrong": 0, "unclear": 0, "stale": 0}
    wrong: list[Any] = []

    def judge(state: frozenset[str], moment: float, exact: bool) -> None:
        verdict = truth.right(state, moment) if exact else None
        name = "stale" if not exact else "unclear" if verdict is None else "right" if verdict else "wrong"
        tally[name] += 1
        if name == "wrong":
            wrong.append([moment, sorted(state)])

    for asked, came, state in seen.states:
        if not asked <= state["time"] <= came:
            seen.problems.append("a state is not of the time when it was read")
        judge(frozenset(state["skyline"]), state["time"], state["exact"])
    folded, stale = _folded(seen.events["sse"], judge)
    _check_stream(world, folded)
    if stale or not outcome["last"]["exact"]:
        seen.problems.append(f"at the end somebody is out of touch: {sorted(stale)}")
    states = [frozenset(state["skyline"]) for _, _, state in seen.states]
    if truth.right(frozenset(outcome["last"]["skyline"]), outcome["last"]["time"]) is not True:
        seen.problems.append("the answer at the end is not that of all rows")
    return {
        "protocol": world.query.protocol,
        "rows": truth.rows,
        "acknowledged": truth.acknowledged,
        "states": len(states),
        "distinct": len(set(states)),
        "events": len(seen.events["sse"]),
        "reconnects": seen.reconnects,
        **tally,
        **_shares(seen.availability),
        "healed s": max(outcome["healed"], default=0.0),
        "faults": dict(sorted(world.counts.items())),
        "problems": sorted(set(seen.problems)),
        "examples": wrong[:5],
    }


def _folded(events: list[Line], judge: Any) -> tuple[dict[int, frozenset[str]], set[str]]:
    """The state after each event, by its number, and who is stale at the end.

    After each dialogue the state is judged, at the time when it was made durable.
    """
    state: set[str] = set()
    stale: set[str] = set()
    found = {0: frozenset(state)}
    for (kind, dialogue), group in groupby(events, key=lambda event: (event["kind"], event.get("dialogue"))):
        for event in group:
            if kind == "change":
                (state.add if event["change"] == "+" else state.remove)(event["id"])
            elif kind == "stale":
                stale.add(event["site"])
            else:
                stale.discard(event["site"])
            found[event["number"]] = frozenset(state)
        if kind == "change" and dialogue:
            judge(frozenset(state), event["time"], not stale)
    return found, stale


def _check_stream(world: World, folded: dict[int, frozenset[str]]) -> None:
    """Each event came once, in order, the same to all; and the states are those that were read at their numbers."""
    seen = world.seen
    for form, events in seen.events.items():
        if [event["number"] for event in events] != list(range(1, len(events) + 1)):
            seen.problems.append(f"numbers of the change stream ({form}) do not follow each other")
    least = min(len(events) for events in seen.events.values())
    first, *others = seen.events.values()
    if any(events[:least] != first[:least] for events in others):
        seen.problems.append("two readers got different events")
    for _, _, state in seen.states:
        if folded.get(state["number"], frozenset(state["skyline"])) != frozenset(state["skyline"]):
            seen.problems.append("a state is not what its events come to")


def _shares(moments: list[tuple[float, str]]) -> Line:
    """For how long it was what: each look counts until the next."""
    spans = {"exact": 0.0, "stale": 0.0, "away": 0.0}
    for (start, name), (end, _) in pairwise(moments):
        spans[name] += end - start
    total = sum(spans.values()) or 1.0
    shares = {f"{name} %": 100 * span / total for name, span in spans.items()}
    return {f"{name} s": span for name, span in spans.items()} | shares


def run(seconds: float, seed: int, protocols: tuple[str, ...] = tuple(QUERIES)) -> list[Line]:
    """A line for each protocol, of so many seconds each."""
    lines = []
    for place, name in enumerate(protocols):
        with tempfile.TemporaryDirectory() as folder:
            lines.append(asyncio.run(_one(QUERIES[name], Path(folder), seconds, seed + place, secret=not place % 2)))
    return lines


async def _one(query: Query, folder: Path, seconds: float, seed: int, *, secret: bool) -> Line:
    world = World(query, folder, seed, secret=secret)
    outcome = await played(world, seconds, seed)
    line = await asyncio.to_thread(judged, world, outcome)
    errors = (folder / "errors").read_text(errors="replace") if (folder / "errors").exists() else ""
    return {**line, "errors": errors[-4000:]}


def measured(seconds: float, seed: int, protocols: tuple[str, ...]) -> Iterator[Line]:
    """A line of a table for each protocol; what went wrong is told on standard error."""
    for place, name in enumerate(protocols):
        (line,) = run(seconds / len(protocols), seed + place, (name,))
        if failed(line):
            print(json.dumps(line), file=sys.stderr)
        names = ("protocol", *SHOWN, "healed s")
        yield {name: line[name] for name in names} | {"faults": sum(line["faults"].values()), "equal": not failed(line)}


def failed(line: Line) -> bool:
    """Whether something must not be as it was."""
    return bool(line["wrong"] or line["problems"] or not line["right"])


# -- the command -------------------------------------------------------------------------------------------------------

SHOWN = ("rows", "states", "distinct", "events", "right", "wrong", "unclear", "stale", "stale s", "stale %", "away s")


def table(lines: list[Line]) -> str:
    """The figures as Markdown."""
    names = ["protocol", *SHOWN, "healed s"]
    rows = [[_text(line[name]) for name in names] for line in lines]
    kinds = sorted({kind for line in lines for kind in line["faults"]})
    faults = [[kind, *(str(line["faults"].get(kind, 0)) for line in lines)] for kind in kinds]
    parts = [_markdown(names, rows), _markdown(["fault", *(line["protocol"] for line in lines)], faults)]
    return "\n\n".join(parts)


def _text(value: Any) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def _markdown(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows))


def main(argv: list[str] | None = None) -> int:
    """Run it; 1 where a state was wrong."""
    parser = argparse.ArgumentParser(
        prog="skytide bench network faults", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--seconds", type=float, default=300.0, help="of faults, over all protocols")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--protocol", choices=[*QUERIES], action="append", help="these protocols; else all")
    parser.add_argument("--json", type=Path, help="write the lines there")
    given = parser.parse_args(argv)
    protocols = tuple(given.protocol or QUERIES)
    lines = run(given.seconds / len(protocols), given.seed, protocols)
    found = {"machine": machine.describe("starlette", "uvicorn", "websockets"), "lines": lines}
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(lines))
    print()
    print(table(lines))
    return 1 if any(map(failed, lines)) else 0


if __name__ == "__main__":
    sys.exit(main())
