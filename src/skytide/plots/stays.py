"""Who stayed in the answer for how long: a line per row, a bar per stay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from skytide.plots._style import BLUE, GREEN, INK, SOFT, plain_axes
from skytide.plots.series import on_axis

MOST_ROWS = 30
_LONGEST_NAME = 24


class Stay(NamedTuple):
    """One stay of a row; `left` is None while it lasts."""

    id: Any
    entered: Any
    left: Any


def draw_stays(axes: Any, stays: Sequence[Stay], now: Any) -> None:
    """The stays of some rows, the row of the first one at the top; bars without an end last until `now`."""
    names = list(dict.fromkeys(str(stay.id) for stay in stays))[:MOST_ROWS]
    place = {name: at for at, name in enumerate(names)}
    shown = [stay for stay in stays if str(stay.id) in place]
    if shown:
        starts = on_axis([stay.entered for stay in shown])
        ends = on_axis([now if stay.left is None else stay.left for stay in shown])
        rows = np.array([place[str(stay.id)] for stay in shown])
        lasting = np.array([stay.left is None for stay in shown])
        for colour, which, label in ((BLUE, ~lasting, "has left"), (GREEN, lasting, "is in the answer")):
            if which.any():
                width = (ends - starts)[which]
                axes.barh(rows[which], width, left=starts[which], height=0.66, color=colour, linewidth=0, label=label)
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8, labelcolor=INK)
    axes.set_yticks(range(len(names)), [_short(name) for name in names], fontsize=8, color=INK)
    axes.set_ylim(max(len(names), 1) - 0.4, -0.6)
    if not shown:
        axes.text(0.5, 0.5, "nobody stayed", transform=axes.transAxes, ha="center", color=SOFT)
    plain_axes(axes, "x")
    axes.tick_params(axis="y", labelsize=8, length=0)


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"
