"""The batch skyline beside moocore's `is_nondominated` and paretoset: the same rows, one run, equal answers.

`python -m benchmarks.peers.batch --help` lists the options. Every time is the best of several repeats, of more where
they are short, taken in turn so that a busy moment hits all alike. A peer that would take longer than its budget in a
cell is left out there and the table gives the estimate instead, from its times on parts of the rows.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import moocore
import numpy as np
from paretoset import paretoset

from benchmarks import machine
from skytide.errors import OptionError
from skytide.kernel.batch import skyline_mask, skyline_work
from skytide.model import Booleans, Floats
from skytide.streams.generators import DEVIATION, KINDS, generate

ROWS = (10**5, 10**6)
DIMENSIONS = (2, 3, 4, 6, 8)
QUICK_ROWS = (10**5,)
QUICK_DIMENSIONS = (2, 4, 6)


@dataclass(frozen=True)
class Shape:
    """What the rows of one cell are like."""

    rows: int
    dimensions: int
    kind: str

    def __str__(self) -> str:
        return f"{self.rows}x{self.dimensions}-{self.kind}"

    @classmethod
    def read(cls, text: str) -> Shape:
        """A cell from its name, like `1000000x4-independent`."""
        try:
            rows, _, rest = text.partition("x")
            dimensions, _, kind = rest.partition("-")
            shape = cls(int(float(rows)), int(dimensions), kind)
        except ValueError:
            shape = cls(0, 0, "")
        if shape.rows < 1 or shape.dimensions < 1 or shape.kind not in KINDS:
            raise OptionError(
                "is not a cell", value=text, remedy=f"write ROWSxCOLUMNS-KIND, KIND one of {', '.join(KINDS)}"
            )
        return shape


@dataclass
class Cell:
    """What one cell measured: seconds by name, and estimates by name for those left out."""

    shape: Shape
    skyline: int
    tests: int
    screens: int
    budget: float
    seconds: dict[str, float] = field(default_factory=dict)
    estimates: dict[str, float] = field(default_factory=dict)
    equal: bool = True

    def ratio(self, threads: int) -> float:
        """How many times faster than the faster peer; where no peer ran, than the budget that both would exceed."""
        peers = [self.seconds.get(name, self.budget) for name in PEERS]
        return min(peers) / self.seconds[ours(threads)]


def ours(threads: int) -> str:
    """The name of our column."""
    return f"skytide, {threads} thread" + ("s" if threads > 1 else "")


def _moocore(values: Floats) -> Booleans:
    mask: Booleans = moocore.is_nondominated(values, keep_weakly=True)
    return mask


def _paretoset(values: Floats) -> Booleans:
    mask: Booleans = paretoset(values, distinct=False)
    return mask


PEERS: dict[str, Callable[[Floats], Booleans]] = {"moocore": _moocore, "paretoset": _paretoset}


def clock(work: Callable[[], Booleans]) -> tuple[float, Booleans]:
    """Seconds and answer of one call."""
    start = time.perf_counter()
    answer = work()
    return time.perf_counter() - start, answer


def estimate(peer: Callable[[Floats], Booleans], values: Floats, budget: float) -> float:
    """The seconds that the peer would take, from growing parts of the rows; stops as soon as it is clear."""
    last = 0.0
    expected = 0.0
    growth = 1.2
    for divisor in (256, 64, 16, 4):
        part = values[: len(values) // divisor].copy()
        taken = min(clock(lambda part=part: peer(part))[0] for _ in range(2))  # type: ignore[misc]
        if last > 0.01:
            growth = min(2.0, max(1.0, math.log(taken / last, 4)))
        last = taken
        expected = taken * divisor**growth
        if taken > budget / 20 and expected > 2 * budget:
            break
    return expected


def measure(shape: Shape, threads: list[int], repeats: int, budget: float, seed: int) -> Cell:
    """One cell: everybody on the same rows, in turn, answers compared."""
    values = generate(shape.kind, shape.rows, shape.dimensions, seed)
    work = skyline_work(values, threads=1)
    cell = Cell(shape, int(work.mask.sum()), work.tests, work.screens, budget)
    runners: dict[str, Callable[[], Booleans]] = {
        ours(count): lambda count=count: skyline_mask(values, threads=count)  # type: ignore[misc]
        for count in threads
    }
    for name, peer in PEERS.items():
        expected = estimate(peer, values, budget)
        if expected > budget:
            cell.estimates[name] = expected
        else:
            runners[name] = lambda peer=peer: peer(values)  # type: ignore[misc]
    spent = dict.fromkeys(runners, 0.0)
    for repeat in itertools.count():
        # Long runs are told apart by few repeats, short ones need more; a peer near its budget has one.
        due = [name for name, total in spent.items() if repeat == 0 or (total < budget / 6 and repeat < repeats)]
        due += [name for name, total in spent.items() if repeats <= repeat < 20 * repeats and total < 0.1 * repeats]
        if not due:
            break
        for name in due:
            taken, mask = clock(runners[name])
            spent[name] += taken
            cell.seconds[name] = min(taken, cell.seconds.get(name, math.inf))
            cell.equal = cell.equal and bool((mask == work.mask).all())
    return cell


# -- what is printed ---------------------------------------------------------------------------------------------------


def geometric_mean(ratios: list[float]) -> float:
    """The mean of ratios; 1 where there are none."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else 1.0


