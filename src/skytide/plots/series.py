"""How an answer changes over time: its size, and who enters and leaves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from skytide.plots._style import BLUE, COLOURS, GREEN, INK, RED, SOFT, Floats, plain_axes

MOST_POINTS = 3_000
BINS = 90


@dataclass(frozen=True)
class Sizes:
    """The size of an answer after each instant in which it changed, and what entered and left in it.

    >>> found = Sizes.of(np.array([1, 1, 3]), np.array([1, 1, -1]))
    >>> found.times.tolist(), found.sizes.tolist(), found.left.tolist()
    ([1, 3], [2, 1], [0, 1])
    """

    times: npt.NDArray[Any]
    sizes: npt.NDArray[np.int64]
    entered: npt.NDArray[np.int64]
    left: npt.NDArray[np.int64]

    @classmethod
    def of(cls, times: npt.NDArray[Any], signs: npt.NDArray[Any], before: int = 0) -> Sizes:
        """From changes in any order; `before` is the size at the start. O(n log n)."""
        instants, places = np.unique(np.asarray(times), return_inverse=True)
        entered = np.bincount(places[np.asarray(signs) > 0], minlength=len(instants))
        left = np.bincount(places[np.asarray(signs) < 0], minlength=len(instants))
        return cls(instants, before + np.cumsum(entered - left), entered, left)

    def fewer(self, most: int = MOST_POINTS) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """Times and sizes for a line: of many points the largest, the smallest and the last of every stretch."""
        count = len(self.times)
        if count <= most:
            return self.times, self.sizes
        borders = np.linspace(0, count, most // 3 + 1).astype(np.int64)
        kept = {count - 1}
        for start, stop in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
            part = self.sizes[start:stop]
            kept |= {start + int(part.argmin()), start + int(part.argmax()), stop - 1}
        chosen = np.array(sorted(kept))
        return self.times[chosen], self.sizes[chosen]


def draw_sizes(axes: Any, answers: Mapping[str, Sizes], word: str = "skyline") -> None:
    """The size of an answer as steps; of several answers a line for each, named by its key."""
    for at, (label, found) in enumerate(answers.items()):
        times, sizes = found.fewer()
        colour = BLUE if len(answers) == 1 else COLOURS[at % len(COLOURS)]
        axes.step(
            on_axis(times), sizes, where="post", color=colour, linewidth=1.4, label=label if len(answers) > 1 else None
        )
        if len(answers) == 1:
            axes.fill_between(on_axis(times), sizes, step="post", color=colour, alpha=0.12, linewidth=0)
    if len(answers) > 1:
        axes.legend(loc="upper left", frameon=False, fontsize=8, labelcolor=INK, ncols=4)
    axes.set_ylim(bottom=0, top=None if any(len(found.times) for found in answers.values()) else 1)
    axes.set_ylabel(f"rows in the\n{word}", color=INK, fontsize=9)
    axes.yaxis.get_major_locator().set_params(integer=True)
    plain_axes(axes)


def draw_turnover(axes: Any, found: Sizes) -> None:
    """Who enters, upwards, and who leaves, downwards, in stretches of time."""
    if len(found.times):
        starts, width, entered, left = _binned(found)
        axes.bar(starts, entered, width=width, align="edge", color=GREEN, linewidth=0, label="entered")
        axes.bar(starts, -left, width=width, align="edge", color=RED, linewidth=0, label="left")
        axes.legend(
            loc="upper left", bbox_to_anchor=(1.0, 1.05), frameon=False, fontsize=8, labelcolor=INK, borderpad=0
        )
        peak = max(int(entered.max()), int(left.max()), 1)
        axes.set_ylim(-1.15 * peak, 1.15 * peak)
    axes.axhline(0, color=SOFT, linewidth=0.8)
    axes.yaxis.set_major_formatter(lambda value, _: f"{abs(value):,.0f}")
    axes.yaxis.get_major_locator().set_params(integer=True, nbins=4)
    plain_axes(axes, "y")


def _binned(found: Sizes) -> tuple[Floats, float, Floats, Floats]:
    """Times in up to `BINS` stretches of equal length."""
    numbers = on_axis(found.times)
    low, high = float(numbers[0]), float(numbers[-1])
    if not high > low:
        return np.array([low - 0.4]), 0.8, np.asarray(found.entered, np.float64), np.asarray(found.left, np.float64)
    count = min(BINS, max(1, round((high - low) / float(np.diff(numbers).min()))) + 1)
    step = (high - low) / count
    places = np.minimum(((numbers - low) / step).astype(np.int64), count - 1)
    entered, left = (
        np.asarray(np.bincount(places, weights=one, minlength=count), np.float64) for one in (found.entered, found.left)
    )
    return np.asarray(low + step * np.arange(count), np.float64), step, entered, left


def plain_times(times: Any) -> npt.NDArray[Any]:
    """Times as numbers or timestamps of numpy's."""
    found = np.asarray(times)
    return found.astype("datetime64[us]") if found.dtype.kind == "O" else found


def on_axis(times: Any) -> Floats:
    """Times as numbers on an axis: matplotlib's days where they are dates."""
    times = plain_times(times)
    if times.dtype.kind == "M":
        from matplotlib.dates import date2num

        return np.asarray(date2num(times), np.float64)
    return np.asarray(times, np.float64)


def time_axis(axes: Any, times: Any, label: str = "time") -> None:
    """Short dates where times are dates, and the name of the axis."""
    if plain_times(times).dtype.kind == "M":
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        locator = AutoDateLocator()
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    axes.set_xlabel(label, color=INK, fontsize=9)
