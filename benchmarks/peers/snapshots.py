"""Objects under bulk updates: boxes beside a fresh skyline of every snapshot, with our kernel and with moocore.

`python -m benchmarks.peers.snapshots --help` lists the options. Parts: `synthetic` (udom14, Fig. 5: N, m, T and p, one
at a time), `cfp` (Fig. 4: how long a candidate may be one in vain), `nba` and `stocks` (Fig. 6, from the folder --data)
and `jumps` (objects that go anywhere, where `auto` must fall back). Figures are for the replay of a whole series, in
one thread; seconds are those of the processor. All answers are compared.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import machine
from benchmarks.papers.udom14 import figures, series
from benchmarks.papers.udom14.replay import Line, contest, engine, phases
from benchmarks.real import DATA

PARTS = ("synthetic", "cfp", "nba", "stocks", "jumps")
TITLES = {
    "synthetic": "Synthetic data (udom14, Fig. 5), µs per snapshot",
    "cfp": "False positives in a row before a box is rebuilt (udom14, Fig. 4), µs per snapshot",
    "nba": "NBA (udom14, Fig. 6a), µs per snapshot",
    "stocks": "Stocks (udom14, Fig. 6b), µs per snapshot",
    "jumps": "Objects that go anywhere, µs per snapshot",
}
DEFAULTS: dict[str, float] = {"N": 5_000, "m": 3, "p, %": 2.5, "step": 0.5}
VARIED: dict[str, tuple[float, ...]] = {
    "N": (500, 1_000, 2_500, 5_000, 10_000),
    "m": (2, 3, 4, 5, 6, 7, 8),
    "T": (0.1, 0.5, 1, 5),
    "p, %": (0.5, 1, 2.5, 5, 10, 20),
    "step": (0.5, 0.707),
}
"""The paper's Table 2; T as shares of --snapshots. N(0, 0.5) is taken as a deviation, and once as a variance."""
METHODS = ("mbr, µs", "auto, µs", "recompute, µs", "moocore, µs", "moocore on", "extend, µs")
SPLIT = ("PRE, µs", "SKY, µs", "POST, µs")
RATIOS = ("recompute/auto", "moocore/auto", "equal")
SHOWN = {
    "synthetic": ("varied", "value", "updates", "skyline", "candidates", *METHODS, *SPLIT, *RATIOS),
    "nba": ("series", "skyline", "candidates", *METHODS, *SPLIT, *RATIOS),
    "stocks": ("series", "skyline", "candidates", *METHODS, *SPLIT, *RATIOS),
    "jumps": ("moves", "m", "updates", "skyline", "candidates", *METHODS[:4], "changed method", *RATIOS),
}
"""The columns of the tables; all columns are in the JSON."""
CFP = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 5_000)
GOALS = {"nba": 10.0, "stocks": 2.0, "synthetic": 1.0}
"""How many times as fast as recomputing with our own kernel."""
PEER_GOAL = 10.0


def options(argv: list[str]) -> argparse.Namespace:
    """The options as given."""
    parser = argparse.ArgumentParser(prog="skytide bench snapshots", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="only these parts (all)")
    parser.add_argument("--quick", action="store_true", help="short series: seconds, to see that all works")
    parser.add_argument("--vary", nargs="+", choices=list(VARIED), default=list(VARIED), help="parameters (all)")
    parser.add_argument("--snapshots", type=int, default=10_000, help="T of the synthetic series (10,000)")
    parser.add_argument("--repeats", type=int, default=3, help="the best of so many runs counts (3)")
    parser.add_argument("--budget", type=float, default=15.0, help="seconds per method and cell for repeats (15)")
    parser.add_argument("--data", type=Path, default=DATA, metavar="FOLDER", help="the real data")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plots", type=Path, metavar="FOLDER", help="draw the paper's figures")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything measured")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables")
    chosen = parser.parse_args(argv)
    if chosen.quick:
        chosen.snapshots, chosen.repeats = min(chosen.snapshots, 60), 1
        chosen.budget = min(chosen.budget, 0.2)
    if chosen.snapshots < 10 or chosen.repeats < 1:
        parser.error("--snapshots must be 10 or more, --repeats 1 or more")
    return chosen


