"""Watchers that keep a board: a report, which is written at the end, and a live page."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from skytide.cli._watch import About, Watcher
from skytide.dashboard.board import Board
from skytide.dashboard.recording import check_report, write_report
from skytide.model import Floats, Preference
from skytide.plots import SAMPLE_ROWS, Sample
from skytide.streams.files import Chunk, Numbers, Source, check_output
from skytide.streams.files.output import as_text

MOST_EXTRA = 12
"""Columns beside those of the preference that a page of a table shows, at most."""


class BoardWatcher(Watcher):
    """Feeds a board with all that passes."""

    fine = True

    def __init__(self) -> None:
        self.board: Board | None = None

    def began(self, about: About) -> None:
        """Make the board."""
        self.board = Board(
            about.preference,
            title=about.title,
            kind=about.kind,
            parameters=about.parameters,
            thresholds=about.thresholds,
        )

    @property
    def _board(self) -> Board:
        assert self.board is not None, "the run has not begun"
        return self.board

    def saw(self, rows: Any, ids: Any, times: Any = None, life: tuple[Any, float] | None = None) -> None:
        """Remember values."""
        self._board.see(rows, ids, times)

    def gone(self, ids: Any) -> None:
        """Forget values."""
        self._board.forget(ids)

    def changed(self, changes: Any) -> None:
        """Change the answer."""
        if len(changes):
            thresholds = getattr(changes, "thresholds", None)
            self._board.change(changes.times, changes.signs, changes.ids, thresholds=thresholds)

    def counted(self, numbers: dict[str, float]) -> None:
        """Show numbers."""
        self._board.meter(**numbers)

    def sent(self, ledger: dict[str, Any]) -> None:
        """Show what was sent."""
        self._board.ledger(ledger)

    def probable(self, ranking: Any) -> None:
        """Show probabilities."""
        self._board.probabilities(ranking.ids, ranking.probabilities.tolist())

    def clock(self, moment: Any) -> None:
        """Show the time."""
        self._board.clock(moment)

    def ended(self, window: Any) -> None:
        """Say that it is over."""
        self._board.end()

    def failed(self, reason: str) -> None:
        """Say why it is over."""
        if self.board is not None:
            self.board.end(reason)


class Report(BoardWatcher):
    """Writes the page of the run when it has ended; the file appears whole or not at all."""

    def __init__(self, path: str) -> None:
        super().__init__()
        check_page(path)
        self._path = path

    def ended(self, window: Any) -> None:
        """Write it."""
        super().ended(window)
        write_report(self._board, self._path)


class TableReport:
    """The page of a skyline of a table: its rows, numbered, with all columns, and some of the others."""

    def __init__(self, path: str, title: str, preference: Preference) -> None:
        check_page(path)
        self._path, self._title, self._preference = path, title, preference
        self._sample = Sample(preference.dimensions + 1)
        self._numbers = Numbers()
        self._groups: dict[tuple[Any, ...], int] = {}

    def see(self, chunk: Chunk) -> None:
        """Take note of rows on their way."""
        self._sample.add(self._matrix(chunk))

    def _matrix(self, chunk: Chunk) -> Floats:
        """The preference columns, and a number for the group."""
        values = [self._numbers.read(chunk, str(name)) for name in self._preference.names]
        texts = [as_text(chunk.table.column(str(name))).to_pylist() for name in self._preference.by]
        groups = [self._groups.setdefault(key, len(self._groups)) for key in zip(*texts, strict=True)]
        return np.column_stack([*values, groups or np.zeros(chunk.table.num_rows)]) + 0.0  # there is one zero

    def write(self, table: pa.Table, source: Source) -> None:
        """Write the page; it appears whole or not at all."""
        names = [str(name) for name in (*self._preference.names, *self._preference.by)]
        extra = [name for name in table.column_names if name not in names][:MOST_EXTRA]
        board = Board(self._preference, title=self._title, kind="skyline", extra=extra, remember=SAMPLE_ROWS)
        inside = self._matrix(Chunk(table, source.label, 1, 0, 1.0, source.verbatim))
        known = {row.tobytes() for row in inside}  # whoever equals a row of the skyline is in it
        rest = self._sample.rows[[row.tobytes() not in known for row in self._sample.rows]]
        board.see(self._table(rest), [f"of a sample: {at + 1}" for at in range(len(rest))])
        shown = self._table(inside)
        for name in extra:
            shown = shown.append_column(name, table.column(name))
        ids = np.arange(1, len(inside) + 1)
        board.change(np.zeros(len(ids)), np.ones(len(ids)), ids, values=shown)
        board.meter(rows=self._sample.seen)
        board.end()
        write_report(board, self._path)

    def _table(self, rows: Floats) -> pa.Table:
        columns: dict[str, Any] = {str(name): rows[:, at] for at, name in enumerate(self._preference.names)}
        keys = list(self._groups)
        for at, name in enumerate(self._preference.by):
            columns[str(name)] = pa.array([keys[int(code)][at] for code in rows[:, -1]], pa.string())
        return pa.table(columns)


def check_page(path: str) -> None:
    """An error where a report could not be written."""
    check_report(path)
    check_output(path, (".html", ".htm"))
