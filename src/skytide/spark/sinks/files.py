"""Sinks that write one file per micro-batch, and the table of the current answer.

The folder is an ordinary one: pyarrow, polars, pandas or Spark read it as a table, and never see a part of a
micro-batch. The same micro-batch again replaces its file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from skytide.errors import InputError
from skytide.spark.sinks.storage import batch_name, batches, open_folder
from skytide.streams.files import csv_bytes, json_bytes

_KEPT = 2
"""Current answers that stay: the last one, and the one before for those who are reading it."""
_TRIES = 10


@dataclass(frozen=True)
class _FileSink:
    path: str
    extension: ClassVar[str] = ""

    def write(self, batch: int, rows: pa.Table) -> None:
        """Write a micro-batch, in place of an earlier attempt at it; one without rows leaves no file."""
        folder, name = open_folder(self.path), batch_name("batch", batch, self.extension)
        if rows.num_rows:
            folder.put(name, self._encoded(rows))
        else:
            folder.delete(name)

    def last(self) -> int | None:
        """The last micro-batch that has a file."""
        found = batches(open_folder(self.path).names(), "batch", self.extension)
        return found[-1] if found else None

    def _encoded(self, rows: pa.Table) -> bytes:
        raise NotImplementedError


@dataclass(frozen=True)
class ParquetSink(_FileSink):
    """A folder of Parquet files, one per micro-batch with rows.

    >>> import tempfile, pyarrow.parquet
    >>> folder = tempfile.TemporaryDirectory()
    >>> sink = ParquetSink(folder.name)
    >>> for batch in (0, 1, 1):
    ...     sink.write(batch, pa.table({"time": [batch], "change": ["+"], "id": [batch]}))
    >>> sink.last(), pyarrow.parquet.read_table(folder.name).num_rows
    (1, 2)
    >>> folder.cleanup()
    """

    extension: ClassVar[str] = ".parquet"

    def _encoded(self, rows: pa.Table) -> bytes:
        return _parquet(rows)


@dataclass(frozen=True)
class CsvSink(_FileSink):
    """A folder of CSV files with headers, one per micro-batch with rows."""

    extension: ClassVar[str] = ".csv"

    def _encoded(self, rows: pa.Table) -> bytes:
        return csv_bytes(rows)


@dataclass(frozen=True)
class JsonLinesSink(_FileSink):
    """A folder of files with one JSON object per row, one file per micro-batch with rows."""

    extension: ClassVar[str] = ".jsonl"

    def _encoded(self, rows: pa.Table) -> bytes:
        return json_bytes(rows)


@dataclass(frozen=True)
class CurrentTable:
    """The current answer as one Parquet file, replaced in one step by the next; the last two stay."""

    path: str

    def write(self, batch: int, rows: pa.Table) -> None:
        """Replace the answer, which may be empty, by that after a micro-batch."""
        folder = open_folder(self.path)
        folder.put(batch_name("current", batch, ".parquet"), _parquet(rows))
        there = batches(folder.names(), "current", ".parquet")
        # An answer of a later micro-batch belongs to a run that has been taken back.
        kept = [one for one in there if one <= batch][-_KEPT:]
        for one in sorted(set(there) - set(kept), reverse=True):
            folder.delete(batch_name("current", one, ".parquet"))

    def last(self) -> int | None:
        """The micro-batch that the answer is as of."""
        found = batches(open_folder(self.path).names(), "current", ".parquet")
        return found[-1] if found else None

    def read(self) -> tuple[int, pa.Table] | None:
        """The last micro-batch and the answer after it; None where there is none yet."""
        folder = open_folder(self.path)
        for _ in range(_TRIES):
            batch = self.last()
            if batch is None:
                return None
            try:
                return batch, pq.read_table(pa.BufferReader(folder.get(batch_name("current", batch, ".parquet"))))
            except FileNotFoundError:
                continue  # replaced twice since
        raise InputError("the answer is replaced faster than it is read", file=self.path, remedy="try again")


def _parquet(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink)
    return bytes(sink.getvalue())