def measure(one: series.Series, chosen: argparse.Namespace) -> Line:
    """What all methods take for a series, and what makes it hard or easy."""
    found = contest(one, repeats=chosen.repeats, budget=chosen.budget)
    split = phases(one, found.played["mbr"].seconds, repeats=chosen.repeats)
    return {
        "updates": round(len(one.updates.slots) / one.updates.snapshots, 1),
        "skyline": round(found.skyline(), 1),
        "candidates": round(found.candidates(), 1),
        **{f"{name}, µs": round(found.per_snapshot(name), 1) for name in ("mbr", "auto", "recompute")},
        "moocore, µs": round(1e6 * found.moocore, 1),
        "moocore on": found.asked,
        "extend, µs": round(found.per_snapshot("extend"), 1),
        **{f"{name}, µs": round(value, 1) for name, value in zip(figures.PHASES, split.tolist(), strict=True)},
        "recompute/mbr": round(found.faster("mbr", "recompute"), 1),
        "recompute/auto": round(found.faster("auto", "recompute"), 1),
        "moocore/auto": round(found.faster("auto", "moocore"), 1),
        "recompute/extend": round(found.faster("extend", "recompute"), 1),
        "changed method": found.played["auto"].counters["switches"],
        "equal": found.equal,
    }


def synthetic(chosen: argparse.Namespace) -> Iterator[Line]:
    """Fig. 5, a line per cell; the cell of all defaults is measured once."""
    known: dict[tuple[float, ...], Line] = {}
    for name in chosen.vary:
        values = VARIED[name]
        for value in (values[0], values[-1]) if chosen.quick else values:
            cell = {**DEFAULTS, "T": chosen.snapshots, name: round(value * chosen.snapshots) if name == "T" else value}
            if chosen.quick:
                cell["N"] = round(cell["N"] / 10)
            key = tuple(cell.values())
            if key not in known:
                known[key] = measure(_walk(cell, chosen.seed), chosen)
            yield {"varied": name, "value": cell[name], **cell, **known[key]}


def _walk(cell: dict[str, float], seed: int) -> series.Series:
    sizes = int(cell["N"]), int(cell["m"]), int(cell["T"])
    return series.walk(*sizes, seed, share=cell["p, %"] / 100, step=cell["step"])


