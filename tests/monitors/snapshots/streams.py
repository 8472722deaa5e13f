"""Streams of updates drawn for tests of the monitor, and a model of it made of the reference alone."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from hypothesis import strategies as st

import skytide as sk
from skytide.errors import InputError, WindowError
from skytide.reference import snapshots as reference
from skytide.reference.batch import by_group, skyline, worst_for_missing
from skytide.reference.window import differences

NAN, INF = float("nan"), float("inf")
OPERATIONS = ("set", "add", "multiply", "average")
FEW = [0.0, 1.0, 2.0, -1.0]
EXTREMES = [*FEW, INF, -INF, 1.797e308, -1.797e308, 5e-324, -0.0]
IDS: dict[str, list[Any]] = {
    "integer": [0, 3, 11, 2],
    "sparse": [-7, 2**62, 5, 10**9],
    "text": ["b", "a", "", "10"],
    "mixed": ["a", 1.5, "x", 2.0],
}
DAY = dt.datetime(2024, 2, 29)


class TimeKind(NamedTuple):
    """How whole ticks become times, and how a lateness in ticks is told to the monitor and added to times."""

    time: Callable[[int], Any]
    told: Callable[[int], Any]
    added: Callable[[int], Any]


TIMES = {
    "whole": TimeKind(lambda tick: 3 * tick - 7, lambda ticks: 3 * ticks, lambda ticks: 3 * ticks),
    "real": TimeKind(lambda tick: tick * 0.1 - 0.5, lambda ticks: ticks * 0.1, lambda ticks: ticks * 0.1),
    "stamps": TimeKind(
        lambda tick: DAY + dt.timedelta(milliseconds=tick),
        lambda ticks: f"{ticks}ms",
        lambda ticks: dt.timedelta(milliseconds=ticks),
    ),
}


class Row(NamedTuple):
    """One update: its time, the object, the values (None where missing), the group and the operation."""

    time: Any
    id: Any
    values: tuple[float | None, ...]
    group: str
    op: str


@dataclass(frozen=True)
class Setting:
    """What a monitor is made with."""

    minimized: tuple[bool, ...]
    grouped: bool
    nulls: sk.MissingPolicy
    op: str
    cfp: int
    times: str
    lateness: int
    method: str
    named: bool

    @property
    def names(self) -> list[Any]:
        return [f"x{k}" if self.named else k for k in range(len(self.minimized))]

    @property
    def order(self) -> list[int]:
        """The columns in the order of the preference: the minimised ones first."""
        return sorted(range(len(self.minimized)), key=lambda k: not self.minimized[k])

    def make(self) -> sk.Snapshots:
        names = self.names
        preference = sk.Preference(
            minimize=[name for name, least in zip(names, self.minimized, strict=True) if least],
            maximize=[name for name, least in zip(names, self.minimized, strict=True) if not least],
            by=["g" if self.named else len(names)] if self.grouped else [],
        )
        return sk.Snapshots(
            preference, method=self.method, op=self.op, nulls=self.nulls, cfp=self.cfp,
            lateness=TIMES[self.times].told(self.lateness),
        )  # fmt: skip


@st.composite
def settings_of(draw: st.DrawFn) -> Setting:
    return Setting(
        minimized=tuple(draw(st.lists(st.booleans(), min_size=1, max_size=3))),
        grouped=draw(st.booleans()),
        nulls=draw(st.sampled_from(["error", "drop", "worst"])),
        op=draw(st.sampled_from(OPERATIONS)),
        cfp=draw(st.sampled_from([1, 2, 50])),
        times=draw(st.sampled_from(sorted(TIMES))),
        lateness=draw(st.sampled_from([0, 0, 1, 3])),
        method=draw(st.sampled_from(["auto", "mbr", "recompute"])),
        named=draw(st.booleans()),
    )


def rows_of(setting: Setting, ids: list[Any], most: int) -> st.SearchStrategy[list[Row]]:
    """Rows whose times repeat and go back a little, that tie, delete, return, and change groups and operations."""
    cell = st.sampled_from(FEW) | st.sampled_from(EXTREMES)
    d = len(setting.minimized)
    full = st.tuples(*[cell] * d)
    partial = st.tuples(*[st.none() | cell] * d)
    values = st.one_of(full, full, full, st.just((None,) * d), partial if setting.nulls != "error" else full)
    ops = st.just(setting.op) if setting.nulls == "drop" else st.sampled_from([setting.op, *OPERATIONS])
    parts = st.tuples(st.integers(-2, 3), st.sampled_from(ids), values, st.sampled_from("xyz"), ops)

    def timed(drawn: list[tuple[int, Any, Any, str, str]]) -> list[Row]:
        ticks = itertools.accumulate(step if abs(step) < 3 else 0 for step, *_ in drawn)
        return [Row(TIMES[setting.times].time(tick), *rest) for tick, (_, *rest) in zip(ticks, drawn, strict=True)]

    return st.lists(parts, min_size=1, max_size=most).map(timed)


# -- how updates are handed over ---------------------------------------------------------------------------------------

FORMS = ("pairs", "columns", "arrow", "pandas", "polars", "matrix")


def handed(setting: Setting, rows: list[Row], form: str) -> tuple[Any, dict[str, Any]]:
    """The rows in one of the forms that users have, and the arguments beside them."""
    ids = [row.id for row in rows]
    ops: Any = [row.op for row in rows]
    if set(ops) == {setting.op}:
        ops = None
    if form == "pairs":
        return [(row.id, _pair(setting, row), row.op) for row in rows], {}
    if not setting.named:
        matrix = np.array([row.values for row in rows], np.float64)
        if not setting.grouped:
            return matrix, {"ids": ids, "op": ops}
        whole: Any = np.empty((len(rows), len(setting.minimized) + 1), object)
        whole[:, :-1], whole[:, -1] = matrix, [row.group for row in rows]
        return whole, {"ids": ids, "op": ops}
    columns = {name: [row.values[k] for row in rows] for k, name in enumerate(setting.names)}
    table = pa.table(
        {
            **{name: pa.array(column, pa.float64()) for name, column in columns.items()},
            "g": [row.group for row in rows],
            "what": [row.op for row in rows],
        }
    )
    beside: dict[str, Any] = {"ids": ids, "op": None if ops is None else "what"}
    if form in ("arrow", "polars") and all(isinstance(one, str) for one in ids):
        table, beside["ids"] = table.append_column("id", pa.array(ids)), None
    made = {
        "arrow": lambda: table,
        "pandas": lambda: pd.DataFrame(table.to_pydict()),
        "polars": lambda: pl.from_arrow(table),
    }
    return made.get(form, table.to_pydict)(), beside


def _pair(setting: Setting, row: Row) -> Any:
    if all(value is None for value in row.values):
        return None
    if setting.grouped:
        where = "g" if setting.named else len(setting.minimized)
        return {**dict(zip(setting.names, row.values, strict=True)), where: row.group}
    return [row.values[k] for k in setting.order]


# -- the model ---------------------------------------------------------------------------------------------------------


@dataclass
class Told:
    """What a call must give."""

    changes: list[tuple[Any, str, Any]]
    snapshots: list[Any]
    late: list[int] = field(default_factory=list)
    bad: list[int] = field(default_factory=list)


@dataclass
class Model:
    """The monitor by definition: all rows that were taken are replayed after every call."""

    setting: Setting
    rows: list[Row] = field(default_factory=list)
    latest: Any = None
    closed: Any = None
    extra: list[Any] = field(default_factory=list)
    """Times of calls of `apply`, which are snapshots with and without rows."""
    told: int = 0
    """How many snapshots have been told, and the answer after them."""
    answer: set[Any] = field(default_factory=set)
    late: int = 0
    unfit: int = 0

    def extend(self, rows: list[Row], until: Any = None, extra: bool = False) -> Told:
        if extra and self._complete(until):
            raise WindowError("is not later")
        lateness = TIMES[self.setting.times].added(self.setting.lateness)
        late, bad, taken, latest = [], [], [], self.latest
        for position, row in enumerate(rows):
            gaps = [value is None for value in row.values]
            if any(gaps) and not all(gaps) and self.setting.nulls != "worst":
                if self.setting.nulls == "error":
                    raise InputError("a value is missing")
                bad.append(position)
                continue
            if (self.closed is not None and row.time <= self.closed) or (
                latest is not None and row.time + lateness < latest
            ):
                late.append(position)
            else:
                taken.append(row)
            latest = row.time if latest is None else max(latest, row.time)
        replay(self.setting, self.rows + taken)  # raises where a result is no number and the policy is `error`
        self.rows += taken
        self.latest = latest
        self.late, self.unfit = self.late + len(late), self.unfit + len(bad)
        if extra:
            self.extra.append(until)
        told = self._close(until)
        told.late, told.bad = late, bad
        return told

    def advance(self, until: Any) -> Told:
        return self._close(until)

    def _close(self, until: Any) -> Told:
        if until is not None:
            self.latest = until if self.latest is None else max(self.latest, until)
            self.closed = until if self.closed is None else max(self.closed, until)
        found = [(at, answer) for at, answer in self._answers() if self._complete(at)]
        news = found[self.told :]
        changes = [tuple(one) for one in differences([("before", self.answer), *news]) if one.time != "before"]
        self.told = len(found)
        self.answer = found[-1][1] if found else set()
        return Told(changes, [at for at, _ in news])

    def _complete(self, at: Any) -> bool:
        if self.closed is not None and at <= self.closed:
            return True
        return bool(
            self.latest is not None and at + TIMES[self.setting.times].added(self.setting.lateness) < self.latest
        )

    def _answers(self) -> list[tuple[Any, set[Any]]]:
        found = dict(replay(self.setting, self.rows).answers)
        last: set[Any] = set()
        for at in sorted({*found, *self.extra}):
            last = found[at] = found.get(at, last)
        return sorted(found.items(), key=lambda pair: pair[0])

    def skyline(self) -> set[Any]:
        """As of the latest row."""
        answers = replay(self.setting, self.rows).answers
        return answers[-1][1] if answers else set()

    def objects(self) -> dict[Any, Any]:
        """The values after the last complete snapshot."""
        return replay(self.setting, [row for row in self.rows if self._complete(row.time)]).objects

    @property
    def bad(self) -> int:
        """Rows left out so far: unfit as they came, or found to give no number when their snapshot was complete."""
        return self.unfit + replay(self.setting, [row for row in self.rows if self._complete(row.time)]).bad


class Replay(NamedTuple):
    answers: list[tuple[Any, set[Any]]]
    objects: dict[Any, Any]
    bad: int


def replay(setting: Setting, rows: list[Row]) -> Replay:
    """As `reference.snapshot_answers`, with an operation for each row."""
    objects: dict[Any, Any] = {}
    group: dict[Any, str] = {}
    answers, bad = [], 0
    signs = [1 if least else -1 for least in setting.minimized]
    for time in sorted({row.time for row in rows}):
        seen = False
        for row in (row for row in rows if row.time == time):
            if not reference.apply(objects, row.id, row.values, row.op, setting.nulls):
                bad += 1
                continue
            seen = True
            if any(value is not None for value in row.values):
                group[row.id] = row.group if setting.grouped else ""
        if seen:
            names = list(objects)
            values = worst_for_missing([reference.oriented(objects[one], signs) for one in names])
            inside = by_group(values, [group[one] for one in names], skyline)
            answers.append((time, {names[place] for place in inside}))
    return Replay(answers, objects, bad)


def listed(changes: sk.Changes) -> list[tuple[Any, str, Any]]:
    return [tuple(change) for change in changes]


# -- scripts -----------------------------------------------------------------------------------------------------------


class Step(NamedTuple):
    """One call: `extend` and `apply` take rows in one of the forms, `apply` and `advance` have a time of their own."""

    call: str
    rows: list[Row]
    form: str
    time: Any


@st.composite
def scripts(draw: st.DrawFn, most: int = 24) -> tuple[Setting, list[Step], bool]:
    """A monitor and calls of it, and whether its ids can be stored."""
    setting = draw(settings_of())
    kind = draw(st.sampled_from(sorted(IDS)))
    rows = draw(rows_of(setting, IDS[kind], most))
    time = TIMES[setting.times].time
    edges = sorted({0, len(rows), *draw(st.lists(st.integers(0, len(rows)), max_size=5))})
    steps = []
    for start, stop in itertools.pairwise(edges):
        form = draw(st.sampled_from(FORMS))
        call = draw(st.sampled_from(["extend", "extend", "apply", "empty", "advance"]))
        at = time(draw(st.integers(-3, 14)))
        if call == "advance":
            steps.append(Step("advance", [], form, at))
        elif call == "empty":
            steps.append(Step("apply", [], form, at))
        if call == "apply":
            steps.append(Step("apply", [row._replace(time=at) for row in rows[start:stop]], form, at))
        else:
            steps.append(Step("extend", rows[start:stop], form, None))
    return setting, [*steps, Step("advance", [], "", time(40))], kind != "mixed"


def perform(monitor: sk.Snapshots, setting: Setting, step: Step) -> Any:
    """Call the monitor."""
    if step.call == "advance":
        return monitor.advance(step.time)
    updates, beside = handed(setting, step.rows, step.form) if step.rows else ([], {})
    if step.call == "apply":
        return monitor.apply(updates, step.time, **beside)
    return monitor.extend(updates, [row.time for row in step.rows], **beside)


def foretell(model: Model, step: Step) -> Told:
    """What the call must give; the model's error where it must be refused."""
    if step.call == "advance":
        return model.advance(step.time)
    return model.extend(step.rows, step.time, extra=step.call == "apply")
