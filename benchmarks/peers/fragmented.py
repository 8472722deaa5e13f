"""Objects in fragments, few messages: PIVOT, DIRECT and auto beside telling everything, as in papa14's Section V.

`python -m benchmarks.peers.fragmented --help` lists the options. Parts: `correlation` (Fig. 5), `change` (Fig. 6a),
`sites` (6b), `objects` (6c), `functions` (7a), `types` (7b), `weather` and `movies` (7c, from the folder --data),
`tuning` (what each measure against messages is worth), `quiet` (how fast sites find that they need not say anything)
and `definition` (small streams, compared with the reference after every update). Messages and bytes are shares of what
telling every change takes. All answers are checked.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.papers.papa14 import figures, quiet, series
from benchmarks.papers.papa14.runs import Line, averaged, defined, line, played
from benchmarks.real import DATA
from skytide.protocols.fragmented.tuning import Tuning

KINDS = {"C": "correlated", "I": "independent", "A": "anti-correlated"}
DEFAULTS: dict[str, Any] = {"kind": "I", "change": 0.02, "functions": ("a", "b")}
TYPES = {"column": "b", "norm": "norm(b, c)", "distance": "distance(b, c, d, e)", "variance": "var(b)"}
VARIED: dict[str, tuple[str, tuple[Any, ...]]] = {
    "correlation": ("kind", ("C", "I", "A")),
    "change": ("change", (0.01, 0.02, 0.04, 0.08, 0.16)),
    "sites": ("sites", (200, 500, 1000, 1500, 2000, 2500)),
    "objects": ("objects", (1000, 2000, 3000, 4000, 5000)),
    "functions": ("functions", (2, 3, 4)),
    "types": ("type", tuple(TYPES)),
}
"""The paper's Table I; sites are multiplied by --scale."""
PARTS = (*VARIED, "weather", "movies", "tuning", "quiet", "definition")
TITLES = {
    "correlation": "Correlation (papa14, Fig. 5)",
    "change": "Largest relative change (Fig. 6a)",
    "sites": "Sites (Fig. 6b)",
    "objects": "Objects (Fig. 6c)",
    "functions": "Number of functions (Fig. 7a)",
    "types": "Kinds of functions (Fig. 7b)",
    "weather": "WEATHER (Fig. 7c)",
    "movies": "MOVIES (Fig. 7c)",
    "tuning": "What each measure is worth",
    "quiet": "Sites that have nothing to say",
    "definition": "Compared with the reference after every update",
}
METHODS = ("pivot", "direct", "auto")
PAPER: dict[tuple[str, Any], tuple[float, float, float]] = {
    ("correlation", "C"): (0.01, 0.03, 0.01),
    ("correlation", "I"): (0.01, 0.03, 0.01),
    ("correlation", "A"): (0.3, 0.3, 0.3),
    ("change", 0.02): (0.01, 0.03, 0.01),
    ("change", 0.16): (0.1, 0.2, 0.12),
    **{("sites", many): (0.01, 0.03, 0.01) for many in VARIED["sites"][1]},
    **{("objects", many): (0.02, 0.04, 0.04) for many in VARIED["objects"][1]},
    ("functions", 2): (0.01, 0.03, 0.01),
    ("functions", 4): (0.2, 0.3, 0.3),
    ("types", "column"): (0.01, 0.03, 0.01),
    ("types", "distance"): (0.2, 0.2, 0.8),
    ("weather", "-"): (0.1, 0.1, 0.1),
    ("movies", "-"): (0.01, 0.01, 0.01),
}
"""What the paper's text says: messages of the better method, bytes of PIVOT and of DIRECT, as shares of its CENTR."""
AUTO_GOAL = 1.1
SHOWN = ("messages", "paper", "late messages", "bytes", "paper, bytes", "late bytes", "initial, KB/site", "skyline",
         "updates/s", "equal")  # fmt: skip
SHARES = ("messages", "late messages", "bytes", "late bytes", "paper", "paper, bytes")
SWITCHES = ("-", "reserve", "shifting", "centring", "streaming", "walks", "symmetric", "apart")
MOVIES = ((200, 0.0), (200, 0.5), (2, 0.0), (2, 0.5))
"""Sites, and the share of the ratings that is there at the beginning. With two sites, a site has about as many ratings
of a movie as in the paper, whose data are a hundred times as many.
"""
SPREAD = 0.5
"""Sites that all begin alike have no variance: for that function they begin up to so much of the vector away."""


