"""Which timestamps the sampling methods of zhang09c sample: Theorem 5.1, and the numbers that everybody draws.

The numbers are those of SplitMix64 (Steele, Lea, Flood 2014), one for each timestamp in turn, by a generator whose seed
is the first number that another one gives for the seed of the query. Timestamp t is sampled where its number is below
R · 2^64. Corollary 1 of the paper prints the root over both terms of R; the theorem, which is right, does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction

_DIGITS = 60
_NUMBERS = 2**64


def splitmix64(seed: int) -> Iterator[int]:
    """The endless sequence of numbers from 0 to 2^64 - 1 that belongs to a seed.

    >>> numbers = splitmix64(1234567)
    >>> next(numbers), next(numbers)
    (6457827717110365317, 3203168211198807973)
    """
    state = seed
    while True:
        state = (state + 0x9E3779B97F4A7C15) % _NUMBERS
        number = (state ^ state // 2**30) * 0xBF58476D1CE4E5B9 % _NUMBERS
        number = (number ^ number // 2**27) * 0x94D049BB133111EB % _NUMBERS
        yield number ^ number // 2**31


def rate(theta: Fraction, over: int, epsilon: float, delta: float) -> Fraction:
    """R of Theorem 5.1 for one query, to 60 digits: sqrt(ln(1/delta) / 2s) + 2 ln(1/delta) / (epsilon² theta s).

    It is at most 1.

    >>> round(float(rate(Fraction("0.8"), 1000, epsilon=0.2, delta=0.1)), 4)
    0.1778
    """
    with localcontext(prec=_DIGITS):
        doubt = -Decimal(delta).ln()
        first = (doubt / (2 * over)).sqrt()
        share = Decimal(theta.numerator) / Decimal(theta.denominator)
        second = 2 * doubt / (Decimal(epsilon) ** 2 * share * over)
        return min(Fraction(1), Fraction(first + second))


class Sampled:
    """The timestamps, from 0, that a query samples.

    >>> sampled = Sampled(Fraction("0.8"), 1000, epsilon=0.2, delta=0.1, seed=1)
    >>> [time for time in range(20) if sampled(time)]
    [2, 8, 12, 19]
    """

    def __init__(self, theta: Fraction, over: int, *, epsilon: float, delta: float, seed: int) -> None:
        self._bar = rate(theta, over, epsilon, delta) * _NUMBERS
        self._numbers = splitmix64(next(splitmix64(seed)))
        self._drawn: list[bool] = []

    def __call__(self, time: int) -> bool:
        """Whether a timestamp is sampled. O(time), once."""
        while len(self._drawn) <= time:
            self._drawn.append(next(self._numbers) < self._bar)
        return self._drawn[time]
