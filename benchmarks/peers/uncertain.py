"""Uncertain rows: the engines beside the compiled plain scan of the candidates, and beside zhang09p's own figures.

`python -m benchmarks.peers.uncertain --help` lists the options. Parts: `rates` (every cell of kind, distribution of P
and dimension; the plain scan and the tree run for a limited time on the same rows after the window is full, loaded with
the candidates of that instant), `thresholds` (MSKY with 1 to 10 thresholds and 1,000 ad-hoc queries, Fig. 12), `sizes`
(Figs. 5 to 7 and 9 to 11) and `drift` (probabilities after ten million arrivals beside fresh ones). Everything runs in
one thread, and seconds are those of the processor; the moves of all engines are compared.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.peers import uncertain_parts as parts
from skytide.streams.generators import DEVIATION

PARTS = ("rates", "thresholds", "sizes", "drift")
KINDS = ["independent", "anti-correlated"]
DISTRIBUTIONS = ["uniform", "normal"]
TITLES = {
    "rates": f"Rows per second after the window has filled, q = {parts.LEAST}",
    "thresholds": "Several thresholds and ad-hoc queries, anti-correlated, d = 3 (zhang09p, Fig. 12)",
    "sizes": "Largest sizes and cost, anti-correlated, d = 3 (zhang09p, Figs. 5 to 7 and 9 to 11)",
    "drift": "Probabilities after many arrivals, beside fresh ones",
}
SCAN_GOALS = {("anti-correlated", 3): 5.0}
"""How many times as fast as the plain scan; once, at least, in every other cell."""
PAPER_GOAL = 10.0


def options(argv: list[str]) -> argparse.Namespace:
    """The options as given."""
    parser = argparse.ArgumentParser(prog="skytide bench uncertain", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="only these parts (all)")
    parser.add_argument("--quick", action="store_true", help="small windows: seconds, to see that all works")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS, help="kinds of rows (both)")
    parser.add_argument("--probabilities", nargs="+", choices=DISTRIBUTIONS, default=DISTRIBUTIONS, help="of P (both)")
    parser.add_argument("--dimensions", nargs="+", type=int, metavar="D", help="columns (2 to 5)")
    parser.add_argument("--rows", type=int, default=2 * 10**6, help="rows of the stream (2,000,000)")
    parser.add_argument("--window", type=int, default=10**6, help="rows of the window (1,000,000)")
    parser.add_argument("--seconds", type=float, default=5.0, help="limit for the tree and the scan in each cell (5)")
    parser.add_argument("--arrivals", type=int, default=10**7, help="arrivals of the part drift (10,000,000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything measured")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables")
    chosen = parser.parse_args(argv)
    if chosen.quick:
        chosen.rows, chosen.window = min(chosen.rows, 12_000), min(chosen.window, 6_000)
        chosen.seconds, chosen.arrivals = min(chosen.seconds, 0.2), min(chosen.arrivals, 30_000)
        chosen.dimensions = chosen.dimensions or [2, 4]
    if not 0 < chosen.window < chosen.rows:
        parser.error("--rows must be more than --window")
    return chosen


def lines_of(part: str, chosen: argparse.Namespace) -> Iterator[parts.Line]:
    """The lines of a part, one by one as they are measured."""
    n, window, seed, quick = chosen.rows, chosen.window, chosen.seed, chosen.quick
    if part == "rates":
        several = chosen.dimensions or [2, 3, 4, 5]
        yield from parts.rates(chosen.kinds, chosen.probabilities, several, n, window, chosen.seconds, seed)
    elif part == "thresholds":
        stretch = min(n, window + (2_000 if quick else 50_000))
        counts = (1, 3) if quick else (1, 2, 4, 6, 8, 10)
        yield from parts.thresholds(counts, stretch, window, 50 if quick else 1_000, seed)
    elif part == "sizes":
        yield from parts.sizes(window, quick, seed)
    else:
        yield from parts.drift(chosen.arrivals, 500 if quick else 2_000, seed)


def warm_up() -> None:
    """Compile or load everything that is measured."""
    for _ in parts.rates(["independent"], ["uniform"], [2], 2_000, 500, 0.1, 0):
        pass


def heading(line: parts.Line) -> list[str]:
    """The first two lines of a table."""
    return ["| " + " | ".join(line) + " |", "|" + "---|" * len(line)]


def text(line: parts.Line) -> str:
    """One line of a table."""
    shown = (f"{cell:,}" if isinstance(cell, int | float) and cell is not True else str(cell) for cell in line.values())
    return "| " + " | ".join(shown).replace("True", "yes").replace("False", "NO") + " |"


def missed(line: parts.Line) -> list[str]:
    """The goals that a cell misses, in words."""
    where = f"{line['kind']} {line['P']} d={line['d']}"
    found = []
    goal = SCAN_GOALS.get((line["kind"], line["d"]), 1.0)
    if line["auto/scan"] < goal:
        found.append(f"{where}: {line['auto/scan']} times the scan, not {goal}")
    if line["auto/paper"] != "-" and line["auto/paper"] < PAPER_GOAL:
        found.append(f"{where}: {line['auto/paper']} times the paper, not {PAPER_GOAL}")
    return found


def summary(part: str, lines: list[parts.Line]) -> list[str]:
    """What a table comes to, in words."""
    said = []
    if part == "rates":
        ratios = [line["auto/scan"] for line in lines]
        failures = [failure for line in lines for failure in missed(line)]
        said.append(
            f"rates: auto is {min(ratios)} to {max(ratios)} times as fast as the plain scan; "
            + ("; ".join(failures) if failures else "every goal reached")
        )
    different = sum(not line["equal"] for line in lines)
    said.append(f"{part}: {different} answers differ" if different else f"{part}: all answers are equal")
    return said


def main(argv: list[str]) -> int:
    """Run the benchmark; 0 when all answers are equal."""
    chosen = options(argv)
    found = machine.describe()
    opening = [
        machine.sentence(found),
        f"n = {chosen.rows:,}, N = {chosen.window:,}; anti-correlated: deviation {DEVIATION}; normal P: mean 0.5, "
        f"deviation 0.3, clipped; seed {chosen.seed}; one thread, processor time",
    ]
    if machine.busy() > 0.6:
        opening.append(f"the machine is busy ({machine.busy():.1f} processes per core): compare ratios only")
    warm_up()
    print(*opening, sep="\n", flush=True)
    written = list(opening)
    measured: dict[str, list[Any]] = {}
    for part in chosen.parts:
        lines: list[parts.Line] = []
        for line in lines_of(part, chosen):
            shown = ["", f"### {TITLES[part]}", "", *heading(line)] if not lines else []
            lines.append(line)
            shown.append(text(line))
            print(*shown, sep="\n", flush=True)
            written += shown
        closing = ["", *summary(part, lines)]
        print(*closing, sep="\n", flush=True)
        written += closing
        measured[part] = lines
    if chosen.markdown:
        chosen.markdown.write_text("\n".join([*written, ""]))
    if chosen.json:
        report = {"benchmark": "uncertain", "seed": chosen.seed, "machine": found, "parts": measured}
        chosen.json.write_text(json.dumps(report, indent=1))
    return 0 if all(line["equal"] for lines in measured.values() for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
