"""`skytide window`: the changes of the skyline of a sliding window over the rows of DATA."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skytide.cli._options import (
    data_argument,
    id_option,
    nulls_option,
    output_option,
    preference_of,
    preference_options,
)
from skytide.cli._progress import Progress

if TYPE_CHECKING:
    import pyarrow as pa

    from skytide.model import Changes, MissingPolicy
    from skytide.monitors.sliding.window import SlidingWindow
    from skytide.streams.files import Chunk, Source

_DAY = 86_400 * 10**9


@click.command("window", short_help="The changes of the skyline of a sliding window.")
@data_argument
@preference_options
@id_option
@click.option("--count", type=click.IntRange(min=1), metavar="N", help="A row lives until N more rows have come.")
@click.option("--duration", metavar="TIME", help="A row lives so long: a number, or like 90s, 15m, 2h, 1d.")
@click.option("--time", "time_column", metavar="COL", help="The column with the rows' times, for --duration.")
@click.option("--lateness", metavar="TIME", help="How far rows may come out of order. Default: 0.")
@click.option("--until", metavar="TIME", help="Let time run on to this after the last row.")
@click.option("--method", type=click.Choice(["auto", "lazy", "eager"]), default="auto", show_default=True)
@click.option("--index", type=click.Choice(["auto", "list", "rtree"]), default="auto", show_default=True)
@nulls_option
@click.option(
    "--dead-letters", metavar="FILE", help="Where rows go that come too late or are left out: file, row, why."
)
@output_option
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
) -> None:
    """The changes of the skyline as rows of DATA arrive and expire: time, change (+ or -), id.

    With --count the time is the row's arrival number, from 1. With --duration a row lives on [time, time + duration);
    rows are expected in the order of their times, up to --lateness.

    \b
      skytide window flights.parquet --min delay --max distance --by origin --id flight --time ts --duration 2h
    """
    from skytide.monitors.sliding.window import SlidingWindow
    from skytide.streams.files import check_output, open_data

    preference = preference_of(minimize, maximize, by)
    if (count is None) == (duration is None):
        raise click.UsageError("give either --count N or --duration TIME with --time COL")
    if count is not None and (time_column or until or lateness):
        raise click.UsageError("--time, --until and --lateness go with --duration, not with --count")
    if duration is not None and time_column is None:
        raise click.UsageError("--duration needs --time COL")
    check_output(output)
    check_output(dead_letters)
    if output is not None and dead_letters is not None and Path(output).resolve() == Path(dead_letters).resolve():
        raise click.UsageError("-o and --dead-letters name the same file")
    window = SlidingWindow(
        preference,
        count=count,
        duration=None if duration is None else _number_or_text(duration),
        lateness=0 if lateness is None else _number_or_text(lateness),
        method=method,
        index=index,
        nulls=nulls,
    )
    texts = [name for name in (id_column, *by) if name and name not in (*preference.names, time_column)]
    with open_data(data, typed=time_column is not None, text=texts) as source:
        _Run(window, source, id_column, time_column).to(output, dead_letters, until)


class _Run:
    """One pass over DATA: changes to the output, rows that were not taken to the dead letters."""

    def __init__(self, window: SlidingWindow, source: Source, id_column: str | None, time_column: str | None) -> None:
        from skytide.streams.files import Numbers

        self._window, self._source = window, source
        self._id, self._time = id_column, time_column
        wanted = [*window.preference.names, *window.preference.by, id_column, time_column]
        self._columns = list(dict.fromkeys(str(name) for name in wanted if name is not None))
        source.check_names(self._columns)
        self._numbers = Numbers()
        self._days = False  # whether the times that come out are dates, as those that come in
        self._form = self._time_form()

    def to(self, output: str | None, dead_letters: str | None, until: str | None) -> None:
        """Run to the end of DATA, close its last instant and let time run on to `until`."""
        import pyarrow as pa

        from skytide.streams.files import Output, write_table

        kind, sample = self._form
        textual = pa.types.is_timestamp(kind) and sample is not None and (output is None or output.endswith(".csv"))
        time_type = pa.date32() if self._days else pa.string() if textual else kind
        named = pa.int64()
        if self._id is not None:
            form = self._source.schema.field(self._id).type
            named = pa.string() if not pa.types.is_integer(form) else pa.uint64() if form == pa.uint64() else named
        self._schema = pa.schema([("time", time_type), ("change", pa.string()), ("id", named)])
        last = None if until is None else self._moment(until)
        refused: list[dict[str, Any]] = []
        with Progress("window") as progress:
            tables = self._tables(last, refused, progress)
            first = next(tables)  # before the output is begun: most errors show in the first rows
            with Output(output, self._schema) as results:
                for table in itertools.chain([first], tables):
                    results.write(table)
                if dead_letters:
                    letters = pa.schema([("file", pa.string()), ("row", pa.int64()), ("reason", pa.string())])
                    write_table(dead_letters, pa.Table.from_pylist(refused, schema=letters))
        if refused and not dead_letters:
            first = refused[0]
            click.echo(
                f"skytide: {len(refused)} row(s) not taken, the first: {first['file']}, row {first['row']}: "
                f"{first['reason']}; --dead-letters FILE lists them",
                err=True,
            )

    def _tables(self, last: Any, refused: list[dict[str, Any]], progress: Progress) -> Iterator[pa.Table]:
        """The changes as tables, at least one; rows that were not taken are added to `refused`."""
        for chunk in self._source.chunks(self._columns):
            changes = self._extend(chunk)
            refused += _letters(chunk, changes)
            progress.update(chunk.done)
            yield self._table(changes)
        for moment in self._closing(last):
            yield self._table(self._window.advance(moment))
        yield self._schema.empty_table()

    def _extend(self, chunk: Chunk) -> Changes:
        import pyarrow as pa

        from skytide.errors import SkytideError

        preference = self._window.preference
        columns: dict[str, Any] = {
            str(name): pa.array(self._numbers.read(chunk, str(name))) for name in preference.names
        }
        columns |= {str(name): chunk.table.column(str(name)) for name in preference.by}
        ids = None if self._id is None else _ids(chunk.table.column(self._id))
        times = None if self._time is None else chunk.table.column(self._time)
        try:
            return self._window.extend(pa.table(columns), times=times, ids=ids)
        except SkytideError as error:
            if error.row is not None:
                error.row += chunk.first - 1
            raise error.at(file=chunk.file) from None

    def _closing(self, last: Any) -> list[Any]:
        """The moments to advance to at the end: the last row's, so that its instant is closed, then `until`."""
        latest = self._window.latest
        return [moment for moment in (latest, last) if moment is not None and (latest is not None or last is None)]

    def _moment(self, text: str) -> Any:
        """`--until` as a time of the same kind as the times of DATA."""
        import numpy as np
        import pyarrow as pa

        from skytide.errors import OptionError

        kind = self._form[0]
        try:
            if pa.types.is_timestamp(kind):
                return np.datetime64(pa.scalar(text).cast(kind).value, kind.unit)
            number = _number(text)
            if pa.types.is_floating(kind) and math.isfinite(number):
                return number
            if pa.types.is_integer(kind) and number == int(number) and abs(number) < 2**62:
                return int(number)
        except (ValueError, OverflowError, pa.ArrowException):
            pass
        remedy = "write it as in DATA" + (", with its zone" if pa.types.is_timestamp(kind) and kind.tz else "")
        raise OptionError("is not a time like those of the rows", value=text, remedy=remedy)

    def _time_form(self) -> tuple[pa.DataType, str | None]:
        """The type of the times that come out, and how they are written if that is as text."""
        import numpy as np
        import pyarrow as pa

        from skytide.model import duration_value

        if self._time is None:
            return pa.int64(), None
        kind = self._source.schema.field(self._time).type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            self._refuse_times(self._time)
        if not pa.types.is_temporal(kind):
            form = np.dtype(np.int64 if pa.types.is_integer(kind) else np.float64)
            return pa.from_numpy_dtype(self._window.times_like(form)), None
        stamp = pa.timestamp("s") if pa.types.is_date(kind) else kind
        lengths = [self._window.window.duration, self._window.window.lateness]
        self._days = pa.types.is_date(kind) and not any(duration_value(one or 0) % _DAY for one in lengths)
        unit = np.datetime_data(self._window.times_like(np.dtype(f"datetime64[{stamp.unit}]")))[0]
        return pa.timestamp(unit, stamp.tz), self._source.sample_text(self._time)

    def _refuse_times(self, column: str) -> None:
        """Say which value of a column of text is neither a number nor a timestamp; a column without values may pass."""
        from skytide.errors import InputError

        remedy = "give numbers, or timestamps like 2024-01-31T12:00:00"
        seen = False
        for chunk in self._source.chunks([column]):
            seen = seen or chunk.table.column(column).null_count < chunk.table.num_rows
            for place, text in enumerate(chunk.table.column(column).to_pylist()):
                if text is not None and not _is_time(text):
                    row = chunk.first + place
                    raise InputError(
                        "is not a time", value=text, file=chunk.file, row=row, column=column, remedy=remedy
                    )
        if seen:
            raise InputError("the times are of several kinds", file=self._source.label, column=column, remedy=remedy)

    def _table(self, changes: Changes) -> pa.Table:
        import pyarrow as pa

        from skytide.streams.files.output import as_text

        kind, sample = self._form
        times = (
            pa.array(changes.times).cast(pa.timestamp(kind.unit)).view(kind) if pa.types.is_timestamp(kind) else None
        )
        times = pa.array(changes.times, kind) if times is None else times
        if self._days:
            times = times.cast(pa.date32())
        if pa.types.is_string(self._schema.field("time").type):
            text = as_text(pa.chunked_array([times])).cast(pa.string())
            times = pa.compute.replace_substring(text, " ", "T") if sample and "T" in sample else text
        ids = pa.array(changes.ids.tolist(), self._schema.field("id").type)
        return pa.table([times, pa.array(changes.symbols.tolist(), pa.string()), ids], schema=self._schema)


def _letters(chunk: Chunk, changes: Changes) -> list[dict[str, Any]]:
    reasons = {int(row): "the row came too late; allow more --lateness or sort DATA" for row in changes.late}
    reasons |= {int(row): "a value is missing" for row in changes.bad}
    return [{"file": chunk.file, "row": chunk.first + row, "reason": reasons[row]} for row in sorted(reasons)]


def _ids(column: pa.ChunkedArray) -> pa.ChunkedArray:
    import pyarrow as pa

    from skytide.streams.files.output import as_text

    return column if pa.types.is_integer(column.type) else as_text(column).cast(pa.string())


def _is_time(text: str) -> bool:
    import pyarrow as pa

    try:
        float(text)
    except ValueError:
        for zone in (None, "UTC"):
            try:
                pa.scalar(text).cast(pa.timestamp("ns", zone))
            except pa.ArrowException:
                continue
            return True
        return False
    return True


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _number_or_text(text: str) -> int | float | str:
    try:
        return _number(text)
    except ValueError:
        return text
