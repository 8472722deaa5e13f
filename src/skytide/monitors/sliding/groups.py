"""The groups of a monitor with `by` columns: a code for each combination of values, kept across batches."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa

from skytide.model import Column, Integers
from skytide.tables import Table, column_of, group_codes, open_table, row_count

_NAN = float("nan")  # one object for all: a NaN equals itself by identity when it is looked up


_ALL = slice(None)


class Groups:
    """Codes for groups. Without `by` columns there is one group with the code 0."""

    def __init__(self, by: tuple[Column, ...]) -> None:
        self.by = by
        self.codes: dict[tuple[Any, ...], int] = {}
        self.keys: dict[int, tuple[Any, ...]] = {}
        self.next = 0

    def of(self, data: Table, kept: Integers | slice = _ALL) -> Integers:
        """The code of the group of each row that is kept; new groups get new codes. O(n)."""
        table = open_table(data)
        if not isinstance(kept, slice):
            table = table[kept] if isinstance(table, np.ndarray) else table.take(pa.array(kept))
        if not self.by:
            return np.broadcast_to(np.int64(0), row_count(table))
        local, count = group_codes(table, self.by)
        _, first = np.unique(local, return_index=True)
        columns = [
            [canonical(value) for value in self._column(table, name).take(pa.array(first)).to_pylist()]
            for name in self.by
        ]
        translation = np.array([self._code(key) for key in zip(*columns, strict=True)], dtype=np.int64)
        return translation[local] if count else local

    def _column(self, table: Any, name: Any) -> Any:
        return pa.array(table[:, name]) if isinstance(table, np.ndarray) else column_of(table, name)

    def _code(self, key: tuple[Any, ...]) -> int:
        if key not in self.codes:
            self.add(key, self.next)
        return self.codes[key]

    def add(self, key: tuple[Any, ...], code: int) -> None:
        """Give a group its code."""
        self.codes[key] = code
        self.keys[code] = key
        self.next = max(self.next, code + 1)

    def forget_since(self, code: int) -> None:
        """Forget the groups with this code and later ones: their rows were not taken after all."""
        for later in range(code, self.next):
            self.forget(later)
        self.next = code

    def forget(self, code: int) -> None:
        """Forget a group; it gets a new code if it comes again."""
        if code in self.keys:
            del self.codes[self.keys.pop(code)]


def canonical(value: Any) -> Any:
    """The value as it is looked up: all NaN are one."""
    return _NAN if isinstance(value, float) and math.isnan(value) else value
