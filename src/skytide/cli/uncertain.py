"""`skytide uncertain`: who is in the skyline of a sliding window with enough probability, over the rows of DATA."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from skytide.cli._batch import Batch
from skytide.cli._completing import columns
from skytide.cli._options import (
    data_argument,
    id_option,
    nulls_option,
    output_option,
    preference_of,
    preference_options,
)
from skytide.cli._progress import Progress, opened
from skytide.cli._stream import Run, names_of, number_or_text
from skytide.cli._stream_options import check_outputs, check_window, letters_option, window_options
from skytide.cli._watch import About, Watch, told, watch_options

if TYPE_CHECKING:
    import pyarrow as pa

    from skytide.model import MissingPolicy
    from skytide.streams.files import Chunk


@click.command("uncertain", short_help="The probable skyline of a sliding window over uncertain rows.")
@data_argument
@preference_options
@id_option
@click.option(
    "--prob",
    metavar="COL",
    required=True,
    shell_complete=columns,
    help="The column with the rows' probabilities, from 0 to 1.",
)
@click.option(
    "--threshold",
    "thresholds",
    type=float,
    metavar="Q",
    multiple=True,
    required=True,
    help="In the answer is who is in the skyline with this probability or more. Repeatable.",
)
@click.option("--top", type=click.IntRange(min=1), metavar="K", help="The K most probable at the smallest threshold.")
@click.option(
    "--object",
    "object_column",
    metavar="COL",
    shell_complete=columns,
    help="Consecutive rows of one name are the places where one object may be; the id is the object.",
)
@window_options
@click.option("--final", is_flag=True, help="Instead of changes, id and probability of the last window's answer.")
@click.option("--method", type=click.Choice(["auto", "tree", "scan"]), default="auto", show_default=True)
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
    prob: str,
    thresholds: tuple[float, ...],
    top: int | None,
    object_column: str | None,
    count: int | None,
    duration: str | None,
    time_column: str | None,
    lateness: str | None,
    until: str | None,
    final: bool,
    method: str,
    nulls: MissingPolicy,
    dead_letters: str | None,
    output: str | None,
    plot: str | None,
    plot_columns: str | None,
    report: str | None,
) -> None:
    """The changes of the probable skyline as rows of DATA arrive and expire: time, change (+ or -), id, threshold.

    Each row exists with its own probability, independently of the others. With --object, consecutive rows of one name
    are the places of one object, which is at one of them or nowhere: their probabilities sum to 1 at most, and --count
    counts objects. With --final: id, probability, the most probable first. The window is as in `skytide window`.

    \b
      skytide uncertain offers.csv --min price --max rating --prob trust --count 10000 --threshold 0.3 --threshold 0.5
    """
    from skytide.errors import OptionError
    from skytide.monitors.uncertain.window import UncertainWindow

    preference = preference_of(minimize, maximize, by)
    check_window(count, duration, time_column, lateness, until)
    if id_column is not None and object_column is not None:
        raise click.UsageError("--object names the ids: leave --id out")
    if object_column is not None and method == "tree":
        raise click.UsageError("--method tree is for rows, not for --object")
    for one in thresholds:
        if not 0 < one <= 1:
            raise OptionError("is not a threshold", value=one, remedy="give a number above 0, up to 1")
    check_outputs(output, dead_letters)
    watch = Watch.of(plot, plot_columns, report, preference=preference)
    window = UncertainWindow(
        preference,
        count=count,
        duration=None if duration is None else number_or_text(duration),
        lateness=0 if lateness is None else number_or_text(lateness),
        thresholds=thresholds,
        method=method,
        top=None if final else top,
        nulls=nulls,
    )
    named = id_column or object_column
    texts = [name for name in (named, *by) if name and name not in (*preference.names, time_column, prob)]
    with opened("uncertain", data, typed=time_column is not None, text=texts) as source:
        run: Run
        if final:
            run = _Final(top, window, source, named, time_column, prob, object_column is not None, watch)
        else:
            run = _Uncertain(window, source, named, time_column, prob, object_column is not None, watch)
        shown = told(count=count, duration=duration, time=time_column, prob=prob, top=None if final else top)
        watch.began(About("uncertain", data, preference, shown, window.thresholds))
        run.to(output, dead_letters, until)


class _Uncertain(Run):
    """A pass with probabilities; an object goes into the window whole, wherever chunks and files end."""

    def __init__(
        self,
        window: Any,
        source: Any,
        named: str | None,
        time_column: str | None,
        prob: str,
        objects: bool,
        watch: Watch,
    ) -> None:
        super().__init__("uncertain", window, source, named, time_column, prob, watch=watch)
        self._prob, self._objects = prob, objects

    def _beside(self, chunk: Chunk) -> dict[str, Any]:
        import pyarrow as pa

        beside = super()._beside(chunk) | {"probabilities": pa.array(self._numbers.read(chunk, self._prob))}
        if self._objects:
            beside["objects"] = beside.pop("ids")
        return beside

    def _batches(self) -> Iterator[Batch]:
        if not self._objects:
            yield from super()._batches()
            return
        held: Batch | None = None
        for batch in super()._batches():
            joined = batch if held is None else held.join(batch)
            whole = _last_run(joined.beside.column("objects"))
            if whole:
                yield joined.slice(0, whole)
            held = joined.slice(whole, joined.rows.num_rows)
        if held is not None:
            yield held

    def _extend(self, batch: Batch) -> Any:
        from skytide.errors import SkytideError

        try:
            return super()._extend(batch)
        except SkytideError as error:
            if error.column == "probabilities":
                error.column = self._prob
            raise

    def _schema_of(self, time_type: pa.DataType, id_type: pa.DataType) -> pa.Schema:
        import pyarrow as pa

        return super()._schema_of(time_type, id_type).append(pa.field("threshold", pa.float64()))

    def _more(self, changes: Any) -> list[Any]:
        import pyarrow as pa

        return [pa.array(changes.thresholds, pa.float64())]


class _Final(_Uncertain):
    """A pass of which only the last answer is told."""

    def __init__(self, top: int | None, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._top = top

    def _schema_of(self, time_type: pa.DataType, id_type: pa.DataType) -> pa.Schema:
        import pyarrow as pa

        return pa.schema([("id", id_type), ("probability", pa.float64())])

    def _table(self, changes: Any) -> pa.Table:
        return self._schema.empty_table()

    def _tables(self, last: Any, refused: list[dict[str, Any]], progress: Progress) -> Iterator[pa.Table]:
        import pyarrow as pa

        for _ in super()._tables(last, refused, progress):
            pass
        ranking = self._window.query() if self._top is None else self._window.top(self._top)
        ids = pa.array(ranking.ids.tolist(), self._schema.field("id").type)
        yield pa.table([ids, pa.array(ranking.probabilities)], schema=self._schema)


def _last_run(names: pa.ChunkedArray) -> int:
    """Where the last run of equal names begins."""
    import numpy as np

    from skytide.tables import as_array

    column = as_array(names_of(names))
    borders = np.flatnonzero(np.asarray(column[1:] != column[:-1], dtype=bool))
    return int(borders[-1]) + 1 if len(borders) else 0
