"""What a cluster would need, on paper: a small model of a micro-batch, with costs that were measured on this machine.

A micro-batch of a window goes through four stages, one after the other: tasks make or read their rows (`source`) and
drop what can never matter (`prune`); what is left goes through a shuffle to the merge of its key (`merge`); the driver
plans, starts tasks, collects the changes and writes them (`driver`). The first two are shared by all executors, the
third by as many as there are keys, the last by nobody. A rate can be kept up with when the sum is no longer than the
interval. The model assumes that a window is at least as long as a micro-batch: in a shorter one rows expire before
others come that would dominate them, and more are left. It knows nothing of the network's bandwidth, of what the driver
takes to schedule many tasks, of stragglers and of faults: what it says is the most that can be hoped for. `beside` puts
it next to the micro-batches that were measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

STAGES = ("source", "prune", "merge", "driver")
MOST_EXECUTORS = 100_000


def slope(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """The power with which a cost grows: the slope of a line through the logarithms.

    >>> round(slope([10, 100, 1000], [3, 300, 30_000]), 6)
    2.0
    """
    return power_law(sizes, costs)[1]


def power_law(sizes: Sequence[float], costs: Sequence[float]) -> tuple[float, float]:
    """The factor and the power of a cost, by least squares of the logarithms.

    >>> tuple(round(value, 6) for value in power_law([1, 4, 16], [5, 10, 20]))
    (5.0, 0.5)
    """
    x, y = np.log(np.asarray(sizes, float)), np.log(np.asarray(costs, float))
    x0, y0 = x.mean(), y.mean()
    power = float((x - x0) @ (y - y0) / ((x - x0) @ (x - x0)))
    return math.exp(y0 - power * x0), power


def line(sizes: Sequence[float], costs: Sequence[float]) -> tuple[float, float]:
    """What is paid in any case, and for one more: a straight line by least squares, neither below zero.

    >>> line([0, 10, 20], [1, 2, 3])
    (1.0, 0.1)
    """
    x, y = np.asarray(sizes, float), np.asarray(costs, float)
    each = max(0.0, float((x - x.mean()) @ (y - y.mean()) / ((x - x.mean()) @ (x - x.mean()))))
    return max(0.0, round(float(y.mean() - each * x.mean()), 12)), each


@dataclass(frozen=True)
class Costs:
    """Seconds of one core, as measured."""

    source: float
    """For a row that is made or read."""
    prune: float
    """For a row that goes to Python and is compared."""
    merge: float
    """For a row that reaches the merge: shuffle, order, engine, state."""
    batch: float
    """For a micro-batch, whatever is in it."""
    task: float
    """For a task, whatever is in it, on its executor: its start, and the way to Python."""
    change: float
    """For a change, on the driver."""
    left: tuple[float, float]
    """Of m rows in a task, so many are left: factor and power of m."""
    changed: float
    """Changes for each row that reaches the merge."""
    row_bytes: float
    """Of a row in the shuffle and in the state."""
    compare: float = 0.0
    """Of `prune`, for a row, what is not its way to Python: rows that are there as Arrow are compared."""

    seen: tuple[float, float] = (0.0, math.inf)
    """The fewest and the most rows in a task that `left` was measured on."""

    def sent(self, rows: float, tasks: int) -> float:
        """Of so many rows in a micro-batch, how many reach the merge."""
        factor, power = self.left
        return min(rows, tasks * factor * math.pow(rows / tasks, power))

    def mark(self, rows: float, tasks: int) -> str:
        """A star where tasks have more rows, or fewer, than any that was measured."""
        least, most = self.seen
        return "" if least <= rows / tasks <= most else "*"

    def stages(
        self, rows: float, executors: int, keys: int = 1, tasks: int | None = None, *, pruned: bool = True
    ) -> dict[str, float]:
        """The seconds of each stage of a micro-batch; a task for each executor, unless told otherwise."""
        tasks = executors if tasks is None else tasks
        left = self.sent(rows, tasks)
        return {
            "source": rows * self.source / executors,
            "prune": rows * self.prune * pruned / executors + self.task * tasks / executors,
            "merge": (left if pruned else rows) * self.merge / min(keys, executors),
            "driver": self.batch + left * self.changed * self.change,
        }


@dataclass(frozen=True)
class Plan:
    """A cluster: executors of one core, keys that share the merge, seconds from one micro-batch to the next."""

    executors: int
    interval: float
    keys: int = 1

    def stages(self, costs: Costs, rate: float) -> dict[str, float]:
        """The seconds of each stage, at so many rows a second."""
        return costs.stages(rate * self.interval, self.executors, self.keys)

    def keeps_up(self, costs: Costs, rate: float) -> bool:
        """Whether a micro-batch is done before the next."""
        return sum(self.stages(costs, rate).values()) <= self.interval

    def fastest(self, costs: Costs) -> float:
        """The most rows a second that it keeps up with; 0 where a micro-batch without rows takes too long."""
        low, high = 0.0, 1e12
        if not self.keeps_up(costs, 1.0):
            return 0.0
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if self.keeps_up(costs, middle) else (low, middle)
        return low

    def bottleneck(self, costs: Costs, rate: float) -> str:
        """The stage that takes the longest at a rate."""
        stages = self.stages(costs, rate)
        return max(stages, key=lambda name: stages[name])


def fewest(costs: Costs, rate: float, interval: float, keys: int = 1) -> int | None:
    """The fewest executors that keep up with a rate; None where no number does."""
    for executors in range(1, 1000):
        if Plan(executors, interval, keys).keeps_up(costs, rate):
            return executors
    executors = 1000
    while executors <= MOST_EXECUTORS:
        if Plan(executors, interval, keys).keeps_up(costs, rate):
            return executors
        executors = math.ceil(executors * 1.1)
    return None


def pages(costs: Costs, rate: float = 1e6, executors: int = 100) -> list[str]:
    """Two tables: what the rate needs, and what the executors reach, by interval and keys; and a sentence."""
    factor, power = costs.left
    lines = [
        f"costs of one core: source {costs.source * 1e9:,.0f} ns a row, prune {costs.prune * 1e9:,.0f} ns a row "
        f"(of which {costs.compare * 1e9:,.0f} ns to compare it, the rest to bring it to Python), "
        f"merge {costs.merge * 1e6:,.2f} us a row that reaches it, "
        f"{costs.task * 1e3:,.0f} ms a task; driver {costs.batch:.2f} s a micro-batch, "
        f"{costs.change * 1e6:,.1f} us a change; of m rows in a task "
        f"{factor:,.3g} m^{power:.2f} are left; {costs.row_bytes:,.0f} bytes a row in shuffle and state",
        "",
        f"| interval, s | keys | executors for {rate:,.0f} rows/s | rows/s with {executors} executors | "
        + " | ".join(f"{stage}, s" for stage in STAGES)
        + " | longest | reach the merge | shuffled, MB/s |",
        "|" + "---:|" * (4 + len(STAGES)) + "---|---:|---:|",
    ]
    for interval in (1.0, 2.0, 5.0, 10.0, 30.0):
        for keys in (1, 8):
            plan = Plan(executors, interval, keys)
            most = plan.fastest(costs)
            needed = fewest(costs, rate, interval, keys)
            enough = "none does" if needed is None else f"{needed:,}{costs.mark(rate * interval, needed)}"
            reached = f"{most:,.0f}{costs.mark(most * interval, executors)}" if most else "0"
            cells = [f"{interval:g}", str(keys), enough, reached]
            stages = plan.stages(costs, most)
            sent = costs.sent(most * interval, executors)
            cells += [f"{stages[stage]:.2f}" if most else "" for stage in STAGES]
            cells += [plan.bottleneck(costs, max(most, 1.0))]
            cells += [f"{sent:,.0f}", f"{sent * costs.row_bytes / interval / 1e6:,.1f}"] if most else ["", ""]
            lines.append("| " + " | ".join(cells) + " |")
    least, greatest = costs.seen
    return [
        *lines,
        "",
        f"\\* beyond the {least:,.0f} to {greatest:,.0f} rows in a task that were measured: what is left of them is "
        "extrapolated. A window is taken to be at least as long as a micro-batch.",
        "",
        f"next: {next_bottleneck(costs, executors)}",
    ]


def beside(costs: Costs, measured: Sequence[Mapping[str, Any]], dimensions: int, cores: int) -> list[str]:
    """A table: micro-batches as they were measured, and as the model has them; and where it does not apply."""
    names = ("part", "master", "batch", "length", "dimensions", "groups", "tasks")
    head = [*names, "reach", "model", "batch s", "model", "model / measured", "the model"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for one in measured:
        rows, tasks, keys = float(one["batch"]), one["tasks"], max(1, one["groups"])
        seconds = sum(costs.stages(rows, cores, keys, tasks, pruned=one["pruned"]).values())
        cells = [f"{one[name]:,}" if isinstance(one[name], int) else str(one[name]) for name in names]
        cells += [f"{one['reach']:,.0f}", f"{costs.sent(rows, tasks) if one['pruned'] else rows:,.0f}"]
        cells += [f"{one['batch s']:.2f}", f"{seconds:.2f}", f"{seconds / one['batch s']:.2f}"]
        lines.append("| " + " | ".join([*cells, applies(one, dimensions)]) + " |")
    return lines


def applies(one: Mapping[str, Any], dimensions: int) -> str:
    """Whether a micro-batch is one that the model speaks of, in words."""
    if one["length"] < one["batch"]:
        return "not for windows shorter than a micro-batch"
    if one["dimensions"] != dimensions:
        return f"is for {dimensions} columns"
    return "is for rows without groups" if one["groups"] > 1 else "applies"


def next_bottleneck(costs: Costs, executors: int = 100, interval: float = 10.0) -> str:
    """In words: what limits so many executors, and what would come after it."""
    plan = Plan(executors, interval)
    most = plan.fastest(costs)
    if not most:
        return f"a micro-batch without rows takes longer than {interval:g} s"
    stages = plan.stages(costs, most)
    order = sorted(stages, key=lambda name: -stages[name])
    shared = sum(stages[stage] for stage in ("source", "prune"))
    twice = Plan(2 * executors, interval).fastest(costs) / most
    return (
        f"with {executors} executors, one key and {interval:g} s a micro-batch, {order[0]} takes the most "
        f"({stages[order[0]] / interval:.0%} of the interval), then {order[1]} ({stages[order[1]] / interval:.0%}); "
        f"what executors share is {shared / interval:.0%}; twice the executors give {twice:.2f} times the rate"
    )
