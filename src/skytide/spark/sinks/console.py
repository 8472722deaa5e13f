"""Micro-batches as tables on standard output, for a person who watches."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import pyarrow as pa

from skytide.streams.files.output import as_text

_WIDEST = 40


@dataclass(frozen=True)
class ConsoleSink:
    """Prints each micro-batch that has rows, at most `rows` of them.

    >>> ConsoleSink(rows=2).write(7, pa.table({"change": ["+", "-", "-"], "id": [10, 2, 3]}))
    micro-batch 7: 3 rows
    change  id
    +       10
    -        2
    ... and 1 more
    """

    rows: int = 20

    def write(self, batch: int, rows: pa.Table) -> None:
        """Print a micro-batch; one that is done again is printed again."""
        if rows.num_rows:
            print(shown(batch, rows, self.rows), flush=True, file=sys.stdout)

    def last(self) -> int | None:
        """None: what was printed is not remembered."""
        return None


def shown(batch: int, rows: pa.Table, most: int) -> str:
    """A micro-batch as lines of text. O(most)."""
    lines = [f"micro-batch {batch}: {rows.num_rows} row{'' if rows.num_rows == 1 else 's'}"]
    columns = []
    for name, column in zip(rows.column_names, rows.slice(0, most).columns, strict=True):
        cells = [_short(name), *("NULL" if text is None else _short(text) for text in as_text(column).to_pylist())]
        width = max(map(len, cells))
        numbers = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
        columns.append([cell.rjust(width) if numbers else cell.ljust(width) for cell in cells])
    lines += ["  ".join(cells).rstrip() for cells in zip(*columns, strict=True)]
    if rows.num_rows > most:
        lines.append(f"... and {rows.num_rows - most} more")
    return "\n".join(lines)


def _short(text: str) -> str:
    line = " ".join(text.split("\n"))
    return line if len(line) <= _WIDEST else line[: _WIDEST - 3] + "..."
