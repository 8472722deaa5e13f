"""The plain method: the skyline of all objects, computed anew for every snapshot."""

from __future__ import annotations

import numpy as np

from skytide.kernel.batch import skyline_work
from skytide.model import Booleans, Floats, Integers
from skytide.monitors.snapshots.engine import Flips, Updates, flips_of


class RecomputeEngine:
    """Keeps the objects' points and asks the batch kernel after every snapshot: O(what a skyline of them costs)."""

    def __init__(self, dimensions: int) -> None:
        self._points: Floats = np.zeros((0, dimensions))
        self._live: Booleans = np.zeros(0, bool)
        self._shown: Booleans = np.zeros(0, bool)
        self._work = {"snapshots": 0, "sky_tests": 0, "candidates": 0, "candidates_seen": 0}

    def run(self, updates: Updates) -> Flips:
        """Play the snapshots; whose membership changed from one to the next."""
        self._reserve(int(updates.slots.max(initial=-1)) + 1)
        found = []
        for i in range(updates.snapshots):
            start, stop = updates.cuts[i], updates.cuts[i + 1]
            slots = updates.slots[start:stop]
            # Of several updates of one object the last one stays, as they are applied in order.
            self._points[slots] = updates.rows[start:stop]
            self._live[slots] = updates.gone[start:stop] == 0
            found.append(self._flips(i))
        return flips_of(np.concatenate([np.zeros((3, 0), np.int64), *found], axis=1))

    def _flips(self, snapshot: int) -> Integers:
        inside = self._inside()
        changed = np.flatnonzero(inside != self._shown)
        self._shown = inside
        signs = np.where(inside[changed], 1, -1)
        return np.stack((np.full(len(changed), snapshot), signs, changed))

    def _inside(self) -> Booleans:
        everybody = bool(self._live.all())
        points = self._points if everybody else self._points[self._live]
        self._work["snapshots"] += 1
        self._work["candidates"] = len(points)
        self._work["candidates_seen"] += len(points)
        if not len(points):
            return np.zeros(len(self._live), bool)
        work = skyline_work(points, threads=1)
        self._work["sky_tests"] += work.tests + work.screens // 8
        if everybody:
            return work.mask
        inside = np.zeros(len(self._live), bool)
        inside[self._live] = work.mask
        return inside

    def _reserve(self, slots: int) -> None:
        have = len(self._live)
        if slots > have:
            room = max(slots, 2 * have) - have
            self._points = np.concatenate((self._points, np.zeros((room, self._points.shape[1]))))
            self._live = np.concatenate((self._live, np.zeros(room, bool)))
            self._shown = np.concatenate((self._shown, np.zeros(room, bool)))

    def objects(self) -> tuple[Floats, Booleans]:
        """The points by slot, and which slots hold an object."""
        return self._points, self._live

    def skyline(self) -> Integers:
        """The slots in the skyline."""
        return np.flatnonzero(self._shown)

    def load(self, points: Floats, live: Booleans) -> None:
        """Start afresh from objects, without telling changes."""
        self._points, self._live = points.copy(), live.copy()
        self._shown = self._inside()

    def counters(self) -> dict[str, int]:
        """Snapshots, dominance tests (eight comparisons of codes count as one), objects, bytes held now."""
        held = (self._points, self._live, self._shown)
        return {**self._work, "memory_bytes": sum(part.nbytes for part in held)}
