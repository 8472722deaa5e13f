"""One method over one stream: what it sends, what it costs the processor, and whether its answers are right.

Messages are counted after the first timestamp, which is the initialisation, and given as shares of what the naive
method sends for the same stream. `settled` is the total of the second half alone, when the server has learned how far
clients move. Skylines are compared with the true ones at every timestamp at which a method knows one: exact methods at
all of them, sampling ones at the sampled ones. Recall and precision are measured from the first full window on, also
those of exact methods.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from benchmarks.papers.zhang09c.series import Series
from skytide.protocols.filtering.filter import Boundaries
from skytide.runtime.simulate import Quality, Simulation

Line = dict[str, Any]


class Query(NamedTuple):
    """What is asked: the paper's theta, s, epsilon and delta, and the seed of the sampled timestamps."""

    theta: str = "0.8"
    over: int = 1000
    epsilon: float = 0.2
    delta: float = 0.1
    seed: int = 1


class Sent(NamedTuple):
    """Messages after the initialisation."""

    up: int
    down: int

    @property
    def total(self) -> int:
        """Both ways."""
        return self.up + self.down


class Run(NamedTuple):
    """What came of a run."""

    whole: Sent
    later: Sent
    """In the second half."""
    failures: int
    probes: int
    seconds: float
    recall: float | None
    precision: float | None
    equal: bool


def played(series: Series, method: str, query: Query, boundaries: Boundaries = "cost") -> Run:
    """Run a method over a stream, and check it."""
    pairs = [(query.theta, query.over)]
    simulation = Simulation(
        series.dimensions,
        method,
        pairs=pairs,
        epsilon=query.epsilon,
        delta=query.delta,
        seed=query.seed,
        boundaries=boundaries,
    )
    quality = Quality(pairs)
    seconds, equal, half = 0.0, True, Sent(0, 0)
    for at, step in enumerate(series.replay()):
        start = time.process_time()
        changes = simulation.step(step.clients, step.points)
        seconds += time.process_time() - start
        found = simulation.skyline()
        equal &= not simulation.exact if found is None else np.array_equal(found, series.truth[at])
        quality.observe(series.truth[at], changes, at)
        if at == series.timestamps // 2:
            half = _sent(simulation)
    whole, cost = _sent(simulation), simulation.cost()
    later = Sent(whole.up - half.up, whole.down - half.down)
    told = cost["failures"], cost["probes"]
    return Run(whole, later, *told, seconds, quality.recall, quality.precision, bool(equal))


def _sent(simulation: Simulation) -> Sent:
    cost = simulation.cost()
    return Sent(cost["uplink"], cost["downlink"])


def line(run: Run, naive: Run, timestamps: int) -> Line:
    """A run beside the naive one, as a line of a table."""

    def share(part: int, whole: int) -> float:
        return round(part / max(1, whole), 4)

    return {
        "up": share(run.whole.up, naive.whole.total),
        "down": share(run.whole.down, naive.whole.total),
        "total": share(run.whole.total, naive.whole.total),
        "settled": share(run.later.total, naive.later.total),
        "messages": run.whole.total,
        "failures": run.failures,
        "probes": run.probes,
        "CPU, ms": round(1e3 * run.seconds / timestamps, 2),
        "recall": run.recall,
        "precision": run.precision,
        "equal": run.equal,
    }


def averaged(lines: list[Line]) -> Line:
    """Lines of several seeds as one; equal where all are."""
    found: Line = {}
    for name in lines[0]:
        values = [line[name] for line in lines]
        if name == "equal":
            found[name] = all(values)
        else:
            found[name] = None if None in values else round(float(np.mean(values)), 4)
    return found
