"""zhang09c's Figs. 9 to 19 drawn from what `skytide bench filtering` measured.

    python -m benchmarks.papers.zhang09c.figures filtering.json ... folder/

Messages are shares of the naive method's, on a logarithmic scale where methods are far apart. Needs matplotlib.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

Line = dict[str, Any]
COLOURS = {"naive": "#6e7781", "filter": "#0b63ce", "auto": "#1a8f4c", "sampling": "#c79a00", "hybrid": "#d1480c"}
MARKERS = {"naive": "s", "filter": "o", "auto": "D", "sampling": "^", "hybrid": "v"}
INK = "#24292f"
SENT = {
    "up": "uplink / naive",
    "down": "downlink / naive",
    "total": "all messages / naive",
    "CPU, ms": "CPU, ms per timestamp",
}
RIGHT = {"recall": "recall", "precision": "precision"}
SYNTHETIC = {
    "dimensions": ("d", "Fig. 9: columns"),
    "distribution": ("kind", "Fig. 10: distribution"),
    "uncertainty": ("u", "Fig. 11: u"),
    "cardinality": ("records", "Fig. 12: records"),
}
QUALITY = {
    "epsilon": ("epsilon", "Fig. 13: epsilon"),
    "delta": ("delta", "Fig. 14: delta"),
    "theta": ("theta", "Fig. 15: theta"),
}
Panel = tuple[str, str, list[Line]]


def draw(measured: dict[str, list[Line]], folder: Path) -> list[Path]:
    """Draw the figures whose parts were measured; the files."""
    import matplotlib

    matplotlib.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    tcp = measured.get("tcp", [])
    pictures: list[tuple[str, dict[str, str], list[Panel]]] = [
        ("messages", SENT, [(*SYNTHETIC[part], measured[part]) for part in SYNTHETIC if measured.get(part)]),
        ("quality", RIGHT, [(*QUALITY[part], measured[part]) for part in QUALITY if measured.get(part)]),
        ("connections", SENT, _connections(tcp, {"epsilon": "Fig. 16: epsilon", "theta": "Fig. 17: theta"})),
        ("connections-quality", RIGHT, _connections(tcp, {"epsilon": "Fig. 18: epsilon", "delta": "Fig. 19: delta"})),
    ]
    return [_figure(rows, columns, folder / f"filtering-{name}.png") for name, columns, rows in pictures if rows]


def _connections(lines: list[Line], wanted: dict[str, str]) -> list[Panel]:
    """Rows of panels over what was varied; exact methods are the same everywhere."""
    found = []
    for name, title in wanted.items():
        own = [line for line in lines if line["varied"] == name]
        values = dict.fromkeys(line["value"] for line in own)
        exact = [{**line, "value": value} for line in lines if line["varied"] == "-" for value in values]
        if own:
            found.append(("value", title, exact + own))
    return found


def _figure(rows: list[Panel], columns: dict[str, str], target: Path) -> Path:
    """A row of panels for each figure, a column for each measure."""
    from matplotlib import pyplot as plt

    size = (3.4 * len(columns), 2.7 * len(rows) + 0.5)
    figure, axes = plt.subplots(len(rows), len(columns), figsize=size, squeeze=False, layout="constrained")
    for row, (name, title, lines) in zip(axes, rows, strict=True):
        for axis, (measure, label) in zip(row, columns.items(), strict=True):
            _panel(axis, name, measure, lines)
            axis.set_ylabel(label, fontsize=8)
        row[0].set_title(title, loc="left", fontsize=9, color=INK)
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=len(labels), frameon=False, fontsize=8)
    figure.savefig(target, dpi=100)
    plt.close(figure)
    return target


def _panel(axis: Any, name: str, measure: str, lines: list[Line]) -> None:
    """A line for each method."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    places = {value: place for place, value in enumerate(dict.fromkeys(line[name] for line in lines))}
    for method in dict.fromkeys(line["method"] for line in lines):
        own = [line for line in lines if line["method"] == method and line[measure] is not None]
        # Nothing sent does not go on a logarithmic scale.
        shown = [(places[line[name]], line[measure]) for line in own if measure in RIGHT or line[measure] > 0]
        if shown and (measure not in RIGHT or method in ("sampling", "hybrid")):
            axis.plot(
                *zip(*shown, strict=True), color=COLOURS[method], marker=MARKERS[method], ms=4, lw=1.2, label=method
            )
    axis.set_xticks(list(places.values()), [f"{value:,}" if isinstance(value, int) else value for value in places])
    axis.tick_params(labelsize=7)
    axis.grid(color="#e6e9ec", linewidth=0.7)
    axis.spines[["top", "right"]].set_visible(False)
    if measure in RIGHT:
        axis.set_ylim(min(0.6, axis.get_ylim()[0]), 1.01)
    else:
        axis.set_yscale("log")
        axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.yaxis.set_minor_formatter(NullFormatter())


def main(argv: list[str]) -> int:
    """Draw what a report holds."""
    parser = argparse.ArgumentParser(prog="zhang09c.figures", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("reports", type=Path, nargs="+", help="what `skytide bench filtering --json` wrote")
    parser.add_argument("folder", type=Path, help="where the pictures go")
    chosen = parser.parse_args(argv)
    measured: dict[str, list[Line]] = {}
    for report in chosen.reports:
        measured |= json.loads(report.read_text())["parts"]
    print(*draw(measured, chosen.folder), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
