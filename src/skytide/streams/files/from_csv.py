"""One CSV file as batches of text. Arrow parses; where it fails, a slow second reading finds the row and the column."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.csv as arrow_csv

from skytide.errors import InputError

BLOCK_BYTES = 2**22
"""What is parsed at a time, a score of them in flight; a row cannot be longer than one."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_RECORD = re.compile(rb'(?:[^"\r\n]|"[^"]*")*')


class CsvFile:
    """A CSV file whose every column is text; an empty field is NULL, a quoted empty one is not."""

    def __init__(self, path: Path, label: str) -> None:
        self.path = path
        self.label = label
        self.size = path.stat().st_size
        self.names, self._body = _header(path, label)
        self.schema = pa.schema([(name, pa.string()) for name in self.names])

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[tuple[pa.Table, float]]:
        """Tables in row order, each with the share of the file read so far."""
        with self.path.open("rb") as file:
            file.seek(self._body)
            tap = _Tap(file)
            if not self._more(file):
                return
            try:
                for batch in self._reader(tap, columns):
                    yield pa.Table.from_batches([batch]), file.tell() / self.size
            except pa.ArrowException as error:
                raise self._diagnose(error) from None
        # Arrow takes a quote that is never closed as closed by the end of the file: rows would vanish in one value.
        if tap.quotes % 2:
            self._check_records()

    def _more(self, file: BinaryIO) -> bool:
        more = bool(file.read(1))
        file.seek(self._body)
        return more

    def _reader(self, stream: _Tap, columns: Sequence[str] | None) -> Any:
        return arrow_csv.open_csv(
            pa.PythonFile(stream, mode="r"),
            read_options=arrow_csv.ReadOptions(column_names=self.names, block_size=BLOCK_BYTES),
            # In a file of one column an empty line is a row whose value is NULL.
            parse_options=arrow_csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=len(self.names) > 1),
            convert_options=arrow_csv.ConvertOptions(
                column_types={name: pa.string() for name in self.names},
                include_columns=None if columns is None else list(columns),
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                null_values=[""],
            ),
        )

    def _diagnose(self, error: Exception) -> InputError:
        try:
            self._check_records()
        except InputError as found:
            return found
        reason = (
            f"has a row of more than {BLOCK_BYTES:,} bytes" if "straddling" in str(error) else f"is not CSV: {error}"
        )
        return InputError(f"the file {reason}", file=self.label)

    def _check_records(self) -> None:
        """An error that names the first row that is not as the header says, or is not text."""
        limit = csv.field_size_limit(2**31 - 1)
        try:
            with self.path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
                self._check_each(csv.reader(file, strict=True))
        finally:
            csv.field_size_limit(limit)

    def _check_each(self, records: Any) -> None:
        row = 0
        header_seen = False
        try:
            for record in records:
                if not record and (len(self.names) > 1 or not header_seen):
                    continue
                if not header_seen:
                    header_seen = True
                    continue
                row += 1
                self._check_record(record or [""], row)
        except csv.Error as error:
            reason = "a quoted value does not end" if "end of data" in str(error) else f"the row is not CSV: {error}"
            raise InputError(reason, file=self.label, row=row + 1, remedy="mend the quotes") from None

    def _check_record(self, record: list[str], row: int) -> None:
        if len(record) != len(self.names):
            raise InputError(
                f"the row has {len(record)} value(s) where the header names {len(self.names)} column(s)",
                file=self.label,
                row=row,
                remedy="mend the row; values with commas need quotes",
            )
        for name, value in zip(self.names, record, strict=True):
            if not value.isascii() and _undecodable(value):
                raise InputError(
                    "the value is not UTF-8", file=self.label, row=row, column=name, remedy="save the file as UTF-8"
                )


class _Tap(io.RawIOBase):
    """The file as Arrow reads it, with its quotes counted on the way."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.quotes = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self.quotes += data.count(b'"')
        return data


def _undecodable(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return True
    return False


def _header(path: Path, label: str) -> tuple[list[str], int]:
    """The column names, and the byte at which the rows begin."""
    with path.open("rb") as file:
        head = file.read(BLOCK_BYTES)
    start = len(_BYTE_ORDER_MARK) if head.startswith(_BYTE_ORDER_MARK) else 0
    while head[start : start + 1] in (b"\r", b"\n"):
        start += 1
    match = _RECORD.match(head, start)
    stop = match.end() if match else start
    if stop == start:
        raise InputError(
            "the file is empty" if not head else "the file has no line of column names",
            file=label,
            remedy="a CSV file begins with the names of its columns",
        )
    body = stop + (2 if head[stop : stop + 2] == b"\r\n" else 1 if stop < len(head) else 0)
    if stop < len(head) and head[stop : stop + 1] not in (b"\r", b"\n"):
        raise InputError("a quoted column name does not end", file=label, remedy="mend the first line")
    try:
        names = next(csv.reader(io.StringIO(head[start:stop].decode(), newline=""), strict=True))
    except UnicodeDecodeError:
        raise InputError("the line of column names is not UTF-8", file=label, remedy="save the file as UTF-8") from None
    except (csv.Error, StopIteration) as error:
        raise InputError(f"the line of column names is not CSV: {error}", file=label) from None
    return names, body
