"""A whole series played by every method in turn: processor time, answers compared, and where the time of boxes goes.

The methods are `mbr`, `auto` and `recompute` at the level of engines (arrays in, changes as arrays out), moocore on the
live points of each snapshot, or of evenly spaced ones where all would take too long, and `Snapshots.extend`, from ids
and times to changes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import moocore
import numpy as np
import pyarrow as pa

import skytide as sk
from benchmarks.papers.udom14.series import Series
from skytide.model import Booleans, Floats, Integers
from skytide.monitors.snapshots.boxes import PATIENCE, BoxEngine
from skytide.monitors.snapshots.choice import maker
from skytide.monitors.snapshots.engine import Flips, Updates

Line = dict[str, Any]
ENGINES = ("mbr", "auto", "recompute")
ROWS = 1 << 17
"""Rows of a call of extend."""
LEAST = 40
"""Snapshots on which moocore is measured at least, if there are so many."""


@dataclass
class Played:
    """What a method took, at best, and what it found."""

    seconds: float = np.inf
    spent: float = 0.0
    answer: Integers = field(default_factory=lambda: np.zeros((3, 0), np.int64))
    counters: dict[str, int] = field(default_factory=dict)


@dataclass
class Contest:
    """What all methods took for a series, and whether their answers are equal."""

    series: Series
    played: dict[str, Played]
    moocore: float
    """Seconds per snapshot."""
    asked: int
    """Snapshots on which moocore ran."""
    equal: bool

    def per_snapshot(self, method: str) -> float:
        """Microseconds."""
        return 1e6 * self.played[method].seconds / self.series.updates.snapshots

    def faster(self, method: str, than: str) -> float:
        """How many times as fast."""
        seconds = self.moocore * self.series.updates.snapshots if than == "moocore" else self.played[than].seconds
        return seconds / self.played[method].seconds

    def skyline(self) -> float:
        """The mean size of the skyline."""
        snapshots, signs, _ = self.played["recompute"].answer
        count = self.series.updates.snapshots
        return float(np.cumsum(np.bincount(snapshots, weights=signs, minlength=count)).mean())

    def candidates(self) -> float:
        """The mean number of candidates of the boxes."""
        return self.played["mbr"].counters["candidates_seen"] / self.series.updates.snapshots


def contest(series: Series, *, repeats: int, budget: float) -> Contest:
    """Every method in turn, the best of so many runs; none starts another run beyond its budget in seconds."""
    plays: dict[str, Callable[[], Played]] = {name: engine(name, series) for name in ENGINES}
    plays["extend"] = lambda: extend(series)
    played = {name: Played() for name in plays}
    which = _sample(series, budget / repeats)
    peer = np.inf
    found: list[Integers] = []
    for turn in range(repeats):
        for name, play in plays.items():
            if turn == 0 or played[name].spent + played[name].seconds <= budget:
                played[name] = better(played[name], play())
        seconds, found = ask_moocore(series.updates, which)
        peer = min(peer, seconds / len(which))
    answers = [one.answer for one in played.values()]
    same = all(np.array_equal(answers[0], other) for other in answers[1:])
    return Contest(series, played, peer, len(which), same and agrees(series, answers[0], which, found))


def better(one: Played, other: Played) -> Played:
    """The faster of two runs, with the time of both as spent."""
    faster = min(one, other, key=lambda played: played.seconds)
    return Played(faster.seconds, one.spent + other.seconds, faster.answer, faster.counters)


def engine(method: str, series: Series, patience: int = PATIENCE) -> Callable[[], Played]:
    """What plays the series with a fresh engine."""

    def play() -> Played:
        fresh = maker(method, series.dimensions, patience)()
        start = time.process_time()
        flips = fresh.run(series.updates)
        seconds = time.process_time() - start
        return Played(seconds, seconds, ordered(flips), fresh.counters())

    return play


def ordered(flips: Flips) -> Integers:
    """The changes in order of snapshots, then slots."""
    lines = np.stack(flips)
    return np.asarray(lines[:, np.lexsort((lines[2], lines[0]))])


def extend(series: Series) -> Played:
    """`Snapshots.extend` over the series, from ids and times to changes, a hundred thousand rows and more a call."""
    updates = series.updates
    ids = series.names[updates.slots] if series.names.dtype.kind == "i" else pa.array(series.names[updates.slots])
    times = np.repeat(series.moments, np.diff(updates.cuts))
    values = updates.rows * series.signs
    least, most = np.flatnonzero(series.signs > 0).tolist(), np.flatnonzero(series.signs < 0).tolist()
    monitor = sk.Snapshots(sk.Preference(minimize=least, maximize=most))
    found = []
    start = time.process_time()
    for first in range(0, len(ids), ROWS):
        part = slice(first, first + ROWS)
        found.append(monitor.extend(values[part], times=times[part], ids=ids[part]))
    found.append(monitor.advance(series.moments[-1]))
    seconds = time.process_time() - start
    told = [one for one in found if len(one)]
    flips = Flips(
        np.searchsorted(series.moments, np.concatenate([one.times for one in told])),
        np.concatenate([one.signs for one in told]).astype(np.int64),
        np.searchsorted(series.names, np.concatenate([one.ids for one in told]).astype(series.names.dtype)),
    )
    return Played(seconds, seconds, ordered(flips), monitor.stats())


# -- moocore -----------------------------------------------------------------------------------------------------------


def _sample(series: Series, seconds: float) -> Integers:
    """Snapshots on which moocore takes about so long, evenly spaced; all of them where that is possible."""
    count = series.updates.snapshots
    few = np.unique(np.linspace(0, count - 1, min(count, 10)).round().astype(np.int64))
    spent, _ = ask_moocore(series.updates, few)
    most = max(LEAST, int(seconds / (spent / len(few))))
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.int64))


def ask_moocore(updates: Updates, which: Integers) -> tuple[float, list[Integers]]:
    """moocore's time on the live points of these snapshots, and their skylines; moving the points is not timed."""
    slots = int(updates.slots.max(initial=-1)) + 1
    points: Floats = np.zeros((slots, updates.rows.shape[1]))
    live: Booleans = np.zeros(slots, bool)
    seconds, found, done = 0.0, [], 0
    for snapshot in which.tolist():
        stop = int(updates.cuts[snapshot + 1])
        # Of several updates of one object the last one stays, as they are applied in order.
        points[updates.slots[done:stop]] = updates.rows[done:stop]
        live[updates.slots[done:stop]] = updates.gone[done:stop] == 0
        done = stop
        held = np.flatnonzero(live)
        now = points[held]
        start = time.process_time()
        inside = moocore.is_nondominated(now, keep_weakly=True)
        seconds += time.process_time() - start
        found.append(held[np.asarray(inside, bool)])
    return seconds, found


