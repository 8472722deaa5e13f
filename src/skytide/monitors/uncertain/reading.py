"""What an uncertain window reads beside rows: probabilities, and which rows are the instances of one object."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from skytide.errors import InputError
from skytide.model import Column, Floats, Integers, MissingPolicy
from skytide.monitors.uncertain.engine import TOLERANCE
from skytide.tables import numbers


def read_probabilities(table: Any, given: Any, total: int, nulls: MissingPolicy) -> Floats:
    """The probability of each row, NaN where it is missing and the policy takes that; else an error names the row."""
    if given is None:
        raise InputError("uncertain rows need probabilities", remedy="give a column, or the name of one")
    named = isinstance(given, str) or (isinstance(given, int) and not isinstance(given, bool))
    if not named and not hasattr(given, "__len__"):
        raise InputError("is not a column of probabilities", value=given, remedy="give one probability per row")
    column: Column = given if named else "probabilities"
    chances = numbers(table if named else {column: given}, column)
    if len(chances) != total:
        raise InputError(f"there are {len(chances)} probabilities for {total} rows", remedy="give one per row")
    outside = (chances < 0) | (chances > 1)
    if outside.any():
        row = int(np.argmax(outside))
        raise InputError(
            "is not a probability",
            value=float(chances[row]),
            row=row + 1,
            column=column,
            remedy="give a number from 0 to 1",
        )
    missing = np.isnan(chances)
    if nulls != "drop" and missing.any():
        raise InputError(
            "the probability is missing (NULL or NaN)",
            row=int(np.argmax(missing)) + 1,
            column=column,
            remedy="fill it in, or choose the policy drop",
        )
    return chances


class Instances:
    """Which rows of a call belong to which object: neighbours of one name do."""

    def __init__(self, names: npt.NDArray[Any]) -> None:
        self._starts = np.flatnonzero(np.concatenate(([True], np.asarray(names[1:] != names[:-1], dtype=bool))))
        self._number = np.zeros(len(names), dtype=np.int64)
        self._number[self._starts[1:]] = 1
        self._number = np.cumsum(self._number)
        self.names = names[self._starts]

    def __len__(self) -> int:
        return len(self._starts)

    def check_times(self, stamps: npt.NDArray[Any]) -> None:
        """An error where instances of one object have different times; missing ones are no times."""
        self._check(stamps, "the instances of an object come at different times")

    def of(self, kept: Integers | slice) -> tuple[Integers, Integers]:
        """The objects of which rows are kept, and of each kept row which of these it belongs to."""
        return np.unique(self._number[kept], return_inverse=True)

    def check_kept(self, kept: Integers, codes: Integers, chances: Floats) -> None:
        """An error where the instances of one object are of different groups, or are more probable than certain."""
        groups = np.full(len(self._number), -1)
        groups[kept] = codes
        self._check(groups, "the instances of an object are in different groups", missing=groups < 0)
        present, owner = self.of(kept)
        # reduceat sums by halves: the rounding of a plain sum would pass for a probability above 1 from 300,000 on.
        sums = np.add.reduceat(chances, np.searchsorted(owner, np.arange(len(present))))
        if (sums > 1 + TOLERANCE).any():
            place = int(np.argmax(sums > 1 + TOLERANCE))
            raise InputError(
                f"is the sum of the probabilities of the object {str(self.names[present[place]])!r:.80}",
                value=float(sums[place]),
                row=int(self._starts[present[place]]) + 1,
                remedy="the probabilities of an object's instances sum to 1 at most",
            )

    def _check(self, column: npt.NDArray[Any], reason: str, missing: npt.NDArray[np.bool_] | None = None) -> None:
        if missing is None:
            missing = np.isnat(column) if column.dtype.kind == "M" else np.isnan(column)
        rows = np.flatnonzero(~missing)
        wrong = (self._number[rows][1:] == self._number[rows][:-1]) & (column[rows][1:] != column[rows][:-1])
        if wrong.any():
            row = int(rows[1:][np.argmax(wrong)])
            name = str(self.names[self._number[row]])
            raise InputError(
                reason, value=name, row=row + 1, remedy="give all instances of an object one time and one group"
            )
