"""The protocols between processes on one machine: rows absorbed, messages, latency, bytes, and what a site costs.

`python -m benchmarks.peers.network --help` lists the options. Parts: `load` (many sites, a coordinator: each method
beside telling everything, with the same rows), `site` (what starting one site takes), `faults` (processes killed,
stopped and cut off at random, every published state compared with the definition), `fuzz` (hostile bytes for every
decoder). All traffic stays on the loopback interface. All answers are checked.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks import machine
from benchmarks.network import faults, fuzz, load, starting
from benchmarks.network.load import Line, Scale
from skytide.protocols.network.query import METHODS, Query

TITLES = {
    "load": "Many sites and a coordinator",
    "site": "What a site takes",
    "faults": "Faults at random",
    "fuzz": "Hostile bytes",
}
PARTS = tuple(TITLES)
QUERIES = {"filtering": ("a", "b"), "fragmented": ("a", "b")}


def options(argv: list[str]) -> argparse.Namespace:
    """The options as given."""
    parser = argparse.ArgumentParser(prog="skytide bench network", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="only these parts (all)")
    parser.add_argument("--protocols", nargs="+", choices=list(QUERIES), default=list(QUERIES), help="only these (all)")
    parser.add_argument("--quick", action="store_true", help="tiny: seconds, to see that all works")
    parser.add_argument("--sites", type=int, default=1000)
    parser.add_argument("--objects", type=int, default=2000)
    parser.add_argument("--spread", type=int, default=5, help="sites that have a part of each object in fragments (5)")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long each measurement takes (20)")
    parser.add_argument("--rate", type=float, default=2000.0, help="rows a second where they are paced (2,000)")
    parser.add_argument("--change", type=float, default=0.02, help="how far a row moves its values at most (0.02)")
    parser.add_argument("--probes", type=int, default=200, help="changes whose latency is measured, in pairs (200)")
    parser.add_argument("--faults", type=float, default=300.0, help="seconds of faults, over all protocols (300)")
    parser.add_argument("--inputs", type=int, default=1_000_000, help="hostile inputs (1,000,000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything measured")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables")
    chosen = parser.parse_args(argv)
    if chosen.quick:
        chosen.sites, chosen.objects, chosen.spread, chosen.seconds = 6, 12, 2, 0.5
        chosen.rate, chosen.probes = 100.0, 3
        chosen.faults, chosen.inputs = 4.0 * len(chosen.protocols), 1000
    if min(chosen.sites, chosen.objects, chosen.spread, chosen.probes) < 1 or min(chosen.seconds, chosen.rate) <= 0:
        parser.error("sizes, rates and times must be positive")
    return chosen


def loads(chosen: argparse.Namespace) -> Iterator[Line]:
    """For each protocol the method that tells everything, then the others."""
    scale = Scale(
        chosen.sites,
        chosen.objects,
        chosen.spread,
        min(2, chosen.sites),
        chosen.seconds,
        chosen.rate,
        chosen.change,
        chosen.probes,
    )
    for protocol in chosen.protocols:
        bytes_of_all = 0.0
        plain, *others = [method for method in METHODS[protocol] if (protocol, method) != ("filtering", "auto")]
        for method in (plain, *(others if not chosen.quick else others[-1:])):
            query = Query(protocol, QUERIES[protocol], (), method=method)
            found = load.measured(query, scale, seed=chosen.seed)
            bytes_of_all = found["bytes/row"] if method == plain else bytes_of_all
            yield {**found, "of its bytes": found["bytes/row"] / bytes_of_all}


def lines_of(part: str, chosen: argparse.Namespace) -> Iterator[Line]:
    """The lines of a part, one by one as they are measured."""
    if part == "faults":
        return faults.measured(chosen.faults, chosen.seed, tuple(chosen.protocols))
    if part == "fuzz":
        return fuzz.measured(chosen.inputs, chosen.seed)
    return loads(chosen) if part == "load" else starting.measured(1 if chosen.quick else 5)


def text(cells: Line) -> str:
    """One line of a table."""

    def word(name: str, cell: object) -> str:
        if isinstance(cell, bool):
            return "yes" if cell else "NO"
        if name == "of its bytes":
            return f"{float(str(cell)):.1%}"
        if isinstance(cell, float):
            return f"{cell:,.0f}" if cell >= 100 else f"{cell:.3g}"
        return f"{cell:,}" if isinstance(cell, int) else str(cell)

    return "| " + " | ".join(word(name, cell) for name, cell in cells.items()) + " |"


def main(argv: list[str]) -> int:
    """Run the benchmark; 0 when all answers are right."""
    chosen = options(argv)
    found = machine.describe("starlette", "uvicorn", "websockets")
    opening = [
        machine.sentence(found),
        f"{chosen.sites:,} sites, {chosen.objects:,} objects, of which those in fragments are at {chosen.spread} sites"
        f" each; {chosen.rate:,.0f} rows a second where they are paced, seed {chosen.seed}",
    ]
    print(*opening, sep="\n", flush=True)
    written, measured = list(opening), dict[str, list[Line]]()
    for part in chosen.parts:
        lines = measured[part] = []
        for one in lines_of(part, chosen):
            shown = ["", f"### {TITLES[part]}", "", "| " + " | ".join(one) + " |", "|" + "---|" * len(one)]
            shown = [*(shown if not lines else []), text(one)]
            print(*shown, sep="\n", flush=True)
            written += shown
            lines.append(one)
            if chosen.json:  # a long run that is ended early leaves what it has found
                chosen.json.write_text(json.dumps({"machine": found, "parts": measured}, indent=1))
    wrong = sum(not line.get("equal", True) for lines in measured.values() for line in lines)
    verdict = f"{wrong} answers differ" if wrong else "all answers are equal"
    print("", verdict, sep="\n")
    if chosen.markdown:
        chosen.markdown.write_text("\n".join([*written, "", verdict, ""]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
