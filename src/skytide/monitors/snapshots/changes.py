"""The change stream of a series of snapshots: as `model.Changes`, and which snapshots there were.

Most snapshots change nothing, and who counts them (`skytide.Frequent`) must know of those too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skytide.model import Changes, Integers


class Spoiled(NamedTuple):
    """Updates that were not taken when their snapshots were complete: the result is not a number (inf - inf)."""

    times: npt.NDArray[Any]
    ids: npt.NDArray[Any]


NONE_SPOILED = Spoiled(np.zeros(0, np.int64), np.zeros(0, np.int64))


@dataclass(frozen=True)
class SnapshotChanges(Changes):
    """Changes of the skyline, with the times of all snapshots that were closed, with changes or without.

    `spoiled` are updates of those snapshots that were not taken; they may be rows of earlier calls.
    """

    snapshots: npt.NDArray[Any] = field(default_factory=lambda: np.zeros(0, np.int64))
    spoiled: Spoiled = NONE_SPOILED

    def beside(self, late: Integers, bad: Integers) -> SnapshotChanges:
        """The same changes, together with the rows of the call that were not taken."""
        return SnapshotChanges(self.times, self.signs, self.ids, late, bad, self.snapshots, self.spoiled)

    @classmethod
    def over(cls, changes: Changes, snapshots: npt.NDArray[Any], spoiled: Spoiled = NONE_SPOILED) -> SnapshotChanges:
        """Changes that happened over these snapshots."""
        return cls(changes.times, changes.signs, changes.ids, changes.late, changes.bad, snapshots, spoiled)

    @classmethod
    def concatenate(cls, parts: Sequence[Changes]) -> SnapshotChanges:
        """Runs that follow each other in time, as one run."""
        # What came before the first time was known is nothing, of no kind.
        some = [part for part in parts if len(part)] or parts[-1:]
        told = [part.snapshots for part in parts if isinstance(part, SnapshotChanges) and len(part.snapshots)]
        lost = [part.spoiled for part in parts if isinstance(part, SnapshotChanges) and len(part.spoiled.times)]
        return cls.over(
            Changes.concatenate(some),
            np.concatenate(told) if told else np.zeros(0, np.int64),
            Spoiled(*map(np.concatenate, zip(*lost, strict=True))) if lost else NONE_SPOILED,
        )
