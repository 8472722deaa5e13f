"""The skyline drawn against the rest, in two or three columns. Needs matplotlib (`pip install 'skytide[plot]'`).

Of the rest a sample is drawn, 20,000 rows; rows of the skyline are all drawn. The staircase, the border of what the
skyline dominates, is drawn where the two columns of the picture are the whole preference.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from skytide.errors import MissingDependencyError, OptionError
from skytide.model import Floats, Preference

EXTENSIONS = (".png", ".svg", ".pdf")
SAMPLE_ROWS = 20_000
MOST_COLOURS = 10
_INK, _REST, _OTHER = "#24292f", "#b8c0c8", "#6e7781"
_COLOURS = (
    "#0b63ce",
    "#d1480c",
    "#1a8f4c",
    "#9b3fb5",
    "#c79a00",
    "#0097a7",
    "#c2185b",
    "#6d4c41",
    "#5566cc",
    "#7a9a01",
)
Labels = npt.NDArray[np.object_]


class Sample:
    """A uniform sample of rows that pass in chunks: each row draws a number, and the smallest numbers stay.

    >>> sample = Sample(2, size=3)
    >>> sample.add(np.arange(10.0).reshape(5, 2)); sample.rows.shape, sample.seen
    ((3, 2), 5)
    """

    def __init__(self, dimensions: int, size: int = SAMPLE_ROWS, seed: int = 0) -> None:
        self._random = np.random.default_rng(seed)
        self._size = size
        self._keys = np.empty(0)
        self.rows: Floats = np.empty((0, dimensions))
        self.seen = 0

    def add(self, rows: Floats) -> None:
        """Let rows pass. O(rows)."""
        self.seen += len(rows)
        keys = np.concatenate([self._keys, self._random.random(len(rows))])
        together = np.concatenate([self.rows, rows])
        if len(keys) > self._size:
            kept = np.argpartition(keys, self._size)[: self._size]
            keys, together = keys[kept], together[kept]
        self._keys, self.rows = keys, together


def check_plot(path: str, columns: tuple[str, ...]) -> None:
    """An error where the picture cannot be drawn: unknown extension, no such folder, not two or three columns."""
    target = Path(path)
    if target.suffix.lower() not in EXTENSIONS:
        raise OptionError("the plot's extension is not known", file=path, remedy="use .png, .svg or .pdf")
    if not target.parent.is_dir():
        raise OptionError("the plot's folder does not exist", file=path, remedy="make the folder first")
    if len(set(columns)) != len(columns) or len(columns) not in (2, 3):
        raise OptionError(
            "is not a choice of two or three columns to draw", value=",".join(columns), remedy="name two or three"
        )
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingDependencyError("a plot needs matplotlib", remedy="pip install 'skytide[plot]'") from None


def draw_skyline(
    path: str | Path,
    columns: tuple[str, ...],
    preference: Preference,
    rest: Sample,
    inside: Floats,
    groups: list[str] | None = None,
    title: str | None = None,
) -> None:
    """Write the picture. `inside` has the skyline's values in `columns`; `groups` names the group of each of them."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.6, 5.8), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot(projection="3d" if len(columns) == 3 else None)
    labels = np.array(groups if groups is not None else ["skyline"] * len(inside), dtype=object)
    size = len(inside)
    drawn = np.isfinite(inside).all(axis=1)
    inside, labels = inside[drawn], labels[drawn]
    behind = rest.rows[np.isfinite(rest.rows).all(axis=1)]
    if len(columns) == 3:
        _solid(axes, columns, preference, behind, inside, labels)
    else:
        _flat(axes, columns, preference, behind, inside, labels)
    for name, label in zip("xyz", columns, strict=False):
        getattr(axes, f"set_{name}label")(_axis_label(label, preference), color=_INK, labelpad=8)
    axes.set_title(
        title or f"{size:,} of {rest.seen:,} rows are in the skyline", loc="left", color=_INK, fontsize=13, pad=12
    )
    if len(behind) or len(inside):
        legend = figure.legend(
            loc="outside right upper" if groups is not None else "outside lower right",
            frameon=False,
            ncols=1 if groups is not None else 2,
            labelcolor=_INK,
        )
        for handle in filter(None, legend.legend_handles):
            handle.set_alpha(1)
    metadata = {"Date": None} if Path(path).suffix.lower() == ".svg" else {}
    figure.savefig(path, dpi=160, metadata=metadata or None)


