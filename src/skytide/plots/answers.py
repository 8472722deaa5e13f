"""An answer drawn against the rest: in one, two or three columns, or all columns side by side.

Rows of the answer are all drawn, of the rest a sample. The staircase, the border of what the answer dominates, is drawn
where the two columns of the picture are the whole preference. Rows with infinite values are left out, and counted;
side by side they touch the end of the axis.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skytide.plots._style import (
    BLUE,
    INK,
    LINE,
    REST,
    SOFT,
    Floats,
    Goals,
    Labels,
    axis_label,
    finite,
    legend_colours,
    limits,
    plain_axes,
    some,
)
from skytide.plots.sample import Sample

MOST_LINES = 400
MISSING = -0.08
"""Where values that are missing are drawn on an axis from 0, the worst, to 1, the best."""


@dataclass(frozen=True)
class Answer:
    """What is drawn: the answer's values in `columns`, their groups or probabilities, and a sample of all rows."""

    goals: Goals
    columns: tuple[str | int, ...]
    inside: Floats
    rest: Sample
    groups: list[str] | None = None
    probabilities: Floats | None = None
    staircase: bool = True
    word: str = "skyline"
    labels: Labels = field(init=False)

    def __post_init__(self) -> None:
        named = self.groups if self.groups is not None else [self.word] * len(self.inside)
        labels: Labels = np.empty(len(named), dtype=object)
        labels[:] = named
        object.__setattr__(self, "labels", labels)

    @property
    def solid(self) -> bool:
        """Whether it is drawn in space."""
        return len(self.columns) == 3


def draw_answer(axes: Any, answer: Answer) -> Any:
    """Draw the answer; axes for three columns must be in space. What can be shown by colour bar, or None."""
    shown = {1: _strip, 2: _flat, 3: _solid}[len(answer.columns)](axes, answer)
    for name, label in zip("xyz", answer.columns, strict=False):
        getattr(axes, f"set_{name}label")(axis_label(label, answer.goals), color=INK, labelpad=8 if answer.solid else 4)
    left_out = int((~finite(answer.inside)).sum())
    if left_out:
        note = f"{some(left_out)} of the {answer.word} with infinite or missing values not drawn"
        place = axes.text2D if answer.solid else axes.text
        place(0.995, 0.985, note, transform=axes.transAxes, ha="right", va="top", fontsize=8, color=SOFT)
    return shown


def headline(answer: Answer) -> str:
    """How many of how many."""
    size = len(answer.inside)
    return f"{size:,} of {answer.rest.seen:,} rows {'is' if size == 1 else 'are'} in the {answer.word}"


def legend(figure: Any, answer: Answer, drawn: Any = None) -> None:
    """The groups beside the picture, or the bar of probabilities."""
    if drawn is not None:
        bar = figure.colorbar(drawn, ax=figure.axes[:1], pad=0.01, aspect=28)
        bar.set_label("probability to be in the skyline", color=INK)
        bar.outline.set_visible(False)
        return
    if not figure.axes[0].get_legend_handles_labels()[0]:
        return
    outside = answer.groups is not None
    found = figure.legend(
        *figure.axes[0].get_legend_handles_labels(),
        loc="outside right upper" if outside else "outside lower right",
        frameon=False,
        ncols=1 if outside else 3,
        labelcolor=INK,
        fontsize=9,
    )
    for handle in filter(None, found.legend_handles):
        handle.set_alpha(1)
        if hasattr(handle, "set_sizes"):
            handle.set_sizes([30])


