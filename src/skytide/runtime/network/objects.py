"""What the coordinator knows of objects, as its readers get it: values of the answer, and of a sample of the rest.

Under the method filter an object may move within its box without a word: its values are those it told last, and `low`
and `high` are the box. Of objects in fragments it is the functions at what sites told. With naive and central all is
told, and the values are the objects' own.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import numpy as np

from skytide.model import Floats, Integers
from skytide.protocols.network.query import Query
from skytide.protocols.network.table import Table

MOST_OTHERS = 2000
"""Objects outside of the answer that a reader gets at most: a sample that stays as long as they do."""


def known_objects(table: Table, members: Collection[int], everything: bool) -> dict[str, Any]:
    """Objects with what is known of them: the members of the answer, and others. O(objects)."""
    present = table.present()
    inside = np.isin(present, np.fromiter(members, np.int64, len(members)))
    shown = present[inside]
    if everything:
        others = present[~inside]
        step = max(1, -(-len(others) // MOST_OTHERS))
        shown = np.concatenate((shown, others[::step]))
    return {
        "query": _asked(table.query),
        "count": len(present),
        "objects": _listed(table, shown, set(present[inside].tolist())),
    }


def _asked(query: Query) -> dict[str, Any]:
    """The question, with the names of what is compared."""
    columns = {"min": list(query.minimize), "max": list(query.maximize)}
    return {"protocol": query.protocol, "method": query.method, **columns}


def _listed(table: Table, shown: Integers, inside: set[int]) -> list[dict[str, Any]]:
    values, bounds = table.values(shown)
    found = [
        {"id": table.ids[one], "inside": one in inside, "values": row}
        for one, row in zip(shown.tolist(), _plain(values), strict=True)
    ]
    if bounds is not None:
        for row, low, high in zip(found, *map(_plain, bounds), strict=True):
            row |= {"low": low, "high": high}
    return found


def _plain(values: Floats) -> list[list[float | str | None]]:
    """Numbers as JSON can say them: null for what is missing, and infinities by name."""
    return [[_number(value) for value in row] for row in values.tolist()]


def _number(value: float) -> float | str | None:
    if math.isfinite(value):
        return value
    return None if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
