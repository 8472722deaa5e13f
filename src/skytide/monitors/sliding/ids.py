"""Ids beside the engines' handles: which id a handle stands for, and which ids live rows have."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from skytide.errors import IdError
from skytide.model import Booleans, Integers
from skytide.tables import as_array


class Handles:
    """Turns ids into int64 handles and back.

    Row numbers and whole-number ids are their own handles and cost nothing. Other ids are numbered, and remembered for
    as long as their rows are retained.
    """

    def __init__(self) -> None:
        self.kind: str | None = None  # "number", "integer" or "other"
        self.next = 1
        self.known: dict[int, Hashable] = {}
        self._sweep_at = 1024

    def kind_of(self, ids: Any, total: int) -> tuple[str, npt.NDArray[Any]]:
        """What kind of ids these are, as an array; the kind must stay the same, and none may be missing."""
        if ids is None:
            kind, column = "number", np.zeros(0, np.int64)
        else:
            column = as_array(ids)
            kind = "integer" if column.dtype.kind in "iu" and column.dtype != np.uint64 else "other"
            if column.shape != (total,):
                raise IdError(f"there are {len(column)} ids for {total} rows", remedy="give one id per row")
            if kind == "other":
                check_each(column)
        if self.kind is not None and kind != self.kind:
            raise IdError(
                f"the window's ids are of the kind {self.kind!r}, these are of the kind {kind!r}",
                remedy="give ids of one kind throughout, or none",
            )
        return kind, column

    def take(self, kind: str, column: npt.NDArray[Any], total: int, kept: Integers | slice) -> Integers:
        """Handles of the kept rows among `total` new rows; all of them are numbered."""
        self.kind = kind
        if kind == "integer":
            return np.ascontiguousarray(column[kept], dtype=np.int64)
        numbers = np.arange(self.next, self.next + total, dtype=np.int64)[kept]
        self.next += total
        if kind == "other":
            self.known.update(zip(numbers.tolist(), column[kept].tolist(), strict=True))
        return numbers

    def ids(self, handles: Integers) -> npt.NDArray[Any]:
        """The ids of handles."""
        if self.kind != "other":
            return handles
        found = np.empty(len(handles), dtype=object)
        found[:] = [self.known[handle] for handle in handles.tolist()]
        return found

    def sweep(self, needed: Callable[[], Iterable[int]]) -> None:
        """Forget ids whose rows are gone, when what is known has doubled. Amortised O(1) per row."""
        if len(self.known) > self._sweep_at:
            self.known = {handle: self.known[handle] for handle in needed()}
            self._sweep_at = max(1024, 2 * len(self.known))


def check_each(column: npt.NDArray[Any], word: str = "id") -> None:
    """Every id, which errors may call otherwise, must be there, and of a kind that can be looked up. O(n)."""
    for row, one in enumerate(column.tolist()):
        try:
            missing = one is None or one != one
            hash(one)
        except (TypeError, ValueError):
            raise IdError(f"the {word} is not hashable", row=row + 1, remedy="use numbers or text") from None
        if missing:
            raise IdError(f"the {word} is missing", row=row + 1, remedy=f"give every row its {word}")


def net(times: Integers, signs: Integers, ids: npt.NDArray[Any]) -> Booleans:
    """Which changes stay when an id's `-` and `+` at one instant cancel: its next row took the place of its last."""
    if ids.dtype.kind == "O":
        known: dict[Hashable, int] = {}
        ids = np.array([known.setdefault(one, len(known)) for one in ids.tolist()], dtype=np.int64)
    order = np.lexsort((signs, ids, times))
    twice = (times[order][1:] == times[order][:-1]) & (ids[order][1:] == ids[order][:-1])
    stays = np.ones(len(times), dtype=bool)
    stays[order[1:][twice]] = False
    stays[order[:-1][twice]] = False
    return stays