def milliseconds(cell: Cell, name: str) -> str:
    """A time as text, an estimate marked as one."""
    if name in cell.seconds:
        taken = cell.seconds[name] * 1e3
        return f"{taken:,.1f}" if taken < 100 else f"{taken:,.0f}"
    return f"(~{cell.estimates[name]:,.0f} s)"


def heading(threads: list[int]) -> list[str]:
    """The first two lines of the table."""
    names = ["rows x d", "kind", "skyline", *(ours(count) for count in threads), *PEERS]
    names += [f"ratio, {count}" for count in threads] + ["tests/row", "codes/row"]
    return ["| " + " | ".join(names) + " |", "|---|---|" + "---:|" * (len(names) - 2)]


def line(cell: Cell, threads: list[int]) -> str:
    """One line of the table."""
    rows = cell.shape.rows
    texts = [f"10^{math.log10(rows):.0f}" if math.log10(rows).is_integer() else f"{rows:,}"]
    texts[0] += f" x {cell.shape.dimensions}"
    texts += [cell.shape.kind, f"{cell.skyline:,}"]
    texts += [milliseconds(cell, name) for name in (*(ours(count) for count in threads), *PEERS)]
    texts += [f"{cell.ratio(count):.1f}" for count in threads]
    texts += [f"{cell.tests / rows:.1f}", f"{cell.screens / rows:.1f}"]
    return "| " + " | ".join(texts) + " |"


def summary(cells: list[Cell], threads: list[int]) -> list[str]:
    """What the table comes to, in words."""
    lines = []
    for count in threads:
        ratios = [cell.ratio(count) for cell in cells]
        worst = min(cells, key=lambda cell: cell.ratio(count))
        lines.append(
            f"{ours(count)}: {geometric_mean(ratios):.1f} times as fast as the faster peer (geometric mean of "
            f"{len(cells)} cells), at least {min(ratios):.1f} times ({worst.shape}), "
            f"slower in {sum(ratio <= 1 for ratio in ratios)} cells"
        )
    different = [str(cell.shape) for cell in cells if not cell.equal]
    lines.append("answers differ in " + ", ".join(different) if different else "all answers are equal")
    return lines


def as_json(cells: list[Cell], threads: list[int], found: dict[str, str], seed: int) -> dict[str, Any]:
    """Everything that was measured."""
    return {
        "benchmark": "batch",
        "seed": seed,
        "anti_correlated_deviation": DEVIATION,
        "machine": found,
        "cells": [asdict(cell) | {"ratios": {ours(count): cell.ratio(count) for count in threads}} for cell in cells],
    }


# -- command -----------------------------------------------------------------------------------------------------------


def options(argv: list[str]) -> argparse.Namespace:
    """The options as given."""
    parser = argparse.ArgumentParser(prog="skytide bench batch", description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="10^5 rows and three numbers of columns only")
    parser.add_argument("--cells", nargs="+", metavar="CELL", help="only these, like 1000000x4-independent")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2], help="how many threads we take (1 2)")
    parser.add_argument("--repeats", type=int, default=5, help="the best of so many runs counts (5)")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds that a peer may take in a cell (60)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything measured")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table")
    return parser.parse_args(argv)


def shapes(chosen: argparse.Namespace) -> list[Shape]:
    """The cells to measure."""
    if chosen.cells:
        return [Shape.read(text) for text in chosen.cells]
    rows, dimensions = (QUICK_ROWS, QUICK_DIMENSIONS) if chosen.quick else (ROWS, DIMENSIONS)
    return [Shape(n, d, kind) for n, d, kind in itertools.product(rows, dimensions, KINDS)]


def warm_up(threads: list[int]) -> float:
    """Compile everything, ours and theirs; the seconds that ours took."""
    values = np.random.default_rng(0).random((30_000, 3))
    taken, _ = clock(lambda: [skyline_mask(values[:, :d], threads=count) for d in (2, 3) for count in threads][-1])
    for peer in PEERS.values():
        for d in (2, 3):
            peer(values[:, :d].copy())
    return taken


def main(argv: list[str]) -> int:
    """Run the benchmark; 0 when all answers are equal."""
    chosen = options(argv)
    todo = shapes(chosen)
    found = machine.describe(*PEERS)
    opening = [
        machine.sentence(found),
        f"compiled or loaded in {warm_up(chosen.threads):.1f} s; times in milliseconds, best of {chosen.repeats} or "
        f"more; anti-correlated: deviation {DEVIATION}; seed {chosen.seed}",
    ]
    if machine.busy() > 0.6:
        opening.append(f"the machine is busy ({machine.busy():.1f} processes per core): times are not to be trusted")
    print(*opening, "", *heading(chosen.threads), sep="\n", flush=True)
    cells = []
    for shape in todo:
        cells.append(measure(shape, chosen.threads, chosen.repeats, chosen.budget, chosen.seed))
        print(line(cells[-1], chosen.threads), flush=True)
    closing = summary(cells, chosen.threads)
    print("", *closing, sep="\n")
    if chosen.markdown:
        table = [*heading(chosen.threads), *(line(cell, chosen.threads) for cell in cells)]
        chosen.markdown.write_text("\n".join([*opening, "", *table, "", *closing, ""]))
    if chosen.json:
        chosen.json.write_text(json.dumps(as_json(cells, chosen.threads, found, chosen.seed), indent=1))
    return 0 if all(cell.equal for cell in cells) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
