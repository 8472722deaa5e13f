"""The one interface of the methods for snapshots: updates of numbered objects in, changes of the skyline out.

An engine knows neither ids nor columns nor groups nor operations: an update gives an object its new values, oriented
(smaller is better) and without NaN, or takes it away. Objects are slots, small numbers that the caller gives out.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from skytide.model import Booleans, Floats, Integers


class Updates(NamedTuple):
    """Updates of several snapshots as columns: snapshot i has the updates [cuts[i], cuts[i + 1]), applied in order."""

    slots: Integers
    rows: Floats
    """The new values; anything where the object goes."""
    gone: npt.NDArray[np.uint8]
    cuts: Integers

    @property
    def snapshots(self) -> int:
        """How many snapshots there are."""
        return len(self.cuts) - 1

    def part(self, first: int, last: int) -> Updates:
        """The snapshots [first, last), as views."""
        start, stop = int(self.cuts[first]), int(self.cuts[last])
        return Updates(
            self.slots[start:stop], self.rows[start:stop], self.gone[start:stop], self.cuts[first : last + 1] - start
        )


class Flips(NamedTuple):
    """Net changes as columns: the number of the snapshot among those given, +1 or -1, the slot; snapshots rising."""

    snapshots: Integers
    signs: Integers
    slots: Integers


class Engine(Protocol):
    """Keeps the skyline of the objects current."""

    def run(self, updates: Updates) -> Flips:
        """Play the snapshots; whose membership changed from one to the next."""
        ...

    def objects(self) -> tuple[Floats, Booleans]:
        """The points by slot, and which slots hold an object; loading them into any engine gives the same future."""
        ...

    def skyline(self) -> Integers:
        """The slots in the skyline."""
        ...

    def load(self, points: Floats, live: Booleans) -> None:
        """Start afresh from objects, without telling changes."""
        ...

    def counters(self) -> dict[str, int]:
        """What was done since the engine was made, in numbers that do not depend on the machine."""
        ...


def flips_of(lines: Integers) -> Flips:
    """The columns of a matrix of three lines."""
    return Flips(lines[0], lines[1], lines[2])
