"""What text in a CSV file says: numbers for preferences, and types where a typed file is wanted.

Both hold for the whole file. Nothing is guessed from the first rows: a value that does not fit is an error that names
its row (numbers), or makes the type wider (types).
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skytide.errors import InputError
from skytide.model import Floats
from skytide.streams.files.from_jsonl import JSON_TEXT
from skytide.tables import EXACT, column_of, numbers

if TYPE_CHECKING:
    from skytide.streams.files.source import Chunk

MISSING_WORDS = ("", "NA", "N/A", "#N/A", "NULL", "null", "None")
"""What stands for a missing value where numbers belong; NaN is read as a number that is none."""
_WHOLE = re.compile(r"[+-]?\d+")
_TIMES = (pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("us", "UTC"), pa.timestamp("ns", "UTC"))


class Numbers:
    """Reads preference columns chunk by chunk as float64, NaN where a value is missing.

    A text column may hold numbers, times or truth values; its first value that is not missing decides which.
    """

    def __init__(self) -> None:
        self._forms: dict[str, pa.DataType] = {}

    def read(self, chunk: Chunk, name: str) -> Floats:
        """One column of a chunk; errors name the file and the row in it. O(rows)."""
        column = column_of(chunk.table, name)
        try:
            if chunk.table.schema.field(name).metadata == JSON_TEXT:
                return _json_numbers(column, name)
            if chunk.verbatim and pa.types.is_string(column.type):
                return self._text(column, name)
            return _typed(chunk.table, name)
        except InputError as error:
            if error.row is not None:
                error.row += chunk.first - 1
            error.file = chunk.file
            raise

    def _text(self, column: pa.ChunkedArray, name: str) -> Floats:
        known = self._forms.get(name)
        form = known or pa.float64()
        read = _cast(column, form)
        if read is None:
            column = _cleaned(column)
            form = known or _form_of(column)
            read = _cast(column, form)
        if read is None and pa.types.is_timestamp(form):
            # Finer fractions may come in later rows.
            form = pa.timestamp("ns", form.tz)
            read = _cast(column, form)
        if read is None:
            raise _first_misfit(column, form, name)
        if read.null_count < len(read):
            self._forms[name] = form
        if form != pa.float64():
            return numbers(pa.table({name: read}), name)
        values: Floats = read.to_numpy()
        _check_exact(column, values, name)
        return values


def _cast(column: pa.ChunkedArray, form: pa.DataType) -> pa.ChunkedArray | None:
    try:
        return column.cast(form)
    except pa.ArrowInvalid:
        return None


def _form_of(column: pa.ChunkedArray) -> pa.DataType:
    """What the first value is: a number, a time or a truth value; a number also where it is none of them."""
    first = column.drop_null().slice(0, 1)
    return next((form for form in (pa.float64(), *_TIMES, pa.bool_()) if _cast(first, form) is not None), pa.float64())


def _cleaned(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Without blanks around the values, NULL where a word stands for it."""
    bare = pc.utf8_trim_whitespace(column)
    return pc.if_else(pc.is_in(bare, value_set=pa.array(MISSING_WORDS)), pa.scalar(None, pa.string()), bare)


def _first_misfit(column: pa.ChunkedArray, form: pa.DataType, name: str) -> InputError:
    what = "a number" if form == pa.float64() else "a truth value" if form == pa.bool_() else "a time"
    for position, value in enumerate(column):
        if value.is_valid and _cast(pa.chunked_array([pa.array([value.as_py()])]), form) is None:
            return InputError(
                f"is text, not {what}",
                value=value.as_py(),
                row=position + 1,
                column=name,
                remedy="clean the column or leave it out",
            )
    return InputError(f"the column does not hold {what} in every row", column=name)


