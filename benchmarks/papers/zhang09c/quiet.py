"""How fast clients find that they have nothing to say: updates within boxes, absorbed in compiled runs of timestamps.

`absorb` takes a run of timestamps in one call, `observe` one timestamp a call. The same updates go to both, and the
blocks end up alike: the reports that all clients give when asked are compared.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from benchmarks.papers.zhang09c.runs import Line
from skytide.model import Floats, Integers
from skytide.protocols.filtering.client import ClientBlock
from skytide.protocols.filtering.messages import Boxes, Questions

NONE: Integers = np.zeros(0, np.int64)
GOAL = 1_000_000
"""Updates per second on one core."""


def measured(*, quick: bool, seed: int) -> Iterator[Line]:
    """A line for each number of columns and share of clients that move."""
    clients, timestamps = (200, 20) if quick else (10_000, 100)
    for d in (4,) if quick else (2, 4, 6):
        for share in (1.0, 0.01):
            yield _line(clients, timestamps if share == 1.0 else 10 * timestamps, d, share, seed)


def _line(clients: int, timestamps: int, d: int, share: float, seed: int) -> Line:
    rng = np.random.default_rng((seed, d))
    moving = [np.flatnonzero(rng.random(clients) < share) for _ in range(timestamps)]
    cuts = np.concatenate(([0], np.cumsum([len(who) for who in moving])))
    who = np.concatenate(moving)
    points = rng.random((len(who), d))
    seconds, states = {}, []
    for way in ("absorb", "observe"):
        best = np.inf
        for _ in range(3):
            block = _boxed(clients, d)
            start = time.process_time()
            _take(block, way, cuts, who, points)
            best = min(best, time.process_time() - start)
        seconds[way] = best
        told = block.answer(Questions(timestamps, np.arange(clients)))
        states.append(np.concatenate((told.points, told.floor, told.roof)))
    return {
        "d": d,
        "clients": clients,
        "moving": share,
        "updates": len(who),
        "absorb, updates/s": round(len(who) / seconds["absorb"]),
        "observe, updates/s": round(len(who) / seconds["observe"]),
        "goal": GOAL,
        "equal": bool(np.array_equal(states[0], states[1])),
    }


def _boxed(clients: int, d: int) -> ClientBlock:
    """Clients in boxes that they will not leave."""
    block, everyone = ClientBlock(d), np.arange(clients)
    block.observe(0, everyone, np.full((clients, d), 0.5), NONE)
    block.obey(Boxes(0, everyone, np.zeros((clients, d)), np.ones((clients, d))))
    return block


def _take(block: ClientBlock, way: str, cuts: Integers, who: Integers, points: Floats) -> None:
    if way == "absorb":
        taken = block.absorb(1, cuts, who, points)
        assert taken == len(cuts) - 1, "a client left its box"
        return
    for at, (start, stop) in enumerate(pairwise(cuts.tolist())):
        assert not block.observe(at + 1, who[start:stop], points[start:stop], NONE), "a client left its box"