def agrees(series: Series, answer: Integers, which: Integers, found: list[Integers]) -> bool:
    """Whether the skylines that the changes lead to are those of the sampled snapshots."""
    inside = np.zeros(series.objects, bool)
    done = 0
    for snapshot, skyline in zip(which.tolist(), found, strict=True):
        stop = int(np.searchsorted(answer[0], snapshot, side="right"))
        inside[answer[2, done:stop]] = answer[1, done:stop] > 0
        done = stop
        if not np.array_equal(np.flatnonzero(inside), skyline):
            return False
    return True


# -- phases ------------------------------------------------------------------------------------------------------------


def phases(series: Series, seconds: float, *, repeats: int, patience: int = PATIENCE) -> Floats:
    """Microseconds per snapshot in PRE, SKY and POST, where the boxes take so many seconds for the series.

    Phases can be timed from outside only, one call each. What the calls cost without any object is taken off, and the
    three are scaled to the time that the series takes in one call.
    """
    updates = series.updates
    idle = Updates(updates.slots[:0], updates.rows[:0], updates.gone[:0], np.zeros(1001, np.int64))
    best, calls = np.full(3, np.inf), np.full(3, np.inf)
    for _ in range(repeats):
        for part, least in ((updates, best), (idle, calls)):
            fresh = BoxEngine(series.dimensions, patience=patience, timed=True)
            fresh.run(part)
            np.minimum(least, fresh.seconds / part.snapshots, out=least)
    split = np.maximum(0, best - calls)
    return np.asarray(1e6 * seconds / updates.snapshots * split / max(split.sum(), 1e-12))