def options(argv: list[str]) -> argparse.Namespace:
    """The options as given."""
    parser = argparse.ArgumentParser(prog="skytide bench fragmented", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="only these parts (all)")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), help="only these (all)")
    parser.add_argument("--quick", action="store_true", help="tiny: seconds, to see that all works")
    parser.add_argument("--full", action="store_true", help="the paper's size: 1,000 sites, 10 million updates; hours")
    parser.add_argument("--scale", type=float, default=0.1, help="sites as a share of the paper's (0.1)")
    parser.add_argument("--objects", type=int, default=2_000, help="objects where they are not varied (2,000)")
    parser.add_argument("--days", type=int, default=60, help="days of weather, 0 for all (60)")
    parser.add_argument("--ratings", type=int, default=20_000, help="ratings of movies, 0 for all (20,000)")
    parser.add_argument("--repeats", type=int, default=1, help="seeds to average over (1)")
    parser.add_argument("--data", type=Path, default=DATA, metavar="FOLDER", help="weather and ratings")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plots", type=Path, metavar="FOLDER", help="draw the paper's figures")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything measured")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables")
    chosen = parser.parse_args(argv)
    if chosen.full:
        chosen.scale, chosen.days, chosen.ratings = 1.0, 0, 0
    if chosen.quick:
        chosen.scale, chosen.objects, chosen.days, chosen.ratings, chosen.repeats = 0.004, 40, 1, 300, 1
    if not chosen.scale * 1000 >= 2 or chosen.objects < 2 or chosen.days < 0 or chosen.repeats < 1:
        parser.error("--scale must be 0.002 or more, --objects 2 or more, --days 0 or more, --repeats 1 or more")
    return chosen


def sites_of(many: int, chosen: argparse.Namespace) -> int:
    """How many sites there are where the paper has so many."""
    return max(2, round(many * float(chosen.scale)))


def several(values: tuple[Any, ...], chosen: argparse.Namespace) -> tuple[Any, ...]:
    """The values to vary over; with --quick the ends."""
    return (values[0], values[-1]) if chosen.quick else values


def stream(cell: Line, chosen: argparse.Namespace, seed: int) -> series.Series:
    """The synthetic stream of a cell."""
    sites = sites_of(cell.get("sites", 1000), chosen)
    return series.synthetic(
        KINDS[cell["kind"]],
        cell.get("objects", chosen.objects),
        sites,
        cell["functions"],
        change=cell["change"],
        seed=seed,
        spread=cell.get("spread", 0.0),
    )


class Bench:
    """Runs of synthetic streams, each made once however many figures show it."""

    def __init__(self, chosen: argparse.Namespace) -> None:
        self._chosen = chosen
        self._lines: dict[str, Line] = {}

    def line(self, cell: Line, method: str, off: str = "-") -> Line:
        """A line of a table, over all seeds."""
        cell = {**DEFAULTS, **cell}
        key = repr((sorted(cell.items()), method, off))
        if key not in self._lines:
            changed: Line = {} if off == "-" else {off: 0.0 if off == "apart" else False}
            tuning = Tuning(**changed)
            found = []
            for seed in range(self._chosen.seed, self._chosen.seed + self._chosen.repeats):
                one = stream(cell, self._chosen, seed)
                found.append(line(played(one, method, tuning), one))
            self._lines[key] = averaged(found)
        return self._lines[key]


