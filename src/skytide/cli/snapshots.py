"""`skytide snapshots`: the changes of the skyline of objects that the rows of DATA update."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from skytide.cli._completing import columns, files
from skytide.cli._options import data_argument, nulls_option, output_option, preference_of, preference_options
from skytide.cli._progress import opened
from skytide.cli._stream import ObjectsRun, number_or_text
from skytide.cli._stream_options import check_outputs, letters_option
from skytide.cli._watch import About, Watch, told, watch_options

if TYPE_CHECKING:
    from skytide.model import MissingPolicy


@click.command("snapshots", short_help="The changes of the skyline of objects under updates.")
@data_argument
@preference_options
@click.option(
    "--id", "id_column", metavar="COL", required=True, shell_complete=columns, help="The column that names objects."
)
@click.option(
    "--time",
    "time_column",
    metavar="COL",
    required=True,
    shell_complete=columns,
    help="Each distinct time is a snapshot.",
)
@click.option(
    "--op",
    type=click.Choice(["set", "add", "multiply", "average"]),
    default="set",
    show_default=True,
    help="What a row does to an object that is there.",
)
@click.option("--method", type=click.Choice(["auto", "mbr", "recompute"]), default="auto", show_default=True)
@click.option(
    "--cfp",
    type=click.IntRange(min=1),
    default=50,
    show_default=True,
    metavar="N",
    help="For mbr: snapshots in vain after which a candidate's box is rebuilt.",
)
@click.option("--lateness", metavar="TIME", help="How far rows may come out of order. Default: 0.")
@click.option("--frequent", metavar="THETA", help="Instead: who is in the skyline in at least this share of snapshots.")
@click.option("--over", type=click.IntRange(min=1), metavar="S", help="The share is of the last S snapshots.")
@click.option(
    "--history",
    metavar="FILE",
    shell_complete=files,
    help="Also write every object's stays in the skyline: a .csv, .parquet or .jsonl file.",
)
@nulls_option
@letters_option
@output_option
@watch_options
def command(
    data: str,
    minimize: tuple[str, ...],
    maximize: tuple[str, ...],
    by: tuple[str, ...],
    id_column: str,
    time_column: str,
    op: str,
    method: str,
    cfp: int,
    lateness: str | None,
    frequent: str | None,
    over: int | None,
    history: str | None,
    nulls: MissingPolicy,
    dead_letters: str | None,
    output: str | None,
    plot: str | None,
    plot_columns: str | None,
    report: str | None,
) -> None:
    """The changes of the skyline of objects, from snapshot to snapshot: time, change (+ or -), id.

    A row gives an object new values, or adds to them, and so on, as --op says; the first row of an object sets it. A
    row whose preference columns are all empty deletes the object. Rows are expected in the order of their times, up to
    --lateness. With --frequent 0.8 --over 1000 the changes are those of who was in at least 80 % of the last 1000
    skylines.

    \b
      skytide snapshots games.parquet --max points --max rebounds --id player --time game --op average
    """
    from skytide.monitors.snapshots.snapshots import Snapshots

    preference = preference_of(minimize, maximize, by)
    if (frequent is None) != (over is None):
        raise click.UsageError("--frequent and --over go together")
    check_outputs(output, dead_letters, history)
    watch = Watch.of(plot, plot_columns, report, preference=preference)
    monitor = Snapshots(
        preference,
        method=method,
        op=op,
        nulls=nulls,
        cfp=cfp,
        lateness=0 if lateness is None else number_or_text(lateness),
    )
    series = _Series(monitor, frequent, over, history)
    texts = [name for name in (id_column, *by) if name not in (*preference.names, time_column)]
    with opened("snapshots", data, typed=True, text=texts) as source:
        run = _Run("snapshots", series, source, id_column, time_column, watch=watch)
        shown = told(time=time_column, op=op, method=method, frequent=frequent, over=over)
        watch.began(About("snapshots" if frequent is None else "frequent", data, preference, shown))
        run.to(output, dead_letters, None)
    series.write()


class _Series:
    """A monitor of snapshots, and what counts its skylines; for the run it is one window."""

    def __init__(self, monitor: Any, theta: str | None, over: int | None, history: str | None) -> None:
        self._monitor, self._told, self._history = monitor, theta is not None, history
        self._frequent = None
        if theta is not None or history is not None:
            from skytide.monitors.frequent.frequent import Frequent

            # Without a question, any one will do for the history.
            share: Any = 1 if theta is None else theta
            self._frequent = Frequent(theta=share, over=over or 1, history=history is not None)
        self.preference, self.lengths = monitor.preference, monitor.lengths
        self.spoiled: list[tuple[Any, Any]] = []
        """Times and ids of updates that were not taken when their snapshots were complete."""

    @property
    def latest(self) -> Any:
        return self._monitor.latest

    def times_like(self, form: Any) -> Any:
        return self._monitor.times_like(form)

    def extend(self, rows: Any, times: Any, ids: Any) -> Any:
        found = self._monitor.extend(rows, times=times, ids=ids)
        return self._counted(found).beside(found.late, found.bad)

    def advance(self, now: Any) -> Any:
        return self._counted(self._monitor.advance(now))

    def _counted(self, found: Any) -> Any:
        if len(found.spoiled.times):
            self.spoiled.append(found.spoiled)
        if self._frequent is None:
            return found
        counted = self._frequent.extend(found, snapshots=found.snapshots)
        return counted if self._told else found

    # What watchers ask for.

    @property
    def told_preference(self) -> Any:
        return self.preference

    def is_over(self, times: Any) -> Any:
        return self._monitor.is_over(times)

    def standing(self, ids: Any = None) -> Any:
        return self._monitor.standing(ids)

    def skyline(self) -> Any:
        return self._monitor.skyline()

    def stats(self) -> Any:
        return self._monitor.stats()

    def write(self) -> None:
        if self._history is not None and self._frequent is not None:
            self._frequent.write(self._history)


class _Run(ObjectsRun):
    """A pass over updates; a row is an update, not a row of a window."""

    def _last_letters(self) -> list[dict[str, Any]]:
        """Updates whose results are no numbers, which shows when their snapshots are complete."""
        import numpy as np

        from skytide.model import Changes

        letters = []
        for times, ids in self._window.spoiled:
            table = self._table(Changes.of(times, np.ones(len(times), np.int8), ids))
            for time, one in zip(table.column("time").to_pylist(), ids.tolist(), strict=True):
                reason = f"the update of {one} at {time}: the result is not a number (as inf - inf)"
                letters.append({"file": self._source.label, "row": None, "reason": reason})
        return letters

    def _reason(self, late: bool) -> str:
        if late:
            return "its snapshot is over; allow more --lateness or sort DATA"
        return "some values are missing, but not all"
