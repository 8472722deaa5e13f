"""The rows of a pipeline as its query on Spark must take them: which ones, in which order, and as far as they count.

Rows of a distributed table have no order, so Spark gives them one; and what a row of a stream lacks, or has too much
of, makes it a bad one, whatever the missing-value policy says of values. `skytide.spark.streaming.query` has the rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skytide.cli._verify.rows import FAR, Question, Rows, Unit, names_in
from skytide.errors import OptionError
from skytide.model import Booleans
from skytide.spark.pipeline.plan import Pipeline

UPDATES = ("snapshots", "frequent", "monitor", "fragments")
WHO = "who\N{SYMBOL FOR UNIT SEPARATOR}"
"""A column for the id together with the group."""
_EXACT = 2**53
# What docs/spark.md says of ticks: beyond these microseconds from 2000, or these whole numbers from 0, instants close
# in steps of 2^12, and real numbers in steps of 2^-42 of their size. Some steps are lost to rounding.
_NEAR, _STEP, _YEAR_2000 = 2**51, 2**12, 946_684_800_000_000
_FINE = 16 * 2.0**-42
_SMALLEST = 2.0**-20


@dataclass(frozen=True)
class SparkRows:
    """The rows that have what every row needs, in the order in which the query takes them, and the others' number."""

    table: pa.Table
    bad: int
    unusable: str
    """Why the policy `error` refuses the others."""


def sorted_out(table: pa.Table, plan: Pipeline, question: Question) -> SparkRows:
    """Leave out what cannot be used, and put the rest in order, with a column that has the id and the group."""
    good, reasons = np.ones(table.num_rows, np.bool_), list[str]()
    for reason, usable in _needs(table, plan, question):
        reasons += [] if usable.all() else [reason]
        good &= usable
    refused = question.nulls == "error" and bool(reasons)
    left = table if good.all() else table.filter(pa.array(good))
    left = _in_order(left, plan)
    if "id" in plan.query:
        left = left.append_column(WHO, who(left, plan, plan.query["id"]))
    return SparkRows(left, table.num_rows - left.num_rows, reasons[0] if refused else "")


def _needs(table: pa.Table, plan: Pipeline, question: Question) -> Iterator[tuple[str, Booleans]]:
    """What is wrong with rows, and which rows are without this fault."""
    query = plan.query
    if "time" in query:
        yield "a time is missing or out of range", _timely(table.column(query["time"]), question)
    for key in ("id", "site"):
        if key in query:
            yield f"{'an' if key == 'id' else 'a'} {key} is missing", _there(table.column(query[key]))
    if "prob" in query:
        chances = table.column(query["prob"]).cast(pa.float64()).fill_null(np.nan).to_numpy()
        yield "a probability is missing or not between 0 and 1", (chances >= 0) & (chances <= 1)
    if question.nulls == "drop" and plan.kind.changes:
        for name in question.columns:
            if pa.types.is_int64(table.schema.field(name).type):
                whole = table.column(name).fill_null(0).to_numpy()
                yield "a number is not exact", (whole <= _EXACT) & (whole >= -_EXACT)


def _there(column: pa.ChunkedArray) -> Booleans:
    return ~np.asarray(column.is_null(nan_is_null=True))


def _timely(column: pa.ChunkedArray, question: Question) -> Booleans:
    if pa.types.is_floating(column.type):
        return np.asarray(np.isfinite(column.cast(pa.float64()).fill_null(np.nan).to_numpy()))
    limit = FAR
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.timestamp("us", None if pa.types.is_date(column.type) else column.type.tz))
    elif _unit(column.type, question).real:
        limit = _EXACT
    counts = column.cast(pa.int64())
    whole = counts.fill_null(0).to_numpy()
    return np.asarray(_there(counts) & (whole <= limit) & (whole >= -limit))


def _unit(kind: pa.DataType, question: Question) -> Unit:
    return Unit(kind, [question.length(name) for name in ("duration", "lateness")])


def _in_order(table: pa.Table, plan: Pipeline) -> pa.Table:
    """Rows in the order in which the query takes them: time, then the column `order`; in count windows, the id."""
    query = plan.query
    if "time" not in query:
        return table
    keys = {"time": table.column(query["time"])}
    if "order" in query:  # what is missing there comes first
        keys |= {"there": pa.array(_there(table.column(query["order"]))), "order": table.column(query["order"])}
    elif "count" in query:
        keys |= {"id": table.column(query["id"])}
    table = table.take(pc.sort_indices(pa.table(keys), [(key, "ascending") for key in keys]))
    if plan.kind.name in UPDATES:
        named = [query[key] for key in ("time", "id", "site", "order") if key in query] + list(query.get("by", ()))
        if table.group_by(named).aggregate([]).num_rows < table.num_rows:
            raise OptionError(
                "has several rows at one time", value=query["id"], remedy="name a column `order` that tells them apart"
            )
    return table


def who(table: pa.Table, plan: Pipeline, column: str) -> pa.Array:
    """The ids of a column together with the groups of their rows: on Spark both make a name."""
    names = names_in(table, column)
    by = [table.column(name).to_pylist() for name in plan.query.get("by", ())]
    return pa.array(["/".join(map(_part, one)) for one in zip(names, *by, strict=True)], pa.string())


def _part(value: Any) -> str:
    """A part of a name, so that no two lists of parts make one name."""
    return "\\N" if value is None else str(value).replace("\\", "\\\\").replace("/", "\\/")


class Closing:
    """Which instants of a stream that ended are closed: those that a later row than they and the lateness closed."""

    def __init__(self, plan: Pipeline, question: Question, rows: Rows, table: pa.Table) -> None:
        self._counted = "count" in plan.query
        self._unit = rows.unit
        self._stamps = np.zeros(0, np.int64) if rows.times is None else rows.times
        if self._counted:
            column = table.column(plan.query["time"])
            self._unit = _unit(column.type, question)
            self._stamps = self._unit.numbers(column)[rows.positions]
        self._lateness = self._unit.length(question.length("lateness"))
        self._exact = plan.kind.rounds
        """Rounds keep their own time, without ticks."""

    def could_be_late(self) -> int:
        """How many rows at most are late, in whatever order they were seen."""
        if not len(self._stamps):
            return 0
        return int((self._unit.later(self._stamps, self._lateness) < self._stamps.max()).sum())

    def closed(self, instants: npt.NDArray[Any], last: Any) -> Booleans:
        """Which instants are closed, where `last` is the time of the last change that was told, or None.

        Spark's clock has steps. Instants within one of them may be closed or not; a change there says that they are.
        """
        if not len(self._stamps):
            return np.ones(len(instants), np.bool_)
        moments = self._stamps[instants - 1] if self._counted else instants
        due = self._unit.later(moments, self._lateness)
        closed = due < self._stamps.max() - self._step()
        if last is not None:
            closed |= (due < self._stamps.max()) & (instants <= last)
        return np.asarray(closed)

    def _step(self) -> Any:
        latest, size = self._stamps.max(), self._unit.size
        if self._exact:
            return 0
        if self._unit.real:
            return _FINE * (abs(latest) + abs(self._lateness) + _SMALLEST)
        scale = 1 if size is None else size / 1000  # of a unit, in microseconds
        origin = 0 if size is None else _YEAR_2000
        far = abs(int(latest) * scale - min(self._lateness, FAR) * scale - origin) > _NEAR
        return int(np.ceil(_STEP / scale)) if far else 0
