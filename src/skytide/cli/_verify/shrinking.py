"""From an input on which a run is wrong to a small one on which it still is.

First the shortest prefix that a search by halves finds, then ever smaller pieces are left out (Zeller and Hildebrandt,
"Simplifying and isolating failure-inducing input", 2002), until the time is up or no single row can go.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa

from skytide.model import Integers
from skytide.streams.files import open_data, write_table


class Shrinking:
    """Makes DATA small while `fails` says of a file that the run over it is wrong."""

    def __init__(
        self,
        data: str,
        fails: Callable[[str], bool],
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fails, self._clock = fails, clock
        self._end = clock() + seconds
        with open_data(data) as source:
            parts = [source.schema.empty_table(), *(chunk.table for chunk in source.chunks())]
            self._table = pa.concat_tables(parts)
            self._extension = ".csv" if source.verbatim else ".parquet"

    def rows(self) -> pa.Table:
        """The rows of a small input on which the run is still wrong."""
        kept = self._without_pieces(np.arange(self._prefix()))
        return self._table.take(pa.array(kept))

    def _wrong(self, kept: Integers) -> bool:
        with TemporaryDirectory(prefix="skytide-verify-") as folder:
            path = str(Path(folder) / f"rows{self._extension}")
            write_table(path, self._table.take(pa.array(kept)))
            return self._fails(path)

    def _prefix(self) -> int:
        """The length of a prefix that fails, the shortest if longer ones fail, too."""
        low, high = 0, int(self._table.num_rows)
        while high - low > 1 and self._clock() < self._end:
            middle = (low + high) // 2
            low, high = (low, middle) if self._wrong(np.arange(middle)) else (middle, high)
        return high

    def _without_pieces(self, kept: Integers) -> Integers:
        size = max(1, len(kept) // 2)
        while self._clock() < self._end:
            smaller, start = False, 0
            while start < len(kept) and self._clock() < self._end:
                tried = np.concatenate((kept[:start], kept[start + size :]))
                if len(tried) and self._wrong(tried):
                    kept, smaller = tried, True
                else:
                    start += size
            if size == 1 and not smaller:
                break
            size = size if smaller and size == 1 else max(1, size // 2)
        return kept
