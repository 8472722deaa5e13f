"""Who was in the answer when, and with which values: for the page's timeline and its slider.

A *version* is a stretch of time in which a row of the answer kept its values. A stay is one version or several in a
row. Ended versions are kept up to a number; where older ones went, the history begins later.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from skytide.dashboard.rows import Values
from skytide.model import Floats

MOST_POINTS = 2_000


class Version(NamedTuple):
    """A row of the answer from `start` to `end` (not a number while it lasts); it entered at `entered`."""

    key: str
    entered: float
    start: float
    end: float
    values: Values
    probability: float | None = None


@dataclass(frozen=True)
class Stay:
    """One stay of a row: `end` is None while it lasts."""

    key: str
    start: float
    end: float | None
    values: Values


class History:
    """All versions, the last `keep` of those that ended; see the module.

    >>> history = History()
    >>> history.enter("a", 1.0, (5,)); history.enter("b", 2.0, (4,))
    >>> history.leave("a", 3.0).values
    (5,)
    >>> [version.key for version in history.at(2.5)], [version.key for version in history.at(3)]
    (['a', 'b'], ['b'])
    >>> history.sizes()
    (array([1., 2., 3.]), array([1, 2, 1]))
    """

    def __init__(self, keep: int = 200_000) -> None:
        self._keep = max(1, keep)
        self.open: dict[str, Version] = {}
        self._ended: list[Version] = []
        self._starts: Floats = np.empty(0)
        self._ends: Floats = np.empty(0)
        self._counted = 0
        self.begins = -math.inf
        """What was before this is not known any more."""
        self._times: list[float] = []
        self._sizes: list[int] = []

    def enter(self, key: str, time: float, values: Values, probability: float | None = None) -> None:
        """A row enters the answer."""
        self.open[key] = Version(key, time, time, math.nan, values, probability)
        self._size(time)

    def leave(self, key: str, time: float) -> Version | None:
        """A row leaves; its version, or None where it was not there."""
        version = self.open.pop(key, None)
        if version is not None:
            if time < version.start:
                version = self._before(version, time)
            version = version._replace(end=time)
            self._end(version)
            self._size(time)
        return version

    def _before(self, version: Version, time: float) -> Version:
        """The version of a stay in which it ends: it had moved, as it seemed, later than that. O(versions)."""
        mine = [one for one in self._ended if one.key == version.key and one.entered == version.entered]
        self._ended = [one for one in self._ended if one.end <= time or one not in mine]
        self._counted = 0
        return next((one for one in reversed(mine) if one.start <= time), version._replace(start=time))

    def move(self, key: str, time: float, values: Values) -> None:
        """A row of the answer has new values from a time on, which is not before it entered."""
        version = self.open[key]
        time = max(time, version.start)
        if time > version.start:
            self._end(version._replace(end=time))
        self.open[key] = version._replace(start=time, values=values)

    def rate(self, key: str, probability: float) -> None:
        """A row of the answer has another probability now; the history keeps the last one of each version."""
        self.open[key] = self.open[key]._replace(probability=probability)

    def at(self, time: float) -> list[Version]:
        """The versions that lasted at a time, in the order in which they began. O(versions)."""
        starts, ends = self._arrays()
        found = [self._ended[place] for place in np.flatnonzero((starts <= time) & (time < ends)).tolist()]
        found += [version for version in self.open.values() if version.start <= time]
        return sorted(found, key=lambda version: (version.entered, version.key))

    def last(self, key: str) -> Values | None:
        """The values of the last stay of a row that is not in the answer. O(versions)."""
        return next((version.values for version in reversed(self._ended) if version.key == key), None)

    def versions(self, most: int) -> tuple[list[Version], float]:
        """The last `most` versions that ended and all that last, and since when they are all there are."""
        ended = sorted(self._ended, key=lambda version: version.end)
        kept = ended[max(0, len(ended) - most) :]
        begins = max(self.begins, ended[-len(kept) - 1].end) if len(kept) < len(ended) else self.begins
        return [*kept, *self.open.values()], begins

    def stays(self, key: str | None = None, most: int = 60) -> list[Stay]:
        """The stays of one row, or of the rows that stayed longest in total, longest first. O(versions)."""
        latest = self._times[-1] if self._times else 0.0
        total: dict[str, float] = {}
        stays: dict[str, list[Stay]] = {}
        for stay in self._joined(key):
            stays.setdefault(stay.key, []).append(stay)
            total[stay.key] = total.get(stay.key, 0.0) + (latest if stay.end is None else stay.end) - stay.start
        longest = sorted(total, key=lambda one: (-total[one], one))[:most]
        return [stay for one in longest for stay in sorted(stays[one], key=lambda stay: stay.start)]

    def _joined(self, key: str | None) -> Iterator[Stay]:
        """Versions of one stay have the time in common at which it began."""
        found: dict[tuple[str, float], Version] = {}
        for version in self._ended:
            if key is None or version.key == key:
                place = (version.key, version.entered)
                if place not in found or found[place].end < version.end:
                    found[place] = version
        for version in self.open.values():
            if key is None or version.key == key:
                found.pop((version.key, version.entered), None)
                yield Stay(version.key, version.entered, None, version.values)
        for version in found.values():
            yield Stay(version.key, version.entered, version.end, version.values)

    def sizes(self, most: int = MOST_POINTS) -> tuple[Floats, np.ndarray[tuple[int], np.dtype[np.int64]]]:
        """The size of the answer after each instant; of more than `most` instants an even choice, with the last."""
        times, sizes = np.array(self._times), np.array(self._sizes, dtype=np.int64)
        if len(times) > most:
            chosen = np.unique(np.linspace(0, len(times) - 1, most).round().astype(np.int64))
            times, sizes = times[chosen], sizes[chosen]
        return times, sizes

    def _size(self, time: float) -> None:
        if self._times and self._times[-1] >= time:
            self._sizes[-1] = len(self.open)
        else:
            self._times.append(time)
            self._sizes.append(len(self.open))
            if len(self._times) > 100 * MOST_POINTS:
                del self._times[1:-1:2], self._sizes[1:-1:2]

    def _end(self, version: Version) -> None:
        self._ended.append(version)
        if len(self._ended) > 2 * self._keep:
            ended = sorted(self._ended, key=lambda one: one.end)
            self.begins = max(self.begins, ended[-self._keep - 1].end)
            self._ended = ended[-self._keep :]
            self._counted = 0

    def _arrays(self) -> tuple[Floats, Floats]:
        fresh = self._ended[self._counted :]
        if fresh or not self._counted:
            before = self._starts[: self._counted], self._ends[: self._counted]
            self._starts = np.concatenate([before[0], [version.start for version in fresh]])
            self._ends = np.concatenate([before[1], [version.end for version in fresh]])
            self._counted = len(self._ended)
        return self._starts, self._ends
