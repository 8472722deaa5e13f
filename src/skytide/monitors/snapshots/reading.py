"""Updates as users give them: tables with ids beside them, or pairs of an id and a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skytide.errors import IdError, InputError, OptionError, SkytideError
from skytide.model import Integers, Preference
from skytide.monitors.sliding.base import column_or_name
from skytide.tables import as_array, open_table, row_count

OPERATIONS = ("set", "add", "multiply", "average")


def check_operation(op: str) -> str:
    """The operation, or an error that lists them."""
    if op not in OPERATIONS:
        raise OptionError("is not an operation", value=op, remedy="choose one of " + ", ".join(OPERATIONS))
    return op


def repeated(time: Any, total: int) -> npt.NDArray[Any]:
    """One time for so many rows."""
    return np.repeat(as_array([time]), total)


def picked(column: Any, kept: Integers) -> Any:
    """Some of the ids of an array or an Arrow column."""
    return column[kept] if isinstance(column, np.ndarray) else column.take(kept)


def opened(updates: Any, preference: Preference, ids: Any, op: Any) -> tuple[pa.Table | npt.NDArray[Any], Any, Any]:
    """Updates as a table with ids and operations beside it, whichever way they came."""
    if ids is None and isinstance(updates, list | tuple) and all(map(_is_pair, updates)):
        return _from_pairs(updates, preference, op)
    table = open_table(updates)
    if isinstance(table, np.ndarray):
        if ids is None and len(table):
            raise IdError("updates need ids", remedy="give ids, or pairs of an id and a row of values")
        return table, [] if ids is None else ids, op
    if ids is None:
        if "id" not in table.column_names and row_count(table):
            raise IdError("updates need ids", remedy="give ids, a column or the name of one")
        ids = "id" if "id" in table.column_names else []
    return _without_views(table), ids, op


def _without_views(table: pa.Table) -> pa.Table:
    """Text as polars hands it over cannot be picked from by Arrow."""
    for place, known in enumerate(table.schema):
        if pa.types.is_string_view(known.type):
            table = table.set_column(place, known.name, table.column(place).cast(pa.large_string()))
    return table


def column_beside(table: Any, given: Any, what: str, kind: type[SkytideError]) -> Any:
    """A column that stands beside the updates, given as itself or by its name."""
    found = column_or_name(table, given)
    if not hasattr(found, "__iter__") or getattr(found, "shape", None) == ():
        reason = f"is not a column of {what}" if given is not None else f"there are no {what}"
        raise kind(reason, value=given, remedy=f"give the {what}, one per row, or the name of a column")
    return found


def operations_of(table: Any, op: Any, default: str, total: int) -> Integers:
    """The operation of every row as a number: one word for all of them, a column of words, or the name of one."""
    if op is None or (isinstance(op, str) and op in OPERATIONS):
        return np.full(total, OPERATIONS.index(default if op is None else op), np.int64)
    if isinstance(op, str) and (isinstance(table, np.ndarray) or op not in table.column_names):
        remedy = "choose one of " + ", ".join(OPERATIONS) + ", or give a column of them"
        raise OptionError("is neither an operation nor a column", value=op, remedy=remedy)
    column = as_array(column_beside(table, op, "operations", OptionError))
    if column.shape != (total,):
        raise OptionError(f"there are {len(column)} operations for {total} rows", remedy="give one per row")
    words, places = np.unique(column.astype(str), return_inverse=True)
    return np.array([OPERATIONS.index(check_operation(str(word))) for word in words], np.int64)[places]


def _is_pair(update: Any) -> bool:
    if not isinstance(update, tuple) or len(update) not in (2, 3):
        return False
    return update[1] is None or (
        isinstance(update[1], Sequence | Mapping | np.ndarray) and not isinstance(update[1], str)
    )


def _from_pairs(updates: Sequence[Any], preference: Preference, op: Any) -> tuple[pa.Table, Any, Any]:
    names = [*preference.names, *preference.by]
    columns: dict[Any, list[Any]] = {name: [] for name in names}
    for number, (_, row, *_) in enumerate(updates):
        named = {} if row is None else _named(row, preference, number + 1)
        for name in names:
            columns[name].append(named.get(name))
    operations = [update[2] if len(update) == 3 else op for update in updates]
    given = [one for one in operations if one is not None]
    if not given:
        operations = None  # type: ignore[assignment]
    elif len(given) < len(operations):
        raise OptionError("some updates have an operation and some have none", remedy="give all of them one")
    ids = np.fromiter((update[0] for update in updates), dtype=object, count=len(updates))
    # Columns that are known by position stand where they are looked for.
    width = max((name for name in names if isinstance(name, int)), default=-1) + 1
    placed = {f"#{place}": columns.get(place, [None] * len(updates)) for place in range(width)}
    return open_table(placed | {name: columns[name] for name in names if isinstance(name, str)}), ids, operations


def _named(row: Any, preference: Preference, number: int) -> Mapping[Any, Any]:
    """The values of a row by column. A name that is not there is refused: it would delete the object."""
    if isinstance(row, Mapping):
        for name in (*preference.names, *preference.by):
            if name not in row:
                raise InputError(
                    "the row has no such column",
                    row=number,
                    column=name,
                    remedy="give None where a value is missing; None instead of the row deletes the object",
                )
        return row
    if preference.by or len(row) != preference.dimensions:
        fitting = "with `by` columns give a mapping of columns" if preference.by else "give one value per column"
        raise InputError(
            f"a row of {len(row)} values does not fit the preference's columns {list(preference.names)}",
            row=number,
            remedy=fitting,
        )
    return dict(zip(preference.names, row, strict=True))
