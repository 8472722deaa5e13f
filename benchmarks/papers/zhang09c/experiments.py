"""The runs behind zhang09c's Figs. 9 to 19: every method over one stream, its messages as shares of Naive's.

FBM is the paper's Filter, SBM its Sampling, HM its Hybrid; `auto` is ours, exact as FBM is. Skylines are compared with
the true ones at every timestamp at which a method knows one.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from benchmarks.papers.registry import Place, Row
from benchmarks.papers.zhang09c import series
from benchmarks.papers.zhang09c.runs import Query, Run, line, played
from skytide.errors import InputError

KINDS = {"C": "correlated", "I": "independent", "A": "anti-correlated"}
METHODS = {"Naive": "naive", "FBM": "filter", "auto": "auto", "SBM": "sampling", "HM": "hybrid"}
SAMPLED = ("SBM", "HM")
LOG = "zeek_conn*.parquet"
EDGE = 0.02
"""A record whose frequency is so near to the threshold is hard to tell by sampling."""


@lru_cache(1)
def warm() -> None:
    """Load compiled code, once in a process."""
    tiny = series.synthetic("independent", 20, 2, 0.1, 6, 0)
    for method in METHODS.values():
        played(tiny, method, Query(over=4))


def row_of(method: str, run: Run, naive: Run, timestamps: int) -> Row:
    """A run beside the naive one."""
    found = line(run, naive, timestamps)
    return {
        "method": method,
        "uplink": found["up"],
        "downlink": found["down"],
        "messages": found["total"],
        "later": found["settled"],
        "CPU, ms": found["CPU, ms"],
        "recall": found["recall"],
        "precision": found["precision"],
        "failures": found["failures"],
        "probes": found["probes"],
        "equal": found["equal"],
    }


def efficiency(parameters: Row, place: Place) -> list[Row]:
    """Figs. 9 to 12: all methods over a synthetic stream."""
    warm()
    sizes = (parameters[name] for name in ("records", "d", "u", "timestamps", "seed"))
    stream = series.synthetic(KINDS[parameters["kind"]], *sizes)
    query = Query(over=parameters["s"], seed=parameters["seed"])
    runs = {name: played(stream, method, query) for name, method in METHODS.items()}
    return [row_of(name, run, runs["Naive"], stream.timestamps) for name, run in runs.items()]


def asked(parameters: Row) -> Query:
    """The query of a run; the sampled timestamps are its own."""
    seed = parameters["seed"] + parameters.get("run", 0)
    return Query(parameters["theta"], parameters["s"], parameters["epsilon"], parameters["delta"], seed)


def quality(parameters: Row, place: Place) -> list[Row]:
    """Figs. 13 to 15: recall and precision of the two methods that sample."""
    warm()
    stream = synthetic(*(parameters[name] for name in ("records", "d", "u", "timestamps", "seed")))
    naive = exact(stream, "Naive", parameters["s"])
    edge = at_the_edge(stream, parameters["s"], float(parameters["theta"]))
    return [
        row_of(name, played(stream, METHODS[name], asked(parameters)), naive, stream.timestamps) | edge
        for name in SAMPLED
    ]


def at_the_edge(stream: series.Series, over: int, theta: float) -> Row:
    """How many records are frequent, on average over full windows, and how many are within `EDGE` of the threshold."""
    counts = np.zeros(stream.clients, np.int64)
    frequent = edge = 0
    for at, members in enumerate(stream.truth):
        counts[members] += 1
        if at >= over:
            counts[stream.truth[at - over]] -= 1
        if at >= over - 1:
            frequent += int((counts >= theta * over).sum())
            edge += int((np.abs(counts - theta * over) <= EDGE * over).sum())
    full = max(1, len(stream.truth) - over + 1)
    return {"frequent": round(frequent / full, 2), "at the edge": round(edge / full, 2)}


def connections(parameters: Row, place: Place) -> list[Row]:
    """Figs. 16 to 19: all methods over the log of connections."""
    if place.data is None:
        raise InputError("there is no folder of data", remedy="name it with --data")
    warm()
    stream = logged(place.data, parameters["timestamps"])
    runs = {name: exact(stream, name, parameters["s"]) for name in METHODS if name not in SAMPLED}
    runs |= {name: played(stream, METHODS[name], asked(parameters)) for name in SAMPLED}
    return [row_of(name, run, runs["Naive"], stream.timestamps) for name, run in runs.items()]


# Streams and runs of exact methods do not depend on what is varied: tasks of one process share them.


class Held:
    """The runs of exact methods over the stream that is in use."""

    stream: series.Series | None = None
    runs: dict[tuple[str, int], Run]


def exact(stream: series.Series, method: str, over: int) -> Run:
    """What an exact method sends; its answers do not depend on epsilon, delta and theta."""
    if Held.stream is not stream:
        Held.stream, Held.runs = stream, {}
    if (method, over) not in Held.runs:
        Held.runs[method, over] = played(stream, METHODS[method], Query(over=over))
    return Held.runs[method, over]


@lru_cache(1)
def synthetic(records: int, d: int, u: float, timestamps: int, seed: int) -> series.Series:
    """The independent records of Figs. 13 to 15."""
    return series.synthetic("independent", records, d, u, timestamps, seed)


@lru_cache(1)
def logged(folder: Path, timestamps: int) -> series.Series:
    """The log of connections, or its beginning."""
    return series.connections(folder, timestamps or None)
