"""`skytide window`: the changes of the skyline of a sliding window over the rows of DATA."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skytide.cli._options import (
    data_argument,
    id_option,
    nulls_option,
    output_option,
    preference_of,
    preference_options,
)
from skytide.cli._progress import opened
from skytide.cli._stream import Run, number_or_text
from skytide.cli._stream_options import check_outputs, check_window, letters_option, window_options
from skytide.cli._watch import About, Watch, told, watch_options

if TYPE_CHECKING:
    from skytide.model import MissingPolicy


@click.command("window", short_help="The changes of the skyline of a sliding window.")
@data_argument
@preference_options
@id_option
@window_options
@click.option("--method", type=click.Choice(["auto", "lazy", "eager"]), default="auto", show_default=True)
@click.option("--index", type=click.Choice(["auto", "list", "rtree"]), default="auto", show_default=True)
@nulls_option
@letters_option
@output_option
@watch_options
def command(
    data: str,
    minimize: tuple[str, ...],
    maximize: tuple[str, ...],
    by: tuple[str, ...],
    id_column: str | None,
    count: int | None,
    duration: str | None,
    time_column: str | None,
    lateness: str | None,
    until: str | None,
    method: str,
    index: str,
    nulls: MissingPolicy,
    dead_letters: str | None,
    output: str | None,
    plot: str | None,
    plot_columns: str | None,
    report: str | None,
) -> None:
    """The changes of the skyline as rows of DATA arrive and expire: time, change (+ or -), id.

    With --count the time is the row's arrival number, from 1. With --duration a row lives on [time, time + duration);
    rows are expected in the order of their times, up to --lateness.

    \b
      skytide window flights.parquet --min delay --max distance --by origin --id flight --time ts --duration 2h
    """
    from skytide.monitors.sliding.window import SlidingWindow

    preference = preference_of(minimize, maximize, by)
    check_window(count, duration, time_column, lateness, until)
    check_outputs(output, dead_letters)
    watch = Watch.of(plot, plot_columns, report, preference=preference)
    window = SlidingWindow(
        preference,
        count=count,
        duration=None if duration is None else number_or_text(duration),
        lateness=0 if lateness is None else number_or_text(lateness),
        method=method,
        index=index,
        nulls=nulls,
    )
    texts = [name for name in (id_column, *by) if name and name not in (*preference.names, time_column)]
    with opened("window", data, typed=time_column is not None, text=texts) as source:
        run = Run("window", window, source, id_column, time_column, watch=watch)
        watch.began(About("window", data, preference, told(count=count, duration=duration, time=time_column)))
        run.to(output, dead_letters, until)
