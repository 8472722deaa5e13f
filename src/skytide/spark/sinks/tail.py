"""Reads what the file sinks write, while they write it: new micro-batches as they come, over restarts of the query.

A file appears whole, so there is nothing to wait for. What a crash of the query takes back is written again under the
same name, mostly the same bytes; where it is not the same, or files are gone, the reader says what the answer is now.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from skytide.errors import InputError, OptionError
from skytide.spark.sinks.feed import Event
from skytide.spark.sinks.storage import Folder, LocalFolder, batch_name, batches, open_folder
from skytide.streams.files import read_chunks

FORMATS = {"parquet": ".parquet", "csv": ".csv", "jsonl": ".jsonl"}
MOST = 200
"""Files that are read in one call: those who show what they read begin before all is read."""
LOOKED_AT = 3
"""The last files are looked at again: only these can be taken back by a restart."""


@dataclass
class Tail:
    """The micro-batches of a file sink, each once.

    >>> from skytide.spark.sinks.files import CsvSink
    >>> folder = tempfile.TemporaryDirectory()
    >>> sink, tail = CsvSink(folder.name), Tail(folder.name, "csv")
    >>> sink.write(0, pa.table({"time": [5], "change": ["+"], "id": ["007"]}))
    >>> [(event.kind, event.batch, event.rows.to_pylist()) for event in tail.read()]
    [('changes', 0, [{'time': 5, 'change': '+', 'id': '007'}])]
    >>> sink.write(0, pa.table({"time": [5], "change": ["+"], "id": ["007"]})); tail.read()
    []
    >>> folder.cleanup()
    """

    path: str
    format: str
    by: tuple[str, ...] = ()
    """The columns that together with the id name a row."""
    most: int = MOST
    _read: dict[int, bytes] = field(default_factory=dict)
    """The files that were read, with what tells their contents from others."""

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise OptionError("is not a format of files here", value=self.format, remedy=f"use {', '.join(FORMATS)}")

    def read(self) -> list[Event]:
        """What is new: changes by micro-batch, some hundred at most; or the answer, where what was read is not so now.

        O(files of the folder), and what is new.
        """
        folder = open_folder(self.path)
        there = batches(folder.names(), "batch", FORMATS[self.format])
        try:
            if self._taken_back(folder, there):
                return [self._answer(folder, there)]
            new = [one for one in there if one not in self._read][: self.most]
            return [Event("changes", one, self._table(folder, one)) for one in new]
        except FileNotFoundError:
            return []  # taken back since it was listed: the next call finds out

    def _taken_back(self, folder: Folder, there: list[int]) -> bool:
        if not self._read:
            return False
        present, last = set(there), max(self._read)
        if not present.issuperset(self._read) or any(one < last and one not in self._read for one in there):
            return True
        recent = sorted(self._read)[-LOOKED_AT:]
        return any(_digest(folder.get(self._name(one))) != self._read[one] for one in recent)

    def _answer(self, folder: Folder, there: list[int]) -> Event:
        """The answer after all files, all of them read anew."""
        self._read = {}
        found = answer_after((self._table(folder, one) for one in there), self.by)
        return Event("answer", there[-1] if there else -1, found, behind=True)

    def _name(self, batch: int) -> str:
        return batch_name("batch", batch, FORMATS[self.format])

    def _table(self, folder: Folder, batch: int) -> pa.Table:
        data = folder.get(self._name(batch))
        table = self._decoded(folder, self._name(batch), data)
        for name in ("time", "change", "id"):
            if name not in table.column_names:
                raise InputError(
                    "is not a file of changes", file=f"{self.path}/{self._name(batch)}", remedy="give a pipeline's sink"
                )
        self._read[batch] = _digest(data)
        return table

    def _decoded(self, folder: Folder, name: str, data: bytes) -> pa.Table:
        if self.format == "parquet":
            return pq.read_table(pa.BufferReader(data))
        if isinstance(folder, LocalFolder):
            return _text_table(folder.path / name)
        with tempfile.TemporaryDirectory() as place:
            copy = Path(place) / name
            copy.write_bytes(data)
            return _text_table(copy)


def answer_after(tables: Iterable[pa.Table], by: Sequence[str]) -> pa.Table:
    """Who is in the answer after changes, whose types may differ from file to file; `time` is when a row entered."""
    rows: dict[tuple[object, ...], pa.Table] = {}
    for table in tables:
        keys = zip(*(table.column(name).to_pylist() for name in ("id", *by)), strict=True)
        for place, (key, sign) in enumerate(zip(keys, table.column("change").to_pylist(), strict=True)):
            rows.pop(key, None)
            if sign == "+":
                rows[key] = table.slice(place, 1)
    return pa.concat_tables(rows.values(), promote_options="permissive") if rows else pa.table({"id": []})


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


def _text_table(path: Path) -> pa.Table:
    """The rows of a file of text, with types that their text allows; ids stay text."""
    table = pa.concat_tables(read_chunks(str(path), text=["id"]))
    if "id" in table.column_names:
        table = table.set_column(table.column_names.index("id"), "id", table.column("id").cast(pa.string()))
    return with_times(table, path)


def with_times(table: pa.Table, path: Path) -> pa.Table:
    """The same rows, with times that are moments where they are text."""
    if "time" not in table.column_names or not pa.types.is_string(table.column("time").type):
        return table
    return table.set_column(table.column_names.index("time"), "time", _times(table.column("time"), path))


def _times(column: pa.ChunkedArray, path: Path) -> pa.ChunkedArray:
    for kind in (pa.timestamp("us", "UTC"), pa.timestamp("us")):
        try:
            return column.cast(kind)
        except pa.ArrowException:
            continue
    raise InputError("times are text that is none", file=str(path), column="time", remedy="give a pipeline's sink")
