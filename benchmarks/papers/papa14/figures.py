"""papa14's Figs. 5 to 7 drawn from what `skytide bench fragmented` measured.

    python -m benchmarks.papers.papa14.figures fragmented.json ... folder/

Messages and bytes are shares of those of telling everything, on a logarithmic scale. Needs matplotlib.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

Line = dict[str, Any]
COLOURS = {"pivot": "#0b63ce", "direct": "#d1480c", "auto": "#1a8f4c"}
MARKERS = {"pivot": "o", "direct": "^", "auto": "D"}
INK = "#24292f"
STYLES = {"C": ":", "I": "--", "A": "-"}
PANELS = {
    "change": ("change", "Fig. 6a: maxRC"),
    "sites": ("sites", "Fig. 6b: sites"),
    "objects": ("objects", "Fig. 6c: objects"),
    "functions": ("functions", "Fig. 7a: functions"),
    "types": ("type", "Fig. 7b: a column beside"),
}
MEASURES = {"messages": "messages / central", "bytes": "bytes / central"}
ALONG = {1: "messages / central", 2: "bytes / central", 3: "bytes with the beginning / central"}
LEAST = 1e-7
"""Nothing sent does not go on a logarithmic scale; it is drawn here."""


def draw(measured: dict[str, list[Line]], folder: Path) -> list[Path]:
    """Draw the figures whose parts were measured; the files."""
    import matplotlib

    matplotlib.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    if measured.get("correlation"):
        found.append(_along(measured["correlation"], folder / "fragmented-along.png"))
    there = [part for part in PANELS if measured.get(part)]
    if there:
        found.append(_varied({part: measured[part] for part in there}, folder / "fragmented-varied.png"))
    return found


def _along(lines: list[Line], target: Path) -> Path:
    """Fig. 5: costs along the stream, a line for each kind of data and method."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, len(ALONG), figsize=(12, 3.8), layout="constrained")
    for axis, (place, label) in zip(axes, ALONG.items(), strict=True):
        for line in lines:
            points = [(mark[0] / 1e6, max(LEAST, mark[place])) for mark in line["along"]]
            axis.plot(
                *zip(*points, strict=True),
                color=COLOURS[line["method"]],
                linestyle=STYLES[line["kind"]],
                lw=1.3,
                label=f"{line['method']}, {line['kind']}",
            )
        _dressed(axis, label)
        axis.set_xlabel("million updates", fontsize=8)
    _legend(figure, axes[0])
    figure.savefig(target, dpi=100)
    plt.close(figure)
    return target


def _varied(parts: dict[str, list[Line]], target: Path) -> Path:
    """Figs. 6 and 7: a column of panels for each part."""
    from matplotlib import pyplot as plt

    size = (3.0 * len(parts) + 0.6, 5.6)
    figure, axes = plt.subplots(len(MEASURES), len(parts), figsize=size, squeeze=False, layout="constrained")
    for column, (part, lines) in enumerate(parts.items()):
        name, title = PANELS[part]
        places = {value: place for place, value in enumerate(dict.fromkeys(line[name] for line in lines))}
        for axis, (measure, label) in zip(axes[:, column], MEASURES.items(), strict=True):
            for method in dict.fromkeys(line["method"] for line in lines):
                points = [(places[one[name]], max(LEAST, one[measure])) for one in lines if one["method"] == method]
                axis.plot(
                    *zip(*points, strict=True),
                    color=COLOURS[method],
                    marker=MARKERS[method],
                    ms=4,
                    lw=1.2,
                    label=method,
                )
            axis.set_xticks(list(places.values()), [f"{one:,}" if isinstance(one, int) else one for one in places])
            _dressed(axis, label if column == 0 else "")
        axes[0][column].set_title(title, loc="left", fontsize=9, color=INK)
    _legend(figure, axes[0][0])
    figure.savefig(target, dpi=100)
    plt.close(figure)
    return target


def _dressed(axis: Any, label: str) -> None:
    axis.set_yscale("log")
    axis.set_ylabel(label, fontsize=8)
    axis.tick_params(labelsize=7)
    axis.grid(color="#e6e9ec", linewidth=0.7)
    axis.spines[["top", "right"]].set_visible(False)


def _legend(figure: Any, axis: Any) -> None:
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=min(9, len(labels)), frameon=False, fontsize=8)


def main(argv: list[str]) -> int:
    """Draw what reports hold."""
    parser = argparse.ArgumentParser(prog="papa14.figures", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("reports", type=Path, nargs="+", help="what `skytide bench fragmented --json` wrote")
    parser.add_argument("folder", type=Path, help="where the pictures go")
    chosen = parser.parse_args(argv)
    measured: dict[str, list[Line]] = {}
    for report in chosen.reports:
        for part, lines in json.loads(report.read_text())["parts"].items():  # one report may hold one method only
            measured.setdefault(part, []).extend(lines)
    print(*draw(measured, chosen.folder), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
