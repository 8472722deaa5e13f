"""A site's local rows: bytes of CSV or lines of JSON in, ids and values out, as far as records are complete.

It reads with the standard library alone, since a site is to be small. What cannot be used is given back as an error in
the place of a row; whoever reads decides whether that ends anything.

An id is a whole number or a text. Text that is a whole number as one writes it (`17`, `-3`, not `007`) is that number,
in both forms: so an object has one id, whichever form a site's rows have.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from skytide.errors import InputError, OptionError
from skytide.protocols.network.frames import Id, usable_id

FORMS = ("csv", "ndjson")
MOST = 1 << 20
"""Bytes of a record at most."""
_NAMES = {".csv": "csv", ".jsonl": "ndjson", ".ndjson": "ndjson"}
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,18}", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?", re.ASCII | re.IGNORECASE)
_OTHERS = {f"{sign}{name}" for sign in ("", "+", "-") for name in ("inf", "infinity", "nan")}
_MARK = b"\xef\xbb\xbf"

Row = tuple[Id, tuple[float, ...] | None]
"""An object and its new values, in the order of the query's columns; None: it leaves."""


def form_of(name: str) -> str:
    """The form of a file by its name.

    >>> form_of("rows.jsonl"), form_of("rows.csv")
    ('ndjson', 'csv')
    """
    for ending, form in _NAMES.items():
        if name.lower().endswith(ending):
            return form
    raise OptionError("does not say which form its rows have", value=name, remedy="give --format csv or ndjson")


def id_of(value: Any) -> Id:
    """The id that a value of a row is.

    >>> id_of("17"), id_of(17), id_of("007"), id_of("tea")
    (17, 17, '007', 'tea')
    """
    if isinstance(value, str) and _WHOLE.fullmatch(value) and usable_id(int(value)):
        return int(value)
    if value is None or value == "":
        raise InputError("the id is missing", remedy="name the object")
    if not usable_id(value):
        raise InputError("is not an id", value=value, remedy="use whole numbers of 64 bits or texts up to 1024 bytes")
    found: Id = value
    return found


def number_of(value: Any) -> float:
    """The number that a value of a row is; NaN where it is missing. Only what a float can hold is a number.

    >>> number_of("2.5e3"), number_of(-7), number_of("")
    (2500.0, -7.0, nan)
    >>> number_of("9007199254740993")
    Traceback (most recent call last):
    ...
    skytide.errors.InputError: '9007199254740993' has more digits than a float64 holds; round it
    """
    if value is None or value == "":
        return math.nan
    if isinstance(value, float):
        return value
    if isinstance(value, str):
        text = value.strip(" \t")
        if not _NUMBER.fullmatch(text):
            if text.lower() in _OTHERS:
                return float(text)
            raise _no_number(value)
        found, whole = float(text), int(text) if len(text) > 15 and text.lstrip("+-").isdecimal() else None
    elif isinstance(value, int) and not isinstance(value, bool):
        whole = value
        found = float(value) if value.bit_length() <= 1024 else math.inf
    else:
        raise _no_number(value)
    if math.isinf(found):
        raise InputError("is beyond what a float64 holds", value=value, remedy="use another unit")
    if whole is not None and int(found) != whole:
        raise InputError("has more digits than a float64 holds", value=value, remedy="round it")
    return found


def _no_number(value: Any) -> InputError:
    return InputError("is not a number", value=value, remedy="give numbers, or nothing")


