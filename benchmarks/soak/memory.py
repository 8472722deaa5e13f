"""Whether memory stays flat: samples of every process, and one slope for each role.

Processes of a role come and go. Each has a level of its own, so the slope is that of least squares with an intercept
for each process. What a process needs in its first two minutes, for code and caches, does not count: a driver has 190
MiB after one minute, 211 after a minute and a half, and 210 to 222 for the rest of half an hour.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from benchmarks.soak import processes
from benchmarks.soak.processes import Process

WARM_UP = 120.0
"""Seconds of each process that do not count."""
LEAST = 180.0
"""Seconds of a role, over its processes, without which its slope says nothing."""
STEEPEST = 1.0
"""MiB per minute that a role may grow: more than that is a leak, or would be one by tomorrow."""
JUDGED = (processes.DRIVER, processes.WORKER, processes.BESIDE, processes.COORDINATOR)
"""Roles whose slope is judged. A JVM's memory rises to its heap's size in its own time: there the most counts."""
JVMS = (processes.DRIVER_JVM, processes.EXECUTOR)
JVM_BEYOND_HEAP = 700.0
"""MiB that a JVM may hold beside its heap."""
MIB = float(1 << 20)


@dataclass
class Series:
    """The samples of one process: seconds and bytes."""

    moments: list[float] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Verdict:
    """What the samples of one role come to."""

    role: str
    processes: int
    seconds: float
    """After the warm-up, of all processes together."""
    most: float
    """MiB, of one process."""
    slope: float | None
    """MiB per minute; None where there is too little to tell."""
    bound: float | None
    flat: bool | None
    """None where it should be judged, and there is too little to tell."""


class Memory:
    """Samples by process."""

    def __init__(self, heaps: Mapping[str, float]) -> None:
        """`heaps`: MiB of heap that JVMs have, by role."""
        self._heaps = heaps
        self._series: dict[Process, Series] = {}

    def sample(self, moment: float, running: Iterable[Process]) -> None:
        """Note how much each process holds now."""
        for process in running:
            if size := process.resident():
                series = self._series.setdefault(process, Series())
                series.moments.append(moment)
                series.sizes.append(size)

    def verdicts(self) -> list[Verdict]:
        """One for each role that was there, in a fixed order."""
        roles = sorted({process.role for process in self._series} - {processes.OTHER})
        return [self._verdict(role) for role in roles]

    def _verdict(self, role: str) -> Verdict:
        mine = [series for process, series in self._series.items() if process.role == role]
        most = max(max(series.sizes) for series in mine) / MIB
        warm = [_after(series, WARM_UP) for series in mine]
        seconds = sum(series.moments[-1] - series.moments[0] for series in warm if series.moments)
        slope = slope_of(warm) if seconds >= LEAST else None
        if role not in JUDGED:
            bound = self._heaps[role] + JVM_BEYOND_HEAP if role in JVMS else None
            return Verdict(role, len(mine), seconds, most, slope, bound, bound is None or most <= bound)
        return Verdict(role, len(mine), seconds, most, slope, STEEPEST, None if slope is None else slope <= STEEPEST)


def _after(series: Series, warm_up: float) -> Series:
    first = int(np.searchsorted(series.moments, series.moments[0] + warm_up))
    return Series(series.moments[first:], series.sizes[first:])


def slope_of(parts: Iterable[Series]) -> float:
    """MiB per minute: least squares with an intercept for each process.

    >>> slope_of([Series([0.0, 60.0], [0, 1 << 20]), Series([500.0, 560.0, 620.0], [9 << 20, 10 << 20, 11 << 20])])
    1.0
    """
    above = below = 0.0
    for series in parts:
        if len(series.moments) > 1:
            minutes = np.array(series.moments) / 60
            sizes = np.array(series.sizes) / MIB
            minutes = minutes - minutes.mean()
            above += float(minutes @ (sizes - sizes.mean()))
            below += float(minutes @ minutes)
    return above / below if below else 0.0
