"""One Parquet file as typed batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from skytide.errors import InputError
from skytide.model import Integers

BATCH_ROWS = 2**16


class ParquetFile:
    """A Parquet file; only the columns asked for are read, and only the row groups that hold the rows asked for."""

    def __init__(self, path: Path, label: str) -> None:
        self.path = path
        self.label = label
        self.size = path.stat().st_size
        if self.size == 0:
            raise InputError("the file is empty", file=label, remedy="write it anew")
        try:
            self._file = pq.ParquetFile(path)
        except (pa.ArrowException, OSError) as error:
            raise self._unreadable(error) from None
        self.schema = self._file.schema_arrow.remove_metadata()
        self.names = list(self.schema.names)
        self.rows = int(self._file.metadata.num_rows)

    def _unreadable(self, error: Exception, row: int | None = None) -> InputError:
        first = str(error).partition("\n")[0]
        return InputError(
            f"the file cannot be read as Parquet: {first}",
            file=self.label,
            row=row,
            remedy="it may be truncated or damaged; write it anew",
        )

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[tuple[pa.Table, float]]:
        """Tables in row order, each with the share of the file read so far."""
        seen = 0
        wanted = None if columns is None else list(columns)
        try:
            for batch in self._file.iter_batches(batch_size=BATCH_ROWS, columns=wanted):
                seen += batch.num_rows
                table = pa.Table.from_batches([batch])
                yield table if wanted is None else table.select(wanted), seen / max(1, self.rows)
        except (pa.ArrowException, OSError) as error:
            raise self._unreadable(error, seen + 1) from None

    def take(self, rows: Integers) -> pa.Table:
        """The rows at these positions, which must ascend. Reads the row groups that hold them."""
        parts = [self.schema.empty_table()]
        start = 0
        try:
            for group in range(self._file.num_row_groups):
                stop = start + self._file.metadata.row_group(group).num_rows
                inside = rows[(rows >= start) & (rows < stop)] - start
                if len(inside):
                    parts.append(self._file.read_row_group(group).take(inside).cast(self.schema))
                start = stop
        except (pa.ArrowException, OSError) as error:
            raise self._unreadable(error, start + 1) from None
        return pa.concat_tables(parts)