def _check_exact(column: pa.ChunkedArray, values: Floats, name: str) -> None:
    """An error where a number is too large to be itself in float64."""
    for position in np.flatnonzero(np.abs(values) >= EXACT).tolist():
        text = column[position].as_py()
        if np.isinf(values[position]):
            exact = "inf" in text.lower()
        else:
            exact = _WHOLE.fullmatch(text.strip()) is None or int(text) == int(values[position])
        if not exact:
            raise _inexact(text, position + 1, name)


def _inexact(value: Any, row: int, name: str) -> InputError:
    return InputError(
        "is not exact in float64", value=value, row=row, column=name, remedy="subtract a base or divide by a unit"
    )


def _json_numbers(column: pa.ChunkedArray, name: str) -> Floats:
    values = np.full(len(column), np.nan)
    for position, text in enumerate(column.to_pylist()):
        if text is None:
            continue
        value = json.loads(text)
        if not isinstance(value, bool | int | float):
            raise InputError(
                "is not a number",
                value=value,
                row=position + 1,
                column=name,
                remedy="clean the column or leave it out",
            )
        if isinstance(value, int) and (abs(value) > 2**1023 or int(float(value)) != value):
            raise _inexact(value, position + 1, name)
        values[position] = value
    return values


def _typed(table: pa.Table, name: str) -> Floats:
    try:
        return numbers(table, name)
    except InputError as error:
        if error.row is None and error.value is not None:
            place = pc.index(column_of(table, name), pa.scalar(error.value, table.schema.field(name).type)).as_py()
            error.row = place + 1 if place >= 0 else None
        raise


class TypeGuess:
    """The narrowest type that holds all values of a text column: truth, whole, number, date, time, else text.

    A type is taken only if nothing is lost: whole numbers with leading zeros or beyond 64 bits stay text.
    """

    _ORDER = (pa.bool_(), pa.int64(), pa.float64(), pa.date32(), *_TIMES)

    def __init__(self, names: list[str], text: tuple[str, ...] = ()) -> None:
        self._possible = {name: [] if name in text else list(self._ORDER) for name in names}
        self._some: dict[str, bool] = dict.fromkeys(names, False)

    def see(self, table: pa.Table) -> None:
        """Take note of a chunk. O(values), times the types that are still possible."""
        for name in table.column_names:
            column = table.column(name)
            self._some[name] = self._some[name] or column.null_count < len(column)
            # A cast that fails costs ten times one that succeeds: a few rows rule out most types.
            for part in (column.slice(0, 64), column):
                self._possible[name] = [kind for kind in self._possible[name] if _as_type(part, kind) is not None]

    def type_of(self, name: str) -> pa.DataType:
        """The type so far; a column without any value is text."""
        return self._possible[name][0] if self._possible[name] and self._some[name] else pa.string()

    def cast(self, table: pa.Table, *, times: bool = True) -> pa.Table:
        """The table with its columns typed; without `times`, dates and times stay as they are written."""
        columns = {}
        for name in table.column_names:
            kind = self.type_of(name)
            plain = pa.types.is_string(kind) or (pa.types.is_temporal(kind) and not times)
            columns[name] = table.column(name) if plain else _as_type(table.column(name), kind)
        return pa.table(columns)


def _as_type(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | None:
    read = _cast(column, kind)
    if read is None and kind in (pa.int64(), pa.float64()):
        column = _cleaned(column)
        read = _cast(column, kind)
    if read is None:
        return None
    if kind == pa.bool_():
        return read if _all_match(column, "^(?i:true|false)$") else None
    if kind == pa.int64():
        return read if _all_match(column, r"^(0|-?[1-9]\d*)$") else None
    if kind == pa.float64():
        # Neither leading zeros nor whole numbers that may not be exact.
        if not _all_match(column, r"^[+-]?(0?[^0-9]|0$|[1-9]\d{0,14}$|[1-9]\d*\D)"):
            return None
        try:
            _check_exact(column, read.to_numpy(), "")
        except InputError:
            return None
    return read


def _all_match(column: pa.ChunkedArray, pattern: str) -> bool:
    return pc.all(pc.match_substring_regex(column, pattern)).as_py() is not False