def draw_rows(axes: Any, columns: tuple[str | int, ...], rows: Floats) -> None:
    """Rows without an answer, in up to three columns; axes for three must be in space."""
    shown = rows[finite(rows)]
    if len(columns) == 1:
        axes.hist(shown[:, 0], bins=min(80, max(5, len(shown) // 20)), color=BLUE, alpha=0.8)
        axes.set_ylabel("rows", color=INK)
    else:
        space: dict[str, Any] = {"depthshade": False} if len(columns) == 3 else {}
        axes.scatter(*shown.T, s=14 if len(shown) < 1500 else 5, color=BLUE, alpha=0.45, linewidths=0, **space)
    for name, label in zip("xyz", columns, strict=False):
        getattr(axes, f"set_{name}label")(str(label), color=INK)
    if len(columns) < 3:
        plain_axes(axes)


# -- one, two, three columns -------------------------------------------------------------------------------------------


def _strip(axes: Any, answer: Answer) -> None:
    behind = answer.rest.rows[finite(answer.rest.rows)][:, 0]
    inside = answer.inside[finite(answer.inside)][:, 0]
    if len(behind):
        axes.hist(behind, bins=min(80, max(5, len(behind) // 20)), color=REST, label="all rows")
    for at, value in enumerate(np.unique(inside).tolist()):
        axes.axvline(value, color=BLUE, linewidth=1.8, label=answer.word if not at else None)
    axes.set_ylabel("rows", color=INK)
    plain_axes(axes, "y")


def _flat(axes: Any, answer: Answer) -> Any:
    drawn = finite(answer.inside)
    inside, labels = answer.inside[drawn], answer.labels[drawn]
    behind = answer.rest.rows[finite(answer.rest.rows)]
    few = len(behind) < 1500
    style = {"s": 18 if few else 7, "alpha": 0.9 if few else 0.55, "linewidths": 0}
    axes.scatter(behind[:, 0], behind[:, 1], color=REST, label="the rest", zorder=1, **style)
    limits(axes, np.concatenate([behind, inside]))
    plain_axes(axes)
    if answer.probabilities is not None:
        return _probable(axes, inside, answer.probabilities[drawn])
    whole = answer.staircase and {str(name) for name in answer.columns} == {str(name) for name in answer.goals.names}
    for label, (colour, marker, groups) in legend_colours(labels).items():
        chosen = np.isin(labels, groups)
        axes.scatter(
            inside[chosen, 0],
            inside[chosen, 1],
            s=36,
            color=colour,
            marker=marker,
            edgecolors="white",
            linewidths=0.7,
            label=label,
            zorder=3,
        )
        for group in groups if whole else []:
            _staircase(axes, answer, inside[labels == group], colour)
    return None


def _probable(axes: Any, inside: Floats, probabilities: Floats) -> Any:
    order = np.argsort(probabilities)
    return axes.scatter(
        *inside[order].T,
        c=probabilities[order],
        cmap="viridis_r",
        vmin=0.0,
        vmax=1.0,
        s=44,
        edgecolors=INK,
        linewidths=0.5,
        zorder=3,
    )


def _staircase(axes: Any, answer: Answer, points: Floats, colour: str) -> None:
    """The border of what the points dominate, out to the edge of the picture."""
    most = {str(name) for name in answer.goals.maximize}
    signs = np.array([-1.0 if str(name) in most else 1.0 for name in answer.columns])
    oriented = np.unique(points * signs, axis=0)
    box = axes.get_xlim(), axes.get_ylim()
    worst = np.array([max(np.array(ends) * sign) for ends, sign in zip(box, signs, strict=True)])
    xs = np.concatenate([np.repeat(oriented[:, 0], 2), worst[:1]])
    ys = np.concatenate([worst[1:], np.repeat(oriented[:, 1], 2)])
    corners = np.column_stack([xs, ys]) * signs
    axes.plot(corners[:, 0], corners[:, 1], color=colour, linewidth=1.3, alpha=0.75, zorder=2)


def _solid(axes: Any, answer: Answer) -> Any:
    drawn = finite(answer.inside)
    inside, labels = answer.inside[drawn], answer.labels[drawn]
    behind = answer.rest.rows[finite(answer.rest.rows)]
    # Looked at from the corner where everything is best, so that the skyline is in front.
    most = {str(name) for name in answer.goals.maximize}
    near_x, near_y = (1 if str(name) in most else -1 for name in answer.columns[:2])
    axes.view_init(elev=26, azim=float(np.degrees(np.arctan2(near_y, near_x))) + 12)
    axes.computed_zorder = False
    axes.scatter(*behind.T, s=4, color=REST, alpha=0.25, linewidths=0, label="the rest", depthshade=False, zorder=1)
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.pane.set_facecolor("#f8f9fa")
        axis.pane.set_edgecolor("#d8dee4")
        axis._axinfo["grid"].update(color="#e1e5e9", linewidth=0.7)
    axes.tick_params(colors=INK, labelsize=9)
    axes.set_box_aspect(None, zoom=0.96)
    style = {"s": 28, "linewidths": 0.5, "depthshade": False, "zorder": 3}
    if answer.probabilities is not None:
        chances = answer.probabilities[drawn]
        return axes.scatter(*inside.T, c=chances, cmap="viridis_r", vmin=0.0, vmax=1.0, edgecolors=INK, **style)
    for label, (colour, marker, groups) in legend_colours(labels).items():
        chosen = inside[np.isin(labels, groups)]
        axes.scatter(*chosen.T, color=colour, marker=marker, edgecolors="white", label=label, **style)
    return None


# -- all columns side by side ------------------------------------------------------------------------------------------


class Scales:
    """Columns as axes from 0, the worst value that was seen, to 1, the best one; infinity is a little beyond."""

    def __init__(self, columns: tuple[str | int, ...], goals: Goals, values: Floats) -> None:
        most = {str(name) for name in goals.maximize}
        self._signs = np.array([1.0 if str(name) in most else -1.0 for name in columns])
        oriented = np.where(np.isfinite(values), values * self._signs / 2, np.nan)  # halved: extremes would overflow
        empty = np.isnan(oriented).all(axis=0) if len(oriented) else np.ones(len(columns), bool)
        filled = np.where(empty, 0.0, oriented) if len(oriented) else np.zeros((1, len(columns)))
        self._low, self._high = np.nanmin(filled, axis=0), np.nanmax(filled, axis=0)

    def __call__(self, values: Floats) -> Floats:
        """Values as places on the axes."""
        width = self._high - self._low
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            places = (values * self._signs / 2 - self._low) / np.where(width > 0, width, 1.0)
        places = np.where(width > 0, places, np.where(np.isnan(values), np.nan, 0.5))
        endless = np.where(values * self._signs > 0, 1.05, -0.05)
        return np.where(np.isnan(values), MISSING, np.where(np.isinf(values), endless, places))

    def ends(self) -> list[tuple[float, float]]:
        """The worst and the best value of each column."""
        return list(zip((2 * self._low * self._signs).tolist(), (2 * self._high * self._signs).tolist(), strict=True))


def draw_parallel(axes: Any, answer: Answer) -> Any:
    """Every row a line over all columns, the best values at the top. What can be shown by colour bar, or None."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    behind = answer.rest.rows[:MOST_LINES]
    scales = Scales(answer.columns, answer.goals, np.concatenate([answer.rest.rows, answer.inside]))
    side_by_side(axes, answer.columns, answer.goals, scales)
    if answer.rest.seen > len(answer.inside):
        lines(axes, scales(behind), color=REST, alpha=0.35, linewidth=0.6, zorder=1, label="some of the rest")
    width = 1.6 if len(answer.inside) <= 60 else 0.9
    if answer.probabilities is not None:
        shown = ScalarMappable(Normalize(0.0, 1.0), "viridis_r")
        lines(axes, scales(answer.inside), colors=shown.to_rgba(answer.probabilities), linewidth=width, zorder=3)
        return shown
    for label, (colour, _, groups) in legend_colours(answer.labels).items():
        chosen = scales(answer.inside[np.isin(answer.labels, groups)])
        lines(axes, chosen, color=colour, alpha=0.8, linewidth=width, zorder=3, label=label)
    return None


def side_by_side(axes: Any, columns: tuple[str | int, ...], goals: Goals, scales: Scales) -> None:
    """An upright axis for each column, with its worst and its best value."""
    least = {str(name) for name in goals.minimize}
    axes.set_xlim(-0.35, len(columns) - 0.65)
    axes.set_ylim(-0.14, 1.1)
    axes.set_yticks([])
    ticks = [f"{name}\n{'lower' if str(name) in least else 'higher'} is better" for name in columns]
    axes.set_xticks(range(len(columns)), ticks, fontsize=9, color=INK)
    axes.spines[["top", "right", "left", "bottom"]].set_visible(False)
    axes.tick_params(length=0)
    for at, (worst, best) in enumerate(scales.ends()):
        axes.plot([at, at], [0, 1], color="#8c959f", linewidth=1, zorder=2)
        box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.6}
        for place, value, align in ((1.02, best, "bottom"), (-0.02, worst, "top")):
            text = axes.text(at, place, f"{value:.6g}", ha="center", va=align, fontsize=8, color=SOFT, zorder=4)
            text.set_bbox(box)
    axes.axhline(0, color=LINE, linewidth=0.8, zorder=0)


def lines(axes: Any, places: Floats, *, label: str | None = None, **style: Any) -> None:
    """Rows as lines over the axes."""
    from matplotlib.collections import LineCollection
    from matplotlib.lines import Line2D

    if not len(places):
        return
    across = np.broadcast_to(np.arange(places.shape[1], dtype=float), places.shape)
    axes.add_collection(LineCollection(list(np.stack([across, places], axis=2)), **style))
    if label is not None:
        dashes = style.get("linestyle", "-")
        axes.add_line(Line2D([], [], color=style["color"], linewidth=2, linestyle=dashes, label=label))
