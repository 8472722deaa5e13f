"""Event time as Spark's watermark sees it, so that Spark keeps our time and drops nothing of ours.

Spark's watermark is a TIMESTAMP in whole milliseconds, never below 1970, and lags behind the largest value seen by a
constant. Our times are whole numbers, real numbers or microseconds, anywhere, and an instant is closed by exact rules
(`skytide.monitors.sliding.clock`). So every row carries a tick: the number of the last instant that the row closes,
squeezed monotonically into the milliseconds that a TIMESTAMP has. The watermark is then the largest tick of the
batches before, and `closed_by` says which instants that closes. A task computes one tick, of its latest row.

Squeezing is exact for whole numbers within 2^51 of the origin (microseconds: from 1928 to 2071), and coarser by 2^12
beyond. Real numbers have a resolution of 2^-42 of their size. Where it is not exact, an instant closes a little later
than it could, never earlier.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from skytide.model import Window
from skytide.monitors.sliding.clock import LOWEST, Clock

_NEAR = 2**51
_COARSE = 2**12
_MIDDLE = 2**52
_YEAR_2000_MICROSECONDS = 946_684_800_000_000
_FURTHEST = 2**62 - 1
_LAST_TICK = 2**53
"""No tick is so large; a TIMESTAMP has room for it."""

# Real numbers: sign * log1p(|x| * _SCALE) lies within 800 of zero for every float64, and has ticks of 2^-42.
_SCALE = 2.0**20
_SHIFT = 800.0
_FINE = 2.0**42
_LARGEST = 1e300
_SLACK = 4
"""Ticks by which the logarithms of two machines may differ, at most."""


@dataclass(frozen=True)
class EventClock:
    """The clock of one window over times of one kind: `whole`, `real` or `us` (microseconds since 1970)."""

    window: Window
    kind: str
    _clock: Clock = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        clock = Clock(self.window)
        clock.settle(self.kind)
        object.__setattr__(self, "_clock", clock)

    @property
    def keys(self) -> Clock:
        """Times as int64 keys and back."""
        return self._clock

    @property
    def _lateness(self) -> float | int:
        return self._clock.lateness

    @property
    def _origin(self) -> int:
        return _YEAR_2000_MICROSECONDS if self.kind == "us" else 0

    def tick(self, latest: int) -> int:
        """The tick of a row at this key: the largest watermark that closes nothing which the row does not close."""
        closed = self._clock.closed_by(latest)
        low, high = 0, _LAST_TICK
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.closed_by(middle) <= closed else (low, middle)
        return low

    def closed_by(self, watermark: int) -> int:
        """The key of the last instant that is closed at a watermark, in ticks; the lowest key before the first."""
        if watermark <= 0:
            return LOWEST
        return self._closed_real(watermark) if self.kind == "real" else self._closed_whole(watermark)

    def _closed_whole(self, watermark: int) -> int:
        x = watermark - _MIDDLE
        if x > _NEAR:
            x = _NEAR + (x - _NEAR) * _COARSE
        elif x < -_NEAR:
            x = -_NEAR + (x + _NEAR) * _COARSE - (_COARSE - 1)
        return max(LOWEST + 1, min(x + self._origin, _FURTHEST))

    def _closed_real(self, watermark: int) -> int:
        most = math.log1p(_LARGEST * _SCALE)
        size = max(-most, min((watermark - _SLACK) / _FINE - _SHIFT, most))
        x = math.copysign(math.expm1(abs(size)) / _SCALE, size)
        return int(self._clock.keys(np.array([x - self._lost(x)]))[0])

    def _lost(self, x: float) -> float:
        """What may be lost when the lateness is subtracted here and added there."""
        return 4e-16 * (abs(x) + 2 * abs(float(self._lateness)))

    def tick_that_closes(self, key: int) -> int:
        """A watermark, in ticks, at which the instant is closed: the least one, or one a little later."""
        if self.kind == "real":
            x = float(self._clock.times(np.array([key]))[0])
            x += 2 * self._lost(x)
            size = math.copysign(math.log1p(min(abs(x), _LARGEST) * _SCALE), x)
            tick = int((size + _SHIFT) * _FINE) + _SLACK
        else:
            x_whole = key - self._origin
            size_whole = abs(x_whole)
            if size_whole > _NEAR:
                size_whole = _NEAR + -(-(size_whole - _NEAR) // _COARSE)
            tick = (size_whole if x_whole >= 0 else -size_whole) + _MIDDLE
        for later in range(tick, tick + 4 * _SLACK):
            if self.closed_by(later) >= key:
                return later
        return tick + 4 * _SLACK  # an instant beyond what ticks tell apart
