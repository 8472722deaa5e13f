"""Everybody who computes skylines beside Skytide: the same rows, the same run, answers compared, ratios in one table.

`skytide bench peers --size smoke|laptop|full`. Peers are moocore, paretoset, pymoo, river, a flat scan in C++, Spark's
own `NOT EXISTS` and a single task on Spark. Each is tried on growing parts of the rows; where it would take longer
than its budget on all of them, the table has an estimate, marked with ~, and says on how many rows it was compared.
`skytide bench batch`, `window` and `spark` look closer at some of them.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import machine
from benchmarks.peers._runners import NAMES, Peer, everybody
from benchmarks.peers.batch import Shape, geometric_mean
from skytide.errors import SkytideError
from skytide.model import Floats
from skytide.streams.generators import DEVIATION, KINDS, generate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIES = "ties"
"""Independent rows of whole numbers from 0 to 9: equal values everywhere, and equal rows."""
_BOTH = ("independent", "anti-correlated")
SIZES: dict[str, tuple[float, tuple[Shape, ...]]] = {
    "smoke": (5.0, (Shape(4_000, 3, "independent"), Shape(4_000, 3, TIES))),
    "laptop": (
        10.0,
        (
            *(Shape(10**5, d, kind) for d in (2, 4, 6) for kind in _BOTH),
            Shape(10**5, 4, TIES),
            *(Shape(10**6, 4, kind) for kind in _BOTH),
        ),
    ),
    "full": (
        120.0,
        (
            *(Shape(rows, d, kind) for rows in (10**5, 10**6) for d in (2, 3, 4, 6, 8) for kind in KINDS),
            Shape(10**6, 4, TIES),
        ),
    ),
}
"""For each size: seconds that a peer may take on the rows of a shape, and the shapes."""
GROWTH = 4


@dataclass
class Line:
    """A peer on the rows of one shape: seconds of both, or an estimate of its own."""

    shape: Shape
    peer: str
    beside: str
    skyline: int
    ours: float
    theirs: float
    estimated: bool
    compared: int
    """So many rows were the largest part that it has run on."""
    equal: bool

    @property
    def ratio(self) -> float:
        """How many times as long as ours it takes."""
        return self.theirs / self.ours


def rows_of(shape: Shape, seed: int) -> Floats:
    """The rows of a shape."""
    if shape.kind != TIES:
        return generate(shape.kind, shape.rows, shape.dimensions, seed)
    return np.floor(generate("independent", shape.rows, shape.dimensions, seed) * 10)


def parts(rows: int, least: int) -> list[int]:
    """Sizes of growing parts of the rows, all of them the last.

    >>> parts(100_000, 1_000), parts(500, 1_000)
    ([1562, 6250, 25000, 100000], [500])
    """
    sizes = [rows]
    while sizes[0] // GROWTH >= least:
        sizes.insert(0, sizes[0] // GROWTH)
    return sizes


def compare(peer: Peer, shape: Shape, values: Floats, budget: float, repeats: int) -> Line:
    """One line: the peer on growing parts, as far as its budget goes; ours on the same parts, and on all rows."""
    equal, last, expected, compared = True, 0.0, 0.0, 0
    for size in parts(len(values), peer.least):
        part = np.ascontiguousarray(values[:size])
        if not compared and repeats > 1:  # what is loaded or compiled at the first call counts on neither side
            peer.theirs(part), peer.ours(part)
        taken, answer = peer.theirs(part)
        ours, mine = peer.ours(part)
        equal, compared = equal and answer == mine, size
        # One part says nothing of growth: what it took may be what the peer takes to begin.
        growth = min(2.0, max(0.0, math.log(taken / last, GROWTH))) if last else 0.0
        last, expected = taken, taken * (len(values) / size) ** growth
        if expected > budget:
            break
    done = compared == len(values)
    spent, ours = last, ours if done else math.inf
    for _ in range(int(done), repeats):
        ours = min(ours, peer.ours(values)[0])
        if done and spent + last < budget:
            taken, answer = peer.theirs(values)
            last, spent, equal = min(last, taken), spent + taken, equal and answer == mine
    members = len(answer) if isinstance(answer, list) else int(answer["last"])
    return Line(shape, peer.name, peer.beside, members, ours, last if done else expected, not done, compared, equal)


def measure(
    shapes: Sequence[Shape],
    only: Sequence[str],
    budget: float,
    repeats: int,
    seed: int,
    note: Callable[[str], object],
    spark: SparkSession | None = None,
) -> Iterator[Line]:
    """The lines of all shapes and peers; who is left out is noted once, with the reason."""
    missing: set[str] = set()
    with tempfile.TemporaryDirectory() as folder, everybody(Path(folder), spark) as named:
        for shape in shapes:
            values = rows_of(shape, seed)
            for name in only:
                if name in missing:
                    continue
                try:
                    peer = named(name)
                except SkytideError as reason:
                    missing.add(name)
                    note(f"{name} is left out: {reason}")
                    continue
                if shape.dimensions not in peer.dimensions:
                    continue
                try:
                    line = compare(peer, shape, values, budget, repeats)
                except Exception as problem:  # who fails must not take the lines of the others along
                    missing.add(name)
                    note(f"{name} {FAILED} on {shape}: {type(problem).__name__}: {problem}")
                    continue
                yield line


# -- what is printed ---------------------------------------------------------------------------------------------------

FAILED = "failed"
COLUMNS = ("rows x d", "kind", "skyline", "peer", "beside our", "peer, ms", "ours, ms", "ratio", "compared on", "equal")
HEADING = ["| " + " | ".join(COLUMNS) + " |", "|---|---|---:|---|---|---:|---:|---:|---:|---|"]


def text(line: Line) -> str:
    """One line of the table."""
    about = "~" if line.estimated else ""
    # The skyline of a part is not that of all rows, and that of a window not that of the table.
    members = "" if line.estimated or "tenth" in line.beside else f"{line.skyline:,}"
    cells = [f"{line.shape.rows:,} x {line.shape.dimensions}", line.shape.kind, members, line.peer, line.beside]
    cells += [f"{about}{_number(line.theirs * 1e3)}", _number(line.ours * 1e3), f"{about}{_number(line.ratio)}"]
    cells += [f"{line.compared:,}", "yes" if line.equal else "NO"]
    return "| " + " | ".join(cells) + " |"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def summary(lines: Sequence[Line]) -> list[str]:
    """What the table comes to, a sentence for each peer."""
    said = []
    for name in dict.fromkeys(line.peer for line in lines):
        mine = [line for line in lines if line.peer == name]
        ratios = [line.ratio for line in mine]
        least = min(mine, key=lambda line: line.ratio)
        guessed = sum(line.estimated for line in mine)
        said.append(
            f"- {name}: {geometric_mean(ratios):.1f} times as long as ours (geometric mean of {len(mine)}"
            + (f", of which {guessed} estimated" if guessed else "")
            + f"), least {least.ratio:.2g} ({least.shape}); ours is slower in {sum(one < 1 for one in ratios)}"
        )
    wrong = [f"{line.peer} on {line.shape}" for line in lines if not line.equal]
    return [*said, f"- ANSWERS DIFFER: {', '.join(wrong)}" if wrong else "- All answers are equal."]


def main(argv: list[str], spark: SparkSession | None = None) -> int:
    """Run the benchmark; 0 when all answers are equal."""
    parser = argparse.ArgumentParser(prog="skytide bench peers", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", choices=list(SIZES), default="laptop")
    parser.add_argument("--only", nargs="+", choices=NAMES, default=list(NAMES), metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--budget", type=float, help="seconds that a peer may take on the rows of a shape")
    parser.add_argument("--repeats", type=int, default=3, help="the best of so many runs counts (3)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything measured")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table")
    chosen = parser.parse_args(argv)
    usual, shapes = SIZES[chosen.size]
    budget = usual if chosen.budget is None else chosen.budget
    found = machine.describe("moocore", "paretoset", "pymoo", "river", "pyspark")
    written: list[str] = []

    def say(line: str) -> None:
        print(line, flush=True)
        written.append(line)

    say(machine.sentence(found))
    say(f"a peer may take {budget:g} s; best of {chosen.repeats}; anti-correlated: {DEVIATION}; seed {chosen.seed}")
    if machine.busy() > 0.6:
        say(f"the machine is busy ({machine.busy():.1f} processes per core): only ratios say something")
    say("")
    lines: list[Line] = []
    notes: list[str] = []
    for line in measure(shapes, chosen.only, budget, max(1, chosen.repeats), chosen.seed, notes.append, spark):
        for row in (*(HEADING if not lines else []), text(line)):
            say(row)
        lines.append(line)
    for row in ("", *notes, *summary(lines)):
        say(row)
    if chosen.markdown:
        chosen.markdown.write_text("\n".join([*written, ""]))
    if chosen.json:
        report: dict[str, Any] = {"benchmark": "peers", "seed": chosen.seed, "machine": found, "left out": notes}
        report["lines"] = [asdict(line) | {"ratio": line.ratio} for line in lines]
        chosen.json.write_text(json.dumps(report, indent=1))
    return 0 if all(line.equal for line in lines) and not any(FAILED in one for one in notes) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
