"""A page to watch a query by: a `Board` holds what it shows, `Page` serves it, `write_report` keeps it in one file.

Whoever runs a query feeds the board: a command over a file, a follower of a Spark pipeline or of a coordinator.
"""

from __future__ import annotations

from skytide.dashboard.board import Board
from skytide.dashboard.recording import write_report
from skytide.dashboard.server import Page

__all__ = ["Board", "Page", "write_report"]
