"""What the commands over streams share: one pass over DATA into a window."""

from __future__ import annotations

import itertools
import math
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from skytide.cli._batch import Batch
from skytide.cli._progress import Progress
from skytide.cli._voice import Voice

if TYPE_CHECKING:
    import pyarrow as pa

    from skytide.cli._told import Told
    from skytide.cli._watch import Watch
    from skytide.streams.files import Chunk, Source

_DAY = 86_400 * 10**9


class Run:
    """One pass over DATA: changes to the output, rows that were not taken to the dead letters."""

    def __init__(
        self,
        name: str,
        window: Any,
        source: Source,
        id_column: str | None,
        time_column: str | None,
        *more: str,
        watch: Watch | None = None,
    ) -> None:
        from skytide.streams.files import Numbers

        self._name, self._window, self._source = name, window, source
        self._watch = watch or None
        self._told = None if self._watch is None else self._teller(self._watch)
        self._id, self._time = id_column, time_column
        wanted = [*window.preference.names, *window.preference.by, id_column, time_column, *more]
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
        self._schema = self._schema_of(time_type, named)
        last = None if until is None else self._moment(until)
        refused: list[dict[str, Any]] = []
        silent = output is None and self._watch is not None and self._watch.silent
        with self._watched(), Progress(self._name) as progress:
            tables = self._tables(last, refused, progress)
            first = next(tables)  # before the output is begun: most errors show in the first rows
            with nullcontext() if silent else Output(output, self._schema) as results:
                for table in itertools.chain([first], tables):
                    if results is not None:
                        results.write(table)
                if dead_letters:
                    letters = pa.schema([("file", pa.string()), ("row", pa.int64()), ("reason", pa.string())])
                    write_table(dead_letters, pa.Table.from_pylist(refused, schema=letters))
                if self._told is not None:
                    self._told.ended()
        if refused and not dead_letters:
            first = refused[0]
            place = first["file"] if first["row"] is None else f"{first['file']}, row {first['row']}"
            Voice.here().warn(
                f"skytide: {len(refused)} row(s) not taken, the first: {place}: "
                f"{first['reason']}; --dead-letters FILE lists them"
            )

    def _tables(self, last: Any, refused: list[dict[str, Any]], progress: Progress) -> Iterator[pa.Table]:
        """The changes as tables, at least one; rows that were not taken are added to `refused`."""
        for batch in self._batches():
            if self._told is None:
                changes = self._extend(batch)
                refused += self._letters(batch, changes)
                table = self._table(changes)
            else:
                table = self._in_pieces(batch, self._told, refused)
            progress.update(batch.done)
            yield table
        for moment in self._closing(last):
            changes = self._advance(moment)
            if self._told is not None:
                self._told.advanced(moment, changes)
            yield self._table(changes)
        refused += self._last_letters()
        yield self._schema.empty_table()

    def _teller(self, watch: Watch) -> Told:
        """Who tells the watchers."""
        from skytide.cli._told import RowsTold

        return RowsTold(watch, self._window)

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Watchers hear of an error, too."""
        try:
            yield
        except BaseException as error:
            if self._watch is not None:
                self._watch.tell("failed", " ".join(str(error).split()) or "stopped")
            raise

    def _in_pieces(self, batch: Batch, told: Told, refused: list[dict[str, Any]]) -> pa.Table:
        """The changes of rows that go into the window piece by piece, while others watch: the same as at once."""
        import pyarrow as pa

        assert self._watch is not None
        tables = [self._schema.empty_table()]
        cuts = told.cuts(batch) if self._watch.fine else []
        for piece in self._watch.pieces(batch, cuts, lambda positions: told.allowed(batch, positions)):
            began = time.perf_counter()
            changes = self._extend(piece)
            seconds = time.perf_counter() - began
            refused += self._letters(piece, changes)
            told.after(piece, changes, seconds)
            tables.append(self._table(changes))
        return pa.concat_tables(tables).combine_chunks()

    def _batches(self) -> Iterator[Batch]:
        """DATA in pieces that go into the window as they are."""
        return map(self._read, self._source.chunks(self._columns))

    def _read(self, chunk: Chunk) -> Batch:
        import pyarrow as pa

        preference = self._window.preference
        columns: dict[str, Any] = {
            str(name): pa.array(self._numbers.read(chunk, str(name))) for name in preference.names
        }
        columns |= {str(name): chunk.table.column(str(name)) for name in preference.by}
        beside = {role: column for role, column in self._beside(chunk).items() if column is not None}
        return Batch(pa.table(columns), pa.table(beside), [(chunk.file, chunk.first, chunk.table.num_rows)], chunk.done)

    def _beside(self, chunk: Chunk) -> dict[str, Any]:
        """What goes into the window beside the rows, by the name of the argument."""
        return {
            "times": None if self._time is None else chunk.table.column(self._time),
            "ids": None if self._id is None else names_of(chunk.table.column(self._id)),
        }

    def _extend(self, batch: Batch) -> Any:
        from skytide.errors import SkytideError

        beside = {role: batch.beside.column(role) for role in batch.beside.column_names}
        try:
            return self._window.extend(batch.rows, **beside)
        except SkytideError as error:
            error.remedy = error.remedy.replace("the policy ", "--nulls ")
            told = re.match(r"(?:is )?the (\w+)", error.reason)
            if error.column is None and error.row is not None and told:
                error.column = self._roles().get(told[1])
            if error.row is not None:
                file, error.row = batch.place(error.row - 1)
                raise error.at(file=file) from None
            raise error.at(file=batch.pieces[-1][0]) from None

    def _advance(self, moment: Any) -> Any:
        """Let time run on; what was wrong with the last rows may show only now."""
        from skytide.errors import SkytideError

        try:
            return self._window.advance(moment)
        except SkytideError as error:
            error.remedy = error.remedy.replace("the policy ", "--nulls ")
            raise error.at(file=self._source.label) from None

    def _roles(self) -> dict[str, str | None]:
        """The columns that go beside the rows, by the word for them in errors."""
        return {"time": self._time, "id": self._id}

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

        from skytide.errors import InputError
        from skytide.model import duration_value

        if self._time is None:
            return pa.int64(), None
        kind = self._source.schema.field(self._time).type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            self._refuse_times(self._time)
        if not pa.types.is_temporal(kind):
            form = np.dtype(np.int64 if pa.types.is_integer(kind) else np.float64)
            return pa.from_numpy_dtype(self._window.times_like(form)), None
        if not pa.types.is_date(kind) and not pa.types.is_timestamp(kind):  # lengths of time, or times of any day
            raise InputError(
                f"the column holds {kind}, not times",
                file=self._source.label,
                column=self._time,
                remedy="give numbers, dates or timestamps",
            )
        stamp = pa.timestamp("s") if pa.types.is_date(kind) else kind
        self._days = pa.types.is_date(kind) and not any(duration_value(one) % _DAY for one in self._window.lengths)
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

    def _table(self, changes: Any) -> pa.Table:
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
        symbols = pa.array(changes.symbols.tolist(), pa.string())
        return pa.table([times, symbols, ids, *self._more(changes)], schema=self._schema)

    def _letters(self, batch: Batch, changes: Any) -> list[dict[str, Any]]:
        reasons = {int(row): self._reason(True) for row in changes.late}
        reasons |= {int(row): self._reason(False) for row in changes.bad}
        places = [(*batch.place(row), reasons[row]) for row in sorted(reasons)]
        return [{"file": file, "row": row, "reason": reason} for file, row, reason in places]

    def _last_letters(self) -> list[dict[str, Any]]:
        """What was found out of rows when nobody knew their places any more."""
        return []

    def _reason(self, late: bool) -> str:
        """Why a row was not taken: it was late, or the missing-value policy left it out."""
        return "the row came too late; allow more --lateness or sort DATA" if late else "a value is missing"

    def _schema_of(self, time_type: pa.DataType, id_type: pa.DataType) -> pa.Schema:
        """The columns that come out."""
        import pyarrow as pa

        return pa.schema([("time", time_type), ("change", pa.string()), ("id", id_type)])

    def _more(self, changes: Any) -> list[Any]:
        """Further columns of changes, as the schema has them."""
        return []


class ObjectsRun(Run):
    """A pass over updates of objects."""

    def _teller(self, watch: Watch) -> Told:
        from skytide.cli._told import ObjectsTold

        return ObjectsTold(watch, self._window)


class MovesRun(ObjectsRun):
    """A pass over moves in simulation."""

    def _reason(self, late: bool) -> str:
        return "its timestamp is over; sort DATA" if late else "some values are missing, but not all"


def names_of(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of ids as a window takes it: whole numbers as they are, all else as text."""
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


def number_or_text(text: str) -> int | float | str:
    """A length of time from the command line."""
    try:
        return _number(text)
    except ValueError:
        return text
