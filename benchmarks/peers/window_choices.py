"""What `auto` chooses, beside every engine on the same stream: it must never be far from the best of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from skytide.model import Floats
from skytide.monitors.sliding.auto import AutoEngine
from skytide.monitors.sliding.engine import Engine, Moves, Rows
from skytide.monitors.sliding.engines import ENGINES, load_engine
from skytide.streams.generators import generate

BATCH = 10_000


def streams(n: int, seed: int) -> Iterator[tuple[str, int, Floats]]:
    """Streams that favour different engines: steady ones, dense ones, ones that drift to better or worse, ties."""
    for d in (2, 4, 6):
        yield "independent", d, generate("independent", n, d, seed)
    for d in (3, 5):
        yield "anti-correlated 0.05", d, generate("anti-correlated", n, d, seed)
    for d in (3, 4):
        yield "anti-correlated 0.005", d, generate("anti-correlated", n, d, seed, deviation=0.005)
    drift = np.linspace(0.0, 20.0, n)[:, None]
    yield "drifting to better", 3, generate("independent", n, 3, seed) - drift
    yield "drifting to worse", 3, generate("independent", n, 3, seed) + drift
    yield "drifting to worse", 5, generate("independent", n, 5, seed) + drift
    yield "along a falling line", 2, np.hstack((drift, -drift))
    yield "whole numbers 0 to 9", 4, np.floor(10 * generate("independent", n, 4, seed))


def run(engine: Engine, values: Floats, length: int) -> tuple[float, list[Moves]]:
    """Microseconds of processor time per row after the window has filled, and all moves."""
    keys = np.arange(1, len(values) + 1)
    moves, spent = [], 0.0
    for first in range(0, len(values), BATCH):
        part = slice(first, first + BATCH)
        rows = Rows(values[part], keys[part], keys[part] + length, keys[part])
        start = time.process_time()
        moves.append(engine.run(rows, int(keys[part][-1])))
        spent += (time.process_time() - start) * (first >= length)
    return 1e6 * spent / (len(values) - length), moves


def sorted_moves(moves: list[Moves]) -> list[Any]:
    """Moves in an order that does not depend on the engine."""
    columns = [np.concatenate([getattr(part, name) for part in moves]) for name in ("times", "signs", "handles")]
    order = np.lexsort(columns[::-1])
    return [column[order] for column in columns]


def choices(n: int, length: int, seed: int, repeats: int) -> Iterator[dict[str, Any]]:
    """A line per stream: the cost of `auto` and of each engine (the best of some runs), and how far `auto` is off."""
    made: dict[str, Callable[[int], Engine]] = {"auto": AutoEngine}
    made |= {"-".join(name): load_engine(*name) for name in ENGINES}
    for kind, d, values in streams(n, seed):
        costs, answers, changes = dict.fromkeys(made, float("inf")), [], 0
        for _ in range(repeats):  # in turn, so that a slow moment of the machine hits none of them alone
            for name, make in made.items():
                engine = make(d)
                cost, moves = run(engine, values, length)
                costs[name] = min(costs[name], round(cost, 2))
                answers.append(sorted_moves(moves))
                if isinstance(engine, AutoEngine):
                    changes = engine.counters()["engine_changes"]
        equal = all(
            all(np.array_equal(one, other) for one, other in zip(answers[0], answer, strict=True)) for answer in answers
        )
        best = min(cost for name, cost in costs.items() if name != "auto")
        yield {
            "kind": kind,
            "d": d,
            **{f"{name}, us/row": cost for name, cost in costs.items()},
            "engine changes": changes,
            "auto / best": round(costs["auto"] / best, 2),
            "equal": equal,
        }
