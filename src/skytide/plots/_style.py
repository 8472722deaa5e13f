"""What all pictures share: colours, figures, axes, files.

Colours are those of Okabe and Ito, which people with any kind of colour blindness can tell apart; groups have markers
of their own as well. A figure belongs to whoever asked for it: pyplot, and what it remembers, is never used.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from skytide.errors import MissingDependencyError, OptionError, OutputError

EXTENSIONS = (".png", ".svg", ".pdf")
INK, SOFT, LINE, REST, OTHER = "#24292f", "#57606a", "#e6e9ec", "#b8c0c8", "#6e7781"
BLUE, ORANGE, GREEN, RED = "#0072b2", "#e69f00", "#009e73", "#d55e00"
COLOURS = (BLUE, RED, GREEN, "#cc79a7", ORANGE, "#56b4e9", "#5a3d8a", "#8c6d31", "#1b1b1b", "#7a9a01")
MARKERS = "osD^vP*Xph"
MOST_COLOURS = len(COLOURS)
DRAWABLE = 1e150
"""What is larger is not drawn: its distance to the other side may be no number."""

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.object_]


class Goals(Protocol):
    """What pictures need to know of a preference."""

    @property
    def minimize(self) -> Sequence[str | int]:
        """The columns of which less is better."""
        ...

    @property
    def maximize(self) -> Sequence[str | int]:
        """The columns of which more is better."""
        ...

    @property
    def names(self) -> tuple[str | int, ...]:
        """Both, in the order of a matrix."""
        ...


def need_matplotlib() -> None:
    """An error where nothing can be drawn."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingDependencyError("a plot needs matplotlib", remedy="pip install 'skytide[plot]'") from None


def check_file(path: str | Path) -> None:
    """An error where the picture could not be written: an unknown extension, or no such folder."""
    target = Path(path)
    if target.suffix.lower() not in EXTENSIONS:
        raise OptionError("the plot's extension is not known", file=str(path), remedy="use .png, .svg or .pdf")
    try:
        there, folder = target.parent.is_dir(), target.is_dir()
    except OSError as error:  # a name that is too long
        raise _unwritable(path, error) from None
    if not there:
        raise OptionError("the plot's folder does not exist", file=str(path), remedy="make the folder first")
    if folder:
        raise OptionError("the plot's file is a folder", file=str(path), remedy="name a file")


def _unwritable(path: str | Path, error: OSError) -> OutputError:
    reason = f"the plot cannot be written there: {error.strerror or error}"
    return OutputError(reason, file=str(path), remedy="choose another file")


def new_figure(width: float = 8.6, height: float = 5.8) -> Any:
    """An empty figure in inches, with a canvas of its own."""
    need_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def finished(figure: Any, path: str | Path | None) -> Any:
    """The figure, after it was written where a path is given."""
    from matplotlib.text import Text

    for text in figure.findobj(Text):  # names of the data may have dollars in them, and are no formulas
        text.set_parse_math(False)
    if path is not None:
        check_file(path)
        written = io.BytesIO()
        save(figure, written, Path(path).suffix)
        try:
            Path(path).write_bytes(written.getvalue())
        except OSError as error:
            raise _unwritable(path, error) from None
    return figure


def save(figure: Any, target: Any, extension: str) -> None:
    """Write a figure: the same figure gives the same bytes."""
    kind = extension.lower().lstrip(".")
    dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    figure.savefig(target, dpi=160, format=kind, metadata=dated.get(kind))


def finite(values: Floats) -> npt.NDArray[np.bool_]:
    """Which rows can be drawn."""
    with np.errstate(invalid="ignore"):
        return np.asarray((np.abs(values) <= DRAWABLE).all(axis=1))


def plain_axes(axes: Any, grid: str = "both") -> None:
    """Quiet axes: a light grid behind, no box."""
    axes.grid(color=LINE, linewidth=0.8, axis=grid)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#8c959f")
    axes.tick_params(colors=INK, labelsize=9)


def title(axes: Any, text: str, *, size: float = 13) -> None:
    """A title at the left."""
    axes.set_title(text, loc="left", color=INK, fontsize=size, pad=10)


def axis_label(column: str | int, goals: Goals) -> str:
    """The column, and which way is better."""
    if column in goals.minimize or str(column) in map(str, goals.minimize):
        return f"{column} (lower is better)"
    return f"{column} (higher is better)" if str(column) in map(str, goals.maximize) else str(column)


def legend_colours(labels: Labels) -> dict[str, tuple[str, str, list[str]]]:
    """What a legend says: colour, marker and the groups that it stands for. The groups with most rows have their own.

    >>> legend_colours(np.array(["b", "a", "b"], dtype=object))["b"]
    ('#d55e00', 's', ['b'])
    """
    counts = Counter(labels.tolist())
    ordered = sorted(counts, key=lambda label: (-counts[label], str(label)))
    own = ordered if len(ordered) <= MOST_COLOURS else ordered[: MOST_COLOURS - 1]
    legend = {str(label): (COLOURS[at], MARKERS[at], [label]) for at, label in enumerate(sorted(own, key=str))}
    if len(own) < len(ordered):
        legend[f"{len(ordered) - len(own)} other groups"] = (OTHER, "o", ordered[len(own) :])
    return legend


def some(count: int, word: str = "row") -> str:
    """A number of things in words: `1 row`, `2,000 rows`."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def limits(axes: Any, points: Floats) -> None:
    """Room around the points; all of them can be drawn."""
    if not len(points):
        return
    for setter, values in ((axes.set_xlim, points[:, 0]), (axes.set_ylim, points[:, 1])):
        low, high = float(values.min()), float(values.max())
        margin = 0.04 * (high - low) or abs(high) * 0.05 or 0.5
        setter(low - margin, high + margin)
