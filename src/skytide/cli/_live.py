"""The watcher of `skytide dashboard`: a board that is served while the rows pass at their pace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from skytide.cli._boards import BoardWatcher
from skytide.cli._pace import Pace
from skytide.cli._watch import About
from skytide.dashboard.board import Board


class Live(BoardWatcher):
    """Shows the run as it goes; changes that nobody asked a file for are written nowhere."""

    silent = True

    def __init__(self, context: click.Context, pace: Pace, serve: Callable[[Board], None]) -> None:
        super().__init__()
        self._context, self._pace, self._serve = context, pace, serve

    def began(self, about: About) -> None:
        """Make the board, and serve it."""
        if self._pace.by_times and "time" not in about.parameters:
            raise click.UsageError("--speed goes by the times in DATA, and here are none; give --rate", self._context)
        super().began(about)
        self._serve(self._board)

    def pieces(self, times: Any, rows: int) -> list[int]:
        """As the pace wants it."""
        return self._pace.pieces(times, rows)

    def wait(self, times: Any, rows: int) -> None:
        """As the pace wants it."""
        self._pace.wait(times, rows)
