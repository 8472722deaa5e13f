"""The change stream of an uncertain window: as `model.Changes`, with the threshold that each change is about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skytide.model import Floats, Integers, change_order


class ThresholdChange(NamedTuple):
    """One row or object entering (`+`) or leaving (`-`) the answer of one threshold at one time."""

    time: Any
    change: str
    id: Any
    threshold: float


@dataclass(frozen=True)
class ThresholdChanges:
    """A run of the change stream as columns: ordered by time, `-` before `+`, id as text, then threshold, rising.

    >>> changes = ThresholdChanges.of([3, 3, 1], [1, 1, 1], ["b", "b", "a"], [0.5, 0.3, 0.3])
    >>> [tuple(change) for change in changes]
    [(1, '+', 'a', 0.3), (3, '+', 'b', 0.3), (3, '+', 'b', 0.5)]
    """

    times: npt.NDArray[Any]
    signs: npt.NDArray[np.int8]
    ids: npt.NDArray[Any]
    thresholds: Floats
    late: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    """Positions of the rows of the call that came too late and were not taken."""
    bad: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    """Positions of the rows of the call that the missing-value policy left out."""

    def beside(self, late: Integers, bad: Integers) -> ThresholdChanges:
        """The same changes, together with the rows of the call that were not taken."""
        return ThresholdChanges(self.times, self.signs, self.ids, self.thresholds, late, bad)

    @classmethod
    def of(
        cls, times: npt.ArrayLike, signs: npt.ArrayLike, ids: npt.ArrayLike, thresholds: npt.ArrayLike
    ) -> ThresholdChanges:
        """Columns in any order, put in the order of the change stream. O(n log n)."""
        times, signs, ids = np.asarray(times), np.asarray(signs, dtype=np.int8), np.asarray(ids)
        thresholds = np.asarray(thresholds, dtype=np.float64)
        order = np.argsort(thresholds, kind="stable")
        order = order[change_order(times[order], signs[order], ids[order])]
        return cls(times[order], signs[order], ids[order], thresholds[order])

    @classmethod
    def none(cls) -> ThresholdChanges:
        """No changes."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int8), np.zeros(0, np.int64), np.zeros(0))

    def __len__(self) -> int:
        return len(self.times)

    def __iter__(self) -> Iterator[ThresholdChange]:
        columns = (self.times.tolist(), self.signs.tolist(), self.ids.tolist(), self.thresholds.tolist())
        for time, sign, one, threshold in zip(*columns, strict=True):
            yield ThresholdChange(time, "+" if sign > 0 else "-", one, threshold)

    def plot(self, path: str | Path | None = None) -> Any:
        """The size of each threshold's answer over time, as a matplotlib figure; with `path` it is also written there.

        The changes must be those from the beginning. Needs matplotlib.
        """
        from skytide.plots import Sizes, sizes_picture

        levels = {f"at least {one:g}": self.thresholds == one for one in np.unique(self.thresholds).tolist()}
        found = {name: Sizes.of(self.times[mine], self.signs[mine]) for name, mine in levels.items()}
        return sizes_picture(found or {"skyline": Sizes.of(self.times, self.signs)}, path)

    @property
    def symbols(self) -> npt.NDArray[np.str_]:
        """The signs as `+` and `-`."""
        return np.where(self.signs > 0, "+", "-")
