"""One file of JSON lines as typed batches: one object per line, a missing key is NULL.

Python's parser reads the lines, not Arrow's: it keeps whole numbers of any size and does not turn text into times. The
file is read twice, because only all of its lines say what type a key has. A key with values of several kinds, or with
lists and objects, is kept as JSON text, which the writer of JSON lines puts back as it was.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from skytide.errors import InputError
from skytide.tables import EXACT

Watch = Callable[[float], None]
"""Is told what share of something was looked at."""

BATCH_ROWS = 2**14
JSON_TEXT = {b"skytide": b"json"}
"""Metadata of a column that holds JSON text."""


class Kinds:
    """Which kinds of values each key has, and how large its whole numbers are."""

    def __init__(self) -> None:
        self.types: dict[str, set[type]] = {}
        self.least: dict[str, int] = {}
        self.most: dict[str, int] = {}

    def see(self, record: dict[str, Any]) -> None:
        """Take note of one row."""
        for name, value in record.items():
            kind = type(value)
            self.types.setdefault(name, set()).add(kind)
            if kind is int:
                self.least[name] = min(value, self.least.get(name, value))
                self.most[name] = max(value, self.most.get(name, value))

    def schema(self) -> pa.Schema:
        """The columns in the order in which their keys were first seen."""
        return pa.schema([self._field(name) for name in self.types])

    def _field(self, name: str) -> pa.Field:
        kinds = self.types[name] - {type(None)}
        least, most = self.least.get(name, 0), self.most.get(name, 0)
        if not kinds:
            return pa.field(name, pa.null())
        if kinds == {bool}:
            return pa.field(name, pa.bool_())
        if kinds == {str}:
            return pa.field(name, pa.string())
        if kinds == {int} and least >= -(2**63) and most < 2**63:
            return pa.field(name, pa.int64())
        if kinds == {int} and least >= 0 and most < 2**64:
            return pa.field(name, pa.uint64())
        if kinds == {float} or (kinds == {int, float} and least >= -EXACT and most <= EXACT):
            return pa.field(name, pa.float64())
        return pa.field(name, pa.string(), metadata=JSON_TEXT)


class JsonlFile:
    """A file of JSON lines. `schema` is what its own lines say; a folder's files are given the schema of all."""

    def __init__(self, path: Path, label: str, kinds: Kinds, watch: Watch = lambda share: None) -> None:
        self.path = path
        self.label = label
        self.size = path.stat().st_size
        if self.size == 0:
            raise InputError("the file is empty", file=label, remedy="write one JSON object per line")
        for record, row, position in self._records():
            kinds.see(record)
            if row % BATCH_ROWS == 0:
                watch(position / self.size)
        self._kinds = kinds

    @property
    def schema(self) -> pa.Schema:
        """The columns and their types."""
        return self._kinds.schema()

    @property
    def names(self) -> list[str]:
        """The columns."""
        return list(self._kinds.types)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[tuple[pa.Table, float]]:
        """Tables in row order, each with the share of the file read so far."""
        schema = self.schema
        if columns is not None:
            schema = pa.schema([schema.field(name) for name in columns])
        records: list[dict[str, Any]] = []
        for record, row, position in self._records():
            records.append(record)
            if len(records) == BATCH_ROWS:
                yield self._table(records, schema, row), position / self.size
                records = []
        if records:
            yield self._table(records, schema, row), 1.0

    def _records(self) -> Iterator[tuple[dict[str, Any], int, int]]:
        row = position = 0
        with self.path.open("rb") as file:
            for line in file:
                position += len(line)
                if not line.strip():
                    continue
                row += 1
                yield self._record(line, row), row, position

    def _record(self, line: bytes, row: int) -> dict[str, Any]:
        try:
            record = json.loads(line.decode("utf-8-sig" if row == 1 else "utf-8"))
        except UnicodeDecodeError:
            raise InputError(
                "the line is not UTF-8", file=self.label, row=row, remedy="save the file as UTF-8"
            ) from None
        except json.JSONDecodeError as error:
            raise InputError(
                f"the line is not JSON: {error.msg} at character {error.colno}",
                file=self.label,
                row=row,
                remedy="write one JSON object per line",
            ) from None
        except (ValueError, RecursionError) as error:
            raise InputError(f"the line is not usable JSON: {error}", file=self.label, row=row) from None
        if not isinstance(record, dict):
            raise InputError(
                "the line is not a JSON object", file=self.label, row=row, remedy="write one JSON object per line"
            )
        return record

    def _table(self, records: list[dict[str, Any]], schema: pa.Schema, last: int) -> pa.Table:
        columns = []
        for field in schema:
            values = [record.get(field.name) for record in records]
            if field.metadata == JSON_TEXT:
                values = [None if value is None else json.dumps(value, ensure_ascii=False) for value in values]
            try:
                columns.append(pa.array(values, type=field.type))
            except (UnicodeError, pa.ArrowException):
                raise self._bad_text(values, field.name, last - len(records)) from None
        return pa.Table.from_arrays(columns, schema=schema)

    def _bad_text(self, values: list[Any], name: str, before: int) -> InputError:
        for position, value in enumerate(values):
            try:
                str(value).encode()
            except UnicodeError:
                return InputError("the text is not Unicode", file=self.label, row=before + position + 1, column=name)
        return InputError("the values cannot be read", file=self.label, column=name)
