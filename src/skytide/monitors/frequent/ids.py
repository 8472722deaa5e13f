"""Ids beside the slots of the compiled counter: a slot for each id that still matters, used again afterwards."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skytide.errors import IdError
from skytide.model import Integers
from skytide.tables import as_array

_MANY = 256
"""Ids from which on it pays to look at the distinct ones alone."""
_COLUMNS = ("__array__", "__arrow_c_array__", "__arrow_c_stream__", "__arrow_array__")
"""What says that something is a column of some library; the rest is listed first, as it may come only once."""


class Column(NamedTuple):
    """Ids, or the distinct ones and for each row which of them it has."""

    distinct: npt.NDArray[Any]
    codes: Integers | None

    def __len__(self) -> int:
        return len(self.distinct if self.codes is None else self.codes)

    @property
    def kind(self) -> str:
        """Whether the ids are whole numbers that fit 64 bits, or something else."""
        form = self.distinct.dtype
        return "integer" if form.kind in "iu" and form != np.uint64 else "other"


def _encoded(ids: Any) -> Column | None:
    """A long column by its distinct ids; None where Arrow cannot tell them apart."""
    try:
        found = ids if isinstance(ids, pa.Array | pa.ChunkedArray) else pa.array(ids)
        if isinstance(found, pa.ChunkedArray):
            found = found.combine_chunks()
        encoded = found.dictionary_encode()
        if encoded.null_count:
            return None
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None
    return Column(as_array(encoded.dictionary), encoded.indices.to_numpy().astype(np.int64))


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

    def read(self, ids: Any, *, encode: bool = True) -> Column:
        """Ids of any form as a column; one whose kind is not that of the ids so far is refused.

        A long column is encoded by its distinct ids, where asked for.
        """
        if isinstance(ids, str | bytes):
            raise IdError("is one id, not several", value=ids, remedy="give a list, a set or a column of ids")
        try:
            listed = ids if any(hasattr(ids, mark) for mark in _COLUMNS) else list(ids)
            column = _encoded(listed) if encode and len(listed) >= _MANY else None
            column = Column(as_array(listed), None) if column is None else column
        except TypeError:
            raise IdError("are not ids", value=ids, remedy="give a list, a set or a column of ids") from None
        if column.distinct.ndim != 1:
            raise IdError("an array of several dimensions does not hold ids", remedy="give one column")
        if len(column) and self.kind not in (None, column.kind):
            was, are = ("", " not") if self.kind == "integer" else (" not", "")
            raise IdError(
                f"the ids so far are{was} whole numbers, these are{are}", remedy="give ids of one kind throughout"
            )
        return column

    def take(self, column: Column) -> Integers:
        """The slot of each id; new ids get one. O(n)."""
        if not len(column):
            return np.zeros(0, np.int64)
        self.kind = column.kind
        try:
            slots = self._slots(column.distinct.tolist())
        except IdError as error:
            if error.row is not None and column.codes is not None:
                error.row = int(np.argmax(column.codes == error.row - 1)) + 1
            raise
        return slots if column.codes is None else slots[column.codes]

    def begin(self) -> None:
        """From here on, ids can be taken back."""
        self._fresh, self._kind_before = [], self.kind

    def undo(self) -> None:
        """Forget the ids that have come since `begin`: they were refused."""
        self.forget([self.known[one] for one in self._fresh])
        self._fresh, self.kind = [], self._kind_before

    def forget(self, slots: list[int]) -> None:
        """Let slots be used again. O(slots)."""
        if not slots:
            return
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
        if len(slots) <= 1:
            return np.zeros(len(slots), np.int64)
        if len(slots) < self.room:
            distinct, places = np.unique(slots, return_inverse=True)
        else:
            present = np.zeros(self.room, bool)
            present[slots] = True
            distinct, places = np.flatnonzero(present), (np.cumsum(present) - 1)[slots]
        texts = list(map(str, self.ids(distinct).tolist()))
        ranks = np.empty(len(texts), np.int64)
        ranks[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
        return ranks[places]

    def restore(self, kind: str | None, ids: list[Any]) -> None:
        """Take stored ids, all of them new, into the first slots."""
        self.kind, self.known, self._free = None, {}, []
        form = np.int64 if kind == "integer" else object
        self.take(Column(np.fromiter(ids, dtype=form, count=len(ids)), None))
        if len(self.known) != len(ids) or self.kind not in (kind, None):
            raise IdError("stored ids are not in order", remedy="store them again")
        self.kind, self._fresh = kind, []

    # -- details -------------------------------------------------------------------------------------------------------

    def _slots(self, ids: list[Any]) -> Integers:
        """The slots of ids, which may come more than once."""
        try:
            found = list(map(self.known.get, ids))
        except TypeError:
            check_each(ids)
            raise
        if None in found:
            fresh = list(dict.fromkeys(one for one, slot in zip(ids, found, strict=True) if slot is None))
            if self.kind != "integer" and any(one is None or one != one for one in fresh):
                check_each(ids)
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


def check_each(ids: list[Any]) -> None:
    """Raise where an id is missing or cannot be looked up."""
    for row, one in enumerate(ids):
        try:
            missing = one is None or one != one
            hash(one)
        except (TypeError, ValueError):
            raise IdError("an id is not hashable", row=row + 1, remedy="use numbers or text as ids") from None
        if missing:
            raise IdError("the id is missing", row=row + 1, remedy="leave the row out, or name it")
