"""What a query over updates asks for, and how it reads rows: values that may be missing, and what is done with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skytide.errors import InputError
from skytide.model import Booleans, Integers
from skytide.monitors.snapshots.reading import OPERATIONS
from skytide.spark.streaming.query import Query, Read, State
from skytide.tables import partly


@dataclass(frozen=True, kw_only=True)
class UpdateQuery(Query):
    """Updates of objects, each of which is known within its group."""

    op: str
    """What an update does, one word for all rows; or empty, and a column says it."""
    op_column: str | None = None
    order: str | None = None
    """The column by which updates of one object at one time are ordered."""
    method: str = "auto"
    frequent: tuple[Fraction, int] | None = None
    """The share of how many snapshots, where it is the frequent skyline that is asked for."""

    @property
    def recast(self) -> tuple[str, ...]:
        """Where updates add up, what comes out is what they add up to."""
        return () if self.op == "set" else tuple(str(name) for name in self.preference.names)

    def state(self) -> State:
        """The state of a bucket before its first row."""
        from skytide.spark.streaming.snapshots.merge import UpdateMerge

        return UpdateMerge(self)

    def restored(self, closed: int, stored: Sequence[pa.Table]) -> State:
        """The state whose log was stored in these pieces."""
        from skytide.spark.streaming.snapshots.stored import restored

        return restored(self, closed, stored)

    def _particular(self, names: dict[str, str]) -> dict[str, Any]:
        over = self.frequent
        return {
            "kind": "snapshots" if over is None else "frequent",
            "op": self.op or names[str(self.op_column)],
            "order": None if self.order is None else names[self.order],
            **({} if over is None else {"theta": str(over[0]), "over": over[1]}),
        }

    # -- rows ----------------------------------------------------------------------------------------------------------

    def _read(self, table: pa.Table) -> Read:
        """Values are NaN where they are missing; a row without any deletes its object, so it is good."""
        known = self.without_inexact(table) if self.nulls == "drop" else table
        values = partly(known.select(self.columns), self.preference)
        missing = np.isnan(values)
        deletes: Booleans = np.asarray(missing.all(axis=1))
        good = np.ones(table.num_rows, dtype=bool)
        if self.nulls != "worst":
            partial = missing.any(axis=1) & ~deletes
            if partial.any():
                column = self.preference.names[int(np.argmax(missing[int(np.argmax(partial))]))]
                self._sort_out(good, ~partial, str(column), "the value is missing, but not all values of the row")
        if known is not table:  # a number that had to be left out must not make the row one that deletes
            for name in self.preference.names:
                good &= ~(known[str(name)].is_null().to_numpy() & table[str(name)].is_valid().to_numpy())
        if self.op_column is not None:
            unknown = self.operations(table) < 0
            self._sort_out(good, ~unknown | deletes, self.op_column, f"is not one of {', '.join(OPERATIONS)}")
        keys = self._keys(table, good)
        return Read(good, values if good.all() else values[good], keys)

    def operations(self, table: pa.Table) -> Integers:
        """The operation of each row, by its place among all; -1 where there is no such operation."""
        if self.op_column is None:
            return np.full(table.num_rows, OPERATIONS.index(self.op), np.int64)
        places = pc.index_in(table.column(self.op_column).cast(pa.string()), value_set=pa.array(OPERATIONS))
        found: Integers = places.fill_null(-1).to_numpy().astype(np.int64)
        return found

    def refuse(self, one: Any) -> None:
        """An update of this object has a result that is no number, and the policy is not to have that."""
        raise InputError(
            "the result of an update is not a number",
            value=one,
            remedy="leave infinite values out, or choose the policy drop or worst",
        )
