"""Many clients, few messages: the methods of the filtering protocol beside each other, as in zhang09c's Section 7.

`python -m benchmarks.peers.filtering --help` lists the options. Parts: `dimensions`, `distribution`, `uncertainty` and
`cardinality` (Figs. 9 to 12: messages and processor time), `epsilon`, `delta` and `theta` (Figs. 13 to 15: recall and
precision), `tcp` (Figs. 16 to 19, from the folder --data), `boundaries` (the cost model beside boundaries midway
between two points) and `quiet` (how fast clients find that they need not say anything). Messages are shares of what
`naive` sends for the same stream. All answers are checked.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.papers.zhang09c import figures, quiet, series
from benchmarks.papers.zhang09c.runs import Line, Query, Run, averaged, line, played
from benchmarks.real import DATA

KINDS = {"C": "correlated", "I": "independent", "A": "anti-correlated"}
DEFAULTS: dict[str, Any] = {"d": 4, "kind": "I", "u": 0.08}
QUERY: dict[str, Any] = {"theta": "0.8", "epsilon": 0.2, "delta": 0.1}
VARIED: dict[str, tuple[str, tuple[Any, ...]]] = {
    "dimensions": ("d", (2, 3, 4, 5, 6)),
    "distribution": ("kind", ("C", "I", "A")),
    "uncertainty": ("u", (0.01, 0.02, 0.04, 0.08, 0.16)),
    "cardinality": ("records", (0.25, 0.5, 1, 2)),
    "epsilon": ("epsilon", (0.1, 0.2, 0.3, 0.4)),
    "delta": ("delta", (0.05, 0.1, 0.15, 0.2)),
    "theta": ("theta", ("0.6", "0.7", "0.8", "0.9")),
}
"""The paper's Table 1; cardinalities as multiples of --records."""
EFFICIENCY, QUALITY = ("dimensions", "distribution", "uncertainty", "cardinality"), ("epsilon", "delta", "theta")
PARTS = (*VARIED, "tcp", "boundaries", "quiet")
TITLES = {
    "dimensions": "Columns (zhang09c, Fig. 9)",
    "distribution": "Distribution (Fig. 10)",
    "uncertainty": "Uncertainty u (Fig. 11)",
    "cardinality": "Cardinality (Fig. 12)",
    "epsilon": "Error rate epsilon (Fig. 13)",
    "delta": "Confidence delta (Fig. 14)",
    "theta": "Threshold theta (Fig. 15)",
    "tcp": "Connections (Figs. 16 to 19)",
    "boundaries": "Boundaries by the cost model and midway",
    "quiet": "Clients in their boxes",
}
METHODS = ("naive", "filter", "auto", "sampling", "hybrid")
SAMPLED = ("sampling", "hybrid")
SHOWN = ("up", "down", "total", "settled", "failures", "probes", "CPU, ms", "recall", "precision", "equal")
"""The columns of the tables beside what is varied; all columns are in the JSON."""
AUTO_GOAL, TCP_GOAL = 1.1, 0.1


def options(argv: list[str]) -> argparse.Namespace:
    """The options as given."""
    parser = argparse.ArgumentParser(prog="skytide bench filtering", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="only these parts (all)")
    parser.add_argument("--quick", action="store_true", help="tiny: seconds, to see that all works")
    parser.add_argument("--full", action="store_true", help="the paper's size: 10,000 records, 2,000 timestamps; hours")
    parser.add_argument("--records", type=int, default=2_000, help="records for Figs. 9 to 12 (2,000)")
    parser.add_argument("--timestamps", type=int, default=200, help="timestamps for Figs. 9 to 12 (200)")
    parser.add_argument("--quality", nargs=2, type=int, default=[1_000, 2_000], metavar=("RECORDS", "TIMESTAMPS"))
    parser.add_argument("--over", type=int, default=1_000, metavar="S", help="the paper's s (1,000)")
    parser.add_argument("--repeats", type=int, default=3, help="seeds that Figs. 13 to 15 are averaged over (3)")
    parser.add_argument("--data", type=Path, default=DATA, metavar="FOLDER", help="the log of connections")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plots", type=Path, metavar="FOLDER", help="draw the paper's figures")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything measured")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables")
    chosen = parser.parse_args(argv)
    if chosen.full:
        chosen.records, chosen.timestamps, chosen.quality = 10_000, 2_000, [10_000, 3_000]
    if chosen.quick:
        chosen.records, chosen.timestamps, chosen.quality, chosen.repeats = 120, 24, [60, 220], 1
        chosen.over = 200
    if chosen.records < 4 or min(chosen.timestamps, *chosen.quality) < 2 or chosen.repeats < 1:
        parser.error("--records must be 4 or more, --timestamps 2 or more, --repeats 1 or more")
    return chosen


