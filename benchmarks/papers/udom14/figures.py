"""udom14's Figs. 4 to 6 drawn from what `skytide bench snapshots` measured.

    python -m benchmarks.papers.udom14.figures snapshots.json folder/

Each bar is the method with boxes, split into PRE, SKY and POST as in the paper; the line, on the right scale, says how
many times as fast it is as a fresh skyline of every snapshot with our own kernel, the paper's naive method (the paper
draws the inverse). Needs matplotlib.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

Line = dict[str, Any]
PHASES = {"PRE": "#0b63ce", "SKY": "#d1480c", "POST": "#c79a00"}
INK = "#24292f"


def draw(measured: dict[str, list[Line]], folder: Path) -> list[Path]:
    """Draw the figures whose parts were measured; the files."""
    import matplotlib

    matplotlib.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    if measured.get("cfp"):
        lines = measured["cfp"]
        panels = [("cfp", lines, [f"{line['cfp']:,}" for line in lines])]
        found.append(_figure(panels, "Fig. 4: false positives in a row before a box is rebuilt", folder / "cfp.png"))
    if measured.get("synthetic"):
        names = list(dict.fromkeys(line["varied"] for line in measured["synthetic"]))
        panels = []
        for name in names:
            lines = [line for line in measured["synthetic"] if line["varied"] == name]
            panels.append((name, lines, [f"{line[name]:,}" for line in lines]))
        found.append(_figure(panels, "Fig. 5: synthetic data", folder / "synthetic.png"))
    real = [line for part in ("nba", "stocks") for line in measured.get(part, [])]
    if real:
        panels = [("series", real, [line["series"].replace(", ", "\n") for line in real])]
        found.append(_figure(panels, "Fig. 6: real data", folder / "real.png"))
    return found


def _figure(panels: list[tuple[str, list[Line], list[str]]], title: str, target: Path) -> Path:
    """Panels beside each other, two to a row."""
    from matplotlib import pyplot as plt

    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(6 * columns, 3.6 * rows), squeeze=False, layout="constrained")
    for axis, panel in zip(axes.flat, panels, strict=False):
        _panel(axis, *panel)
    for axis in axes.flat[len(panels) :]:
        axis.set_axis_off()
    figure.suptitle(title, color=INK)
    figure.savefig(target, dpi=110)
    plt.close(figure)
    return target


def _panel(axis: Any, name: str, lines: list[Line], labels: list[str]) -> None:
    """Bars of three phases, and a line of ratios."""
    places = list(range(len(lines)))
    floor = [0.0] * len(lines)
    for phase, colour in PHASES.items():
        heights = [line[f"{phase}, µs"] for line in lines]
        axis.bar(places, heights, bottom=floor, color=colour, label=phase, width=0.6)
        floor = [low + high for low, high in zip(floor, heights, strict=True)]
    axis.set_xticks(places, labels, fontsize=8)
    axis.set_xlabel(name)
    axis.set_ylabel("µs per snapshot")
    ratios = axis.twinx()
    ratios.plot(places, [line["recompute/mbr"] for line in lines], color=INK, marker="o", label="times as fast")
    ratios.set_ylabel("recomputing / boxes")
    ratios.set_ylim(bottom=0)
    handles = [*axis.get_legend_handles_labels()[0], *ratios.get_legend_handles_labels()[0]]
    axis.legend(handles=handles, frameon=False, fontsize=8, ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0))


def main(argv: list[str]) -> int:
    """Draw what a report holds."""
    parser = argparse.ArgumentParser(prog="udom14.figures", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("report", type=Path, help="what `skytide bench snapshots --json` wrote")
    parser.add_argument("folder", type=Path, help="where the pictures go")
    chosen = parser.parse_args(argv)
    for file in draw(json.loads(chosen.report.read_text())["parts"], chosen.folder):
        print(file)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