def cfp(chosen: argparse.Namespace) -> Iterator[Line]:
    """Fig. 4: the default series with every patience; answers are those of recomputing."""
    cell = {**DEFAULTS, "T": chosen.snapshots, "N": DEFAULTS["N"] // (10 if chosen.quick else 1)}
    one = _walk(cell, chosen.seed)
    count = one.updates.snapshots
    plain = engine("recompute", one)()
    several = CFP[::4] if chosen.quick else CFP
    turns = [[engine("mbr", one, patience)() for patience in several] for _ in range(chosen.repeats)]
    for patience, *runs in zip(several, *turns, strict=True):
        best = min(runs, key=lambda run: run.seconds)
        split = phases(one, best.seconds, repeats=chosen.repeats, patience=patience)
        yield {
            "cfp": patience,
            "mbr, µs": round(1e6 * best.seconds / count, 1),
            **{f"{name}, µs": round(value, 1) for name, value in zip(figures.PHASES, split.tolist(), strict=True)},
            "candidates": round(best.counters["candidates_seen"] / count, 1),
            "searches": round(best.counters["searches"] / count, 1),
            "boxes cut": round(best.counters["boxes_cut"] / count, 1),
            "rebuilt": round(best.counters["demoted"] / count, 2),
            "recompute/mbr": round(plain.seconds / best.seconds, 1),
            "equal": all(np.array_equal(run.answer, plain.answer) for run in runs),
        }


def real(part: str, chosen: argparse.Namespace) -> Iterator[Line]:
    """Fig. 6, and the same data taken another way."""
    if not series.present(chosen.data)[("nba", "stocks").index(part)]:
        print(f"the part {part} is left out: its files are not in the folder of --data")
        return
    if part == "nba":
        several = {"a snapshot per game": True, "a snapshot per starting time": False}
        made = ((name, series.nba(chosen.data, by_game=by_game)) for name, by_game in several.items())
    else:
        ways = {"rounded to 2 decimals": 2, "not rounded": None}
        made = ((name, series.stocks(chosen.data, decimals=decimals)) for name, decimals in ways.items())
    for name, one in made:
        if chosen.quick:
            one = series.beginning(one, chosen.snapshots)
        yield {
            "series": f"{part}, {name}",
            "objects": one.objects,
            "snapshots": one.updates.snapshots,
            "all updates": len(one.updates.slots),
            "moving, %": round(100 * series.moving(one), 1),
            **measure(one, chosen),
        }


def jumping(chosen: argparse.Namespace) -> Iterator[Line]:
    """Shares of objects that go anywhere in the cube, and walks of all objects with long steps."""
    snapshots, objects = (chosen.snapshots // 2, 500) if chosen.quick else (chosen.snapshots // 20, 5_000)
    for m in (3,) if chosen.quick else (2, 3, 5, 8):
        for share in (0.05, 1.0) if chosen.quick else (0.01, 0.05, 0.25, 0.5, 1.0):
            one = series.jumps(objects, m, snapshots, chosen.seed, share=share)
            yield {"moves": f"{share:.0%} jump", "m": m, **measure(one, chosen)}
        for step in (50,) if chosen.quick else (0.5, 5, 50):
            one = series.walk(objects, m, snapshots, chosen.seed, share=1.0, step=step)
            yield {"moves": f"all by {step}", "m": m, **measure(one, chosen)}


def lines_of(part: str, chosen: argparse.Namespace) -> Iterator[Line]:
    """The lines of a part, one by one as they are measured."""
    if part in ("nba", "stocks"):
        return real(part, chosen)
    return {"synthetic": synthetic, "cfp": cfp, "jumps": jumping}[part](chosen)


def warm_up() -> None:
    """Compile or load everything that is measured."""
    for d in (2, 3):
        one = series.walk(1_200, d, 20, 0, share=0.3)
        contest(one, repeats=1, budget=0.1)
        phases(one, 1.0, repeats=1)


def heading(line: Line) -> list[str]:
    """The first two lines of a table."""
    return ["| " + " | ".join(line) + " |", "|" + "---|" * len(line)]


def text(line: Line) -> str:
    """One line of a table."""
    shown = (f"{cell:,}" if isinstance(cell, int | float) and cell is not True else str(cell) for cell in line.values())
    return "| " + " | ".join(shown).replace("True", "yes").replace("False", "NO") + " |"


def missed(part: str, line: Line) -> list[str]:
    """The goals that a line misses, in words."""
    where = f"{line['varied']} = {line['value']:,}" if part == "synthetic" else line["series"]
    goals = (("recompute/auto", GOALS[part]), ("moocore/auto", PEER_GOAL))
    return [f"{where}: {ratio} is {line[ratio]}, not {goal}" for ratio, goal in goals if line[ratio] < goal]


def summary(part: str, lines: list[Line], judged: bool) -> list[str]:
    """What a table comes to, in words; goals are for series of full length."""
    said = []
    if part in ("nba", "stocks"):
        told = ("objects", "snapshots", "all updates", "moving, %")
        said += [f"{line['series']}: " + ", ".join(f"{name} {line[name]:,}" for name in told) for line in lines]
    if judged and part in GOALS:
        failures = [failure for line in lines for failure in missed(part, line)]
        for ratio in ("recompute/auto", "moocore/auto"):
            ratios = [line[ratio] for line in lines]
            said.append(f"{part}: {ratio} is {min(ratios)} to {max(ratios)}")
        said.append(f"{part}: " + ("; ".join(failures) if failures else "every goal reached"))
    if part == "jumps":
        worst = max(line["auto, µs"] / min(line["mbr, µs"], line["recompute, µs"]) for line in lines)
        said.append(f"{part}: auto takes at most {worst:.2f} times as long as the better method")
    different = sum(not line["equal"] for line in lines)
    said.append(f"{part}: {different} answers differ" if different else f"{part}: all answers are equal")
    return said


def main(argv: list[str]) -> int:
    """Run the benchmark; 0 when all answers are equal."""
    chosen = options(argv)
    found = machine.describe("moocore")
    opening = [
        machine.sentence(found),
        f"T = {chosen.snapshots:,}; steps N(0, 0.5) by deviation, no walls; seed {chosen.seed}; one thread, processor "
        f"time, the best of {chosen.repeats} runs in turn, fewer where a method has used {chosen.budget:g} s",
    ]
    if machine.busy() > 0.6:
        opening.append(f"the machine is busy ({machine.busy():.1f} processes per core): compare ratios only")
    warm_up()
    print(*opening, sep="\n", flush=True)
    written = list(opening)
    measured: dict[str, list[Any]] = {}
    for part in chosen.parts:
        lines: list[Line] = []
        for line in lines_of(part, chosen):
            told = {name: line[name] for name in SHOWN.get(part, line)}
            shown = ["", f"### {TITLES[part]}", "", *heading(told)] if not lines else []
            lines.append(line)
            shown.append(text(told))
            print(*shown, sep="\n", flush=True)
            written += shown
        closing = ["", *summary(part, lines, not chosen.quick)] if lines else []
        print(*closing, sep="\n", flush=True)
        written += closing
        measured[part] = lines
    if chosen.markdown:
        chosen.markdown.write_text("\n".join([*written, ""]))
    if chosen.json:
        report = {"benchmark": "snapshots", "seed": chosen.seed, "machine": found, "parts": measured}
        chosen.json.write_text(json.dumps(report, indent=1))
    if chosen.plots:
        print(*figures.draw(measured, chosen.plots), sep="\n")
    return 0 if all(line["equal"] for lines in measured.values() for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
