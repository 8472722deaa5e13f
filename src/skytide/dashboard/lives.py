"""How long rows of a window live: those whose time is over are no longer among the rest that a page shows."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Sequence

import pyarrow as pa

from skytide.dashboard.board import Board
from skytide.dashboard.values import column_values, moments
from skytide.model import duration_value

_NANOSECONDS = 1e6
"""In a millisecond, which is what a page counts in."""


class Lives:
    """Rows by the end of their lives.

    `by` are the columns that together with the id name a row.
    """

    def __init__(self, board: Board, duration: str | float, by: Sequence[str]) -> None:
        self._board, self._by = board, list(by)
        self._length = duration_value(duration) / (_NANOSECONDS if isinstance(duration, str) else 1.0)
        self._ends: list[tuple[float, str, tuple[str, ...]]] = []
        self._lock = threading.Lock()  # rows may be told by another thread than changes

    def begin(self, times: pa.ChunkedArray, ids: Sequence[str], rows: pa.Table) -> None:
        """Rows that began to live. O(rows log rows)."""
        columns = [column_values(rows.column(name)) for name in self._by]
        groups = list(zip(*columns, strict=True)) if columns else [()] * len(ids)
        with self._lock:
            for start, one, group in zip(moments(times)[0].tolist(), ids, groups, strict=True):
                heapq.heappush(self._ends, (start + self._length, one, tuple(map(str, group))))

    def end(self, now: float) -> None:
        """Forget the rows whose lives are over. O(rows log rows)."""
        over = []
        with self._lock:
            while self._ends and self._ends[0][0] <= now:
                over.append(heapq.heappop(self._ends))
        if over:
            columns = zip(*(group for _, _, group in over), strict=True)
            rows = {name: pa.array(list(column)) for name, column in zip(self._by, columns, strict=False)}
            self._board.forget([one for _, one, _ in over], pa.table(rows) if rows else None)