class Bench:
    """Streams and runs, each made once however many figures show it."""

    def __init__(self, chosen: argparse.Namespace) -> None:
        self._chosen = chosen
        self._streams: dict[tuple[Any, ...], series.Series] = {}
        self._runs: dict[tuple[Any, ...], Run] = {}

    def stream(self, cell: Line, timestamps: int, seed: int) -> series.Series:
        """The stream of a cell; `connections` are those of the log."""
        key = (cell.get("kind"), cell.get("records"), cell.get("d"), cell.get("u"), timestamps, seed)
        if key not in self._streams:
            if cell.get("kind") is None:
                made = series.connections(self._chosen.data, timestamps or None)
            else:
                sizes = cell["records"], cell["d"], None if cell["u"] == "mixed" else cell["u"], timestamps
                made = series.synthetic(KINDS[cell["kind"]], *sizes, seed)
            self._streams = {key: made}  # one at a time: the truth of a long stream is large
        return self._streams[key]

    def run(self, cell: Line, method: str, query: Query, timestamps: int, seed: int) -> Line:
        """A line of a table: a method beside the naive one."""
        naive, found = (self._run(cell, one, query, timestamps, seed) for one in ("naive", method))
        return line(found, naive, self.stream(cell, timestamps, seed).timestamps)

    def _run(self, cell: Line, method: str, query: Query, timestamps: int, seed: int) -> Run:
        # What exact methods send does not depend on the query; their answers are checked for the usual one.
        query = query if method in SAMPLED else Query()
        key = (*cell.values(), method, query, timestamps, seed)
        if key not in self._runs:
            found = self.stream(cell, timestamps, seed)
            self._runs[key] = (
                played(found, "filter", query, "middle") if method == "middle" else played(found, method, query)
            )
        return self._runs[key]


def several(values: tuple[Any, ...], chosen: argparse.Namespace) -> tuple[Any, ...]:
    """The values to vary over; with --quick the ends."""
    return (values[0], values[-1]) if chosen.quick else values


def efficiency(part: str, chosen: argparse.Namespace, bench: Bench) -> Iterator[Line]:
    """Figs. 9 to 12: a line per value and method."""
    name, values = VARIED[part]
    for value in several(values, chosen):
        cell = {**DEFAULTS, "records": chosen.records}
        cell[name] = round(value * chosen.records) if part == "cardinality" else value
        for method in METHODS:
            yield {name: cell[name], "method": method} | bench.run(
                cell, method, Query(), chosen.timestamps, chosen.seed
            )


def quality(part: str, chosen: argparse.Namespace, bench: Bench) -> Iterator[Line]:
    """Figs. 13 to 15: a line per value and method, averaged over seeds."""
    name, values = VARIED[part]
    records, timestamps = chosen.quality
    cell = {**DEFAULTS, "records": records}
    for value in several(values, chosen):
        for method in SAMPLED:
            runs = [
                bench.run(
                    cell, method, Query(**{**QUERY, name: value}, over=chosen.over, seed=seed), timestamps, chosen.seed
                )
                for seed in range(1, chosen.repeats + 1)
            ]
            yield {name: value, "method": method} | averaged(runs)


def tcp(chosen: argparse.Namespace, bench: Bench) -> Iterator[Line]:
    """Figs. 16 to 19: exact methods once, the sampling ones for every epsilon, delta and theta."""
    if not series.present(chosen.data):
        print("the part tcp is left out: zeek_conn*.parquet is not in the folder of --data")
        return
    timestamps = 60 if chosen.quick else 0
    for method in METHODS[:3]:
        yield {"varied": "-", "value": "-", "method": method} | bench.run({}, method, Query(), timestamps, 0)
    for name in QUALITY:
        for value in several(VARIED[name][1], chosen):
            for method in SAMPLED:
                query = Query(**{**QUERY, name: value}, over=chosen.over)
                yield {"varied": name, "value": value, "method": method} | bench.run({}, method, query, timestamps, 0)


def boundaries(chosen: argparse.Namespace, bench: Bench) -> Iterator[Line]:
    """The method Filter with both kinds of boundaries."""
    cells = [{"kind": "I", "d": d, "u": u} for d in (2, 3, 4, 5) for u in (0.02, 0.08, "mixed")]
    cells += [{"kind": kind, "d": 4, "u": u} for kind in "CA" for u in (0.08, "mixed")]
    for each in (cells[0], cells[-1]) if chosen.quick else cells:
        cell = {**DEFAULTS, "records": chosen.records, **each}
        for method in ("filter", "middle"):
            found = bench.run(cell, method, Query(), chosen.timestamps, chosen.seed)
            yield each | {"boundaries": "cost" if method == "filter" else "middle"} | found


def lines_of(part: str, chosen: argparse.Namespace, bench: Bench) -> Iterator[Line]:
    """The lines of a part, one by one as they are measured."""
    if part in EFFICIENCY:
        return efficiency(part, chosen, bench)
    if part in QUALITY:
        return quality(part, chosen, bench)
    if part == "quiet":
        return quiet.measured(quick=chosen.quick, seed=chosen.seed)
    return tcp(chosen, bench) if part == "tcp" else boundaries(chosen, bench)


