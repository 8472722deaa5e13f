"""What a page shows of a query: the answer with its values, what changed since, its history, its numbers.

One thread feeds the board, any number read it; each call is one step under a lock, so that readers see whole instants.
Changes have numbers. A reader is the number up to which it knows everything: it asks for the net difference since, and
gets the whole state where the board does not remember that far back.
"""

from __future__ import annotations

import math
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from skytide.dashboard import why
from skytide.dashboard.gauges import Gauges
from skytide.dashboard.history import History, Version
from skytide.dashboard.rows import Rows, Values
from skytide.dashboard.values import Clock, Value, column_values, moments, plain, texts
from skytide.errors import InputError, OptionError
from skytide.model import Preference

KINDS = ("skyline", "window", "uncertain", "snapshots", "frequent", "monitor", "fragments")
SHOWN_CHANGES = 200
RECORDED_VERSIONS = 50_000
LOOKED_AT = 20_000
"""Remembered rows that an explanation looks at."""
_BETWEEN = "\x1f"
Row = list[Any]


class _Step(NamedTuple):
    """One entry of the log: a key was in the answer before, or was not."""

    key: str
    was_in: bool


class Board:
    """The state of a query that is watched; see the module.

    >>> board = Board(Preference(minimize=["price"], maximize=["rating"]), title="cars", kind="window")
    >>> board.see(pa.table({"price": [9, 7], "rating": [4, 5]}), ["ant", "bee"])
    >>> board.change([1], "+", ["ant"])
    >>> known = board.number
    >>> board.change([2, 2], "-+", ["ant", "bee"])
    >>> tick = board.since(known)
    >>> tick["entered"], tick["left"]
    ([['bee', 'bee', None, 2.0, [7, 5], None]], [['ant', 2.0]])
    >>> [row[0] for row in board.at(1)]
    ['ant']
    """

    def __init__(
        self,
        preference: Preference,
        *,
        title: str = "",
        kind: str = "window",
        parameters: Mapping[str, str | float] | None = None,
        thresholds: Sequence[float] = (),
        extra: Sequence[str] = (),
        keyed_by: Sequence[str] = (),
        remember: int = 300_000,
        keep: int = 200_000,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if kind not in KINDS:
            raise OptionError("is not a kind of query", value=kind, remedy=f"use one of {', '.join(KINDS)}")
        self.preference, self.title, self.kind = preference, title, kind
        self.epoch = secrets.token_hex(4)
        """Tells this board from another one that counts its changes anew."""
        self._parameters = dict(parameters or {})
        self._thresholds = tuple(sorted(thresholds))
        names = [*preference.names, *preference.by]
        self._names = [str(name) for name in [*names, *(name for name in extra if name not in names)]]
        self._keyed_by = [str(name) for name in keyed_by]
        self._lock = threading.RLock()
        self._rows = Rows(remember)
        self._history = History(keep)
        self._gauges = Gauges(clock)
        self._log: deque[_Step] = deque(maxlen=keep)
        self._changes: deque[list[Any]] = deque(maxlen=SHOWN_CHANGES)
        self._count = 0
        self._number = self._beat = 0
        self._rated: dict[str, tuple[int, float]] = {}
        self._clock: Clock = "number"
        self._time: float | None = None
        self._ledger: dict[str, Any] | None = None
        self._exact, self._notices = True, list[str]()
        self._status, self._reason = "running", ""

    # -- feeding -------------------------------------------------------------------------------------------------------

    def see(self, rows: pa.Table, ids: Any, times: Any = None) -> None:
        """Rows that passed, or objects with new values, from `times` on. O(rows)."""
        values = self._read(rows)
        keys = self._keys(texts(ids), values)
        since = None if times is None else moments(times)[0].tolist()
        with self._lock:
            self._rows.put(keys, values)
            here = self._history.open
            for at, key in enumerate(keys):
                if key in here and here[key].values != values[at]:
                    self._move(key, values[at], None if since is None else since[at])

    def change(self, times: Any, signs: Any, ids: Any, values: pa.Table | None = None, thresholds: Any = None) -> None:
        """Changes of instants that are closed, in their order; see the module. O(changes)."""
        when, clock = moments(times)
        named = texts(ids)
        given = [None] * len(named) if values is None else self._read(values)
        keys = named if values is None else self._keys(named, given)
        limits = [None] * len(named) if thresholds is None else [float(one) for one in thresholds]
        with self._lock:
            if len(when):
                self._clock = clock
            for moment, sign, key, name, row, limit in zip(
                when.tolist(), _signs(signs), keys, named, given, limits, strict=True
            ):
                self._changes.append([moment, sign, key, name, limit])
                if limit is None or not self._thresholds or limit == self._thresholds[0]:
                    self._apply(moment, sign, key, row)
            self._count += len(named)
            if len(when):
                self._time = float(when[-1]) if self._time is None else max(self._time, float(when[-1]))
            self._gauges.set(changes=self._count, size=len(self._history.open))
            self._beat += 1

    def _apply(self, moment: float, sign: str, key: str, given: Values | None) -> None:
        here = self._history.open
        if sign == "+":
            values = given or self._rows.get(key) or (None,) * len(self._names)
            if key in here:  # a sink that tells a row again
                self._move(key, values, moment)
                return
            self._log.append(_Step(key, was_in=False))
            self._history.enter(key, moment, values)
        elif key in here:
            self._log.append(_Step(key, was_in=True))
            version = self._history.leave(key, moment)
            if given is not None and version is not None and self._rows.get(key) is None:
                self._rows.put([key], [version.values])  # it may live on, dominated
            self._rated.pop(key, None)
        else:
            return
        self._number += 1

    def _move(self, key: str, values: Values, moment: float | None) -> None:
        start = self._history.open[key].start
        now = moment if moment is not None else self._time
        self._log.append(_Step(key, was_in=True))
        self._number += 1
        self._beat += 1
        self._history.move(key, start if now is None else max(start, now), values)

    def forget(self, ids: Any, rows: pa.Table | None = None) -> None:
        """Rows that live no more: they are not among the rest. With `keyed_by`, `rows` has those columns. O(rows)."""
        keys = texts(ids) if rows is None else self._keys(texts(ids), self._read(rows))
        with self._lock:
            self._rows.forget(keys)

    def probabilities(self, ids: Any, values: Iterable[float]) -> None:
        """Who is in the answer with which probability now. O(rows)."""
        with self._lock:
            self._beat += 1
            for key, value in zip(texts(ids), values, strict=True):
                version = self._history.open.get(key)
                if version is not None and version.probability != value:
                    self._history.rate(key, float(value))
                    self._rated[key] = (self._beat, float(value))

    def meter(self, **numbers: float) -> None:
        """Numbers of the run by now: rows, retained, latency (in seconds), and any others."""
        with self._lock:
            self._gauges.set(**numbers)
            self._beat += 1

    def ledger(self, cost: Mapping[str, Any]) -> None:
        """What the protocol sent so far: messages, bytes, the same for sending everything, and `kinds`."""
        with self._lock:
            self._ledger = dict(cost)
            self._beat += 1

    def notice(self, exact: bool, lines: Sequence[str]) -> None:
        """Whether the answer is exact, and what is to be said about that."""
        with self._lock:
            self._exact, self._notices = exact, list(lines)
            self._beat += 1

    def clock(self, time: Any) -> None:
        """Time went on to here."""
        when, clock = moments([time])
        with self._lock:
            self._clock = clock
            self._time = float(when[0]) if self._time is None else max(self._time, float(when[0]))
            self._beat += 1

    def status(self, status: str, reason: str = "") -> None:
        """It is running, ended or lost, and why."""
        with self._lock:
            self._status, self._reason = status, reason
            self._beat += 1

    def end(self, reason: str = "") -> None:
        """No more comes; with a reason where that is not the normal end."""
        self.status("ended", reason)

    # -- reading -------------------------------------------------------------------------------------------------------

    @property
    def number(self) -> int:
        """The number of the last change of the answer or of its values."""
        return self._number

    @property
    def beat(self) -> int:
        """Grows with anything that a page shows."""
        return self._beat

    @property
    def parameters(self) -> dict[str, str | float]:
        """What was asked, as it is shown."""
        return dict(self._parameters)

    def state(self) -> dict[str, Any]:
        """Everything that a page begins with. O(answer)."""
        with self._lock:
            goals = dict.fromkeys(map(str, self.preference.minimize), "min")
            goals |= dict.fromkeys(map(str, self.preference.maximize), "max")
            return {
                **self._common(),
                "title": self.title,
                "kind": self.kind,
                "columns": [{"name": name, "goal": goals.get(name)} for name in self._names],
                "by": [str(name) for name in self.preference.by],
                "parameters": self._parameters,
                "thresholds": list(self._thresholds),
                "rows": [self._row(version) for version in self._history.open.values()],
                "changes": list(self._changes),
                "series": self._gauges.lines(),
                "recorded": False,
            }

    def since(self, number: int, told: int | None = None, beat: int = 0) -> dict[str, Any] | None:
        """The net difference since a number, or None where it is not remembered. O(changes since).

        With it come the changes after the first `told` of the stream, which are all that were told by then, as far as
        they are kept, and the probabilities that are new since a beat.
        """
        with self._lock:
            behind = self._number - number
            if not 0 <= behind <= len(self._log):
                return None
            before: dict[str, bool] = {}
            for place in range(len(self._log) - behind, len(self._log)):
                step = self._log[place]
                before.setdefault(step.key, step.was_in)
            here, found = self._history.open, {"entered": [], "moved": [], "left": []}  # type: ignore[var-annotated]
            left_at = {change[2]: change[0] for change in self._changes if change[1] == "-"}
            for key, was_in in before.items():
                if key in here:
                    found["moved" if was_in else "entered"].append(self._row(here[key]))
                elif was_in:
                    found["left"].append([key, left_at.get(key, self._time)])
            rated = {key: value for key, (at, value) in self._rated.items() if at > beat}
            fresh = self._count - told if told is not None else behind
            changes = list(self._changes)[-fresh:] if fresh > 0 else []
            return {**self._common(), **found, "changes": changes, "probabilities": rated or None}

    def _common(self) -> dict[str, Any]:
        return {
            "number": self._number,
            "position": f"{self.epoch}.{self._number}.{self._count}",
            "clock": self._clock,
            "time": self._time,
            "meters": self._gauges.now() | {"size": len(self._history.open), "changes": self._count},
            "ledger": self._ledger,
            "status": self._status,
            "reason": self._reason,
            "exact": self._exact,
            "notices": self._notices,
        }

    def at(self, time: float) -> list[Row]:
        """The answer at a past time; an error before the history begins. O(history)."""
        with self._lock:
            if time < self._history.begins:
                raise InputError("the history begins later", value=time, remedy="choose a later time")
            return [self._row(version) for version in self._history.at(time)]

    def sizes(self) -> dict[str, Any]:
        """The size of the answer over time."""
        with self._lock:
            return self._sizes_from(self._history.begins)

    def _sizes_from(self, begins: float) -> dict[str, Any]:
        times, sizes = self._history.sizes()
        first = None if not len(times) else max(float(times[0]), begins)
        return {"time": times.tolist(), "size": sizes.tolist(), "from": first, "to": self._time}

    def stays(self, key: str | None = None, most: int = 60) -> list[list[Any]]:
        """Stays of one row, or of those that stayed longest: key, id, group, from, to. O(history)."""
        with self._lock:
            return [
                [stay.key, self._id(stay.key), self._group(stay.values), stay.start, stay.end]
                for stay in self._history.stays(key, most)
            ]

    def rest(self, most: int = 2_000) -> dict[str, Any]:
        """A sample of the rows outside the answer, and how many rows passed. O(most)."""
        with self._lock:
            here = self._history.open
            rows = [
                [key, self._id(key), self._group(values), None, list(values), None]
                for key, values in self._rows.sample(most)
                if key not in here
            ]
            return {"rows": rows, "seen": self._rows.seen}

    def explain(self, key: str) -> dict[str, Any]:
        """Who dominates a row, since when, and what would bring it in; an error for one that is not known.

        Every row outside is dominated by one inside, and the smallest change depends on those alone. O(answer).
        """
        with self._lock:
            here = self._history.open
            stays = self._history.stays(key)
            version = here.get(key)
            values = version.values if version is not None else self._rows.get(key)
            if values is None:
                values = self._history.last(key)
            if values is None:
                raise InputError("is not a row that is known", value=key, remedy="choose a row of the page")
            group = self._by(values)
            rivals = [one for one in here.values() if self._by(one.values) == group and one.key != key]
            case = why.Case(self.kind, self.preference, self._names, self._clock, version, values, stays)
            found = case.explained(rivals, self._seen_of(group) if version is not None else [])
            found["dominators"] = [self._row(one) for one in found["dominators"]]
            head = {"key": key, "id": self._id(key), "group": self._group(values), "known": True}
            return {
                **head,
                "inside": version is not None,
                "values": list(values),
                **found,
                "stays": [[one.start, one.end] for one in stays],
            }

    def _seen_of(self, group: Values) -> list[Values]:
        sample = self._rows.sample(LOOKED_AT)
        return [values for key, values in sample if self._by(values) == group and key not in self._history.open]

    def recording(self) -> dict[str, Any]:
        """What a report keeps: the state, the history and a sample of the rest."""
        with self._lock:
            versions, begins = self._history.versions(RECORDED_VERSIONS)
            told = [
                [
                    one.key,
                    self._id(one.key),
                    self._group(one.values),
                    one.entered,
                    one.start,
                    plain(one.end),
                    list(one.values),
                    one.probability,
                ]
                for one in versions
            ]
            return {
                "state": {**self.state(), "recorded": True},
                "versions": told,
                "begins": None if math.isinf(begins) else begins,
                "sizes": self._sizes_from(begins),
                "rest": self.rest()["rows"],
                "seen": self._rows.seen,
                "explained": False,
            }

    # -- rows ----------------------------------------------------------------------------------------------------------

    def _read(self, table: pa.Table) -> list[Values]:
        columns: list[list[Value]] = [
            column_values(table.column(name)) if name in table.column_names else [None] * table.num_rows
            for name in self._names
        ]
        return list(zip(*columns, strict=True))

    def _keys(self, named: list[str], values: Sequence[Values | None]) -> list[str]:
        if not self._keyed_by:
            return named
        places = [self._names.index(name) for name in self._keyed_by]
        return [
            _BETWEEN.join([name, *("" if row is None else str(row[place]) for place in places)])
            for name, row in zip(named, values, strict=True)
        ]

    def _by(self, values: Values) -> Values:
        first = len(self.preference.names)
        return values[first : first + len(self.preference.by)]

    def _group(self, values: Values) -> str | None:
        """The group as it is shown, which may be the same text for two."""
        by = self._by(values)
        return ", ".join("NULL" if one is None else str(one) for one in by) if self.preference.by else None

    def _id(self, key: str) -> str:
        return key.rsplit(_BETWEEN, len(self._keyed_by))[0] if self._keyed_by else key

    def _row(self, version: Version) -> Row:
        group, values = self._group(version.values), list(version.values)
        return [version.key, self._id(version.key), group, version.entered, values, version.probability]


def _signs(signs: Any) -> list[str]:
    """The signs of changes: from text, or from numbers above and below 0."""
    if isinstance(signs, pa.Array | pa.ChunkedArray):
        signs = signs.to_pylist()
    return ["+" if one == "+" or (not isinstance(one, str) and one > 0) else "-" for one in signs]
