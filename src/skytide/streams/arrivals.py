"""When rows arrive: steadily, or in the spikes of tao06, Section 6.2.

The paper draws gaps from normal distributions of mean 0.1 and 5e-5 seconds, half of which would be negative at the
variance it prints. Ours are exponential with the same means: 29 seconds at 10 rows a second, then one at 20,000.
"""

from __future__ import annotations

import numpy as np

from skytide.errors import OptionError
from skytide.model import Floats
from skytide.streams.generators import block_source, check_whole, source_key


def steady_times(n: int, rate: float = 10.0, *, start: int = 0) -> Floats:
    """The times of rows start ... start + n of a stream with `rate` rows per second. O(n).

    >>> steady_times(3, rate=10).tolist()
    [0.0, 0.1, 0.2]
    """
    check_whole("a number of rows", n, least=0)
    check_whole("a position", start, least=0)
    _check_positive("a rate", rate)
    return np.arange(start, start + n) / rate


def spike_times(
    periods: int,
    seed: int = 0,
    *,
    calm: float = 29.0,
    burst: float = 1.0,
    calm_gap: float = 0.1,
    burst_gap: float = 5e-5,
    start: int = 0,
) -> Floats:
    """Arrival times, in order, over so many periods of a calm and a burst, from period `start` on. O(rows).

    The gaps are means, in the unit of the lengths. Every period has its own random source, so that a period is the
    same however many are asked for.

    >>> times = spike_times(2, seed=1)
    >>> bool((np.diff(times) >= 0).all()), 39_000 < len(times) < 42_000
    (True, True)
    """
    check_whole("a number of periods", periods, least=0)
    check_whole("a period", start, least=0)
    for what, value in (("a length", calm), ("a length", burst), ("a gap", calm_gap), ("a gap", burst_gap)):
        _check_positive(what, value)
    entropy = source_key(seed, "spikes")
    found = [np.zeros(0)]
    for period in range(start, start + periods):
        source = block_source(entropy, period)
        begin = period * (calm + burst)
        found.append(_poisson(source, begin, calm, calm_gap))
        found.append(_poisson(source, begin + calm, burst, burst_gap))
    return np.concatenate(found)


def _poisson(source: np.random.Generator, begin: float, length: float, gap: float) -> Floats:
    times = np.zeros(0)
    reached = 0.0
    while reached < length:
        # A few more than needed on average, so that one draw is nearly always enough.
        expected = (length - reached) / gap
        more = reached + np.cumsum(source.exponential(gap, int(expected + 4 * expected**0.5) + 8))
        times = np.concatenate([times, more])
        reached = float(more[-1])
    return begin + times[times < length]


def _check_positive(what: str, value: float) -> None:
    if not 0 < value < np.inf:
        raise OptionError(f"is not {what}", value=value, remedy="give a finite number above 0")
