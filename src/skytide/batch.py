"""The skyline of a table at rest: `skytide.skyline`; and as a picture: `skytide.plot`. `kernel.batch` does the work."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from skytide.errors import OptionError, PreferenceError
from skytide.model import Booleans, Column, MissingPolicy, Preference
from skytide.tables import Table, as_array, column_of, group_codes, numbers, open_table, oriented, row_count


def skyline(
    data: Table,
    preference: Preference | None = None,
    *,
    nulls: MissingPolicy = "error",
    threads: int | None = None,
) -> Booleans:
    """Which rows are in the skyline: a boolean mask in input order.

    Takes numpy matrices, Arrow tables (anything with the Arrow C stream interface), pandas and polars tables and
    mappings of columns, and never changes them. Without a preference a bare array is minimised in all columns. With
    `by` columns each group has its own skyline. Equal rows do not dominate each other. Memory is linear in the rows.

    >>> import numpy as np
    >>> skyline(np.array([[1.0, 4.0], [2.0, 2.0], [3.0, 3.0], [2.0, 2.0]])).tolist()
    [True, True, False, True]
    >>> cars = {"price": [20, 25, 30], "mpg": [30, 40, 35]}
    >>> skyline(cars, Preference(minimize=["price"], maximize=["mpg"])).tolist()
    [True, True, False]
    """
    from skytide.kernel.batch import skyline_mask  # compiled code is loaded by those who call it

    table = open_table(data)
    preference = _preference(table, preference)
    found = oriented(table, preference, nulls)
    if preference.by:
        codes, groups = group_codes(table, tuple(preference.by))
        if found.rows is not None:
            codes = codes[found.rows]
        order = np.argsort(codes, kind="stable")
        offsets = np.searchsorted(codes[order], np.arange(groups + 1))
        inside = np.zeros(len(order), dtype=bool)
        inside[order] = skyline_mask(found.values[order], offsets=offsets, threads=threads)
    else:
        inside = skyline_mask(found.values, threads=threads)
    if found.rows is None:
        return inside
    mask = np.zeros(row_count(table), dtype=bool)
    mask[found.rows] = inside
    return mask


def plot(
    data: Table,
    preference: Preference | None = None,
    mask: npt.ArrayLike | None = None,
    *,
    nulls: MissingPolicy = "error",
    columns: Sequence[Column] | None = None,
    path: str | Path | None = None,
) -> Any:
    """The skyline against the rest as a matplotlib figure, drawn without pyplot; with `path` it is also written there.

    `mask` says which rows are in the answer; without it the skyline is computed. Up to three `columns` are drawn as
    they are; by default all of the preference, more than three side by side. Files are .png, .svg or .pdf. Needs
    matplotlib. O(rows), beside the skyline.

    >>> cars = {"price": [20, 25, 30], "mpg": [30, 40, 35]}
    >>> figure = plot(cars, Preference(minimize=["price"], maximize=["mpg"]))
    >>> figure.axes[0].get_title(loc="left")
    '2 of 3 rows are in the skyline'
    """
    from skytide.plots import Answer, Sample, answer_picture

    table = open_table(data)
    preference = _preference(table, preference)
    inside = np.asarray(skyline(table, preference, nulls=nulls) if mask is None else mask)
    if inside.dtype != np.bool_ or inside.shape != (row_count(table),):
        raise OptionError("is not a mask of the rows", value=mask, remedy="give a boolean for each row")
    names = tuple(preference.names if columns is None else columns)
    if columns is not None and not 1 <= len(set(names)) == len(names) <= 3:
        raise OptionError("is not a choice of columns to draw", value=list(names), remedy="name up to three, once each")
    values = np.column_stack([numbers(table, name) for name in names])
    groups = None
    if preference.by:
        told = [_column(table, name)[inside] for name in preference.by]
        groups = [", ".join("NULL" if one is None else str(one) for one in key) for key in zip(*told, strict=True)]
    return answer_picture(Answer(preference, names, values[inside], Sample.of(values), groups), path)


def _column(table: Any, name: Column) -> npt.NDArray[Any]:
    return np.asarray(table[:, int(name)]) if isinstance(table, np.ndarray) else as_array(column_of(table, name))


def _preference(table: Any, preference: Preference | None) -> Preference:
    """The preference, or that of a bare array."""
    if preference is not None:
        return preference
    if not isinstance(table, np.ndarray):
        raise PreferenceError(
            "a table with named columns needs a preference", remedy="say what to minimise or maximise"
        )
    return Preference.columns(table.shape[1])
