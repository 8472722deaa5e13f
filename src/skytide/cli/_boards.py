"""Watchers that keep a board: a report, which is written at the end, and a live page."""

from __future__ import annotations

from typing import Any

from skytide.cli._watch import About, Watcher
from skytide.dashboard.board import Board


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
        from skytide.dashboard.recording import check_report
        from skytide.streams.files import check_output

        super().__init__()
        check_report(path)
        check_output(path, (".html", ".htm"))
        self._path = path

    def ended(self, window: Any) -> None:
        """Write it."""
        from skytide.dashboard.recording import write_report

        super().ended(window)
        write_report(self._board, self._path)
