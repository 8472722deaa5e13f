"""What a run tells its watchers: rows of a window as they pass and expire, objects as they are when an instant is over.

The values of a row that enters the answer are told before it enters. So rows are cut where an id comes again, and
updates of objects at every new time.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skytide.cli._watch import Watch, kept_by
from skytide.model import Booleans, Floats, duration_value
from skytide.tables import as_array

if TYPE_CHECKING:
    from skytide.cli._batch import Batch


class Part:
    """Some of a run of changes."""

    def __init__(self, changes: Any, which: Booleans) -> None:
        self.times, self.signs, self.ids = changes.times[which], changes.signs[which], changes.ids[which]
        if hasattr(changes, "thresholds"):
            self.thresholds = changes.thresholds[which]

    def __len__(self) -> int:
        return len(self.times)


class Told:
    """What is told of any run."""

    def __init__(self, watch: Watch, window: Any) -> None:
        self._watch, self._window = watch, window

    def cuts(self, batch: Batch) -> list[int]:
        """Where rows must be cut."""
        return []

    def allowed(self, batch: Batch, positions: list[int]) -> list[int]:
        """Positions, moved to where rows may be cut."""
        return positions

    def after(self, batch: Batch, changes: Any, seconds: float) -> None:
        """Rows went into the window, which took so long."""
        self._watch.tell("changed", self._seen(batch, _kept(changes, batch.rows.num_rows), changes))
        if self._watch.counted(self._window, batch.rows.num_rows, seconds):
            self._look()

    def advanced(self, moment: Any, changes: Any) -> None:
        """Time went on."""
        self._settled()
        self._watch.tell("changed", changes)
        self._watch.tell("clock", moment)

    def ended(self) -> None:
        """The run is over."""
        if self._watch.fine:
            self._watch.tell("counted", kept_by(self._window))
            self._look()
        self._watch.tell("ended", self._window)

    def _seen(self, batch: Batch, kept: Booleans, changes: Any) -> Any:
        """Tell of rows that were taken; the changes that are still to be told."""
        return changes

    def _settled(self) -> None:
        """Tell of what is over."""

    def _look(self) -> None:
        """Tell what takes long to know."""
        if hasattr(self._window, "ledger"):
            self._watch.tell("sent", self._window.ledger())
        if hasattr(self._window, "query") and self._watch.fine:
            self._watch.tell("probable", self._window.query())


class RowsTold(Told):
    """Of windows: rows pass, and are forgotten when they have expired."""

    def __init__(self, watch: Watch, window: Any) -> None:
        super().__init__(watch, window)
        self._number = 0
        self._living: deque[tuple[Floats, npt.NDArray[Any]]] = deque()
        self._taken, self._latest = 0, -np.inf
        self._life = _life(window)
        self._patience = 0.0 if self._life is None else _length(window.window.lateness)

    def _ids(self, batch: Batch) -> npt.NDArray[Any]:
        for role in ("ids", "objects"):
            if role in batch.beside.column_names:
                return as_array(batch.beside.column(role))
        return np.arange(self._number + 1, self._number + batch.rows.num_rows + 1)

    def cuts(self, batch: Batch) -> list[int]:
        """Where an id comes again."""
        if "ids" not in batch.beside.column_names:
            return []
        found, seen = [], set[Any]()
        for place, one in enumerate(self._ids(batch).tolist()):
            if one in seen:
                found.append(place)
                seen.clear()
            seen.add(one)
        return found

    def allowed(self, batch: Batch, positions: list[int]) -> list[int]:
        """An object is not cut."""
        if "objects" not in batch.beside.column_names or not positions:
            return positions
        names = as_array(batch.beside.column("objects"))
        borders = np.append(np.flatnonzero(names[1:] != names[:-1]) + 1, len(names))
        found: list[int] = borders[np.searchsorted(borders, positions)].tolist()
        return found

    def after(self, batch: Batch, changes: Any, seconds: float) -> None:
        """Rows went into the window, and others expired."""
        super().after(batch, changes, seconds)
        if self._life is not None:
            self._expire(self._latest - self._life - self._patience)

    def _expire(self, bound: float) -> None:
        while self._living:
            keys, ids = self._living[0]
            old = keys <= bound
            if not old.any():
                return
            self._watch.tell("gone", ids[old])
            if not old.all():
                self._living[0] = keys[~old], ids[~old]
                return
            self._living.popleft()

    def _seen(self, batch: Batch, kept: Booleans, changes: Any) -> Any:
        ids = self._ids(batch)
        self._number += len(ids)
        rows = batch.rows if kept.all() else batch.rows.filter(pa.array(kept))
        ids = ids[kept]
        if not len(ids):
            return changes
        times: Any = self._taken + 1.0 + np.arange(len(ids))
        keys: Floats = times
        if "times" in batch.beside.column_names:
            times = batch.beside.column("times").filter(pa.array(kept))
            keys = _moments(times)
            changes = self._earlier(changes, float(keys.min()))
        if self._life is not None:
            self._expire(float(keys.min()) - self._life - self._patience)  # before an id may come again
        self._taken += len(ids)
        self._latest = max(self._latest, float(keys.max()))
        life = None if self._life is None else (keys, self._latest - self._life)
        if life is not None and self._watch.fine:
            self._living.append((keys, ids))
        self._watch.tell("saw", rows, ids, times, life)
        return changes

    def _earlier(self, changes: Any, first: float) -> Any:
        """Tell the changes before a time, at which the id of one that leaves may come again; the others."""
        old = _moments(changes.times) < first if len(changes) and self._watch.fine else np.zeros(0, bool)
        if not old.any():
            return changes
        self._watch.tell("changed", Part(changes, old))
        return Part(changes, ~old)

    def advanced(self, moment: Any, changes: Any) -> None:
        """Time went on, and rows expired."""
        super().advanced(moment, changes)
        if self._life is not None:
            bound = float(_moments([moment])[0]) - self._life
            self._expire(bound)
            self._watch.tell("expired", bound)


class ObjectsTold(Told):
    """Of objects under updates: their values when an instant is over, and that they are gone."""

    def __init__(self, watch: Watch, window: Any) -> None:
        super().__init__(watch, window)
        self._waiting: list[tuple[pa.ChunkedArray, npt.NDArray[Any]]] = []

    def cuts(self, batch: Batch) -> list[int]:
        """Where the time is another one."""
        times = as_array(batch.beside.column("times"))
        found: list[int] = (np.flatnonzero(np.asarray(times[1:] != times[:-1], bool)) + 1).tolist()
        return found

    def _seen(self, batch: Batch, kept: Booleans, changes: Any) -> Any:
        if self._watch.fine and kept.any():
            chosen = pa.array(kept)
            ids = as_array(batch.beside.column("ids").filter(chosen))
            self._waiting.append((batch.beside.column("times").filter(chosen), ids))
        self._settled()
        return changes

    def _settled(self) -> None:
        waiting, self._waiting = self._waiting, []
        for times, ids in waiting:
            over = self._window.is_over(times)
            if over.any():
                self._tell(as_array(times)[over], ids[over])
            if not over.all():
                self._waiting.append((times.filter(pa.array(~over)), ids[~over]))

    def _tell(self, times: npt.NDArray[Any], ids: npt.NDArray[Any]) -> None:
        last = dict(zip(ids.tolist(), times.tolist() if times.dtype.kind != "M" else times, strict=True))
        found = self._window.standing(list(last))
        table = standing_table(found, self._window.told_preference)
        self._watch.tell("saw", table, found.ids, [last[one] for one in found.ids.tolist()])
        here = set(found.ids.tolist())
        away = [one for one in last if one not in here]
        if away:
            self._watch.tell("gone", away)


def standing_table(found: Any, preference: Any) -> pa.Table:
    """An answer with values and groups as a table with the columns of the preference."""
    columns: dict[str, Any] = {str(name): found.values[:, at] for at, name in enumerate(preference.names)}
    for at, name in enumerate(preference.by):
        columns[str(name)] = pa.array([group[at] if group else None for group in found.groups])
    return pa.table(columns)


def _kept(changes: Any, rows: int) -> Booleans:
    """Which rows were taken."""
    kept = np.ones(rows, bool)
    kept[changes.late] = False
    kept[changes.bad] = False
    return kept


def _life(window: Any) -> float | None:
    """How long a row lives, in rows or in the numbers of `moments`; None where that takes more to know."""
    if window.window.count is not None:
        return None if window.preference.by else float(window.window.count)
    return _length(window.window.duration)


def _length(length: float | int | str) -> float:
    """A length of time in the numbers of `moments`."""
    return duration_value(length) / 1e6 if isinstance(length, str) else float(length)


def _moments(times: Any) -> Floats:
    from skytide.dashboard.values import moments

    return moments(times)[0]
