"""`auto`: boxes as long as they pay, and the plain method while most objects move too far for links to hold.

Boxes win by far where objects move a little, whatever their number. Where most of them jump, nearly every link breaks
in every snapshot, and a fresh skyline is cheaper. Which it is depends on so much that it is measured, in this thread's
own processor time: when boxes take suspiciously long, one skyline of the objects is timed beside them. Boxes are tried
again after a while, and after twice as long each time they fail; or at once, where the plain method turns out slower
than they were.
"""

from __future__ import annotations

import time

import numpy as np

from skytide.model import Booleans, Floats, Integers
from skytide.monitors.snapshots.boxes import PATIENCE, BoxEngine
from skytide.monitors.snapshots.engine import Engine, Flips, Updates
from skytide.monitors.snapshots.recompute import RecomputeEngine

_FEW, _MANY, _LONG = 4, 1024, 0.02
"""Snapshots between two judgements: so many after a change of method, and later as many as take so many seconds."""
_CALL, _ROW = 20e-6, 10e-9
"""A skyline takes no less than so many seconds, and so many more per object: below that nothing is timed."""
_REST, _LONGEST = 64, 1 << 14
"""Snapshots without boxes before they are tried again: the first time, and at most."""


class AutoEngine:
    """Changes between boxes and recomputing while running; the answers are the same."""

    def __init__(self, dimensions: int, *, patience: int = PATIENCE) -> None:
        self._boxes = BoxEngine(dimensions, patience=patience)
        self._plain = RecomputeEngine(dimensions)
        self._current: Engine = self._boxes
        self._rest = self._left = _REST
        self._piece = _FEW
        self._judged = 0
        self._spent = 0.0
        self._before = np.inf
        self._switches = 0

    def run(self, updates: Updates) -> Flips:
        """Play the snapshots; whose membership changed from one to the next."""
        none = np.zeros(0, np.int64)
        parts, at = [Flips(none, none, none)], 0
        if updates.snapshots and self._current is self._boxes and not len(self._boxes):
            parts, at = [self._boxes.run(updates.part(0, 1))], 1  # that all objects come says nothing of the rest
        while at < updates.snapshots:
            last = min(updates.snapshots, at + self._piece)
            start = time.thread_time()
            flips = self._current.run(updates.part(at, last))
            self._spent += time.thread_time() - start
            self._judged += last - at
            parts.append(Flips(flips.snapshots + at, flips.signs, flips.slots))
            at = last
            if self._judged >= self._piece:
                self._judge()
        return Flips(*(np.concatenate(lines) for lines in zip(*parts, strict=True)))

    def _judge(self) -> None:
        """Change the method where the other one would be faster."""
        spent, self._spent = self._spent / self._judged, 0.0
        played, self._judged = self._judged, 0
        self._piece = max(_FEW, min(_MANY, 2 * self._piece, int(_LONG / max(spent, 1e-9))))
        if self._current is self._plain:
            self._left -= played
            if self._left <= 0 or spent > self._before:
                self._change(self._boxes)
            return
        points, live = self._boxes.objects()
        if spent < _CALL + _ROW * np.count_nonzero(live):
            self._rest = _REST
            return
        # The plain engine is idle, so it may as well do the trial.
        start = time.thread_time()
        self._plain.load(points, live)
        if time.thread_time() - start < spent:
            self._left, self._rest = self._rest, min(_LONGEST, 2 * self._rest)
            self._before = spent
            self._change(self._plain)
        else:
            self._rest = _REST

    def _change(self, other: Engine) -> None:
        other.load(*self._current.objects())
        self._current = other
        self._piece = _FEW
        self._switches += 1

    def objects(self) -> tuple[Floats, Booleans]:
        """The points by slot, and which slots hold an object."""
        return self._current.objects()

    def skyline(self) -> Integers:
        """The slots in the skyline."""
        return self._current.skyline()

    def load(self, points: Floats, live: Booleans) -> None:
        """Start afresh from objects, without telling changes."""
        self._current = self._boxes
        self._boxes.load(points, live)

    def counters(self) -> dict[str, int]:
        """Those of both methods together, and how often the method changed."""
        total = self._boxes.counters()
        for name, amount in self._plain.counters().items():
            if name != "candidates":
                total[name] += amount
            elif self._current is self._plain:
                total[name] = amount
        return {**total, "switches": self._switches, "recomputed": self._plain.counters()["snapshots"]}
