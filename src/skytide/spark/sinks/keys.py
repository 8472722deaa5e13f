"""Which columns of a change stream name its groups: fields say so in their metadata."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

MARK = {b"skytide": b"by"}


def group_columns(rows: pa.Table) -> list[str]:
    """The columns that are marked as naming groups.

    >>> group_columns(mark_groups(pa.table({"id": [1], "city": ["Rome"]}), ["city"]))
    ['city']
    """
    return [field.name for field in rows.schema if (field.metadata or {}).get(b"skytide") == b"by"]


def mark_groups(rows: pa.Table, by: Iterable[str]) -> pa.Table:
    """The same rows, with these columns marked."""
    named = set(by)
    fields = [field.with_metadata(MARK) if field.name in named else field for field in rows.schema]
    return pa.Table.from_arrays(rows.columns, schema=pa.schema(fields, rows.schema.metadata))
