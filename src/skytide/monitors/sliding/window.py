"""The sliding-window skyline: rows arrive, live for a while and expire; the changes of the skyline come out.

After Tao and Papadias, "Maintaining Sliding Window Skylines on Data Streams", TKDE 2006. Where we differ: dominance
needs one strictly better column, rows of one instant are taken together, rows may come out of order, and groups are
independent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from skytide.model import Booleans, Changes, Column, MissingPolicy, Preference, Window, check_missing_policy
from skytide.monitors.drawing import answer_figure
from skytide.monitors.sliding import stored
from skytide.monitors.sliding.base import NEVER, NONE, Batch, MovingWindow, column_or_name, one_row
from skytide.monitors.sliding.choice import maker
from skytide.monitors.sliding.engine import Moves, Rows
from skytide.monitors.sliding.flow import CountFlow, TimeFlow
from skytide.monitors.sliding.ids import net
from skytide.monitors.sliding.scoring import Score, ScoreFunction
from skytide.monitors.sliding.skyband import SkybandEngine
from skytide.monitors.sliding.waiting import Arrivals
from skytide.tables import Table, open_table, oriented, restored, row_count


@dataclass(frozen=True)
class Skyline:
    """An answer: the rows' ids, their preference columns as they came in, their arrival times and groups.

    In a window with a score the values are the scores alone.
    """

    ids: npt.NDArray[Any]
    values: npt.NDArray[np.float64]
    times: npt.NDArray[Any]
    groups: list[tuple[Any, ...]]

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.ids.tolist())


class SlidingWindow(MovingWindow):
    """Keeps the skyline of the last `count` rows, or of the rows of the last `duration`, and says what changes.

    `method` is `eager` (keeps only rows that can still enter the answer), `lazy` (does less per row, keeps the window)
    or `auto`; `index` is `list`, `rtree` or `auto`. All give the same changes. `nulls` is the missing-value policy.
    `lateness` is how far rows may come out of order in a time window. With `by` columns each group has its own window.

    With `k` above 1 the answer is the k-skyband: the rows that fewer than k rows dominate. With `score`, a weight per
    column or a monotone function (see `scoring.Score`), it is the top k: the rows with fewer than k better scores.

    With `capacity` at most so many rows of a call (and group) are worked on; of a larger spike, rows are dropped that
    matter least. `stats()` then says how many, and how many changes may be missing or wrong for it at most (see
    `shedding`).

    >>> window = SlidingWindow(Preference.columns(2), count=2)
    >>> for change in window.extend(np.array([[1.0, 2.0], [2.0, 1.0], [3.0, 0.0]])):
    ...     print(*change)
    1 + 1
    2 + 2
    3 - 1
    3 + 3
    >>> sorted(window.skyline())
    [2, 3]
    """

    def __init__(
        self,
        preference: Preference,
        *,
        count: int | None = None,
        duration: float | int | str | None = None,
        lateness: float | int | str = 0,
        method: str = "auto",
        index: str = "auto",
        nulls: MissingPolicy = "error",
        k: int = 1,
        score: Mapping[Column, float] | Sequence[float] | ScoreFunction | None = None,
        capacity: int | None = None,
        check_ids: bool = True,
    ) -> None:
        self.preference = preference
        self.window = Window(count=count, duration=duration, lateness=lateness)
        self.method, self.index = method, index
        self.nulls = check_missing_policy(nulls)
        self.check_ids = check_ids
        self.k = k
        self.score = None if score is None else Score(preference, score)
        dimensions = preference.dimensions if score is None else 1
        self.capacity = capacity
        make = maker(method, index, dimensions, k, capacity)
        self._begin()
        if self._clock is None:
            self._flow = CountFlow(dimensions, make, length=min(int(count or 1), NEVER))
        else:
            self._flow = TimeFlow(dimensions, make, clock=self._clock)

    # -- rows in -------------------------------------------------------------------------------------------------------

    def extend(self, rows: Table, times: Any = None, ids: Any = None) -> Changes:
        """Take rows in order of arrival and return the changes of the answer that have become final.

        `times` and `ids` are columns or names of columns of `rows`. A time window needs times, a count window has none.
        Without ids the rows are numbered from 1. Rows that come too late, and rows that the policy `drop` leaves out,
        are not taken: their positions are in `late` and `bad` of the result, and they are counted. A call that is
        refused leaves the window as it was. Cost: amortised, a few comparisons per row; see docs/benchmarks.md. Ids
        cost memory for every live row, to refuse one that comes twice, and time unless they are growing numbers.
        """
        table = open_table(rows)
        if not row_count(table):
            return Changes.concatenate([])
        with self._all_or_nothing():
            batch = self._read(table, times)
            kind, column = self._handles.kind_of(column_or_name(table, ids), batch.total)
            codes = self._groups.of(table, batch.kept)
            if kind != "number" and self.check_ids:
                self._admit(column[batch.kept], batch.keys, codes, batch.kept, batch.total)
        # From here on the window changes, and nothing is refused any more.
        handles = self._handles.take(kind, column, batch.total, batch.kept)
        self._tally(batch)
        moves = self._flow.take(Arrivals(batch.values, codes, handles, batch.keys))
        return self._changes(moves).beside(batch.late, batch.bad)

    def insert(self, row: Sequence[Any] | Mapping[str, Any], time: Any = None, id: Any = None) -> Changes:
        """Take one row: its values in the order of the preference's columns, or by column name. As `extend`."""
        table = one_row(self.preference, row)
        return self.extend(table, times=None if time is None else [time], ids=None if id is None else [id])

    def advance(self, now: Any) -> Changes:
        """Let time run on: every instant up to and including `now` is closed. O(what changes)."""
        bound = self._moment(now)
        assert isinstance(self._flow, TimeFlow)
        return self._changes(self._flow.close(bound))

    # -- answers out ---------------------------------------------------------------------------------------------------

    def skyline(self) -> Skyline:
        """The answer as of the latest row (or the time advanced to, if later). Costs a skyline of what is kept."""
        values, handles, arrivals, groups = [], [], [], []
        for code, rows in self._flow.answer_rows().items():
            inside = self._answer(rows)
            values.append(rows.values[inside])
            handles.append(rows.handles[inside])
            arrivals.append(rows.arrivals[inside])
            groups += [self._groups.keys.get(code, ())] * int(inside.sum())
        times = np.concatenate([NONE, *arrivals])
        columns = np.concatenate([np.zeros((0, self._flow.dimensions)), *values])
        return Skyline(
            self._handles.ids(np.concatenate([NONE, *handles])),
            restored(columns, self.preference, self.nulls) if self.score is None else columns,
            self._times(times),
            groups,
        )

    def plot(self, path: str | Path | None = None, *, columns: Sequence[Column] | None = None) -> Any:
        """The answer against what else is kept, as a matplotlib figure; with `path` it is also written there.

        Up to three `columns` are drawn as they are, all of the preference if none are named; more than two side by
        side. Needs matplotlib. Costs `skyline()` and the drawing.

        >>> window = SlidingWindow(Preference.columns(2), count=9)
        >>> _ = window.extend(np.array([[1.0, 2.0], [2.0, 1.0], [3.0, 3.0]]))
        >>> window.plot().axes[0].get_title(loc="left")
        '2 rows in the skyline'
        """
        kept = [rows.values for rows in self._flow.answer_rows().values()]
        rest = np.concatenate([np.zeros((0, self._flow.dimensions)), *kept])
        if self.score is not None:
            return answer_figure(Preference(minimize=["score"]), self.skyline(), rest, path, None)
        return answer_figure(
            self.preference, self.skyline(), restored(rest, self.preference, self.nulls), path, columns
        )

    def _answer(self, rows: Rows) -> Booleans:
        """Which of the rows, all of them alive, are in the answer."""
        from skytide.kernel.batch import skyline_mask

        if self.k == 1:
            return skyline_mask(rows.values)
        inside = np.zeros(len(rows), dtype=bool)
        alike = np.zeros(len(rows), np.int64)
        every = Rows(rows.values, alike, alike + 1, np.arange(len(rows)))
        inside[SkybandEngine(self._flow.dimensions, self.k).run(every, 0).handles] = True
        return inside

    # -- stored --------------------------------------------------------------------------------------------------------

    def options(self) -> dict[str, Any]:
        """How the window was made, as plain values."""
        return super().options() | {
            "method": self.method,
            "index": self.index,
            "k": self.k,
            "score": None if self.score is None else list(self.score.weights),
            "capacity": self.capacity,
        }

    def to_bytes(self) -> bytes:
        """The window as bytes: versioned, checked, without pickle. O(retained rows and live ids).

        >>> window = SlidingWindow(Preference.columns(1), duration=5)
        >>> _ = window.extend(np.array([[2.0], [1.0]]), times=[1, 2])
        >>> again = SlidingWindow.from_bytes(window.to_bytes())
        >>> [tuple(change) for change in again.advance(9)]
        [(2, '-', 1), (2, '+', 2), (7, '-', 2)]
        """
        return stored.dump(self)

    @classmethod
    def from_bytes(cls, blob: bytes, *, score: ScoreFunction | None = None) -> SlidingWindow:
        """The window that `to_bytes` gave; a `StateError` says what is wrong with any other bytes.

        A score that is a function is not stored and must be given again; weights are.
        """
        return stored.restore(blob, cls, score)

    # -- details -------------------------------------------------------------------------------------------------------

    def _read(self, table: Any, times: Any) -> Batch:
        """The rows of a call that are taken, and those that are not; nothing is changed."""
        found = oriented(table, self.preference, self.nulls)
        values = found.values if self.score is None else self.score(found.values)
        return self._judge(table, times, values, slice(None) if found.rows is None else found.rows, row_count(table))

    def _changes(self, moves: Moves) -> Changes:
        times, signs, ids = self._times(moves.times), moves.signs, self._handles.ids(moves.handles)
        if self._may_repeat:
            stays = net(moves.times, signs, ids)
            times, signs, ids = times[stays], signs[stays], ids[stays]
        found = Changes.of(times, signs, ids)
        self._forget()
        return found
