"""Results as .csv, .parquet or .jsonl files, or as CSV on standard output.

A file appears whole or not at all: it is written beside its place and renamed at the end. CSV keeps the values as they
were: text is quoted only where it must be, NULL is an empty field and an empty text a quoted one, floats are the
shortest text that reads back equal, with a point, so that they stay floats.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from skytide.errors import OptionError, OutputError
from skytide.streams.files.from_jsonl import JSON_TEXT

EXTENSIONS = (".csv", ".parquet", ".jsonl")
_SLICE = 2**16


def check_output(target: str | None, extensions: tuple[str, ...] = EXTENSIONS) -> None:
    """An error where the file could not be written: an unknown extension, no such folder, no right to write."""
    if target is None or target == "-":
        return
    path = Path(target)
    if path.suffix.lower() not in extensions:
        raise OptionError(
            "the output file's extension is not known", file=target, remedy=f"use one of {', '.join(extensions)}"
        )
    if not path.parent.is_dir():
        raise OptionError("the output file's folder does not exist", file=target, remedy="make the folder first")
    if path.is_dir():
        raise OptionError("the output file is a folder", file=target, remedy="name a file")
    temporary_beside(path).unlink()  # tried, not asked: a folder may be of a kind that takes no files


class Output:
    """A file being written, or standard output. As a context manager it keeps the file only if all went well."""

    def __init__(self, target: str | None, schema: pa.Schema, stdout: IO[bytes] | None = None) -> None:
        check_output(target)
        self._target = None if target is None or target == "-" else Path(target)
        self._schema = schema
        self._stdout = stdout
        self._extension = ".csv" if self._target is None else self._target.suffix.lower()

    def __enter__(self) -> Output:
        self._temporary = None if self._target is None else temporary_beside(self._target)
        try:
            self._begin()
        except BaseException:  # an interrupt, too, leaves no file behind
            if self._temporary is not None:
                self._temporary.unlink(missing_ok=True)
            raise
        return self

    def _begin(self) -> None:
        self._file: IO[bytes] = (
            self._stdout or sys.stdout.buffer if self._temporary is None else self._temporary.open("wb")
        )
        self._parquet: Any = None
        if self._extension == ".parquet":
            self._parquet = pq.ParquetWriter(self._file, self._schema.remove_metadata())
        elif self._extension == ".csv":
            self._file.write(_header(self._schema.names))

    def write(self, table: pa.Table) -> None:
        """Add rows; the columns are those of the schema."""
        if self._parquet is not None:
            self._parquet.write_table(table.cast(self._schema))
            return
        form = _json_bytes if self._extension == ".jsonl" else _csv_rows
        for part in form(table):
            self._file.write(part)

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if self._temporary is None or self._target is None:
            if kind is None:
                self._file.flush()
            return
        try:
            if self._parquet is not None:
                self._parquet.close()
            self._file.close()
            if kind is None:
                publish(self._temporary, self._target)
        finally:
            self._temporary.unlink(missing_ok=True)


def write_table(target: str | None, table: pa.Table, stdout: IO[bytes] | None = None) -> None:
    """A whole table to a file, or to standard output as CSV."""
    with Output(target, table.schema, stdout) as output:
        output.write(table)


def temporary_beside(target: Path) -> Path:
    """An empty file in the same folder, so that it can be renamed to the target."""
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=target.suffix, dir=target.parent)
    except OSError as error:
        raise OutputError(
            f"the file cannot be written there: {error.strerror or error}",
            file=str(target),
            remedy="choose another folder",
        ) from None
    os.close(handle)
    return Path(name)


def publish(temporary: Path, target: Path) -> None:
    """Give the finished file its name, and the rights that a file made in the ordinary way would have."""
    mask = os.umask(0)
    os.umask(mask)
    temporary.chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~mask)
    temporary.replace(target)


# -- CSV ---------------------------------------------------------------------------------------------------------------


def csv_bytes(table: pa.Table) -> bytes:
    r"""The table as CSV with its header.

    >>> csv_bytes(pa.table({"a": [1, None], "b": ["x,y", ""]}))
    b'a,b\n1,"x,y"\n,""\n'
    """
    return _header(table.column_names) + b"".join(_csv_rows(table))


def _header(names: list[str]) -> bytes:
    if not names:
        return b""
    return (",".join(_quoted(pa.chunked_array([pa.array(names, pa.large_string())])).to_pylist()) + "\n").encode()


def _csv_rows(table: pa.Table) -> Iterator[bytes]:
    for start in range(0, table.num_rows, _SLICE):
        part = table.slice(start, _SLICE)
        columns = [_field_text(column) for column in part.columns]
        lines = pc.binary_join_element_wise(
            *columns, pa.scalar(",", pa.large_string()), null_handling="replace", null_replacement=""
        )
        yield ("\n".join(lines.to_pylist()) + "\n").encode()


def _field_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    text = as_text(column)
    if pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return text
    return _quoted(text)


def _quoted(text: pa.ChunkedArray) -> pa.ChunkedArray:
    needs = pc.or_(pc.match_substring_regex(text, '[",\r\n]'), pc.equal(text, ""))
    if not pc.any(needs).as_py():
        return text
    mark = pa.scalar('"', pa.large_string())
    inner = pc.replace_substring(text, '"', '""')
    return pc.if_else(needs, pc.binary_join_element_wise(mark, inner, mark, pa.scalar("", pa.large_string())), text)


def as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values as text that reads back equal; NULL stays NULL.

    >>> as_text(pa.chunked_array([[1.0, 0.1, None]])).to_pylist()
    ['1.0', '0.1', None]
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        return as_text(column.cast(kind.value_type))
    if pa.types.is_float16(kind):
        return as_text(column.cast(pa.float32()))
    if pa.types.is_null(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return column.cast(pa.large_string())
    if pa.types.is_floating(kind):
        return pc.replace_substring_regex(column.cast(pa.large_string()), r"^(-?\d+)$", r"\1.0")
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        return pc.replace_substring_regex(_clock_text(column), r"\.0+(Z|[+-]\d{4})?$", r"\1")
    try:
        return column.cast(pa.large_string())
    except pa.ArrowException:
        texts = [None if value is None else _json_text(value) for value in column.to_pylist()]
        return pa.chunked_array([pa.array(texts, pa.large_string())])


def _clock_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        return column.cast(pa.large_string())
    except pa.ArrowException:
        # The machine does not know the zone: the same instants in UTC.
        return column.cast(pa.timestamp(column.type.unit, "UTC")).cast(pa.large_string())


# -- JSON lines --------------------------------------------------------------------------------------------------------


def json_bytes(table: pa.Table) -> bytes:
    r"""The table as JSON lines, which hold no line ends of their own.

    >>> json_bytes(pa.table({"a": [1, None], "b": ["x\ny", ""]}))
    b'{"a": 1, "b": "x\\ny"}\n{"a": null, "b": ""}\n'
    """
    return b"".join(_json_bytes(table))


def _json_bytes(table: pa.Table) -> Iterator[bytes]:
    names = table.column_names
    for start in range(0, table.num_rows, _SLICE):
        part = table.slice(start, _SLICE)
        columns = [_json_values(column, field) for column, field in zip(part.columns, part.schema, strict=True)]
        lines = [_json_text(dict(zip(names, values, strict=True))) for values in zip(*columns, strict=True)]
        yield ("\n".join(lines) + "\n").encode()


def _json_values(column: pa.ChunkedArray, field: pa.Field) -> list[Any]:
    if field.metadata == JSON_TEXT:
        return [None if text is None else json.loads(text) for text in column.to_pylist()]
    if pa.types.is_temporal(field.type) and not pa.types.is_duration(field.type):
        column = as_text(column)
    values: list[Any] = column.to_pylist()
    return values


def _json_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else str(value)
