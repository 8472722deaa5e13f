"""The change stream of several frequent answers at once: as `model.Changes`, with the pair of each change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skytide.model import Floats, Integers, change_order


class PairChange(NamedTuple):
    """One id entering (`+`) or leaving (`-`) the answer of one pair of theta and over at one time."""

    time: Any
    change: str
    id: Any
    theta: float
    over: int


@dataclass(frozen=True)
class PairChanges:
    """A run of the change stream as columns: ordered by time, `-` before `+`, id as text, then theta and over, rising.

    >>> changes = PairChanges.of([3, 3, 1], [1, 1, 1], ["b", "b", "a"], [0.5, 0.3, 0.3], [9, 9, 9])
    >>> [tuple(change) for change in changes]
    [(1, '+', 'a', 0.3, 9), (3, '+', 'b', 0.3, 9), (3, '+', 'b', 0.5, 9)]
    """

    times: npt.NDArray[Any]
    signs: npt.NDArray[np.int8]
    ids: npt.NDArray[Any]
    thetas: Floats
    overs: Integers

    @classmethod
    def of(
        cls,
        times: npt.ArrayLike,
        signs: npt.ArrayLike,
        ids: npt.ArrayLike,
        thetas: npt.ArrayLike,
        overs: npt.ArrayLike,
    ) -> PairChanges:
        """Columns in any order, put in the order of the change stream. O(n log n)."""
        times, signs, ids = np.asarray(times), np.asarray(signs, dtype=np.int8), np.asarray(ids)
        thetas, overs = np.asarray(thetas, dtype=np.float64), np.asarray(overs, dtype=np.int64)
        order = np.lexsort((overs, thetas))
        order = order[change_order(times[order], signs[order], ids[order])]
        return cls(times[order], signs[order], ids[order], thetas[order], overs[order])

    def __len__(self) -> int:
        return len(self.times)

    def __iter__(self) -> Iterator[PairChange]:
        columns = (self.times, self.signs, self.ids, self.thetas, self.overs)
        for time, sign, one, theta, over in zip(*(column.tolist() for column in columns), strict=True):
            yield PairChange(time, "+" if sign > 0 else "-", one, theta, over)

    @property
    def symbols(self) -> npt.NDArray[np.str_]:
        """The signs as `+` and `-`."""
        return np.where(self.signs > 0, "+", "-")
