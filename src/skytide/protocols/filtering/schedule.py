"""Which timestamps are sampled, as the server and all clients know without a word, and at which rate.

zhang09c lets every client draw the same pseudo-random sequence. Here numbers are counted, not drawn: x_t is a hash of
the seed and t (two rounds of the mixing function of SplitMix64, Steele, Lea, Flood 2014), so that a client that joins
late knows x_t without drawing t numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from skytide.errors import OptionError
from skytide.protocols.stored import Contents, must

_WORD = (1 << 64) - 1
_STEP = 0x9E3779B97F4A7C15


def _mixed(word: int) -> int:
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _WORD
    return word ^ (word >> 31)


def number_at(seed: int, time: int) -> int:
    """The number from 0 to 2^64 - 1 that belongs to a timestamp. O(1).

    >>> number_at(1, 5) == number_at(1, 5), number_at(1, 5) == number_at(2, 5)
    (True, False)
    """
    return _mixed((_mixed((seed + _STEP) & _WORD) + (time + 1) * _STEP) & _WORD)


class Schedule(NamedTuple):
    """The seed and the rate that the server tells clients.

    >>> schedule = Schedule(seed=7, rate=0.25)
    >>> [time for time in range(20) if schedule.sampled(time)]
    [5, 9, 12, 13]
    """

    seed: int
    rate: float

    def sampled(self, time: int) -> bool:
        """Whether a timestamp is sampled: x_t < R. O(1)."""
        return self.rate >= 1.0 or number_at(self.seed, time) < int(self.rate * 2.0**64)


def stored_schedule(contents: Contents) -> Schedule:
    """The schedule that was stored as a list."""
    seed, rate = contents.meta["schedule"]
    must(type(seed) is int and 0 <= seed < 1 << 64 and type(rate) is float and 0.0 < rate <= 1.0, "schedule")
    return Schedule(seed, rate)


def sampling_rate(pairs: Sequence[tuple[Fraction, int]], epsilon: float, delta: float) -> float:
    """R of Theorem 5.1, the largest over several queries (theta, s), at most 1.

    Corollary 1 prints the root over both terms; the theorem is right.

    >>> round(sampling_rate([(Fraction("0.8"), 1000)], epsilon=0.2, delta=0.1), 3)
    0.178
    """
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        if not 0.0 < value < 1.0:
            raise OptionError(f"is not a usable {name}", value=value, remedy="give a number between 0 and 1")
    doubt = math.log(1.0 / delta)
    rates = (math.sqrt(doubt / (2 * s)) + 2 * doubt / (epsilon**2 * float(theta) * s) for theta, s in pairs)
    return min(1.0, max(rates))