def told(part: str, found: Line) -> Line:
    """The columns of a line that are shown."""
    if part == "quiet":
        return found
    left_out = {"recall", "precision"} if found["recall"] is None else set()
    known = {"up", "down", "total", "settled", "messages", "failures", "probes", "CPU, ms", "recall", "precision"}
    kept = {name: value for name, value in found.items() if name not in known | {"equal"}}
    return kept | {name: found[name] for name in SHOWN if name not in left_out}


def text(found: Line) -> str:
    """One line of a table."""

    def word(cell: Any) -> str:
        if isinstance(cell, bool):
            return "yes" if cell else "NO"
        return f"{cell:,}" if isinstance(cell, int | float) else str(cell)

    return "| " + " | ".join(map(word, found.values())) + " |"


def summary(part: str, lines: list[Line]) -> list[str]:
    """What a table comes to, in words."""
    said = []
    if part in EFFICIENCY or part == "tcp":
        name = VARIED[part][0] if part in VARIED else "varied"
        for value in dict.fromkeys(one[name] for one in lines if one["method"] == "auto"):
            by = {one["method"]: one for one in lines if one[name] == value}
            for column in ("total", "settled"):
                better, mine = min(1.0, by["filter"][column]), by["auto"][column]
                verdict = "" if mine <= AUTO_GOAL * better and mine <= 1.0 else f", more than {AUTO_GOAL} times"
                said.append(
                    f"{part} {value}: auto is {mine / better:.2f} of the better exact method ({column}){verdict}"
                )
    if part in EFFICIENCY:
        said += orders(part, lines)
    if part == "tcp" and lines:
        said += [f"tcp: {one['method']} sends {one['total']:.1%} of naive" for one in lines[1:3]]
    if part == "boundaries":
        pairs = list(zip(lines[::2], lines[1::2], strict=True))
        ratios = [middle["total"] / max(cost["total"], 1e-9) for cost, middle in pairs]
        said.append(f"boundaries: midway sends {min(ratios):.2f} to {max(ratios):.2f} times what the cost model does")
    different = sum(not one["equal"] for one in lines)
    said.append(f"{part}: {different} answers differ" if different else f"{part}: all answers are equal")
    return said


def orders(part: str, lines: list[Line]) -> list[str]:
    """The paper's methods by what they send, fewest first."""
    name, said = VARIED[part][0], []
    for value in dict.fromkeys(one[name] for one in lines):
        by = {one["method"]: one["settled"] for one in lines if one[name] == value and one["method"] != "auto"}
        ranked = sorted(by, key=lambda method: by[method])
        said.append(f"{part} {value}: " + " < ".join(f"{method} {by[method]:.3f}" for method in ranked))
    return said


def main(argv: list[str]) -> int:
    """Run the benchmark; 0 when all answers are right."""
    chosen = options(argv)
    found = machine.describe()
    opening = [
        machine.sentence(found),
        f"{chosen.records:,} records and {chosen.timestamps:,} timestamps for Figs. 9 to 12, {chosen.quality[0]:,} and "
        f"{chosen.quality[1]:,} for Figs. 13 to 15; s = {chosen.over:,}; seed {chosen.seed}; one thread; CPU is "
        "processor time of server, clients and encoding together",
    ]
    print(*opening, sep="\n", flush=True)
    written, measured, bench = list(opening), dict[str, list[Line]](), Bench(chosen)
    warm_up()
    for part in chosen.parts:
        lines: list[Line] = []
        for one in lines_of(part, chosen, bench):
            cells = told(part, one)
            shown = ["", f"### {TITLES[part]}", "", "| " + " | ".join(cells) + " |", "|" + "---|" * len(cells)]
            shown = [*(shown if not lines else []), text(cells)]
            lines.append(one)
            print(*shown, sep="\n", flush=True)
            written += shown
        closing = ["", *summary(part, lines)] if lines else []
        print(*closing, sep="\n", flush=True)
        written += closing
        measured[part] = lines
    if chosen.markdown:
        chosen.markdown.write_text("\n".join([*written, ""]))
    if chosen.json:
        report = {"benchmark": "filtering", "seed": chosen.seed, "machine": found, "parts": measured}
        chosen.json.write_text(json.dumps(report, indent=1))
    if chosen.plots:
        print(*figures.draw(measured, chosen.plots), sep="\n")
    return 0 if all(one["equal"] for lines in measured.values() for one in lines) else 1


def warm_up() -> None:
    """Compile or load everything that is measured."""
    tiny = series.synthetic("independent", 30, 2, 0.1, 12, 0)
    for method in METHODS:
        played(tiny, method, Query(over=4))
    played(tiny, "filter", Query(), "middle")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
