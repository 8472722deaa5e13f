"""Updates as users give them: tables with ids beside them, or pairs of an id and a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from skytide.errors import IdError, InputError, OptionError
from skytide.model import Integers, Preference
from skytide.tables import Table, as_array, open_table, row_count

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


def opened(updates: Any, preference: Preference, ids: Any, op: Any) -> tuple[Table, Any, Any]:
    """Updates as a table with ids and operations beside it, whichever way they came."""
    if isinstance(updates, list | tuple) and all(map(_is_pair, updates)) and ids is None:
        return _from_pairs(updates, preference, op)
    table = open_table(updates)
    if ids is None:
        names = [] if isinstance(table, np.ndarray) else table.column_names
        if "id" not in names and row_count(table):
            raise IdError("updates need ids", remedy="give ids, a column or the name of one")
        ids = "id" if "id" in names else []
    return table, ids, op


def _is_pair(update: Any) -> bool:
    if not isinstance(update, tuple) or len(update) not in (2, 3):
        return False
    return update[1] is None or (
        isinstance(update[1], Sequence | Mapping | np.ndarray) and not isinstance(update[1], str)
    )


def _from_pairs(updates: Sequence[Any], preference: Preference, op: Any) -> tuple[Table, Any, Any]:
    names = [*preference.names, *preference.by]
    columns: dict[Any, list[Any]] = {name: [] for name in names}
    for number, (_, row, *_) in enumerate(updates):
        if row is not None and not isinstance(row, Mapping):
            if preference.by or len(row) != preference.dimensions:
                raise InputError(
                    f"a row of {len(row)} values does not fit the preference",
                    row=number + 1,
                    remedy="give one value per preference column, or a mapping of columns",
                )
            row = dict(zip(preference.names, row, strict=True))
        for name in names:
            columns[name].append(None if row is None else row.get(name))
    operations = [update[2] if len(update) == 3 else op for update in updates]
    given = [one for one in operations if one is not None]
    if not given:
        operations = None  # type: ignore[assignment]
    elif len(given) < len(operations):
        raise OptionError("some updates have an operation and some have none", remedy="give all of them one")
    ids = np.fromiter((update[0] for update in updates), dtype=object, count=len(updates))
    if all(isinstance(name, int) for name in names):
        matrix = np.array([[np.nan if value is None else value for value in columns[name]] for name in names], float).T
        places = [int(name) for name in names]
        wide = np.full((len(updates), max(places) + 1), np.nan)
        wide[:, places] = matrix.reshape(len(updates), len(names))
        return wide, ids, operations
    return {str(name): column for name, column in columns.items()}, ids, operations