class RowReader:
    """Rows of a stream of bytes in one form, for some columns; `row` counts them.

    >>> reader = RowReader("csv", "name", ("price",))
    >>> list(reader.feed(b"name,price\\ntea,3.5\\nale,"))
    [('tea', (3.5,))]
    >>> list(reader.feed(b"2\\ntea,\\n"))
    [('ale', (2.0,)), ('tea', None)]
    """

    def __init__(self, form: str, id_column: str, columns: Sequence[str]) -> None:
        if form not in FORMS:
            raise OptionError("is not a form of rows", value=form, remedy="use " + " or ".join(FORMS))
        if id_column in columns:
            raise OptionError("names objects, and is compared", value=id_column, remedy="name another column with --id")
        self._csv, self._id, self._columns = form == "csv", id_column, tuple(columns)
        self.restart()

    def restart(self) -> None:
        """What comes next is the beginning of a file."""
        self.row = 0
        self.taken = 0
        """Bytes of all complete records, from the beginning of the file."""
        self._header: list[str] | None = None
        self._places: list[int] = []
        self._pending = b""
        self._open = 0  # so many bytes of pending are lines of one record, with an open quote
        self._long = False

    def resume(self, row: int, taken: int) -> None:
        """What comes next are the bytes from `taken` on, after so many rows of a file whose first record was fed."""
        self.row, self.taken, self._pending, self._open, self._long = row, taken, b"", 0, False

    @property
    def torn(self) -> bool:
        """Whether the end of a record has not come yet."""
        return bool(self._pending) or self._long

    @property
    def begun(self) -> bool:
        """Whether a row can be read: in CSV the header was."""
        return not self._csv or self._header is not None

    def feed(self, data: bytes, *, last: bool = False) -> Iterator[Row | InputError]:
        """The rows that are complete with these bytes; `last`: nothing follows. O(bytes).

        A header without the columns that are needed is raised, not given: no row could be read after it.
        """
        self._pending += data
        start = 0
        while True:
            end = self._pending.find(b"\n", start + self._open) + 1
            if not end and last:
                end = len(self._pending) if start < len(self._pending) else 0
            if not end:
                break
            record = self._pending[start:end]
            if self._in_quotes(record):
                if len(record) <= MOST and not (last and end == len(self._pending)):
                    self._open = len(record)
                    continue
                # Only the line with the quote is lost; what follows may be rows again.
                record, problem = record[: record.find(b"\n") + 1] or record, "a quote is not closed"
            else:
                problem = f"the row is longer than {MOST} bytes" if self._long or len(record) > MOST else ""
            start, self._open, self._long = start + len(record), 0, False
            self.taken += len(record)
            yield from self._bad(problem) if problem else self._read(record)
        self._pending = self._pending[start:]
        if len(self._pending) > 2 * MOST:  # a line whose end is not in sight: it is not kept
            self._long, self._open = True, 0
            self.taken += len(self._pending)
            self._pending = b""

    def _in_quotes(self, record: bytes) -> bool:
        """Whether the end of a line is within quotes; up to `_open` the record is known to be so."""
        if not self._csv or self._long:
            return False
        more = b'"' in record[self._open :]
        return _goes_on(record) if more else self._open > 0

    def _bad(self, reason: str) -> Iterator[InputError]:
        if not self.begun:
            raise InputError(f"the header cannot be read: {reason}", remedy="begin with the names of the columns")
        self.row += 1
        yield InputError(reason, row=self.row, remedy="mend the row")

    def _read(self, record: bytes) -> Iterator[Row | InputError]:
        line = record.rstrip(b"\r\n")
        if not self.taken - len(record):
            line = line.removeprefix(_MARK)
        if not line.strip(b" \t"):
            return
        if self._csv and self._header is None:
            self._begin(line)
            return
        self.row += 1
        try:
            yield self._from_csv(line) if self._csv else self._from_json(line)
        except InputError as problem:
            problem.row = self.row
            yield problem

    def _begin(self, line: bytes) -> None:
        header = _cells(line)
        for name in (self._id, *self._columns):
            if name not in header:
                reason = "is no column; the header has " + ", ".join(header[:20])
                raise InputError(reason, value=name, remedy="rename the column, or name another")
            if header.count(name) > 1:
                raise InputError("names two columns", value=name, remedy="rename one of them")
        self._header, self._places = header, [header.index(name) for name in self._columns]

    def _from_csv(self, line: bytes) -> Row:
        cells, header = _cells(line), self._header
        assert header is not None
        if len(cells) != len(header):
            raise InputError(f"the row has {len(cells)} values for {len(header)} columns", remedy="mend the row")
        return self._row(cells[header.index(self._id)], [cells[place] for place in self._places])

    def _from_json(self, line: bytes) -> Row:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            raise InputError("the line is not JSON", remedy="write an object on each line") from None
        if not isinstance(found, dict):
            raise InputError("the line is not an object", remedy="write an object on each line")
        if not any(name in found for name in self._columns):
            names = ", ".join(self._columns)
            raise InputError(f"the row has none of the columns {names}", remedy="give null to take an object out")
        return self._row(found.get(self._id), [found.get(name) for name in self._columns])

    def _row(self, one: Any, values: Sequence[Any]) -> Row:
        found: Id = _placed(id_of, one, self._id)
        numbers = tuple(_placed(number_of, value, name) for name, value in zip(self._columns, values, strict=True))
        return found, None if all(map(math.isnan, numbers)) else numbers


def _placed(read: Callable[[Any], Any], value: Any, column: str) -> Any:
    try:
        return read(value)
    except InputError as problem:
        problem.column = column
        raise


def _cells(line: bytes) -> list[str]:
    try:
        text = line.decode()
    except UnicodeDecodeError:
        raise InputError("the row is not UTF-8", remedy="write the file as UTF-8") from None
    if '"' not in text and "\r" not in text:
        return text.split(",")
    try:
        return next(csv.reader([text], strict=True))
    except csv.Error:
        raise InputError("the row is not CSV", remedy='write " in quotes as ""') from None


def _goes_on(record: bytes) -> bool:
    """Whether a quote is open at the end of what would be a record."""
    try:
        next(csv.reader([record.rstrip(b"\r\n").decode("latin-1")], strict=True))
    except csv.Error as problem:
        return "unexpected end of data" in str(problem)
    return False
