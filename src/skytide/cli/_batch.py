"""Rows of DATA on their way into a window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Batch:
    """Rows of DATA on their way into a window: preference and `by` columns, and what goes beside them.

    `pieces` say where the rows come from: file, number of the first row in it, how many rows.
    """

    rows: pa.Table
    beside: pa.Table
    pieces: list[tuple[str, int, int]]
    done: float

    def place(self, position: int) -> tuple[str, int]:
        """The file and the row's number in it, of the row at a position."""
        for file, first, count in self.pieces[:-1]:
            if position < count:
                return file, first + position
            position -= count
        file, first, _ = self.pieces[-1]
        return file, first + position

    def join(self, later: Batch) -> Batch:
        """These rows, then the later ones."""
        import pyarrow as pa

        rows, beside = pa.concat_tables([self.rows, later.rows]), pa.concat_tables([self.beside, later.beside])
        return Batch(rows, beside, [*self.pieces, *later.pieces], later.done)

    def slice(self, start: int, stop: int) -> Batch:
        """The rows at these positions."""
        pieces, before = [], 0
        for file, first, count in self.pieces:
            low, high = max(start, before), min(stop, before + count)
            if low < high:
                pieces.append((file, first + low - before, high - low))
            before += count
        length = stop - start
        return Batch(self.rows.slice(start, length), self.beside.slice(start, length), pieces, self.done)
