"""The sliding-window skyline beside its peers: a flat scan in C++, and the whole window computed anew.

`python -m benchmarks.peers.window --help` lists the options. Parts: `flat` (the same rows through the flat scan, which
is compiled into a temporary folder when its source and g++ are there), `recompute` (moocore, paretoset and our own
kernel on the whole window at every hundredth of it), `sweep` (windows of 10^4 to 10^7 rows: cost per row, retained
rows, memory), `operations` (the cost of single insertions, for every engine), `choices` (`auto` beside every engine on
streams of all kinds) and `spikes` (tao06, Section 6.2). Everything runs in one thread; answers are compared.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import machine
from benchmarks.peers import window_choices
from benchmarks.peers import window_parts as parts
from skytide.monitors.sliding.engines import ENGINES
from skytide.streams.generators import DEVIATION

PARTS = ("flat", "recompute", "sweep", "operations", "choices", "spikes")
KINDS = ["independent", "anti-correlated"]
PAPER_DEVIATION = 0.005
"""What tao06's anti-correlated skyline sizes need."""
TITLES = {
    "flat": "Beside the flat scan in C++: a count window, one call, all changes returned",
    "recompute": "Beside the whole window computed anew at every hundredth of it: processor time per hundredth",
    "sweep": "Growing windows: cost per row after the window has filled",
    "operations": "Single insertions after a full window (tao06, Figs. 13 and 14), d = 3",
    "choices": "What auto chooses, beside each engine: processor time per row after the window has filled",
    "spikes": "A spiky stream (tao06, Section 6.2), window of 15 s",
}


def options(argv: list[str]) -> argparse.Namespace:
    """The options as given."""
    parser = argparse.ArgumentParser(prog="skytide bench window", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="only these parts (all)")
    parser.add_argument("--quick", action="store_true", help="small windows: seconds, to see that all works")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS, help="kinds of rows (both)")
    parser.add_argument("--dimensions", nargs="+", type=int, metavar="D", help="columns (2 to 6; sweep 3, 4)")
    parser.add_argument("--rows", type=int, default=10**6, help="rows of the part flat (1,000,000)")
    parser.add_argument("--window", type=int, default=10**5, help="window of flat and recompute (100,000)")
    parser.add_argument("--repeats", type=int, default=3, help="the best of so many runs counts (3)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--flat-scan", type=Path, default=parts.FLAT_SCAN, metavar="FILE", help="the peer's source")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything measured")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables")
    chosen = parser.parse_args(argv)
    if chosen.quick:
        chosen.rows, chosen.window, chosen.repeats = min(chosen.rows, 60_000), min(chosen.window, 10_000), 1
        chosen.dimensions = chosen.dimensions or [2, 4]
    return chosen


def lines_of(part: str, chosen: argparse.Namespace, folder: Path) -> Iterator[parts.Line]:
    """The lines of a part, one by one as they are measured."""
    kinds, seed, quick = chosen.kinds, chosen.seed, chosen.quick
    several = chosen.dimensions or [2, 3, 4, 5, 6]
    if part == "flat":
        program = parts.compile_flat_scan(chosen.flat_scan, folder)
        if program is None:
            print("the part flat is left out: its source or g++ is missing")
            return
        few = [d for d in several if 2 <= d <= 6]
        yield from parts.flat(program, folder, kinds, few, chosen.rows, chosen.window, chosen.repeats, seed)
    elif part == "recompute":
        yield from parts.recompute(kinds, several, chosen.window, 3 if quick else 10, seed)
    elif part == "sweep":
        lengths = [10**4, 10**5] if quick else [10**4, 10**5, 10**6, 10**7]
        yield from parts.sweep(kinds, chosen.dimensions or [2, 3, 4], lengths, seed)
    elif part == "operations":
        length, count = (1_000, 200) if quick else (8_000, 2_000)
        yield from parts.operations(kinds, length, count, seed, DEVIATION)
    elif part == "choices":
        yield from window_choices.choices(*((30_000, 5_000) if quick else (200_000, 20_000)), seed, chosen.repeats)
    else:
        yield from parts.spikes(kinds, [d for d in several if d <= 4], 1 if quick else 4, seed, PAPER_DEVIATION)


def warm_up() -> float:
    """Compile or load everything that is measured; the seconds it took."""

    def work() -> None:
        rows = np.random.default_rng(0).random((3_000, 3))
        window = parts.counted(3, 500)
        window.extend(rows)
        window.extend(rows[:1])
        window.skyline()
        for anew in parts.ANEW.values():
            for d in (2, 3):
                anew(rows[:, :d].copy())
        for _ in parts.operations(["independent"], 300, 5, 0, DEVIATION):
            pass

    return float(parts.clock(work)[0])


def heading(line: parts.Line) -> list[str]:
    """The first two lines of a table."""
    return ["| " + " | ".join(line) + " |", "|" + "---|" * len(line)]


def text(line: parts.Line) -> str:
    """One line of a table."""
    cells = (
        f"{value:,}" if isinstance(value, int | float) and value is not True else str(value) for value in line.values()
    )
    return "| " + " | ".join(cells).replace("True", "yes").replace("False", "NO") + " |"


def summary(part: str, lines: list[parts.Line]) -> list[str]:
    """What a table comes to, in words."""
    said = []
    if lines and "goal" in lines[0]:
        missed = [f"{line['kind']} d={line['d']}" for line in lines if line["ratio"] < line["goal"]]
        said.append(
            f"{part}: {min(line['ratio'] for line in lines)} to {max(line['ratio'] for line in lines)} times as fast; "
            + ("goal missed in " + ", ".join(missed) if missed else "every goal reached")
        )
    different = [line for line in lines if not line["equal"]]
    said.append(f"{part}: {len(different)} answers differ" if different else f"{part}: all answers are equal")
    return said


def main(argv: list[str]) -> int:
    """Run the benchmark; 0 when all answers are equal."""
    chosen = options(argv)
    found = machine.describe("moocore", "paretoset")
    names = ", ".join("-".join(name) for name in ENGINES)
    opening = [
        machine.sentence(found),
        f"compiled or loaded in {warm_up():.1f} s; engines: {names}; one thread",
        f"anti-correlated: deviation {DEVIATION} (spikes: {PAPER_DEVIATION}); seed {chosen.seed}",
    ]
    if machine.busy() > 0.6:
        opening.append(f"the machine is busy ({machine.busy():.1f} processes per core): times are not to be trusted")
    print(*opening, sep="\n", flush=True)
    written = list(opening)
    measured: dict[str, list[Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for part in chosen.parts:
            lines: list[parts.Line] = []
            for line in lines_of(part, chosen, Path(folder)):
                shown = ["", f"### {TITLES[part]}", "", *heading(line)] if not lines else []
                lines.append(line)
                shown.append(text(line))
                print(*shown, sep="\n", flush=True)
                written += shown
            closing = ["", *summary(part, lines)] if lines else []
            print(*closing, sep="\n", flush=True)
            written += closing
            measured[part] = lines
    if chosen.markdown:
        chosen.markdown.write_text("\n".join([*written, ""]))
    if chosen.json:
        report = {"benchmark": "window", "seed": chosen.seed, "machine": found, "parts": measured}
        chosen.json.write_text(json.dumps(report, indent=1))
    return 0 if all(line["equal"] for lines in measured.values() for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
