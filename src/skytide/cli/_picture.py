"""What --plot does while the chunks pass, and when the skyline is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from skytide.model import Floats, Preference
from skytide.plots import Sample, check_plot, draw_skyline
from skytide.streams.files import Chunk, Numbers, Source
from skytide.streams.files.output import as_text, publish, temporary_beside


class Picture:
    """A plot of two or three columns: samples the rows that pass, then draws them and the skyline."""

    def __init__(self, path: str, columns: str | None, preference: Preference) -> None:
        default = tuple(str(name) for name in preference.names[:3])
        self.columns = default if columns is None else tuple(part.strip() for part in columns.split(","))
        check_plot(path, self.columns)
        self._path = Path(path)
        self._preference = preference
        self._sample = Sample(len(self.columns))
        self._numbers = Numbers()

    def _matrix(self, chunk: Chunk) -> Floats:
        return np.column_stack([self._numbers.read(chunk, name) for name in self.columns])

    def see(self, chunk: Chunk) -> None:
        """Take note of rows on their way."""
        self._sample.add(self._matrix(chunk))

    def draw(self, table: pa.Table, source: Source) -> None:
        """Write the picture of the skyline in `table`; it appears whole or not at all."""
        whole = Chunk(table, source.label, 1, 0, 1.0, source.verbatim)
        temporary = temporary_beside(self._path)
        try:
            draw_skyline(
                temporary, self.columns, self._preference, self._sample, self._matrix(whole), self._groups(table)
            )
            publish(temporary, self._path)
        finally:
            temporary.unlink(missing_ok=True)

    def _groups(self, table: pa.Table) -> list[str] | None:
        if not self._preference.by:
            return None
        texts = [as_text(table.column(str(name))).to_pylist() for name in self._preference.by]
        return [", ".join("NULL" if text is None else text for text in row) for row in zip(*texts, strict=True)]
