"""Tables as bytes, in Arrow's own format: one value for Spark, however many rows there are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

PIECE_BYTES = 1 << 17
"""A packed value holds about so much at most: 10,000 of them, which Spark may put into one batch, are below 2 GiB."""


def packed(table: pa.Table) -> Iterator[bytes]:
    """The rows of a table in one or more packed pieces; none where there are no rows."""
    if not table.num_rows:
        return
    rows = max(1, table.num_rows * PIECE_BYTES // max(1, table.nbytes))
    for start in range(0, table.num_rows, rows):
        # A slice of a column would be written with all the text of the column where it is part of a larger array.
        yield one(table.slice(start, rows))


def one(table: pa.Table) -> bytes:
    """A table as one packed value; without rows, the schema is still there."""
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue().to_pybytes()  # type: ignore[no-any-return]


def unpacked(pieces: Iterable[bytes]) -> pa.Table | None:
    """The rows of packed pieces, in order; None where there is none. An empty piece is none."""
    tables = [pa.ipc.open_stream(piece).read_all() for piece in pieces if len(piece)]
    return pa.concat_tables(tables) if tables else None
