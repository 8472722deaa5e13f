"""Who is who: numbers for objects, which are known within their group; and whose turn it is at one time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skytide.model import Integers
from skytide.spark.streaming.query import as_mask


class Identities:
    """Gives every pair of a group and an id a small number; numbers that are given back are used again.

    >>> known = Identities()
    >>> known.of(np.array([0, 1, 0]), pa.chunked_array([["a", "a", "a"]])).tolist(), known.groups.tolist()
    ([0, 1, 0], [0, 1])
    >>> known.forget([0])
    >>> known.of(np.array([2]), pa.chunked_array([["b"]])).tolist(), known.groups.tolist()
    ([0], [2, 1])
    """

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, Any], int] = {}
        self._names: list[tuple[int, Any] | None] = []
        self._free: list[int] = []
        self.groups = np.zeros(0, np.int64)
        """The group of each number."""

    def __len__(self) -> int:
        """One more than the largest number so far."""
        return len(self._names)

    def of(self, groups: Integers, ids: pa.ChunkedArray) -> Integers:
        """The numbers of objects, new ones included. O(n), in Python per distinct object only."""
        if not len(ids):
            return np.zeros(0, np.int64)
        encoded = pc.dictionary_encode(ids).combine_chunks()
        names, places = encoded.dictionary.to_pylist(), encoded.indices.to_numpy(zero_copy_only=False)
        pairs, inverse = np.unique(groups * len(names) + places, return_inverse=True)
        found = np.empty(len(pairs), np.int64)
        for at, (group, place) in enumerate(zip(*(part.tolist() for part in divmod(pairs, len(names))), strict=True)):
            number = self._numbers.get((group, names[place]))
            found[at] = self._new((group, names[place])) if number is None else number
        self._widen()
        return found[inverse]

    def _new(self, name: tuple[int, Any]) -> int:
        if self._free:
            number = self._free.pop()
            self._names[number] = name
        else:
            number = len(self._names)
            self._names.append(name)
        self._numbers[name] = number
        if number < len(self.groups):
            self.groups[number] = name[0]
        return number

    def _widen(self) -> None:
        if len(self._names) > len(self.groups):
            more = [-1 if name is None else name[0] for name in self._names[len(self.groups) :]]
            self.groups = np.concatenate((self.groups, np.array(more, np.int64)))

    def forget(self, numbers: Sequence[int]) -> None:
        """Give numbers back."""
        for number in numbers:
            name = self._names[number]
            if name is not None:
                del self._numbers[name]
                self._names[number] = None
                self._free.append(number)

    def restore(self, numbers: Sequence[int], groups: Sequence[int], ids: Sequence[Any]) -> None:
        """Start afresh with these objects and their numbers."""
        self._names = [None] * (max(numbers, default=-1) + 1)
        for number, name in zip(numbers, zip(groups, ids, strict=True), strict=True):
            self._names[number] = name
        self._numbers = {name: number for number, name in enumerate(self._names) if name is not None}
        self._free = [number for number, name in enumerate(self._names) if name is None]
        self.groups = np.zeros(0, np.int64)
        self._widen()

    def name(self, number: int) -> Any:
        """The id of an object."""
        known = self._names[number]
        return None if known is None else known[1]


def ranks(rows: pa.Table, first: str | None) -> Integers:
    """The place of each row in an order of rows that depends on nothing but their values; missing ones come first.

    By the column `first` where it is given, then by all columns as they stand. Rows that are equal may change places.

    >>> ranks(pa.table({"x": [2, 1, None], "tags": [["b"], ["a"], []]}), None).tolist()
    [2, 1, 0]
    """
    keys: dict[str, Any] = {}
    for name in ([] if first is None else [first]) + [name for name in rows.column_names if name != first]:
        column = rows.column(name)
        if not pa.types.is_null(column.type):
            keys[f"there {len(keys)}"] = pa.array(as_mask(column))
            keys[f"value {len(keys)}"] = column if _has_order(column.type) else pa.array(map(repr, column.to_pylist()))
    order = pc.sort_indices(pa.table(keys), sort_keys=[(name, "ascending") for name in keys])
    found = np.empty(rows.num_rows, np.int64)
    found[order.to_numpy()] = np.arange(rows.num_rows)
    return found


def _has_order(kind: pa.DataType) -> bool:
    """Whether Arrow sorts by values of a type."""
    plain = (
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_boolean,
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_decimal,
        pa.types.is_date,
        pa.types.is_timestamp,
    )
    return any(one(kind) for one in plain)
