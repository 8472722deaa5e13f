"""Whole pictures: the answer, how it came to be, who stayed, what was sent. Each is a matplotlib figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from skytide.plots._style import INK, finished, new_figure, plain_axes, title
from skytide.plots.answers import Answer, draw_answer, draw_parallel, draw_rows, headline, legend
from skytide.plots.ledger import draw_ledger
from skytide.plots.sample import Sample
from skytide.plots.series import Sizes, draw_sizes, draw_turnover, time_axis
from skytide.plots.stays import Stay, draw_stays

_NEVER = Sizes.of(np.zeros(0), np.zeros(0))
MOST_BARS = 30
MOST_AGAINST = 4
FEWER = 4_000


@dataclass(frozen=True)
class Scene:
    """What a picture of a query shows, from top to bottom, as far as it is there."""

    answer: Answer | None = None
    title: str | None = None
    parallel: bool = False
    ranking: Sequence[tuple[Any, float]] = ()
    """Ids with probabilities, where there are no values to draw."""
    sizes: Mapping[str, Sizes] = field(default_factory=dict)
    stays: Sequence[Stay] | None = None
    now: Any = None
    ledger: Mapping[str, Any] | None = None
    time: str = "time"
    word: str = "skyline"


def picture(scene: Scene, path: str | Path | None = None) -> Any:
    """The figure of a scene; with `path` it is written too."""
    first = scene.answer is not None or bool(scene.ranking)
    rows = [("answer", 5.2)] * first
    rows += [("stays", 4.2)] * (scene.stays is not None)
    rows += [("sizes", 1.8), ("turnover", 1.0)] * bool(scene.sizes)
    rows += [("ledger", 1.7)] * (scene.ledger is not None)
    heights = [height for _, height in rows] or [1.0]
    figure = new_figure(8.6, sum(heights) + 0.6)
    grid = figure.add_gridspec(len(heights), 1, height_ratios=heights)
    panels: dict[str, Any] = {}
    for at, (name, _) in enumerate(rows):
        solid = name == "answer" and scene.answer is not None and scene.answer.solid and not scene.parallel
        shared = panels.get("sizes") if name == "turnover" else None
        panels[name] = figure.add_subplot(grid[at], projection="3d" if solid else None, sharex=shared)
    if first:
        _answer(figure, panels["answer"], scene)
    if "stays" in panels:
        draw_stays(panels["stays"], scene.stays or (), scene.now)
        title(panels["stays"], f"the longest stays in the {scene.word}", size=11 if first else 13)
        time_axis(panels["stays"], [stay.entered for stay in scene.stays or ()], scene.time)
    if "sizes" in panels:
        _series(panels, scene)
    if "ledger" in panels and scene.ledger is not None:
        draw_ledger(panels["ledger"], scene.ledger)
    return finished(figure, path)


def _answer(figure: Any, axes: Any, scene: Scene) -> None:
    if scene.answer is None:
        _ranked(axes, scene)
        return
    drawn = draw_parallel(axes, scene.answer) if scene.parallel else draw_answer(axes, scene.answer)
    title(axes, scene.title or headline(scene.answer))
    legend(figure, scene.answer, drawn)


def _ranked(axes: Any, scene: Scene) -> None:
    """Bars of probabilities, the most probable at the top."""
    shown = list(scene.ranking)[:MOST_BARS]
    axes.barh(range(len(shown)), [chance for _, chance in shown], color="#0072b2", height=0.66)
    axes.set_yticks(range(len(shown)), [str(one)[:24] for one, _ in shown], fontsize=8, color=INK)
    axes.set_ylim(max(len(shown), 1) - 0.4, -0.6)
    axes.set_xlim(0, 1)
    axes.set_xlabel("probability to be in the skyline", color=INK)
    plain_axes(axes, "x")
    title(axes, scene.title or f"{len(scene.ranking):,} in the answer, the most probable first")


def _series(panels: dict[str, Any], scene: Scene) -> None:
    draw_sizes(panels["sizes"], scene.sizes, scene.word)
    every = next(iter(scene.sizes.values()), _NEVER)
    draw_turnover(panels["turnover"], every)
    panels["sizes"].tick_params(labelbottom=False)
    time_axis(panels["turnover"], every.times, scene.time)


def sizes_picture(sizes: Mapping[str, Sizes], path: str | Path | None = None) -> Any:
    """The size of an answer over time alone."""
    return picture(Scene(sizes=sizes), path)


def stays_picture(stays: Sequence[Stay], now: Any, path: str | Path | None = None) -> Any:
    """The longest stays alone."""
    return picture(Scene(stays=stays, now=now), path)


def ledger_picture(ledger: Mapping[str, Any], path: str | Path | None = None) -> Any:
    """What was sent alone."""
    return picture(Scene(ledger=ledger), path)


def ranking_picture(ranking: Sequence[tuple[Any, float]], path: str | Path | None = None) -> Any:
    """Probabilities as bars."""
    return picture(Scene(ranking=ranking or [("nobody", 0.0)]), path)


def answer_picture(answer: Answer, path: str | Path | None = None, *, heading: str | None = None) -> Any:
    """The answer against the rest alone: one, two or three columns, or more side by side."""
    return picture(Scene(answer=answer, title=heading, parallel=len(answer.columns) > 3), path)


def rows_picture(
    columns: tuple[str, ...], rows: Sample, path: str | Path | None = None, *, heading: str | None = None
) -> Any:
    """Rows that nobody prefers: one to three columns, or more of them against each other."""
    figure = new_figure(8.6, 5.8) if len(columns) < 4 else new_figure(8.6, 8.2)
    if len(columns) < 4:
        axes = figure.add_subplot(projection="3d" if len(columns) == 3 else None)
        draw_rows(axes, columns, rows.rows)
        title(axes, heading or f"{rows.seen:,} rows")
        return finished(figure, path)
    shown = columns[:MOST_AGAINST]
    grid = figure.subplots(len(shown), len(shown), squeeze=False)
    for down, first in enumerate(shown):
        for across, second in enumerate(shown):
            axes = grid[down][across]
            if across > down:  # the same pair again
                axes.set_axis_off()
                continue
            pair = rows.rows[:, [across, down]] if across != down else rows.rows[:, [across]]
            draw_rows(axes, (second, first)[: pair.shape[1]], pair[:FEWER])
            axes.tick_params(labelsize=6)
            axes.set_xlabel(second if down == len(shown) - 1 else "", fontsize=8, color=INK)
            axes.set_ylabel(first if not across else "", fontsize=8, color=INK)
    more = f", the first {len(shown)} columns" if len(shown) < len(columns) else ""
    figure.suptitle((heading or f"{rows.seen:,} rows") + more, x=0.01, ha="left", color=INK, fontsize=13)
    return finished(figure, path)
