"""Ids beside the slots of the compiled counter: a slot for each id that still matters, used again afterwards."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skytide.errors import IdError
from skytide.model import Integers
from skytide.tables import as_array

_MANY = 256
"""Whole numbers from which on it pays to look at the distinct ones alone."""
_COLUMNS = ("__array__", "__arrow_c_array__", "__arrow_c_stream__", "__arrow_array__")
"""What says that something is a column of some library; the rest is listed first, as it may come only once."""


class Slots:
    """Which slot an id has. Ids are whole numbers throughout, or anything else that can be told apart.

    >>> slots = Slots()
    >>> slots.take(slots.read(["b", "a", "b"])).tolist()
    [0, 1, 0]
    >>> slots.ids(np.array([1])).tolist()
    ['a']
    """

    def __init__(self) -> None:
        self.kind: str | None = None  # "integer" or "other"
        self.known: dict[Hashable, int] = {}
        self._names: npt.NDArray[Any] = np.zeros(0, np.int64)
        self._free: list[int] = []
        self._fresh: list[Hashable] = []  # the ids that have come since `begin`
        self._kind_before: str | None = None

    def __len__(self) -> int:
        return len(self.known)

    @property
    def room(self) -> int:
        """Slots that are or were in use: a larger one has never been given."""
        return len(self.known) + len(self._free)

    def read(self, ids: Any) -> npt.NDArray[Any]:
        """Ids of any form as an array."""
        if isinstance(ids, str | bytes):
            raise IdError("is one id, not several", value=ids, remedy="give a list, a set or a column of ids")
        try:
            column = as_array(ids if any(hasattr(ids, mark) for mark in _COLUMNS) else list(ids))
        except TypeError:
            raise IdError("are not ids", value=ids, remedy="give a list, a set or a column of ids") from None
        if column.ndim != 1:
            raise IdError(f"an array of {column.ndim} dimensions does not hold ids", remedy="give one column")
        return column

    def take(self, column: npt.NDArray[Any]) -> Integers:
        """The slot of each id; new ids get one. O(n)."""
        if not len(column):
            return np.zeros(0, np.int64)
        kind = "integer" if column.dtype.kind in "iu" and column.dtype != np.uint64 else "other"
        if self.kind is not None and kind != self.kind:
            was, are = ("whole numbers", "not") if self.kind == "integer" else ("not whole numbers", "whole numbers")
            raise IdError(f"the ids so far are {was}, these are {are}", remedy="give ids of one kind throughout")
        self.kind = kind
        if kind == "integer" and len(column) >= _MANY:
            encoded = pa.array(np.ascontiguousarray(column, dtype=np.int64)).dictionary_encode()
            slots: Integers = self._slots(encoded.dictionary.to_pylist())[encoded.indices.to_numpy()]
        else:
            slots = self._slots(column.tolist())
        return slots

    def begin(self) -> None:
        """From here on, ids can be taken back."""
        self._fresh, self._kind_before = [], self.kind

    def undo(self) -> None:
        """Forget the ids that have come since `begin`: they were refused."""
        self.forget([self.known[one] for one in self._fresh])
        self._fresh, self.kind = [], self._kind_before

    def forget(self, slots: list[int]) -> None:
        """Let slots be used again. O(slots)."""
        for name in self._names[slots].tolist():
            del self.known[name]
        self._names[slots] = 0  # a text that nobody needs is not held
        self._free += slots

    def slot(self, one: Any) -> int | None:
        """The slot of an id, or None where nothing is known of it. O(1)."""
        try:
            return self.known.get(one)
        except TypeError:
            raise IdError("is not an id", value=one, remedy="use numbers or text as ids") from None

    def ids(self, slots: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The ids of slots."""
        return np.asarray(self._names[slots])

    def ranks(self, slots: Integers) -> Integers:
        """Numbers in the order of the ids as text. O(n), and a sort of the distinct ids."""
        distinct, inverse = np.unique(slots, return_inverse=True)
        texts = [str(one) for one in self.ids(distinct).tolist()]
        ranks = np.empty(len(texts), np.int64)
        ranks[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
        return ranks[inverse]

    def restore(self, kind: str | None, ids: list[Any]) -> None:
        """Take stored ids, all of them new, into the first slots."""
        self.kind, self.known, self._free = None, {}, []
        form = np.int64 if kind == "integer" else object
        column = np.fromiter(ids, dtype=form, count=len(ids))
        self.take(column)
        if len(self.known) != len(ids) or self.kind not in (kind, None):
            raise IdError("stored ids are not in order", remedy="store them again")
        self.kind, self._fresh = kind, []

    # -- details -------------------------------------------------------------------------------------------------------

    def _slots(self, ids: list[Any]) -> Integers:
        """The slots of ids, which may come more than once."""
        try:
            found = list(map(self.known.get, ids))
        except TypeError:
            _check_each(ids)
            raise
        if None in found:
            fresh = list(dict.fromkeys(one for one, slot in zip(ids, found, strict=True) if slot is None))
            if self.kind != "integer" and any(one is None or one != one for one in fresh):
                _check_each(ids)
            self._admit(fresh)
            found = list(map(self.known.get, ids))
        return np.array(found, dtype=np.int64)

    def _admit(self, fresh: list[Any]) -> None:
        """Give new ids, each named once, their slots."""
        again = self._free[-len(fresh) :]
        first, more = self.room, len(fresh) - len(again)
        del self._free[-len(fresh) :]
        slots = again + list(range(first, first + more))
        form = np.int64 if self.kind == "integer" else object
        if first + more > len(self._names) or self._names.dtype != form:
            names = np.zeros(max(first + more, len(self._names) * 3 // 2), dtype=form)
            if self._names.dtype == form:  # else the ids of another kind were all refused
                names[: len(self._names)] = self._names
            self._names = names
        self._names[slots] = np.fromiter(fresh, dtype=form, count=len(fresh))
        self.known.update(zip(fresh, slots, strict=True))
        self._fresh += fresh


def _check_each(ids: list[Any]) -> None:
    """Raise where an id is missing or cannot be looked up."""
    for row, one in enumerate(ids):
        try:
            missing = one is None or one != one
            hash(one)
        except (TypeError, ValueError):
            raise IdError("an id is not hashable", row=row + 1, remedy="use numbers or text as ids") from None
        if missing:
            raise IdError("the id is missing", row=row + 1, remedy="leave the row out, or name it")
