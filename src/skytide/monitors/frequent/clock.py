"""The times of a series of snapshots: numbers or timestamps, strictly rising."""

from __future__ import annotations

from typing import Any

import numpy as np

from skytide.errors import WindowError
from skytide.model import Integers, Window
from skytide.monitors.sliding.clock import LOWEST, Clock


class SeriesClock(Clock):
    """As the clock of a sliding window, without a length: snapshots are counted, not timed.

    >>> clock = SeriesClock()
    >>> clock.rising([1.5, 2.5]).shape, clock.kind
    ((2,), 'real')
    """

    def __init__(self) -> None:
        super().__init__(Window(duration=1))
        self.latest = LOWEST
        """The key of the last snapshot."""

    def settle(self, kind: str) -> None:
        """Fix the kind of time."""
        self.kind = kind

    def read(self, times: Any) -> Integers:
        """The keys of times, none of them missing."""
        values = self.prepare(times)
        missing = np.isnat(values) if values.dtype.kind == "M" else np.isnan(values)
        if missing.any():
            raise WindowError("the time is missing", row=int(np.argmax(missing)) + 1, remedy="fill it in")
        return self.keys(values)

    def rising(self, times: Any) -> Integers:
        """The keys of new snapshots, which are later than all before them."""
        keys = self.read(times)
        last = np.concatenate(([self.latest], keys[:-1]))
        if len(keys) and not (keys > last).all():
            row = int(np.argmin(keys > last))
            raise WindowError(
                f"is not later than the snapshot before it, {self.shown(int(last[row]))!r}",
                value=self.shown(int(keys[row])),
                row=row + 1,
                remedy="give each snapshot once, in order of time",
            )
        return keys

    def shown(self, key: int) -> Any:
        """The time of a key, as people write it."""
        return self.times(np.array([key]))[:1].tolist()[0]
