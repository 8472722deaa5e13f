"""Between what a sink holds and what a board shows: changes as they are, or a whole answer as the difference to it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from skytide.dashboard.board import Board
from skytide.dashboard.lives import Lives
from skytide.dashboard.values import moments, texts
from skytide.spark.pipeline.about import About

THRESHOLD = "threshold"
Key = tuple[str, ...]


class Shown:
    """Which rows a board shows, by id, group and threshold."""

    def __init__(self, board: Board, about: About) -> None:
        self._board, self._about = board, about
        self._rows: dict[Key, list[Any]] = {}
        self._time: Any = None
        timed = about.kind in ("window", "uncertain") and "duration" in about.parameters
        self._lives = Lives(board, about.parameters["duration"], about.by) if timed else None

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def keys(self) -> list[str]:
        """The columns of changes that together name a row."""
        thresholds = [THRESHOLD] if self._about.thresholds else []
        return ["id", *map(self._about.column, self._about.by), *thresholds]

    def passed(self, rows: pa.Table) -> None:
        """Rows of the source that are known otherwise: they are among the rest as long as they live. O(rows)."""
        ids = rows.column(self._about.id)
        self._board.see(rows, ids)
        if self._lives is not None:
            self._lives.begin(rows.column(self._timed), texts(ids), rows)

    @property
    def _timed(self) -> str:
        """The column of rows with their times."""
        return str(self._about.parameters["time"])

    def changes(self, rows: pa.Table) -> None:
        """Changes in their order. O(changes)."""
        if not rows.num_rows:
            return
        keys = self._named(rows)
        columns = [rows.column(name).to_pylist() for name in self.keys if name in rows.column_names]
        signs = rows.column("change").to_pylist()
        for key, sign, parts in zip(keys, signs, zip(*columns, strict=True), strict=True):
            if sign == "+":
                self._rows[key] = list(parts)
            else:
                self._rows.pop(key, None)
        self._time = rows.column("time").slice(rows.num_rows - 1)
        self._show(rows)
        if self._lives is not None:
            self._die(self._lives, rows)

    def _die(self, lives: Lives, rows: pa.Table) -> None:
        """Who left because of others may live on, and is known until its end."""
        column = self._about.column(self._timed)
        if column in rows.column_names:
            entered = rows.filter(pc.equal(rows.column("change"), "+"))
            lives.begin(entered.column(column), texts(entered.column("id")), self._values(entered))
        lives.end(float(moments(self._time)[0][-1]))

    def answer(self, rows: pa.Table) -> None:
        """The whole answer, `time` is when a row entered: what it adds and lacks. O(answer)."""
        keys = self._named(rows)
        if rows.num_rows and (self._time is None or not self._rows):
            self._enter(rows.sort_by("time"))
            return
        there = set(keys)
        gone = [parts for key, parts in self._rows.items() if key not in there]
        new = [place for place, key in enumerate(keys) if key not in self._rows]
        if gone:
            self._leave(gone)
        stay = [place for place, key in enumerate(keys) if key in self._rows]
        same = rows.take(pa.array(stay, pa.int64()))
        values = self._values(same)
        if values.num_columns:  # they may be others
            self._board.see(values, same.column("id"))
        if new:
            self._enter(self._not_before(rows.take(pa.array(new)).sort_by("time")))

    def _enter(self, rows: pa.Table) -> None:
        if "change" in rows.column_names:
            rows = rows.drop_columns(["change"])
        self.changes(rows.append_column("change", pa.array(["+"] * rows.num_rows)))

    def _not_before(self, rows: pa.Table) -> pa.Table:
        """Rows that entered unseen: they did so now, as the past was shown otherwise."""
        place, times = rows.column_names.index("time"), rows.column("time")
        now = self._time[0]
        if now.type != times.type:
            now = now.cast(times.type)
        return rows.set_column(place, "time", pc.max_element_wise(times, now))

    def _leave(self, gone: list[list[Any]]) -> None:
        columns = zip(*gone, strict=True)
        table = pa.table(dict(zip(self.keys, map(list, columns), strict=False)))
        times = pa.chunked_array([chunk for _ in gone for chunk in self._time.chunks], self._time.type)
        table = table.append_column("time", times).append_column("change", pa.array(["-"] * len(gone)))
        self.changes(table)

    def _named(self, rows: pa.Table) -> list[Key]:
        columns = [texts(rows.column(name)) for name in self.keys if name in rows.column_names]
        return list(zip(*columns, strict=True))

    def _show(self, rows: pa.Table) -> None:
        limits = rows.column(THRESHOLD).to_pylist() if self._about.thresholds else None
        values = self._values(rows)
        given = values if values.num_columns else None
        self._board.change(rows.column("time"), rows.column("change"), rows.column("id"), given, limits)

    def _values(self, rows: pa.Table) -> pa.Table:
        about = self._about
        names = dict.fromkeys((*about.minimize, *about.maximize, *about.by, *about.extra))
        inner = {name: about.column(name) for name in names}
        return pa.table({name: rows.column(column) for name, column in inner.items() if column in rows.column_names})
