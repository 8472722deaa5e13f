"""The names of objects as small numbers, which index arrays; whole numbers and text without a step per row."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skytide.errors import IdError
from skytide.model import Booleans, Integers
from skytide.monitors.sliding.ids import check_each
from skytide.tables import as_array

_DENSE = 1 << 16
"""Whole numbers from 0 up to this, and up to a few times their count, are looked up in an array."""


class Names:
    """Gives every id a number, from 0 on; `word` is what errors call it.

    >>> names = Names()
    >>> names.numbers(["b", "a", "b"]).tolist(), names.numbers(["c", "a"]).tolist()
    ([0, 1, 0], [2, 1])
    >>> names.ids(np.array([0, 2])).tolist()
    ['b', 'c']
    """

    def __init__(self, word: str = "id") -> None:
        self._word = word
        self.kind: str | None = None  # "integer" or "other"
        self._numbers: dict[Hashable, int] = {}
        self._table: Integers = np.zeros(0, np.int64)
        self._ids: list[Any] = []

    def __len__(self) -> int:
        return len(self._ids)

    def check(self, ids: Any, total: int) -> tuple[str, Any]:
        """What kind of ids these are, as a column; the kind must stay the same, and none may be missing."""
        column = ids if isinstance(ids, pa.Array | pa.ChunkedArray) else as_array(ids)
        if len(column) != total or getattr(column, "ndim", 1) != 1:
            raise IdError(
                f"there are {len(column)} {self._word}s for {total} rows", remedy=f"give one {self._word} per row"
            )
        if isinstance(column, pa.Array | pa.ChunkedArray):
            if column.null_count:
                row = pc.is_null(column).to_numpy(zero_copy_only=False).argmax() if total else 0
                raise IdError(f"the {self._word} is missing", row=int(row) + 1, remedy="fill it in")
            if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
                column = as_array(column)
        kind = "other"
        if isinstance(column, np.ndarray):
            if column.dtype.kind in "iu" and column.dtype != np.uint64:
                kind, column = "integer", column.astype(np.int64, copy=False)
            else:
                check_each(column, self._word)
        if self.kind is not None and kind != self.kind:
            raise IdError(
                f"the {self._word}s so far are of the kind {self.kind!r}, these are of the kind {kind!r}",
                remedy=f"give {self._word}s of one kind throughout",
            )
        return kind, column

    def numbers(self, ids: Any) -> Integers:
        """The numbers of ids; new ones get the next numbers. O(n)."""
        kind, column = self.check(ids, len(ids))
        return self.take(kind, column)

    def take(self, kind: str, column: Any) -> Integers:
        """The numbers of ids that have been checked."""
        self.kind = kind
        if kind == "integer":
            return self._whole(column)
        if not isinstance(column, np.ndarray):
            encoded = pc.dictionary_encode(column)
            if isinstance(encoded, pa.ChunkedArray):
                encoded = encoded.combine_chunks()
            if isinstance(encoded, pa.ChunkedArray):
                encoded = encoded.chunk(0)
            told: Integers = self._look_up(encoded.dictionary.to_pylist())
            places: Integers = encoded.indices.to_numpy(zero_copy_only=False)
            return told[places]
        return self._look_up(column.tolist())

    def _whole(self, ids: Integers) -> Integers:
        if not len(ids):
            return ids
        low, high = int(ids.min()), int(ids.max())
        if low < 0 or high > _DENSE + 4 * (len(self._ids) + len(ids)):
            distinct, places = np.unique(ids, return_inverse=True)
            return self._look_up(distinct.tolist())[places]
        if high >= len(self._table):
            room = np.full(max(high + 1, 2 * len(self._table)) - len(self._table), -1, np.int64)
            self._table = np.concatenate((self._table, room))
            for one, number in self._numbers.items():
                if isinstance(one, int) and 0 <= one < len(self._table):
                    self._table[one] = number
        found = self._table[ids]
        if (found < 0).any():
            fresh = ids[found < 0]
            if len(fresh) << 5 < len(self._table):  # few: no pass over the table
                fresh = np.unique(fresh)
            else:
                new = np.zeros(len(self._table), bool)
                new[fresh] = True
                fresh = np.flatnonzero(new)
            self._table[fresh] = self._look_up(fresh.tolist())
            found = self._table[ids]
        return found

    def _look_up(self, ids: list[Any]) -> Integers:
        known = self._numbers
        found = np.empty(len(ids), np.int64)
        for place, one in enumerate(ids):
            number = known.get(one)
            if number is None:
                number = known[one] = len(self._ids)
                self._ids.append(one)
            found[place] = number
        return found

    def number(self, one: Any) -> int | None:
        """The number of one id, if it has one."""
        try:
            return self._numbers.get(one)
        except TypeError:
            return None

    def ids(self, numbers: Integers) -> npt.NDArray[Any]:
        """The ids of numbers."""
        if self.kind == "integer":
            return np.fromiter((self._ids[number] for number in numbers.tolist()), np.int64, len(numbers))
        found = np.empty(len(numbers), dtype=object)
        found[:] = [self._ids[number] for number in numbers.tolist()]
        return found

    def keep(self, which: Booleans) -> None:
        """Forget the ids that are not to be kept; the others get new numbers in their order."""
        self.restore(self.kind, [one for one, kept in zip(self._ids, which.tolist(), strict=True) if kept])

    def forget_since(self, number: int) -> None:
        """Forget the ids from this number on: their rows were not taken after all."""
        for one in self._ids[number:]:
            del self._numbers[one]
            if isinstance(one, int) and 0 <= one < len(self._table):
                self._table[one] = -1
        del self._ids[number:]

    def restore(self, kind: str | None, ids: Iterable[Any]) -> None:
        """Start afresh with these ids."""
        self.kind = kind
        self._ids = list(ids)
        self._numbers = {one: number for number, one in enumerate(self._ids)}
        self._table = np.zeros(0, np.int64)