def _axis_label(column: str, preference: Preference) -> str:
    if column in preference.minimize:
        return f"{column} (lower is better)"
    return f"{column} (higher is better)" if column in preference.maximize else column


def _colours(labels: Labels) -> dict[str, tuple[str, list[str]]]:
    """What the legend says: a colour and the groups it stands for. The ten groups with most rows have their own."""
    counts = Counter(labels.tolist())
    ordered = sorted(counts, key=lambda label: (-counts[label], str(label)))
    own = ordered if len(ordered) <= MOST_COLOURS else ordered[: MOST_COLOURS - 1]
    legend = {str(label): (_COLOURS[place], [label]) for place, label in enumerate(sorted(own, key=str))}
    if len(own) < len(ordered):
        legend[f"{len(ordered) - len(own)} other groups"] = (_OTHER, ordered[len(own) :])
    return legend


def _flat(
    axes: Any, columns: tuple[str, ...], preference: Preference, behind: Floats, inside: Floats, labels: Labels
) -> None:
    axes.scatter(behind[:, 0], behind[:, 1], s=7, color=_REST, alpha=0.55, linewidths=0, label="the rest", zorder=1)
    _limits(axes, np.concatenate([behind, inside]))
    whole = set(columns) == set(preference.names)
    for label, (colour, groups) in _colours(labels).items():
        chosen = np.isin(labels, groups)
        axes.scatter(
            inside[chosen, 0],
            inside[chosen, 1],
            s=34,
            color=colour,
            edgecolors="white",
            linewidths=0.7,
            label=label,
            zorder=3,
        )
        for group in groups if whole else []:
            _staircase(axes, columns, preference, inside[labels == group], colour)
    axes.grid(color="#e6e9ec", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#8c959f")
    axes.tick_params(colors=_INK)


def _limits(axes: Any, points: Floats) -> None:
    if not len(points):
        return
    for setter, values in ((axes.set_xlim, points[:, 0]), (axes.set_ylim, points[:, 1])):
        low, high = float(values.min()), float(values.max())
        margin = 0.04 * (high - low) or 0.5
        if np.isfinite(margin):
            setter(low - margin, high + margin)


def _staircase(axes: Any, columns: tuple[str, ...], preference: Preference, points: Floats, colour: str) -> None:
    """The border of what the points dominate, out to the edge of the picture."""
    signs = np.array([-1.0 if name in preference.maximize else 1.0 for name in columns])
    oriented = np.unique(points * signs, axis=0)
    worst = np.array([max(np.array(limits) * sign) for limits, sign in zip(_box(axes), signs, strict=True)])
    xs = np.concatenate([np.repeat(oriented[:, 0], 2), worst[:1]])
    ys = np.concatenate([worst[1:], np.repeat(oriented[:, 1], 2)])
    corners = np.column_stack([xs, ys]) * signs
    axes.plot(corners[:, 0], corners[:, 1], color=colour, linewidth=1.3, alpha=0.75, zorder=2)


def _box(axes: Any) -> tuple[tuple[float, float], tuple[float, float]]:
    return axes.get_xlim(), axes.get_ylim()


def _solid(
    axes: Any, columns: tuple[str, ...], preference: Preference, behind: Floats, inside: Floats, labels: Labels
) -> None:
    # Looked at from the corner where everything is best, so that the skyline is in front.
    near_x, near_y = (1 if name in preference.maximize else -1 for name in columns[:2])
    axes.view_init(elev=26, azim=float(np.degrees(np.arctan2(near_y, near_x))) + 12)
    axes.computed_zorder = False
    axes.scatter(*behind.T, s=4, color=_REST, alpha=0.25, linewidths=0, label="the rest", depthshade=False, zorder=1)
    for label, (colour, groups) in _colours(labels).items():
        chosen = inside[np.isin(labels, groups)]
        axes.scatter(
            *chosen.T, s=26, color=colour, edgecolors="white", linewidths=0.5, label=label, depthshade=False, zorder=3
        )
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.pane.set_facecolor("#f8f9fa")
        axis.pane.set_edgecolor("#d8dee4")
        axis._axinfo["grid"].update(color="#e1e5e9", linewidth=0.7)
    axes.tick_params(colors=_INK)
    axes.set_box_aspect(None, zoom=1.0)