class LiveIds:
    """The ids of live rows, to refuse a second live row with the same id. Memory follows the window, not the answer.

    As long as ids are whole numbers that only grow, none can come twice: they are kept as arrays, and become a table
    when one comes that is not larger than all before it.
    """

    def __init__(self) -> None:
        self._runs: deque[tuple[Integers, Integers]] = deque()  # growing ids and their arrivals
        self._largest: int | None = None
        self.arrivals: dict[Hashable, Any] = {}  # an arrival, or a list of arrivals where an id came again
        self.came_again = False
        self._sweep_at = 4096

    def __len__(self) -> int:
        return len(self.arrivals) + sum(len(ids) for ids, _ in self._runs)

    def append(self, ids: Integers, arrivals: Integers, lives: Callable[[int], bool]) -> bool:
        """Remember rows whose ids grow from the largest so far on, if they do; forget runs of dead rows. O(n)."""
        if not len(ids):
            return True
        grow = not self.arrivals and (self._largest is None or ids[0] > self._largest)
        if not grow or not (ids[1:] > ids[:-1]).all():
            return False
        while self._runs and not lives(int(self._runs[0][1].max())):
            self._runs.popleft()
        self._runs.append((ids.copy(), arrivals.copy()))
        self._largest = int(ids[-1])
        return True

    def spread(self, known: Callable[[int], Any], lives: Callable[[Any], bool]) -> None:
        """Turn the runs of growing ids into the table, each row as `known` says, live rows only."""
        while self._runs:
            ids, arrivals = self._runs.popleft()
            rows = ((one, known(arrival)) for one, arrival in zip(ids.tolist(), arrivals.tolist(), strict=True))
            self.arrivals.update((one, arrival) for one, arrival in rows if lives(arrival))

    def check(self, ids: list[Hashable], arrivals: list[Any], admit: Callable[[list[Any], Any], bool]) -> None:
        """Raise if a new row lives together with a live or new row of the same id; nothing is changed.

        `admit` puts an arrival into the sorted arrivals of its id, or says no. The error's row is the position among
        the new rows.
        """
        distinct = set(ids)
        again = distinct & self.arrivals.keys()
        if not again and len(distinct) == len(ids):
            return
        seen = {one: sorted(_listed(self.arrivals[one])) for one in again}
        for row, (one, arrival) in enumerate(zip(ids, arrivals, strict=True)):
            if not admit(seen.setdefault(one, []), arrival):
                raise IdError(
                    "is the id of two rows that live at the same time",
                    value=one,
                    row=row,
                    remedy="use an id that is unique among live rows",
                )

    def add(self, ids: list[Hashable], arrivals: list[Any], lives: Callable[[Any], bool]) -> None:
        """Remember checked rows, and forget dead ones when what is known has doubled. Amortised O(1) per row.

        Of an id that comes again the dead rows are forgotten at once: it may come again for ever.
        """
        distinct = set(ids)
        again = self.arrivals.keys() & distinct
        if again or len(distinct) < len(ids):
            self.came_again = True
            held = {one: [old for old in _listed(self.arrivals[one]) if lives(old)] for one in again}
            for one, arrival in zip(ids, arrivals, strict=True):
                held.setdefault(one, []).append(arrival)
            self.arrivals.update((one, rows[0] if len(rows) == 1 else rows) for one, rows in held.items())
        else:
            self.arrivals.update(zip(ids, arrivals, strict=True))
        if len(self.arrivals) > self._sweep_at:
            self._sweep(lives)

    def _sweep(self, lives: Callable[[Any], bool]) -> None:
        kept = {}
        for one, known in self.arrivals.items():
            alive = [arrival for arrival in _listed(known) if lives(arrival)]
            if alive:
                kept[one] = alive[0] if len(alive) == 1 else alive
        self.arrivals = kept
        self._sweep_at = max(4096, 2 * len(kept))


def _listed(known: Any) -> list[Any]:
    return list(known) if isinstance(known, list) else [known]
