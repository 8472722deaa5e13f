"""Figures as small SVG texts: a panel for each part, a line for each method. Needs matplotlib."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import Any

from benchmarks.papers.registry import Figure, Panel, Row, Rows, values

INK, PALE = "#24292f", "#e6e9ec"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#5a3d8a", "#8c6d31")
MARKERS = "osD^vPX*"
MANY = 60
"""Lines of more points than this have no markers."""
FEW = 8
"""So many values each have a mark of their own on the axis."""


def svg(figure: Figure, rows: Rows) -> str:
    """The figure as an SVG without ids that another one has, and without the addresses of others."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure as Sheet

    panels = [panel for panel in figure.panels if panel.rows(rows)]
    across = min(figure.across, len(panels)) or 1
    down = -(-len(panels) // across) or 1
    settings = {"svg.fonttype": "none", "svg.hashsalt": figure.key, "font.size": 8, "font.family": "sans-serif"}
    with rc_context(settings):
        wide, high = 4.2 * across, 2.6 * down
        sheet = Sheet(figsize=(wide, high), facecolor="white")
        FigureCanvasSVG(sheet)
        axes = sheet.subplots(down, across, squeeze=False)
        sheet.subplots_adjust(0.65 / wide, 0.42 / high, 1 - 0.12 / wide, 1 - 0.22 / high, 0.22, 0.32)
        for axis, panel in zip(axes.flat, panels, strict=False):
            _panel(axis, panel, panel.rows(rows))
        for axis in axes.flat[len(panels) :]:
            axis.set_axis_off()
        text = io.StringIO()
        sheet.savefig(text, format="svg", metadata={"Date": None})
    return _small(text.getvalue())


def _panel(axis: Any, panel: Panel, rows: list[Row]) -> None:
    axis.set_title(panel.title, loc="left", fontsize=8, color=INK)
    axis.set_xlabel(panel.label or panel.x)
    axis.set_ylabel(panel.y)
    axis.grid(color=PALE, linewidth=0.6)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
    if panel.bars:
        _stacked(axis, panel, rows)
    else:
        _lines(axis, panel, rows)


def _lines(axis: Any, panel: Panel, rows: list[Row]) -> None:
    """A line for each of the series."""
    at = values(rows, panel.x)
    numbers = all(isinstance(value, int | float) for value in at)
    high = "y" in panel.log and any((row.get(panel.y) or 0) > 0 for row in rows)
    several = values(rows, panel.series) if panel.series in rows[0] else [None]
    for turn, name in enumerate(several):
        own = rows if name is None else [row for row in rows if row[panel.series] == name]
        points = _averaged(own, panel.x, panel.y)
        # Nothing does not go on a logarithmic scale: it is in the table alone.
        shown = [(x, y) for x, y in points if y > 0 or (y == y and not high)]
        if not shown:
            continue
        xs, ys = zip(*shown, strict=True)
        places: Sequence[Any] = xs if numbers else [at.index(x) for x in xs]
        look = {"color": COLOURS[turn % len(COLOURS)], "lw": 1.1, "label": name}
        if len(xs) <= MANY:
            look |= {"marker": MARKERS[turn % len(MARKERS)], "ms": 3.5}
        axis.plot(places, ys, **look)
    if "x" in panel.log and numbers:
        axis.set_xscale("log")
    if high:
        _logarithmic(axis)
    elif axis.get_ylim()[0] > 0:
        axis.set_ylim(bottom=0)
    if not numbers or len(at) <= FEW:
        axis.set_xticks(at if numbers else range(len(at)), [_word(value) for value in at])
    axis.minorticks_off()
    if len(several) > 1:
        axis.legend(frameon=False, fontsize=7)


def _averaged(rows: list[Row], x: str, y: str) -> list[tuple[Any, float]]:
    """The mean of a column for each value of another, in their order."""
    found: dict[Any, list[float]] = {}
    for row in rows:
        if row.get(y) is not None:
            found.setdefault(row[x], []).append(row[y])
    return [(at, sum(several) / len(several)) for at, several in found.items()]


def _logarithmic(axis: Any) -> None:
    """A scale with plain numbers, and with more than one of them where the values are near each other."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    axis.set_yscale("log")
    low, high = axis.get_ylim()
    axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 200 * low else (1.0,)))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"))


def _stacked(axis: Any, panel: Panel, rows: list[Row]) -> None:
    """Bars of several columns on top of each other."""
    at = values(rows, panel.x)
    floor = [0.0] * len(at)
    for turn, name in enumerate(panel.stacked):
        heights = [height for _, height in _averaged(rows, panel.x, name)]
        axis.bar(range(len(at)), heights, bottom=floor, color=COLOURS[turn], width=0.6, label=name)
        floor = [low + high for low, high in zip(floor, heights, strict=True)]
    axis.set_xticks(range(len(at)), [_word(value) for value in at])
    axis.legend(frameon=False, fontsize=7)


def _word(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _small(text: str) -> str:
    """Without what only programs read, and with as many decimals as can be seen."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->\s*", "", text, flags=re.DOTALL)
    text = re.sub(r"<[^>]*>", lambda tag: re.sub(r"(\d+\.\d)\d+", r"\1", tag[0]), text)
    text = re.sub(r"font-family: [^;\"]*sans-serif;? ?", "", text)
    text = re.sub(r' id="[a-z0-9.]+_\d+"', "", text)
    text = text.replace("</style>", "text{font-family: sans-serif}</style>", 1)
    return re.sub(r"\s*\n\s*", "\n", text.replace(" \nL", "L"))
