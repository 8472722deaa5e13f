"""The runs: every algorithm on small fixed inputs, what it did and what it answered.

A number is in a record when it does not depend on the machine: comparisons of rows, nodes visited, rows kept, bytes
held, messages and their bytes by kind. Rows come in batches, as a stream brings them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from benchmarks.work import data, network, spark, truths
from benchmarks.work.truths import Answer
from skytide.kernel.batch import skyline_work
from skytide.model import Floats, Integers, Preference
from skytide.monitors.frequent.frequent import Frequent
from skytide.monitors.sliding.window import SlidingWindow
from skytide.monitors.snapshots.snapshots import Snapshots
from skytide.monitors.uncertain.window import UncertainWindow
from skytide.protocols.fragmented.functions import Functions
from skytide.runtime.fragments import Fragmented
from skytide.runtime.monitored import Monitored

BATCH = 250
_SURE = ("rows", "snapshots", "objects", "entered", "left")
Work = dict[str, int]


@dataclass(frozen=True)
class Run:
    """One algorithm on one input: `run` gives its work and its answer, `truth` the answer by definition."""

    run: Callable[[], tuple[Work, Answer]]
    truth: Callable[[], Answer]


def told(changes: Any) -> Answer:
    """Changes as plain values."""
    return [tuple(change) for change in changes]


# -- at rest -----------------------------------------------------------------------------------------------------------


def batch(values: Floats, offsets: Integers | None = None) -> tuple[Work, Answer]:
    """A skyline at rest, by one thread."""
    found = skyline_work(values, offsets=offsets, threads=1)
    return {"tests": found.tests, "screens": found.screens}, [(int(place),) for place in np.flatnonzero(found.mask)]


def at_rest() -> dict[str, Run]:
    """Batch skylines: large enough for each of the ways that the kernel has."""
    inputs: dict[str, tuple[Floats, Integers | None]] = {
        "independent": (data.uniform(1, 40_000, 4), None),
        "opposed": (data.opposed(2, 6_000, 3), None),
        "two columns": (data.uniform(3, 9_000, 2), None),
        "sorted": (data.uniform(4, 5_000, 3), None),
        "ties": (data.whole(5, 12, 9_000, 4).astype(np.float64), None),
        "groups": (data.uniform(6, 4_000, 3), np.arange(0, 4_001, 40)),
    }
    return {
        f"skyline: {name}": Run(partial(batch, *one), partial(truths.skyline, *one)) for name, one in inputs.items()
    }


# -- windows -----------------------------------------------------------------------------------------------------------


def pieces(rows: int) -> list[slice]:
    """Batches of rows."""
    return [slice(at, at + BATCH) for at in range(0, rows, BATCH)]


def sliding(values: Floats, times: Integers | None, groups: Integers | None, **options: Any) -> tuple[Work, Answer]:
    """A window over rows in batches."""
    names = [f"c{place}" for place in range(values.shape[1])]
    window = SlidingWindow(Preference(names, by=["g"] if groups is not None else []), **options)
    found: Answer = []
    for piece in pieces(len(values)):
        table: dict[str, Any] = {name: values[piece, at] for at, name in enumerate(names)}
        table |= {} if groups is None else {"g": groups[piece]}
        found += told(window.extend(table, times=None if times is None else times[piece]))
    found += told(window.advance(times[-1])) if times is not None else []
    return dict(window.stats()), found


def windows() -> dict[str, Run]:
    """Sliding windows: every method over every index."""
    found = {}
    counted = (data.uniform(11, 2_000, 3), None, None)
    rough = data.whole(12, 16, 1_500, 3).astype(np.float64)
    timed = (rough, np.cumsum(data.whole(13, 3, 1_500)), data.whole(14, 3, 1_500))
    opposed = (data.opposed(15, 1_000, 2), None, None)
    pairs = [("auto", "auto"), *((method, index) for method in ("lazy", "eager") for index in ("list", "rtree"))]
    inputs: dict[str, tuple[Any, Any, Any]] = {
        "count": (counted, {"count": 300}, {"count": 300}),
        "time, ties, groups": (timed, {"duration": 200}, {"duration": "200"}),
        "opposed": (opposed, {"count": 200}, {"count": 200}),
    }
    for name, (rows, given, asked) in inputs.items():
        truth = cache(partial(truths.window, *rows, **asked))
        for method, index in pairs:
            word = method if method == index else f"{method} {index}"
            run = partial(sliding, *rows, method=method, index=index, **given)
            found[f"window: {word}, {name}"] = Run(run, truth)
    return found


def probable(
    values: Floats, chances: Floats, objects: Integers | None, asks: tuple[float, ...] = (), **options: Any
) -> tuple[Work, Answer]:
    """A window over uncertain rows in batches; `asks` are questions after each batch."""
    window = UncertainWindow(Preference.columns(values.shape[1]), **options)
    found: Answer = []
    asked = 0
    for piece in pieces(len(values)):
        beside = {} if objects is None else {"objects": objects[piece]}
        found += told(window.extend(values[piece], probabilities=chances[piece], **beside))
        asked += sum(len(window.query(q)) for q in asks)
    return {**window.stats(), **({"told": asked} if asks else {})}, found


def uncertain() -> dict[str, Run]:
    """Uncertain rows: one threshold, several (msky), questions (qsky), the most probable, and objects."""
    values, chances = data.uniform(21, 800, 3), (1 + data.whole(22, 1023, 800)) / 1024
    ids = range(1, 801)
    found = {}
    ways: dict[str, dict[str, Any]] = {
        "one threshold": {"thresholds": [0.3]},
        "msky": {"thresholds": [0.2, 0.4, 0.6]},
        "qsky": {"thresholds": [0.2], "asks": (0.25, 0.5)},
        "top": {"thresholds": [0.1], "top": 5},
    }
    for name, way in ways.items():
        asked = {key: one for key, one in way.items() if key != "asks"}
        truth = cache(partial(truths.uncertain, values, chances, ids, count=150, **asked))
        for method in ("tree", "scan"):
            run = partial(probable, values, chances, None, count=150, method=method, **way)
            found[f"uncertain: {method}, {name}"] = Run(run, truth)
    runs, parts = np.arange(len(values)) // 2, chances / 2
    found["uncertain: objects"] = Run(
        partial(probable, values, parts, runs, count=60, thresholds=[0.3]),
        partial(truths.uncertain, values, parts, runs.tolist(), runs, count=60, thresholds=[0.3]),
    )
    return found


# -- updates -----------------------------------------------------------------------------------------------------------


def updated(moves: data.Moves, method: str) -> tuple[Work, Answer]:
    """Snapshots of objects, one after the other."""
    monitor = Snapshots(Preference.columns(moves.values.shape[1]), method=method)
    found: Answer = []
    for piece in pieces(len(moves.ids)):
        found += told(monitor.extend(moves.values[piece], times=moves.times[piece], ids=moves.ids[piece]))
    found += told(monitor.advance(moves.times[-1]))
    work = monitor.stats()
    # `auto` measures seconds and chooses by them: only what does not hang on its choice is the same everywhere.
    return {name: work[name] for name in (_SURE if method == "auto" else work)}, found


def frequent(moves: data.Moves, theta: str, over: int) -> tuple[Work, Answer]:
    """Frequent skylines, counted."""
    monitor = Snapshots(Preference.columns(moves.values.shape[1]), method="recompute")
    counter = Frequent(theta=theta, over=over, history=True)
    parts = [monitor.extend(moves.values, times=moves.times, ids=moves.ids), monitor.advance(moves.times[-1])]
    found = [one for part in parts for one in told(counter.extend(part, snapshots=part.snapshots))]
    return dict(counter.stats()), found


def snapshots() -> dict[str, Run]:
    """Objects under updates."""
    moves = data.walks(31, 200, 60, 3)
    truth = cache(partial(truths.updates, moves))
    found = {
        f"snapshots: {method}": Run(partial(updated, moves, method), truth) for method in ("mbr", "recompute", "auto")
    }
    counted = partial(truths.counted, moves, "0.4", 10)
    return {**found, "frequent": Run(partial(frequent, moves, "0.4", 10), counted)}


# -- protocols ---------------------------------------------------------------------------------------------------------


def costs(cost: dict[str, Any]) -> Work:
    """A ledger as one level of numbers; how good the answers were is none of work."""
    found: Work = {}
    for name, value in cost.items():
        if isinstance(value, dict):
            found |= {f"{name} {inner}": number for inner, number in costs(value).items()}
        elif isinstance(value, int):
            found[name] = value
    return found


def monitored(moves: data.Moves, method: str, **options: Any) -> tuple[Work, Answer]:
    """The filtering protocol in simulation."""
    names = [f"c{place}" for place in range(moves.values.shape[1])]
    monitor = Monitored(Preference(names), method, **options)
    table = {name: moves.values[:, at] for at, name in enumerate(names)}
    found = told(monitor.extend(table, times=moves.times, ids=moves.ids)) + told(monitor.advance(moves.times[-1]))
    return costs(monitor.cost()), found


def fragmented(moves: data.Moves, sites: Integers, functions: tuple[str, ...], method: str) -> tuple[Work, Answer]:
    """The protocol of objects in fragments in simulation."""
    monitor = Fragmented(Functions(functions), method)
    table = {f"c{place}": moves.values[:, place] for place in range(moves.values.shape[1])}
    table = {name: table[name] for name in monitor.functions.columns}
    found = told(monitor.extend(table, times=moves.times, ids=moves.ids, sites=sites))
    return costs(monitor.cost()), found + told(monitor.advance(moves.times[-1]))


def protocols() -> dict[str, Run]:
    """Both protocols, every method."""
    found = {}
    moves = data.walks(41, 150, 50, 3, moving=0.5)
    pair, sampling = ("0.5", 20), (0.8, 0.5, 7)
    exactly, sampled = cache(partial(truths.updates, moves)), cache(partial(truths.counted, moves, *pair, sampling))
    for method in ("naive", "filter", "auto"):
        found[f"filtering: {method}"] = Run(partial(monitored, moves, method), exactly)
    for method in ("sampling", "hybrid"):
        options = dict(zip(("epsilon", "delta", "seed"), sampling, strict=True))
        run = partial(monitored, moves, method, pairs=[pair], **options)
        found[f"filtering: {method}"] = Run(run, sampled)
    sites = data.walks(42, 120, 40, 2, moving=0.2, stride=2)
    where, functions = sites.ids % 6, ("c0", "norm(c0, c1)")
    local = data.Moves(sites.times, sites.ids // 6, sites.values)
    averaged = cache(partial(truths.fragments, local, where, functions))
    for method in ("central", "pivot", "direct", "auto"):
        found[f"fragmented: {method}"] = Run(partial(fragmented, local, where, functions, method), averaged)
    return found


@cache
def all_runs() -> dict[str, Run]:
    """Every run by its name."""
    more = {name: Run(*one) for name, one in (*spark.runs().items(), *network.runs().items())}
    return {**at_rest(), **windows(), **uncertain(), **snapshots(), **protocols(), **more}
