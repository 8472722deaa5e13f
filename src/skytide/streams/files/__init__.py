"""Files in and out: .csv, .parquet and .jsonl files, folders of them, CSV on standard input and output.

`open_data` gives a `Source`: chunks of bounded memory as Arrow tables of one schema, each of which knows its file and
rows, so that errors can name them. `read_chunks` is the short way for those who want the tables alone.

What is kept: a CSV file says nothing of types, so its values stay the text they are (`1.10` stays `1.10`, `007` stays
`007`) until somebody asks for types, and then the whole file decides, not its first rows. An empty CSV field is NULL, a
quoted empty field is an empty text. Row numbers count data rows from 1, in each file anew; empty lines do not count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from skytide.streams.files.output import Output, check_output, csv_bytes, json_bytes, write_table
from skytide.streams.files.source import CHUNK_ROWS, Chunk, Source, open_data
from skytide.streams.files.values import Numbers, TypeGuess

__all__ = [
    "CHUNK_ROWS",
    "Chunk",
    "Numbers",
    "Output",
    "Source",
    "TypeGuess",
    "check_output",
    "csv_bytes",
    "json_bytes",
    "open_data",
    "read_chunks",
    "write_table",
]


def read_chunks(
    path: str,
    columns: Sequence[str] | None = None,
    *,
    text: Sequence[str] = (),
    rows: int = CHUNK_ROWS,
) -> Iterator[pa.Table]:
    """The rows of DATA in input order, as typed Arrow tables of one schema, about `rows` rows each.

    A CSV file is read twice: its types hold for all of its rows. Columns in `text` stay text, as an id like 007 must.
    """
    with open_data(path, typed=True, text=text) as source:
        for chunk in source.chunks(columns, rows=rows):
            yield chunk.table