def cell_of(part: str, value: Any, chosen: argparse.Namespace) -> Line:
    """What is varied, as the stream needs it."""
    if part == "functions":
        return {"functions": tuple("abcd"[:value])}
    if part == "types":
        return {"functions": ("a", TYPES[value]), "spread": SPREAD if value == "variance" else 0.0}
    if part == "objects" and chosen.quick:
        return {"objects": value // 50}
    return {VARIED[part][0]: value}


def varied(part: str, chosen: argparse.Namespace, bench: Bench) -> Iterator[Line]:
    """The synthetic figures: a line per value and method."""
    name, values = VARIED[part]
    for value in several(values, chosen):
        for method in chosen.methods:
            shown = sites_of(value, chosen) if part == "sites" else value
            found = {name: shown, "method": method} | bench.line(cell_of(part, value, chosen), method)
            yield found | _paper(part, value, method)


def _paper(part: str, value: Any, method: str) -> Line:
    if (part, value) not in PAPER:
        return {"paper": None, "paper, bytes": None}
    messages, pivot, direct = PAPER[part, value]
    return {"paper": messages, "paper, bytes": {"pivot": pivot, "direct": direct}.get(method, max(pivot, direct))}


def real(part: str, chosen: argparse.Namespace) -> Iterator[Line]:
    """WEATHER or MOVIES; DIRECT is no method for objects that share no site (Theorem 1), so WEATHER is without."""
    patterns = (series.WEATHER, series.STATIONS) if part == "weather" else (series.MOVIES,)
    if not series.found_in(chosen.data, *patterns):
        print(f"the part {part} is left out: {' or '.join(patterns)} is not in the folder of --data")
        return
    for sites, sample in ((0, 0.0),) if part == "weather" else MOVIES:
        if part == "weather":
            one = series.weather(chosen.data, chosen.days or None)
        else:
            one = series.movies(chosen.data, chosen.seed, sites, chosen.ratings or None, sample)
        shown = {"sites": one.sites, "sample": sample}
        for method in chosen.methods:
            if part == "movies" or method != "direct":
                yield shown | {"method": method} | line(played(one, method), one) | _paper(part, "-", method)


def tuning(chosen: argparse.Namespace, bench: Bench) -> Iterator[Line]:
    """PIVOT with each measure switched off, and DIRECT without its reserve."""
    for kind, change in several((("I", 0.02), ("I", 0.16), ("A", 0.02)), chosen):
        for method, switches in (("pivot", SWITCHES), ("direct", SWITCHES[:2])):
            for off in switches if method in chosen.methods else ():
                found = bench.line({"kind": kind, "change": change}, method, off)
                yield {"kind": kind, "change": change, "method": method, "without": off} | found


def definition(chosen: argparse.Namespace) -> Iterator[Line]:
    """Small streams of all kinds, every update checked by the reference, with `central` too."""
    objects, sites, updates = (6, 3, 40) if chosen.quick else (12, 5, 400)
    for kind, change in (("C", 0.02), ("I", 0.16), ("A", 0.16)):
        for texts in (
            ("a", "b"),
            *((("a", text) for name, text in TYPES.items() if name != "column") if kind == "I" else ()),
        ):
            one = series.synthetic(KINDS[kind], objects, sites, texts, change=change, seed=chosen.seed, updates=updates)
            for method in ("central", *chosen.methods):
                yield {"kind": kind, "change": change, "functions": ", ".join(texts), "method": method} | defined(
                    one, method
                )


def lines_of(part: str, chosen: argparse.Namespace, bench: Bench) -> Iterator[Line]:
    """The lines of a part, one by one as they are measured."""
    if part in VARIED:
        return varied(part, chosen, bench)
    if part in ("weather", "movies"):
        return real(part, chosen)
    if part == "tuning":
        return tuning(chosen, bench)
    if part == "definition":
        return definition(chosen)
    many = 2_000 if chosen.quick else 1_000_000
    return quiet.measured(chosen.objects, sites_of(1000, chosen), many, quick=chosen.quick, seed=chosen.seed)


def told(part: str, found: Line) -> Line:
    """The columns of a line that are shown; all columns are in the JSON."""
    if part in ("quiet", "definition"):
        return found
    known = {*SHOWN, "sent", "central", "kinds", "along", "updates"}
    kept = {name: value for name, value in found.items() if name not in known}
    return kept | {name: found[name] for name in SHOWN if name in found}


def text(cells: Line) -> str:
    """One line of a table."""

    def word(name: str, cell: Any) -> str:
        if isinstance(cell, bool):
            return "yes" if cell else "NO"
        if cell is None:
            return ""
        if name in SHARES:
            share = f"{100 * cell:.3g} %" if cell < 10 else f"{100 * cell:,.0f} %"
            return f"≤ {share}" if name.startswith("paper") else share
        return f"{cell:,}" if isinstance(cell, int | float) and name != "change" else str(cell)

    return "| " + " | ".join(word(name, cell) for name, cell in cells.items()) + " |"


def summary(part: str, lines: list[Line]) -> list[str]:
    """What a table comes to, in words."""
    said: list[str] = []
    if part in VARIED or part in ("weather", "movies"):
        names = (VARIED[part][0],) if part in VARIED else ("sites", "sample")
        cells = [tuple(one[name] for name in names) for one in lines]
        for cell in dict.fromkeys(cells):
            said += _verdicts(
                part, cell, {one["method"]: one for one, own in zip(lines, cells, strict=True) if own == cell}
            )
    if part == "tuning":
        said += _worth(lines)
    if part == "quiet":
        slow = [one for one in lines if one["updates/s"] < one["goal"]]
        said.append(f"quiet: {len(lines) - len(slow)} of {len(lines)} reach {quiet.GOAL:,} updates/s")
    different = sum(not one["equal"] for one in lines)
    said.append(f"{part}: {different} answers differ" if different else f"{part}: all answers are equal")
    return said


def _verdicts(part: str, cell: tuple[Any, ...], by: dict[str, Line]) -> Iterator[str]:
    """Whether the paper's figures are reached, and `auto` is near the better of the two."""
    where = " ".join([part, *(str(value) for value in cell if value is not None)])
    best = min(by.values(), key=lambda one: one["messages"])
    if best["paper"] is not None:
        said = "reached" if best["messages"] <= best["paper"] else "MISSED"
        sent = f"{best['messages']:.3%} of the messages, the paper up to {best['paper']:.0%}"
        yield f"{where}: {best['method']} sends {sent}: {said}"
        for one in by.values():
            if one["bytes"] > one["paper, bytes"]:
                more = f"{one['bytes']:.3%} of the bytes, MORE than the paper's {one['paper, bytes']:.0%}"
                yield f"{where}: {one['method']} sends {more}"
    if "auto" in by and len(by) > 1:
        for column in ("messages", "bytes"):
            better = min(one[column] for method, one in by.items() if method != "auto")
            # A message or two more or less is no judgement.
            many = by["auto"]["sent"] if column == "messages" else by["auto"]["sent"] * better
            if by["auto"][column] > AUTO_GOAL * better and many > 10:
                yield f"{where}: auto is {by['auto'][column] / max(better, 1e-12):.2f} of the better method ({column})"


def _worth(lines: list[Line]) -> Iterator[str]:
    """By how much messages grow without a measure."""
    for one in lines:
        same = [line for line in lines if all(line[name] == one[name] for name in ("kind", "change", "method"))]
        whole = next(line for line in same if line["without"] == "-")
        if one is not whole and whole["messages"] > 0:
            where = f"{one['kind']}, {one['change']}, {one['method']}"
            messages, volume = one["messages"] / whole["messages"], one["bytes"] / whole["bytes"]
            yield f"{where}: without {one['without']} {messages:.2f} times the messages, {volume:.2f} times the bytes"


def main(argv: list[str]) -> int:
    """Run the benchmark; 0 when all answers are right."""
    chosen = options(argv)
    found = machine.describe()
    opening = [
        machine.sentence(found),
        f"{chosen.objects:,} objects, {sites_of(1000, chosen):,} sites and {series.PER_CELL} updates for each object at"
        f" each site, unless varied; anti-correlated rows have a plane deviation of 0.05; seed {chosen.seed}"
        + (f" and the {chosen.repeats - 1} after it" if chosen.repeats > 1 else ""),
    ]
    print(*opening, sep="\n", flush=True)
    written, measured, bench = list(opening), dict[str, list[Line]](), Bench(chosen)
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
        if chosen.json:  # as parts are done: a long run that is interrupted leaves what it has
            report = {"benchmark": "fragmented", "seed": chosen.seed, "machine": found, "parts": measured}
            chosen.json.write_text(json.dumps(report, indent=1))
    if chosen.markdown:
        chosen.markdown.write_text("\n".join([*written, ""]))
    if chosen.plots:
        print(*figures.draw(measured, chosen.plots), sep="\n")
    return 0 if all(one["equal"] for lines in measured.values() for one in lines) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
