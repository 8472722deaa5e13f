"""A row, who dominates it, and where the smallest change would put it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from skytide.plots._style import (
    BLUE,
    GREEN,
    INK,
    LINE,
    RED,
    REST,
    Floats,
    Goals,
    axis_label,
    finished,
    finite,
    limits,
    new_figure,
    plain_axes,
    some,
    title,
)
from skytide.plots.answers import Scales, lines, side_by_side
from skytide.plots.sample import Sample

MOST_DOMINATORS = 200


@dataclass(frozen=True)
class Explained:
    """What is drawn: values in the columns of the preference. `target` is where the row would be, if it is outside."""

    goals: Goals
    name: str
    row: Floats
    dominators: Floats
    rest: Sample
    target: Floats | None = None

    @property
    def headline(self) -> str:
        """One line."""
        if not len(self.dominators):
            return f"Row {self.name} is in the skyline"
        verb = "dominates" if len(self.dominators) == 1 else "dominate"
        return f"{some(len(self.dominators))} {verb} row {self.name}"


def explained(found: Explained, path: str | Path | None = None) -> Any:
    """The figure: two columns as a plane, any other number side by side."""
    figure = new_figure()
    axes = figure.add_subplot()
    names = tuple(str(name) for name in found.goals.names)
    shown = np.vstack([found.row[None], found.dominators])
    if len(names) == 2 and finite(shown).all():
        _plane(axes, names, found)
    else:
        _side_by_side(axes, names, found)
    title(axes, found.headline)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", frameon=False, ncols=5, fontsize=9)
    return finished(figure, path)


def _plane(axes: Any, names: tuple[str, ...], found: Explained) -> None:
    from matplotlib.patches import Rectangle

    behind = found.rest.rows[finite(found.rest.rows)]
    row, target = found.row, found.target
    points = [behind, found.dominators, row[None]]
    if target is not None and finite(target[None]).all():
        points.append(target[None])
    limits(axes, np.vstack(points))
    axes.scatter(*behind.T, s=7, color=REST, alpha=0.55, linewidths=0, label="all rows", zorder=1)
    most = {str(name) for name in found.goals.maximize}
    best = [
        end[1] if name in most else end[0] for name, end in zip(names, (axes.get_xlim(), axes.get_ylim()), strict=True)
    ]
    corner, size = np.minimum(row, best), np.abs(row - np.array(best))
    axes.add_patch(Rectangle(tuple(corner), *size, facecolor=RED, alpha=0.07, linewidth=0, zorder=0, label="better"))
    axes.scatter(
        *found.dominators.T,
        s=38 if len(found.dominators) < 200 else 14,
        color=RED,
        marker="s",
        edgecolors="white",
        linewidths=0.7,
        zorder=3,
        label="dominate it",
    )
    axes.scatter(*row, s=170, color=BLUE, marker="*", edgecolors="white", zorder=5, label=f"row {found.name}")
    if target is not None and len(points) == 4:
        arrow = {"arrowstyle": "-|>", "color": GREEN, "linewidth": 1.6, "shrinkA": 6, "shrinkB": 4}
        axes.annotate("", xy=tuple(target), xytext=tuple(row), arrowprops=arrow, zorder=4)
        axes.scatter(*target, s=46, color=GREEN, marker="D", edgecolors="white", zorder=4, label="the smallest change")
    axes.set_xlabel(axis_label(names[0], found.goals), color=INK)
    axes.set_ylabel(axis_label(names[1], found.goals), color=INK)
    plain_axes(axes)


def _side_by_side(axes: Any, names: tuple[str, ...], found: Explained) -> None:
    everything = [found.rest.rows, found.dominators, found.row[None]]
    scales = Scales(
        names, found.goals, np.vstack(everything if found.target is None else [*everything, found.target[None]])
    )
    side_by_side(axes, names, found.goals, scales)
    lines(axes, scales(found.rest.rows[:300]), color=LINE, linewidth=0.7, zorder=1, label="some of all rows")
    shown = found.dominators[:MOST_DOMINATORS]
    lines(axes, scales(shown), color=RED, alpha=0.55, linewidth=1.1, zorder=2, label="dominate it")
    if found.target is not None:
        place = scales(found.target[None])
        lines(axes, place, color=GREEN, linewidth=2.2, linestyle="--", zorder=4, label="the smallest change")
    lines(axes, scales(found.row[None]), color=BLUE, linewidth=2.4, zorder=3, label=f"row {found.name}")
