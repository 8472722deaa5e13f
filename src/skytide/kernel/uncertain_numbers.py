"""Products of (1 - P) that can be multiplied and divided for ever without drift, and their exact comparison.

zhang09p multiplies 1 - P into P_new and P_old and divides it out again. Here log(1 - P) is a number in fixed point, two
int64 (`HIGH` in units of 2^-30, `LOW` in units of 2^-68), so that sums are exact, in any order, and what has been added
can be taken away. A certain row (P = 1) has the weight -1024: no sum that holds one reaches any threshold, and taking
it away again is as exact as anything else; the paper's 0 / 0 does not come up. There is room for 8 million such weights
in one sum. A sum over m rows is off by less than m 2^-69 plus the rounding of the logarithms, 2^-53 of their sum.

Where a sum is nearer to a threshold than that can tell, the product itself decides, in doubled precision.
"""

from __future__ import annotations

import math

import numpy as np

from skytide.kernel.rtree_lanes import lean
from skytide.model import Floats

HIGH_UNIT, LOW_UNIT = 2.0**30, 2.0**68
CERTAIN = -1024.0
"""The weight of a row with P = 1, below the logarithm of the smallest float."""
SLACK = 1e-9
"""Rows whose product is below the smallest threshold by less than this, relatively, are kept: any more are harmless."""
PARTS = 10**12
"""A probability reaches a threshold when it is at least (PARTS - 1) / PARTS of it."""
_SPLITTER = 2.0**27 + 1
BAR, MARGIN, LEVEL = range(3)
"""Lines of the array `bars`, a column per threshold: the logarithm to reach, how near to it the product decides, and
the threshold."""


def bars_of(thresholds: Floats) -> Floats:
    """The columns that `band_of` compares with, for thresholds in falling order."""
    bars = np.empty((3, len(thresholds)))
    bars[BAR] = np.log(thresholds) + math.log1p(-1 / PARTS)
    bars[MARGIN] = 1e-13 + 1e-15 * np.abs(bars[BAR])
    bars[LEVEL] = thresholds
    return bars


@lean
def weight(p: float) -> tuple[int, int]:
    """The weight log(1 - p) in fixed point, for p in (0, 1].

    >>> float(value(*weight(0.5))) - math.log(0.5), float(value(*weight(1.0)))
    (0.0, -1024.0)
    """
    log = max(np.log1p(-p), CERTAIN)
    high = np.floor(log * HIGH_UNIT)
    low = np.rint((log - high / HIGH_UNIT) * LOW_UNIT)
    return int(high), int(low)


@lean
def value(high: int, low: int) -> float:
    """A sum in fixed point as a float."""
    return high / HIGH_UNIT + low / LOW_UNIT


@lean
def _two_product(a: float, b: float) -> tuple[float, float]:
    """a * b as the sum of two floats, exactly (Dekker)."""
    product = a * b
    scaled = _SPLITTER * a
    a_high = scaled - (scaled - a)
    a_low = a - a_high
    scaled = _SPLITTER * b
    b_high = scaled - (scaled - b)
    b_low = b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


@lean
def times(high: float, low: float, other_high: float, other_low: float) -> tuple[float, float]:
    """The product of two numbers that are sums of two floats each, good to about 2^-102."""
    product, error = _two_product(high, other_high)
    error += high * other_low + low * other_high
    total = product + error
    return total, error - (total - product)


@lean
def complement(p: float) -> tuple[float, float]:
    """1 - p as the sum of two floats, exactly, for p in (0, 1]."""
    high = 1.0 - p
    return high, (1.0 - high) - p


@lean
def product_reaches(high: float, low: float, threshold: float) -> bool:
    """Whether a probability, given as the sum of two floats, reaches the threshold."""
    high, low = times(high, low, float(PARTS), 0.0)
    bar, rest = _two_product(threshold, float(PARTS - 1))
    return bool(high > bar or (high == bar and low >= rest))
