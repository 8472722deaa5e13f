"""The probabilistic skyline of a sliding window: rows exist with a probability, and objects may be at several places.

After Zhang, Lin, Zhang, Wang and Yu, "Probabilistic Skyline Operator over Sliding Windows", ICDE 2009 (zhang09p): one
threshold (SSKY), several at once (MSKY), queries for any threshold not below the smallest (QSKY), the most probable.
Where we differ: time windows, groups and rows out of order as in `SlidingWindow`; probability 1 and repeated expiry do
no harm (see the engines); objects with several instances are exact (see `objects`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from skytide.errors import IdError, OptionError
from skytide.model import (
    Column,
    Floats,
    Integers,
    MissingPolicy,
    Preference,
    Window,
    change_order,
    check_missing_policy,
)
from skytide.monitors.drawing import answer_figure
from skytide.monitors.sliding.base import NEVER, NONE, Batch, MovingWindow, column_or_name, one_row
from skytide.monitors.sliding.engine import Moves
from skytide.monitors.sliding.flow import TimeFlow
from skytide.monitors.sliding.ids import Handles, net
from skytide.monitors.sliding.waiting import Arrivals
from skytide.monitors.sliding.window import Skyline
from skytide.monitors.uncertain import stored
from skytide.monitors.uncertain.answers import Answers, Found
from skytide.monitors.uncertain.auto import check_method
from skytide.monitors.uncertain.changes import ThresholdChanges
from skytide.monitors.uncertain.engine import TOLERANCE, UncertainEngine
from skytide.monitors.uncertain.flow import CountedFlow, PackedEngine, TopEngine, make_inner
from skytide.monitors.uncertain.reading import Instances, read_probabilities
from skytide.tables import Table, open_table, oriented, restored, row_count


@dataclass(frozen=True)
class Ranking:
    """Ids with their skyline probabilities, the most probable first, equal ones by id as text; and their groups."""

    ids: npt.NDArray[Any]
    probabilities: Floats
    groups: list[tuple[Any, ...]]

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[tuple[Any, float]]:
        return iter(zip(self.ids.tolist(), self.probabilities.tolist(), strict=True))

    def plot(self, path: str | Path | None = None) -> Any:
        """The probabilities as bars, the largest first: a matplotlib figure; with `path` it is also written there."""
        from skytide.plots import ranking_picture

        return ranking_picture(list(self), path)


class UncertainWindow(MovingWindow):
    """Keeps who is in the skyline with at least a threshold's probability, of the last `count` rows or of a `duration`.

    `thresholds` are numbers above 0, up to 1; a probability within 1e-12 (relative) of one reaches it. `method` is
    `tree`, `scan` or `auto`; all give the same changes. With `top` the answer is the so many most probable at the
    smallest threshold. The rest is as in `SlidingWindow`.

    >>> window = UncertainWindow(Preference.columns(2), count=2, thresholds=[0.5, 0.8])
    >>> rows = np.array([[2.0, 2.0], [1.0, 1.0], [3.0, 0.0]])
    >>> for change in window.extend(rows, probabilities=[0.9, 0.4, 1.0]):
    ...     print(*change)
    1 + 1 0.5
    1 + 1 0.8
    2 - 1 0.8
    3 - 1 0.5
    3 + 3 0.5
    3 + 3 0.8
    >>> list(window.query(0.6)), window.probability(3)
    ([(3, 1.0)], 1.0)
    """

    def __init__(
        self,
        preference: Preference,
        *,
        thresholds: float | Sequence[float],
        count: int | None = None,
        duration: float | int | str | None = None,
        lateness: float | int | str = 0,
        method: str = "auto",
        top: int | None = None,
        nulls: MissingPolicy = "error",
        check_ids: bool = True,
    ) -> None:
        self.preference = preference
        self.window = Window(count=count, duration=duration, lateness=lateness)
        self.thresholds = thresholds_of(thresholds)
        self.method = check_method(method)
        self.answer_size = None if top is None else _whole(top)
        self.nulls = check_missing_policy(nulls)
        self.check_ids = check_ids
        self._objects: bool | None = None  # whether rows are instances of objects; the first ones decide
        self._begin()
        width = preference.dimensions + 1
        if self._clock is None:
            self._flow = CountedFlow(width, self._make, length=min(int(count or 1), NEVER))
        else:
            self._flow = TimeFlow(width, self._make, clock=self._clock)
        self._answers = Answers(self._flow, self._inner)

    # -- rows in -------------------------------------------------------------------------------------------------------

    def extend(
        self, rows: Table, times: Any = None, ids: Any = None, probabilities: Any = None, objects: Any = None
    ) -> ThresholdChanges:
        """Take rows in order of arrival and return the changes of the answers that have become final.

        `probabilities`, like `times` and `ids`, are a column or the name of one (for a bare array also its position): a
        number from 0 to 1 per row. A row of probability 0 never exists: it takes its place in a count window, and is in
        no answer. Missing probabilities follow the policy: an error, unless it is `drop`.

        With `objects`, a column of names in place of ids, neighbouring rows of one name are the instances of one object
        in the order given: it is at one of them, or nowhere. Their probabilities sum to 1 at most, they have one time
        and one group, and all come in one call. Counts then count objects.

        A call that is refused leaves the window as it was. Cost: a few comparisons with candidates per row.
        """
        table = open_table(rows)
        total = row_count(table)
        if not total:
            return ThresholdChanges.none()
        self._check_mode(ids, objects)
        with self._all_or_nothing():
            batch = self._read(table, times, probabilities)
            codes = self._groups.of(table, batch.kept)
            if objects is not None:
                handles = self._admit_objects(table, times, objects, batch, codes)
            else:
                kind, column = self._handles.kind_of(column_or_name(table, ids), total)
                if kind != "number" and self.check_ids:
                    self._admit(column[batch.kept], batch.keys, codes, batch.kept, total)
                handles = self._handles.take(kind, column, total, batch.kept)
        # From here on the window changes, and nothing is refused any more.
        self._objects = objects is not None
        if isinstance(self._flow, CountedFlow):
            self._flow.objects = self._objects
        self._tally(batch)
        moves = self._flow.take(Arrivals(batch.values, codes, handles, batch.keys))
        return self._changes(moves).beside(batch.late, batch.bad)

    def insert(
        self, row: Sequence[Any] | Mapping[str, Any], time: Any = None, id: Any = None, probability: Any = None
    ) -> ThresholdChanges:
        """Take one row: its values in the order of the preference's columns, or by column name. As `extend`."""
        return self.extend(
            one_row(self.preference, row),
            times=None if time is None else [time],
            ids=None if id is None else [id],
            probabilities=probability if isinstance(probability, str) else [probability],
        )

    def advance(self, now: Any) -> ThresholdChanges:
        """Let time run on: every instant up to and including `now` is closed. O(what changes)."""
        bound = self._moment(now)
        assert isinstance(self._flow, TimeFlow)
        return self._changes(self._flow.close(bound))

    # -- answers out ---------------------------------------------------------------------------------------------------

    def query(self, q: float | None = None) -> Ranking:
        """Who is in the skyline with probability `q` or more, as of the latest row; `q` is not below the smallest.

        Without `q`: the smallest threshold. O(candidates); in a time window, the first query after new rows also takes
        those whose instant is not closed.
        """
        return self._ranking(self._found(self._asked(q)))

    def top(self, k: int) -> Ranking:
        """The `k` most probable of each group that reach the smallest threshold; equal ones share their fate.

        >>> window = UncertainWindow(Preference.columns(1), count=9, thresholds=0.1)
        >>> _ = window.extend(np.array([[1.0], [2.0], [3.0]]), probabilities=[0.5, 0.8, 0.8])
        >>> [(one, round(chance, 3)) for one, chance in window.top(1)]
        [(1, 0.5)]
        """
        return self._ranking(self._found(self.thresholds[-1], _whole(k)))

    def probability(self, id: Any) -> float:
        """The skyline probability of a member of the answer at the smallest threshold. O(candidates).

        Of others it is not known: what is kept of the window suffices to know that it is below the threshold.
        """
        found = self._answers.members(self.thresholds[-1])
        for one, chance in zip(self._handles.ids(found.handles).tolist(), found.chances.tolist(), strict=True):
            if one == id:
                return float(chance)
        raise IdError(
            f"is not the id of a row in the answer at the threshold {self.thresholds[-1]}",
            value=id,
            remedy="ask for members of query()",
        )

    def skyline(self, q: float | None = None) -> Skyline:
        """The rows of `query(q)`, with values, arrival times and groups; without `q`, of the window's own answer.

        In a window of objects there are no values: an object has several places.
        """
        found = self._found(self._asked(q), self.answer_size if q is None else None)
        ranking = self._ranking(found)
        values, arrivals = self._answers.rows(found)
        values = values[:, :0] if self._objects else restored(values, self.preference, self.nulls)
        return Skyline(ranking.ids, values, self._times(arrivals), ranking.groups)

    def plot(self, path: str | Path | None = None, *, columns: Sequence[Column] | None = None) -> Any:
        """The answer coloured by probability, as a matplotlib figure; otherwise as `SlidingWindow.plot`.

        In a window of objects, which have no values, the probabilities as bars.

        >>> window = UncertainWindow(Preference.columns(2), count=9, thresholds=0.5)
        >>> _ = window.extend(np.array([[1.0, 2.0], [2.0, 1.0]]), probabilities=[0.9, 0.6])
        >>> window.plot().axes[0].get_title(loc="left")
        '2 rows in the skyline'
        """
        found = self._found(self.thresholds[-1], self.answer_size)
        if self._objects:
            return self._ranking(found).plot(path)
        rest = [rows.values[:, : self.preference.dimensions] for rows in self._flow.answer_rows().values()]
        kept = restored(np.concatenate([np.zeros((0, self.preference.dimensions)), *rest]), self.preference, self.nulls)
        return answer_figure(self.preference, self.skyline(), kept, path, columns, found.chances)

    def _asked(self, q: float | None) -> float:
        least = self.thresholds[-1]
        if q is None:
            return least
        if isinstance(q, bool) or not isinstance(q, Real) or not least * (1 - TOLERANCE) <= q <= 1:
            raise OptionError(
                "is not a probability that can be asked for",
                value=q,
                remedy=f"give a number from the smallest threshold, {least}, to 1",
            )
        return max(float(q), least)

    def _found(self, least: float, k: int | None = None) -> Found:
        """The members of an answer in the order of their probabilities; almost equal ones in that of their ids."""
        found = self._answers.members(least, k)
        found = found.pick(np.argsort(-found.chances, kind="stable"))
        apart = found.chances[1:] < found.chances[:-1] * (1 - TOLERANCE)
        rank = np.concatenate((NONE, np.cumsum(np.concatenate(([0], apart))) if len(found.handles) else NONE))
        return found.pick(change_order(rank, np.zeros_like(rank), self._handles.ids(found.handles)))

    def _ranking(self, found: Found) -> Ranking:
        groups = [self._groups.keys.get(code, ()) for code in found.codes.tolist()]
        return Ranking(self._handles.ids(found.handles), found.chances, groups)

    # -- stored --------------------------------------------------------------------------------------------------------

    def options(self) -> dict[str, Any]:
        """How the window was made, as plain values."""
        return super().options() | {
            "thresholds": list(self.thresholds),
            "method": self.method,
            "top": self.answer_size,
        }

    def to_bytes(self) -> bytes:
        """The window as bytes: versioned, checked, without pickle. O(retained rows and live ids).

        >>> window = UncertainWindow(Preference.columns(1), duration=5, thresholds=0.5)
        >>> _ = window.extend(np.array([[2.0], [1.0]]), times=[1, 2], probabilities=[0.8, 0.5])
        >>> again = UncertainWindow.from_bytes(window.to_bytes())
        >>> [tuple(change) for change in again.advance(9)]
        [(2, '-', 1, 0.5), (2, '+', 2, 0.5), (7, '-', 2, 0.5)]
        """
        return stored.dump(self)

    @classmethod
    def from_bytes(cls, blob: bytes) -> UncertainWindow:
        """The window that `to_bytes` gave; a `StateError` says what is wrong with any other bytes."""
        return stored.restore(blob, cls)

    # -- details -------------------------------------------------------------------------------------------------------

    def _inner(self) -> UncertainEngine:
        levels = np.array(self.thresholds)
        return make_inner(self.preference.dimensions, levels, self.method, objects=bool(self._objects))

    def _make(self) -> PackedEngine:
        engine = self._inner()
        top = self.answer_size
        return PackedEngine(engine if top is None else TopEngine(engine, np.array(self.thresholds), top))

    def _check_mode(self, ids: Any, objects: Any) -> None:
        """Rows or objects, but not now these and now those."""
        if objects is not None and ids is not None:
            raise OptionError("objects are their own ids", remedy="give either ids or objects")
        if self._objects is not None and self._objects != (objects is not None):
            was = "objects" if self._objects else "single rows"
            raise OptionError(f"the window's rows are {was}", remedy="give objects throughout, or never")
        if objects is not None and self.method == "tree":
            raise OptionError("is not a method for objects", value=self.method, remedy="leave method out, or use scan")

    def _read(self, table: Any, times: Any, probabilities: Any) -> Batch:
        """The rows of a call that are taken, with their probabilities as a last column; nothing is changed."""
        total = row_count(table)
        found = oriented(table, self.preference, self.nulls)
        chances = read_probabilities(table, probabilities, total, self.nulls)
        kept: Integers | slice = slice(None) if found.rows is None else found.rows
        values = np.column_stack((found.values, chances[kept]))
        missing = np.isnan(values[:, -1])
        if missing.any():
            values, kept = values[~missing], np.arange(total)[kept][~missing]
        return self._judge(table, times, values, kept, total)

    def _admit_objects(self, table: Any, times: Any, objects: Any, batch: Batch, codes: Integers) -> Integers:
        """The handles of the rows that are taken, one per object; objects that make no sense are refused."""
        # Objects are numbered, whatever their names are: neighbours with one handle are then always one object.
        instances = Instances(Handles().kind_of(column_or_name(table, objects), batch.total)[1])
        if self._clock is not None:
            instances.check_times(self._read_times(table, times, batch.total)[0])
        kept = np.arange(batch.total)[batch.kept]
        instances.check_kept(kept, codes, batch.values[:, -1])
        present, owner = instances.of(kept)
        first = np.searchsorted(owner, np.arange(len(present)))
        if self.check_ids:
            self._admit(instances.names[present], batch.keys[first], codes[first], kept[first], batch.total)
        return self._handles.take("other", instances.names, len(instances), present)[owner]

    def _changes(self, moves: Moves) -> ThresholdChanges:
        self._answers.renew()
        places, signs = np.abs(moves.signs) - 1, np.sign(moves.signs)
        times, ids = self._times(moves.times), self._handles.ids(moves.handles)
        if self._may_repeat:
            both = np.empty(len(ids), dtype=object)
            both[:] = list(zip(ids.tolist(), places.tolist(), strict=True))
            stays = net(moves.times, signs, both)
            times, signs, ids, places = times[stays], signs[stays], ids[stays], places[stays]
        found = ThresholdChanges.of(times, signs, ids, np.array(self.thresholds)[places])
        self._forget()
        return found


def thresholds_of(given: float | Sequence[float]) -> tuple[float, ...]:
    """The thresholds, each once, in falling order."""
    try:
        listed: list[Any] = [given] if isinstance(given, Real | float) else list(given)
        levels = [float(one) for one in listed if not isinstance(one, bool | str)]
    except (TypeError, ValueError):
        levels = []
    if not levels or len(levels) < len(listed) or not all(0 < one <= 1 for one in levels):
        raise OptionError("are not thresholds", value=given, remedy="give one number above 0, up to 1, or several")
    return tuple(sorted(set(levels), reverse=True))


def _whole(k: int) -> int:
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise OptionError("is not a number of rows", value=k, remedy="give a whole number from 1")
    return int(k)
