"""The skyline of a table at rest: `skytide.skyline`. The work is done in `skytide.kernel.batch`."""

from __future__ import annotations

import numpy as np

from skytide.errors import PreferenceError
from skytide.model import Booleans, MissingPolicy, Preference
from skytide.tables import Table, group_codes, open_table, oriented, row_count


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
    if preference is None:
        if not isinstance(table, np.ndarray):
            raise PreferenceError(
                "a table with named columns needs a preference", remedy="say what to minimise or maximise"
            )
        preference = Preference.columns(table.shape[1])
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
